"""``discreet steward``: keys, requests and approvals, corrections and withdrawals.

``discreet steward propose``, ``approve``, ``key``, ``correct``, ``withdraw``; ``ledger approver``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import discreet
from discreet.atomic import write_text
from discreet.cli.answers import Columns, ReleaseReading
from discreet.cli.options import Language
from discreet.cli.output import check_writable, drop_output, note, say, say_field, say_lines
from discreet.cli.release import ComparisonStudy, ReleaseStudy, ReleaseTerms, need, state_release
from discreet.errors import BadUsage

if TYPE_CHECKING:
    from discreet.privacy.ledger import Ledger
    from discreet.privacy.ledger.policy import Approver
    from discreet.privacy.ledger.request import Request
    from discreet.publishing.spec import ReleaseSpec


def propose(
    *, study: ReleaseStudy, terms: ReleaseTerms, out: Path, reading: ReleaseReading
) -> None:
    """Write down a release for others to approve. No data is touched."""
    write_request(state_release(terms, study, reading), terms.ledger, out)


def propose_ranking(
    *, terms: ReleaseTerms, study: ComparisonStudy, out: Path, reading: Columns
) -> None:
    """Write down a release of comparisons for others to approve. No data is touched."""
    write_request(state_release(terms, study, reading), terms.ledger, out)


def write_request(spec: ReleaseSpec, ledger: Path | None, out: Path) -> None:
    """Write the request for a release to a new file, and show it."""
    _check_new(out)
    from discreet.publishing.delivery import propose_spec

    request = propose_spec(spec, need(ledger, "--ledger"))
    request.save(out)
    print_request(request)
    say(f"Wrote {out}. Each approver signs it: discreet steward approve {out} --signing-key KEY")


def print_request(request: Request) -> None:
    """Print everything that is signed, each field on lines of its own."""
    from discreet.publishing.requests import describe_request

    for name, values in describe_request(request).items():
        say_field(name, values)


def approve(
    request: Path, *, signing_key: Path | None = None, passphrase_file: Path | None = None
) -> None:
    """Show a request completely, then sign it. Read it first: what is signed can be released."""
    from discreet.privacy.ledger.request import Request, make_fingerprint, read_passphrase

    opened_request = Request.load(request)
    # Nobody signs what did not all reach standard output.
    try:
        print_request(opened_request)
        sys.stdout.flush()
    except OSError as error:
        drop_output()
        raise BadUsage(
            f"The request could not be shown completely ({error.strerror or error}), so it was not "
            "signed. Run the command again where all of it can be read."
        ) from None
    if signing_key is not None:
        passphrase = read_passphrase(passphrase_file)
        opened_request = discreet.approve(opened_request, signing_key, passphrase=passphrase)
        opened_request.save(request)
    for signature in opened_request.signatures:
        say_field("signed by", [make_fingerprint(signature.public_key)])
    if signing_key is None:
        say("Nothing was signed: that needs --signing-key FILE.")


def make_key(file: Path, *, show: bool = False, passphrase_file: Path | None = None) -> None:
    """Make a signing key and print its public key, which goes into the ledger."""
    from discreet.privacy.ledger.request import (
        make_fingerprint,
        read_passphrase,
        read_public,
        write_key,
    )

    public = (read_public if show else write_key)(file, read_passphrase(passphrase_file))
    say(public)
    say(f"fingerprint {make_fingerprint(public)}")
    if not show:
        say(f"Wrote {file} (keep it to yourself) and {file}.pub (hand it over)")


def change_approver(
    file: Path,
    name: str | None = None,
    *,
    public_key: str = "",
    retire: bool = False,
    propose: Path | None = None,
    request: Path | None = None,
) -> None:
    """Enter an approver's key. The first are entered freely, later ones need approval."""
    from discreet.privacy.ledger.policy import Approver, propose_change
    from discreet.privacy.ledger.request import Request, find_public

    ledger = discreet.Ledger.open(file)
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
        change_request = propose_change(ledger.board(), name, key, retire=retire)
        change_request.save(propose)
        print_request(change_request)
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


def correct(
    bundle: Path,
    *,
    by: Path,
    reason: str = "",
    language: Language | None = None,
    out: Path | None = None,
    force: bool = False,
) -> None:
    """Write the notice that a release was corrected by a later one."""
    notice = discreet.correction_notice(bundle, by, reason, language=language, page=_is_page(out))
    _show(notice, out, force=force)


def withdraw(
    bundle: Path,
    *,
    reason: str,
    language: Language | None = None,
    out: Path | None = None,
    force: bool = False,
) -> None:
    """Write the notice that a release is withdrawn. What was spent stays spent."""
    notice = discreet.withdrawal_notice(bundle, reason, language=language, page=_is_page(out))
    _show(notice, out, force=force)


def _is_page(out: Path | None) -> bool:
    """Say whether a notice is written as a page; refuse an ending that is neither."""
    if out is not None and out.suffix not in (".md", ".html"):
        raise BadUsage(f"{out}: a notice is written as .md or .html; name one.")
    return out is not None and out.suffix == ".html"


def _show(text: str, out: Path | None, *, force: bool) -> None:
    if out is None:
        say_lines(text)
        return
    check_writable(out.parent, [out.name], force=force)
    write_text(out, text, private=False)
    note(f"Wrote {out} (may be published)")
