"""``discreet propose``, ``approve``, ``key`` and ``ledger approver``: two pairs of eyes."""

from __future__ import annotations

from base64 import b64decode
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from discreet.cli.answers import Reading, list_words
from discreet.cli.options import argument, flag, option
from discreet.cli.output import say
from discreet.cli.release import Study, Terms, settle, tell_apart
from discreet.errors import BadUsage

if TYPE_CHECKING:
    from discreet.privacy.ledger import Ledger
    from discreet.privacy.ledger.approvers import Approver
    from discreet.privacy.ledger.request import Request

NewRequest = Annotated[Path, option("FILE", "The new request.")]
Secret = Annotated[Path | None, option("FILE", "The key's passphrase; also /dev/stdin.")]
SHOWN = 8
"""Items that are shown of a request; the file has them all."""


def propose(
    *,
    study: Study,
    terms: Terms,
    out: NewRequest,
    reading: Reading,
) -> None:
    """Write down a release for others to approve. No data is touched."""
    words = {**list_words(tell_apart(reading)), "model": None}
    told = {
        "max_answers": study.max_answers,
        "persons": study.persons,
        "estimator": study.estimator,
        "reading": words,
    }
    settled = {**settle(terms), **study.tell(reading.lowest, reading.model), **told}
    write_request(settled, out, "answers")


def write_request(settled: dict[str, Any], out: Path, kind: str) -> None:
    """Write a request to a new file, and show it."""
    _check_new(out)
    from discreet.publishing.requests import propose as make

    request = make(**settled, kind=kind)
    request.save(out)
    print_request(request)
    say(f"Wrote {out}. Whoever approves signs it: discreet approve {out} --signing-key KEY")


def print_request(request: Request) -> None:
    """Print everything that is signed."""
    for name, value in request.body.items():
        if name not in ("format", "steps") and value not in ([], {}):
            say(f"{name:12} {_show(name, value, request.body)}")
    say(f"{'sha256':12} {request.digest}")


def _show(name: str, value: Any, body: Any) -> str:
    if name == "items":
        names = [
            item if step == 1 else f"{item} ({step} steps)"
            for item, step in zip(value, body["steps"], strict=True)
        ]
        more = f" ... ({len(names)} in all)" if len(names) > SHOWN else ""
        return ", ".join(names[:SHOWN]) + more
    if name == "forms":
        return "; ".join(", ".join(form) for form in value)
    if name == "reading":
        return "; ".join(f"{key}: {_tell(key, one)}" for key, one in value.items())
    if name == "about":
        parts = [*value.values()]
        return "; ".join(f"{key}: {_show_own(one)}" for part in parts for key, one in part.items())
    return "counted in the data" if value is None else str(value)


def _tell(word: str, value: Any) -> str:
    """Return how a file is read, as people say it: Q1 a, Q2 b or c; codes by column."""
    if word == "key":
        value = value["by_item"] or {str(n): one for n, one in enumerate(value["in_order"], 1)}
    from discreet.privacy.ledger.request import unpack

    value = unpack(value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {' or '.join(map(str, one))}" for name, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _show_own(value: Any) -> str:
    """Return what a release says of itself in one line; a picture by its kind and its digest."""
    text = str(value)
    if not text.startswith("data:"):
        return " ".join(text.split("\n"))
    kind, _, content = text.removeprefix("data:").partition(";base64,")
    return f"{kind}, SHA-256 {sha256(b64decode(content)).hexdigest()}"


def approve(
    request: Annotated[Path, argument("REQUEST", "What `discreet propose` wrote.")],
    *,
    signing_key: Annotated[
        Path | None,
        option("FILE", "Your key, from `discreet key`. Without it the request is only shown."),
    ] = None,
    passphrase_file: Secret = None,
) -> None:
    """Show a request and sign it. Read it first: what is signed can be released."""
    from discreet.privacy.ledger.request import Request
    from discreet.privacy.ledger.signatures import read_passphrase, shorten
    from discreet.publishing.requests import approve as sign

    if signing_key is None:
        found = Request.load(request)
    else:
        found = sign(request, signing_key, passphrase=read_passphrase(passphrase_file))
    print_request(found)
    for one in found.signatures:
        say(f"signed by    {shorten(one.public_key)}")
    if signing_key is None:
        say("Nothing was signed: that needs --signing-key FILE.")


def make_key(
    file: Annotated[Path, argument("FILE", "The signing key; keep it to yourself.")],
    *,
    show: Annotated[
        bool, flag("Show the public key of a signing key that exists.", "--show")
    ] = False,
    passphrase_file: Secret = None,
) -> None:
    """Make a signing key and print its public key, which goes into the ledger."""
    from discreet.privacy.ledger.signatures import (
        read_passphrase,
        read_public,
        shorten,
        write_key,
    )

    public = (read_public if show else write_key)(file, read_passphrase(passphrase_file))
    say(public)
    say(f"fingerprint {shorten(public)}")
    if not show:
        say(f"Wrote {file} (keep it to yourself) and {file}.pub (hand it over)")


def change_approver(
    file: Annotated[Path, argument("LEDGER", "The ledger.")],
    name: Annotated[str | None, argument("NAME", "The approver.")] = None,
    *,
    public_key: Annotated[
        str, option("KEY", "The approver's public key, from `discreet key`, or its file.")
    ] = "",
    retire: Annotated[bool, flag("Retire the approver's key.", "--retire")] = False,
    propose: Annotated[
        Path | None, option("FILE", "Write a request for this, for the present approvers to sign.")
    ] = None,
    request: Annotated[Path | None, option("FILE", "Carry out such a request.")] = None,
) -> None:
    """Enter an approver's key. The first are entered freely, later ones need approval."""
    from discreet.privacy.ledger import Ledger
    from discreet.privacy.ledger.approvers import Approver, propose_change
    from discreet.privacy.ledger.request import Request
    from discreet.privacy.ledger.signatures import find_public

    ledger = Ledger.open(file)
    if request is not None:
        if name or public_key or retire or propose:
            raise BadUsage(
                "--request FILE says it all; leave out whatever else is about approvers."
            )
        _report(ledger, ledger.change_approvers(Request.load(request)))
        return
    if name is None:
        raise BadUsage("Missing argument 'NAME'. Only --request FILE can do without.")
    if retire == bool(public_key):
        raise BadUsage("give --public-key KEY to enter an approver, or --retire to retire one.")
    key = "" if retire else find_public(public_key)
    if propose is not None:
        _check_new(propose)
        made = propose_change(ledger.board(), name, key, retire=retire)
        made.save(propose)
        print_request(made)
        return
    if retire:
        raise BadUsage("retiring an approver needs a request: write it with --propose FILE.")
    _report(ledger, ledger.change_approvers(Approver(name, key)))


def _report(ledger: Ledger, change: Approver) -> None:
    say(f"{'Retired' if change.retires else 'Entered'} {change.name}, key {change.fingerprint}.")
    print_approvers(ledger)


def print_approvers(ledger: Ledger) -> None:
    """Print how many approvals a ledger asks for, and of whom, if it does or could."""
    approvers = ledger.board().approvers
    if ledger.approvals or approvers:
        names = ", ".join(f"{one.name} ({one.fingerprint})" for one in approvers) or "nobody yet"
        say(f"Approvals needed: {ledger.approvals}; approvers: {names}")


def _check_new(path: Path) -> None:
    if path.exists():
        raise BadUsage(f"{path} exists already, and a request is never overwritten. Name another.")
