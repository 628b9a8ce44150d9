"""What a ledger asks of a release: its policy, and approvals by signature.

In: a small TOML file, once, when a ledger is made, and statements about approvers, oldest first,
sealed in the ledger like those about populations; then public parameters and a signed request. Out:
a :class:`Policy`, a :class:`Board`, and refusals. No rule can depend on an answer: a refusal is
visible, and one that came from the answers would tell something about them. So the number of
persons that rules need is declared in advance, never counted.

The first keys are entered by whoever makes the ledger, as many as it asks for: before that it
accepts no release at all, so nothing is at stake. After that a key is entered or retired only by a
request which as many of the present approvers have signed as a release needs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Annotated, Literal

from discreet.choices import NamedMechanism, PlainDict, PlainMapping, Relation
from discreet.errors import BadUsage, NotAllowed
from discreet.hints import check_choice_name
from discreet.privacy.ledger.request import (
    Asked,
    Request,
    check_public,
    is_signed,
    make_fingerprint,
    make_request,
)
from discreet.schema import AtLeast, Positive, SchemaError, Within, read_as

#: What a rule about mechanisms may name; "auto" is no mechanism.
AllowedMechanism = Literal[NamedMechanism, "net-wins", "win-pairs"]


@dataclass(frozen=True)
class Policy:
    """Rules that every release of a ledger must keep; what is None is free.

    Attributes
    ----------
    max_epsilon
        The largest epsilon of one release.
    max_delta_share
        The largest delta of one release, as a share of 1 over the declared number of persons: with
        0.01 and 10,000 persons, 1e-6.
    min_persons
        The smallest declared number of persons (or judges).
    relations, mechanisms
        Those that are allowed.
    about
        Who decided this and why, for whoever reads the ledger; no rule.

    Examples
    --------
    >>> policy = Policy(max_epsilon=1.0, max_delta_share=0.01)
    >>> policy.check(Asked(1.0, 1e-3, "replace-one", "pairs", 10_000))
    Traceback (most recent call last):
    ...
    discreet.errors.NotAllowed: the ledger's policy allows a delta of 0.01 / 10,000 persons = ...
    """

    max_epsilon: Positive | None = None
    max_delta_share: Positive | None = None
    min_persons: Annotated[int, Within(1, 1 << 53)] | None = None
    relations: Annotated[tuple[Relation, ...], AtLeast(1)] | None = None
    mechanisms: Annotated[tuple[AllowedMechanism, ...], AtLeast(1)] | None = None
    about: str = ""

    @property
    def rules(self) -> PlainDict:
        """The rules that are not free."""
        return {name: rule for name in RULES if (rule := getattr(self, name)) is not None}

    @property
    def needs_persons(self) -> bool:
        """Whether a release must declare its number of persons."""
        return self.max_delta_share is not None or self.min_persons is not None

    def check(self, terms: Asked) -> None:
        """Refuse what a rule does not allow."""
        if self.max_epsilon is not None and _exact(terms.epsilon) > _exact(self.max_epsilon):
            raise NotAllowed(
                f"the ledger's policy allows an epsilon of {self.max_epsilon:g} per release, found "
                f"{terms.epsilon:g}. Ask for less"
            )
        _check_allowed("relation", terms.neighbours, self.relations)
        _check_allowed("mechanism", terms.mechanism, self.mechanisms)
        if self.needs_persons:
            self._check_persons(terms, self._declared(terms))

    def _declared(self, terms: Asked) -> int:
        if terms.persons is None:
            raise NotAllowed(
                "the ledger's policy needs the number of persons, declared in advance, because no "
                "rule may depend on the data: give --persons (of comparisons --judges), in Python "
                "persons= (judges=). Under add-remove it is used for the policy alone"
            )
        return terms.persons

    def _check_persons(self, terms: Asked, persons: int) -> None:
        if self.min_persons is not None and persons < self.min_persons:
            raise NotAllowed(
                f"the ledger's policy allows releases about {self.min_persons:,} persons or more, "
                f"and {persons:,} were declared"
            )
        share = self.max_delta_share
        if share is not None and _exact(terms.delta) * persons > _exact(share):
            raise NotAllowed(
                f"the ledger's policy allows a delta of {share:g} / {persons:,} persons = "
                f"{share / persons:.4g}, found {terms.delta:g}. Ask for less"
            )

    def to_dict(self) -> PlainDict:
        """Return plain values: the rules that are not free, and what it is about."""
        return {**self.rules, **({"about": self.about} if self.about else {})}

    def describe(self) -> list[str]:
        """Return a line for each rule."""
        words = {
            "max_epsilon": "epsilon per release at most {:g}",
            "max_delta_share": "delta per release at most {:g} / declared persons",
            "min_persons": "declared persons at least {:,}",
        }
        lists = {name: name + ": {}" for name in ("relations", "mechanisms")}
        return [
            {**words, **lists}[name].format(", ".join(one) if isinstance(one, tuple) else one)
            for name, one in self.rules.items()
        ]


RULES = tuple(field.name for field in fields(Policy) if field.name != "about")


def _exact(number: float) -> Fraction:
    """Return the number as it is written: 1e-6 for 10,000 persons is a share of 0.01, not above."""
    return Fraction(repr(number))


def _check_allowed(kind: str, choice: str, allowed: Sequence[str] | None) -> None:
    if allowed is not None and choice not in allowed:
        raise NotAllowed(
            f"the ledger's policy does not allow the {kind} {choice!r}. Allowed: "
            f"{', '.join(allowed)}"
        )


def make_policy(values: PlainMapping) -> Policy:
    """Return a policy from plain values; what is no rule is refused."""
    for name in values:
        check_choice_name("rule of a policy", name, (*RULES, "about"))
    try:
        policy: Policy = read_as(Policy, values, "the policy")
    except SchemaError as error:
        raise BadUsage(str(error)) from None
    if not policy.rules:
        raise BadUsage(f"a policy must have a rule at least; rules are: {', '.join(RULES)}")
    return policy


def read_policy(source: Policy | PlainMapping | str | PathLike[str]) -> Policy:
    """Return a policy from a TOML file, or from the same keys and values."""
    if isinstance(source, Policy | Mapping):
        return make_policy(source.to_dict() if isinstance(source, Policy) else source)
    path = Path(source)
    try:
        return make_policy(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        why = error.strerror or error
        raise BadUsage(f"{path}: the policy cannot be read ({why}).") from None
    except BadUsage as error:
        raise BadUsage(f"{path}: {error}.") from None
    except (ValueError, RecursionError) as error:
        raise BadUsage(f"{path} is not a TOML file: {error}.") from None


# --- approvers ------------------------------------------------------------------------------------

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
    request: PlainMapping | None = None

    @property
    def fingerprint(self) -> str:
        """What people compare."""
        return make_fingerprint(self.public_key)

    def to_dict(self) -> PlainDict:
        """Return plain values."""
        values = asdict(self)
        return {"approver": values.pop("name"), **values}

    @classmethod
    def from_dict(cls, values: PlainMapping) -> Approver:
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
                "this request was carried out already, and each can be carried out once. Propose "
                "a new one to release again"
            )
        signers = [self._find_signer(request, place) for place in range(len(request.signatures))]
        if len({one.public_key for one in signers}) < len(signers):
            raise NotAllowed("a key has signed this request twice; every signature counts once")
        if len(signers) < self.needed:
            raise self._refuse_few(signers)
        return signers

    def _refuse_few(self, signers: list[Approver]) -> NotAllowed:
        """Return the refusal of too few signatures: it says who signed, and who still can."""
        signed = f" ({', '.join(one.name for one in signers)})" if signers else ""
        left = [one.name for one in self.approvers if one not in signers]
        more = self.needed - len(signers)
        whose = " and ".join(left) if len(left) <= more else f"{more} more of {', '.join(left)}"
        return NotAllowed(
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
                "which belongs to no approver of this ledger ('discreet ledger show' lists them). "
                "Have an approver sign the request without that signature, or propose it anew"
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
