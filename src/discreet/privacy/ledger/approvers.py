"""Who may approve: the keys that a ledger knows, and what it asks of a request.

In: statements about approvers, oldest first, sealed in the ledger like those about populations, and
a signed request. Out: the approvers who signed it, or a refusal. The first keys are entered by
whoever makes the ledger, as many as it asks for: before that it accepts no release at all, so
nothing is at stake. After that a key is entered or retired only by a request which as many of the
present approvers have signed as a release needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from discreet.errors import BadUsage, NotAllowed
from discreet.privacy.ledger.request import Request, make_request
from discreet.privacy.ledger.signatures import check_public, is_signed, make_fingerprint

HOW = (
    "Write a request with 'discreet steward propose', have it signed with 'discreet steward "
    "approve', and release it with 'discreet release --request' (in Python "
    "discreet.release_request)"
)


@dataclass(frozen=True)
class Approver:
    """A statement about an approver: entered, or retired.

    ``after`` is the number of releases in the ledger at that time, ``request`` the signed request
    that made it so, where one was needed.
    """

    name: str
    public_key: str
    retires: bool = False
    after: int = 0
    declared_at: str = ""
    request: Mapping[str, Any] | None = None

    @property
    def fingerprint(self) -> str:
        """What people compare."""
        return make_fingerprint(self.public_key)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        values = asdict(self)
        return {"approver": values.pop("name"), **values}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Approver:
        """Rebuild a statement from `to_dict`."""
        fields = {name: one for name, one in values.items() if name != "approver"}
        return cls(values["approver"], **fields)

    def describe(self) -> dict[str, str]:
        """Return what a release says about whoever approved it."""
        return {"name": self.name, "key": self.fingerprint}


@dataclass(frozen=True)
class Board:
    """The approvers of a ledger at one moment, how many it needs, and which requests it has seen.

    ``statements`` are all of them, oldest first; ``used`` the nonces of requests that were carried
    out.
    """

    ledger: str
    needed: int
    statements: tuple[Approver, ...]
    used: frozenset[str]

    @property
    def approvers(self) -> tuple[Approver, ...]:
        """Return whoever may approve now."""
        now: dict[str, Approver] = {}
        for statement in self.statements:
            now.pop(statement.name, None)
            if not statement.retires:
                now[statement.name] = statement
        return tuple(now.values())

    @property
    def is_open(self) -> bool:
        """Whether keys may still be entered without a request."""
        return not self.needed or len(self.statements) < self.needed

    def check_release(self, request: Request | None) -> list[Approver]:
        """Return who approved a release, or refuse it."""
        if request is None:
            if self.needed:
                raise NotAllowed(
                    f"this ledger takes only releases approved by {count_approvers(self.needed)}. "
                    f"{HOW}"
                )
            return []
        return self.check_signed(request, "release")

    def check_signed(self, request: Request, purpose: str) -> list[Approver]:
        """Return who signed a request for this ledger, or refuse it."""
        if request.body["purpose"] != purpose:
            raise NotAllowed(f"this request is for another purpose: {request.body['purpose']}")
        if request.body["ledger"] != self.ledger:
            raise NotAllowed(
                f"this request is for the ledger {request.body['ledger']}, and this is "
                f"{self.ledger}"
            )
        if request.body["nonce"] in self.used:
            raise NotAllowed(
                "this request was carried out already; each is good for once. Propose another "
                "where something shall be released again"
            )
        signers = [self._find_signer(request, place) for place in range(len(request.signatures))]
        if len({one.public_key for one in signers}) < len(signers):
            raise NotAllowed("a key has signed this request twice; every signature counts once")
        if len(signers) < self.needed:
            raise NotAllowed(self._ask_for_more(signers))
        return signers

    def _ask_for_more(self, signers: list[Approver]) -> str:
        """Say who signed, and who still can."""
        signed = f" ({', '.join(one.name for one in signers)})" if signers else ""
        left = [one.name for one in self.approvers if one not in signers]
        more = self.needed - len(signers)
        whose = " and ".join(left) if len(left) <= more else f"{more} more of {', '.join(left)}"
        return (
            f"this ledger asks for the approval of {count_approvers(self.needed)}, and "
            f"{len(signers)} signed this request{signed}. Have it signed by "
            f"{whose or 'approvers, who must be entered first'}: discreet steward approve REQUEST "
            "--signing-key KEY"
        )

    def _find_signer(self, request: Request, index: int) -> Approver:
        signature = request.signatures[index]
        signer = next(
            (one for one in self.approvers if one.public_key == signature.public_key), None
        )
        if signer is None:
            raise NotAllowed(
                f"this request is signed with the key {make_fingerprint(signature.public_key)}, "
                "which is not of an approver of this ledger. Have it signed by those whom "
                "'discreet ledger show' names, from the request as it was before that signature, "
                "or propose it anew"
            )
        if not is_signed(signature.public_key, request.content, signature.signature):
            raise NotAllowed(
                f"the signature of {signer.name!r} does not fit this request: it was changed after "
                "it was signed, or signed for something else. Fetch it again as it was signed, or "
                "propose it anew"
            )
        return signer

    def check_change(self, change: Approver, request: Request | None) -> None:
        """Refuse to enter or retire a key in a way that this ledger does not allow."""
        _check_name(change.name)
        self.check_possible(change)
        if request is None:
            if self.is_open and not change.retires:
                return
            raise NotAllowed(
                f"this ledger has its {count_approvers(self.needed)}, so that another key needs "
                "their approval: write a request with --propose FILE, have it signed with "
                "'discreet steward approve', and enter it with 'discreet ledger approver LEDGER "
                "--request FILE'"
            )
        self.check_signed(request, "approver")

    def check_possible(self, change: Approver) -> None:
        """Refuse to enter a key or a name twice, and to retire one that is needed."""
        now = {one.name: one for one in self.approvers}
        if change.retires:
            if change.name not in now or now[change.name].public_key != change.public_key:
                raise BadUsage(f"no approver of this ledger is called {change.name!r}")
            if len(now) <= self.needed:
                raise NotAllowed(
                    f"without {change.name!r} fewer than {count_approvers(self.needed)} would be "
                    "left, and nobody could approve anything. Enter a successor first"
                )
            return
        check_public(change.public_key)
        if change.name in now:
            raise BadUsage(f"there is an approver called {change.name!r} already; retire it first")
        if any(one.public_key == change.public_key for one in self.statements):
            raise BadUsage(
                f"the key {change.fingerprint} was entered before; everybody needs a key of "
                "their own"
            )


def count_approvers(number: int) -> str:
    """Return the number with its word."""
    return f"{number} approver{'s' * (number != 1)}"


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.isprintable() or not name or name != name.strip():
        raise BadUsage(f"an approver needs a name of printable text, found {name!r}")


def list_used(
    statements: Iterable[Approver], requests: Iterable[Mapping[str, Any] | None]
) -> frozenset[str]:
    """Return the nonces of the requests that were carried out."""
    every = [*(one.request for one in statements), *requests]
    return frozenset(one["request"]["nonce"] for one in every if one is not None)


def check_approval_count(approvals: object) -> int:
    """Return how many approvals a ledger asks for, or refuse what is no such number."""
    if isinstance(approvals, bool) or not isinstance(approvals, int) or approvals < 0:
        raise BadUsage(f"approvals must be a whole number from 0 on, found {approvals!r}")
    return approvals


def propose_change(
    board: Board, name: str, public_key: str = "", *, retire: bool = False
) -> Request:
    """Write down that a key shall be entered or retired, for the present approvers to sign."""
    _check_name(name)
    if retire:
        public_key = next((one.public_key for one in board.approvers if one.name == name), "")
    change = Approver(name, public_key if retire else check_public(public_key), retire)
    board.check_possible(change)
    terms = {"name": name, "public_key": change.public_key, "retires": retire}
    return make_request("approver", board.ledger, terms)


def read_change(request: Request) -> Approver:
    """Return the change that a request asks for."""
    if request.body["purpose"] != "approver":
        raise NotAllowed(f"this request is for another purpose: {request.body['purpose']}")
    body = request.body
    return Approver(body["name"], body["public_key"], body["retires"], request=request.to_dict())
