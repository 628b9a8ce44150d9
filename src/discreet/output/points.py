"""What a release says beside its promise: who it is, what it adds up to, and NIST's points.

In: the privacy record of a release. Out: names and sentences for the statement, the page and the
registry. Nothing here that is not in the record.

The points are those that NIST SP 800-226 ("Guidelines for Evaluating Differential Privacy
Guarantees", 2025) asks about a guarantee, each with the answer of the release at hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.results.kinds import find_kind

PROOFS = {
    "margins": "docs/margins.md",
    "laplace-margins": "docs/margins.md",
    "net-wins": "docs/comparisons.md",
    "win-pairs": "docs/comparisons.md",
}
"""Where the sensitivity of a mechanism is proved; else in docs/privacy.md."""

IDENTITY = {
    "title": "title",
    "version": "version",
    "date": "date of publication",
    "body": "responsible",
    "contact": "contact",
    "supersedes": "takes the place of version",
    "reason": "because",
}


def list_identity(record: Mapping[str, Any]) -> dict[str, str]:
    """Return what a release says about itself, by name, and what it adds up to."""
    said = record.get("identity", {})
    facts = {words: said[name] for name, words in IDENTITY.items() if name in said}
    account = record.get("account")
    if account is not None:
        facts["about the population"] = account["population"]
        facts["spent on it, with this release"] = _show_spent(account)
    return facts


def _show_spent(account: Mapping[str, Any]) -> str:
    return (
        f"epsilon {account['epsilon']:.4g} at delta {account['delta']:g}, in "
        f"{account['releases']} release{'s' * (account['releases'] != 1)} that may be about the "
        "same persons"
    )


def explain_versions(record: Mapping[str, Any]) -> list[str]:
    """Say what it means that a release takes the place of another one."""
    said, account = record.get("identity", {}), record.get("account")
    sentences = [said["note"]] if "note" in said else []
    if "supersedes" not in said:
        return sentences
    kind = find_kind(record)
    together = (
        "nothing here counts what both allow together"
        if account is None
        else f"both together, and whatever else was released about the same {kind.persons}, allow "
        f"epsilon {account['epsilon']:.4g} at delta {account['delta']:g}"
    )
    return [
        *sentences,
        f"This release takes the place of version {said['supersedes']}: {said['reason']} "
        "Each has noise of its own, so their numbers differ also where nothing was corrected. What "
        f"was published once stays known: {together}.",
    ]


def list_points(record: Mapping[str, Any]) -> dict[str, str]:
    """Return NIST's points, each with this release's answer; none where nothing is promised."""
    guarantee, kind = record["guarantee"], find_kind(record)
    if not guarantee["is_private"]:
        return {}
    is_local = "shuffler" in record["settings"]
    fixed = record.get("number_fixed")
    return {
        "Privacy loss": f"epsilon {guarantee['epsilon']:g}, delta {guarantee['delta']:g}, computed "
        "exactly or bounded from above, never approximated from below.",
        "Unit of privacy": f"{guarantee['unit']}, under {guarantee['neighbours']}.",
        "Trust model": "Answers are randomised one by one before they are counted; whoever holds "
        "them is not trusted by the promise with their values."
        if is_local
        else f"Central: whoever holds the {kind.answers} is trusted with them, and everybody who "
        "reads the release is not.",
        "Mechanism and its proof": f"{record['mechanism']}; its sensitivity and accounting are "
        "proved in "
        f"{PROOFS.get(record['mechanism'], 'docs/privacy.md')} and docs/privacy-accounting.md of "
        f"{record['software']}{_name_source(record)}.",
        "Implementation": "Integer arithmetic from the counts to the noise, exact discrete "
        "samplers, the operating system's secure generator; no floating point before the noise is "
        "added.",
        "Audit": _tell_audit(record),
        "Side channels": "The time that sampling takes is not constant, and error messages of a "
        "release depend on the data: both are seen by the steward only, and neither is published.",
        "Access": f"The {kind.answers}, exact counts and the ledger stay with the steward; only "
        "the files of this bundle are published.",
        "What is not protected": _list_unprotected(record, fixed=bool(fixed)),
        "Small groups": "No number is suppressed and none is rounded for privacy: an item with few "
        f"{kind.answers} gets a wide interval instead. The promise is the same to a member of a "
        "small group as to anybody else; a fact that holds for all members of a group can be "
        "learnt about the group.",
        "Accuracy": f"Standard errors and intervals include the sampling of {kind.persons} and the "
        "noise.",
        "Releases together": guarantee["ledger_note"]
        + (
            ""
            if record.get("account") is None
            else f" {record['account']['population']}: {_show_spent(record['account'])}."
        ),
    }


def _name_source(record: Mapping[str, Any]) -> str:
    digest = record.get("source_sha256")
    return "" if digest is None else f", whose source has the SHA-256 {digest}"


def _tell_audit(record: Mapping[str, Any]) -> str:
    audit = record.get("audit")
    if audit is None:
        return (
            "None is attached to this release; 'discreet audit' attacks the mechanism at any size."
        )
    return (
        f"Attacked {audit['runs']:,} times at {audit['items']} {find_kind(record).items} with a "
        f"claim of epsilon {audit['claimed_epsilon']:g}: {audit['verdict']}; the attacks prove "
        f"epsilon {audit['lower_bound']:.3g}."
    )


def _list_unprotected(record: Mapping[str, Any], *, fixed: bool) -> str:
    kind = find_kind(record)
    known = [f"the list of {kind.items}", f"the cap on {kind.answers}", "the design as stated"]
    if record[kind.persons] is not None:
        how = "fixed in advance" if fixed else "so whether somebody took part at all"
        known.append(f"the number of {kind.persons} ({how})")
    if "shuffler" in record["settings"]:
        known.append(f"which {kind.items} each {kind.person} answered")
    return f"Public: {', '.join(known)}. Whatever was collected is as exposed as it was before."
