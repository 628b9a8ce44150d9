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
    approvers = record.get("approval", {}).get("approvers", ())
    if approvers:
        facts["approved by"] = ", ".join(f"{one['name']} (key {one['key']})" for one in approvers)
    return facts


def name_edition(record: Mapping[str, Any]) -> str:
    """Return what stands below the title: version, date, who answers for it and who approved it."""
    said = record.get("identity", {})
    names = [one["name"] for one in record.get("approval", {}).get("approvers", ())]
    parts = [
        f"version {said['version']}" if "version" in said else "",
        said.get("date", ""),
        said.get("body", ""),
        f"approved by {', '.join(names)}" if names else "",
    ]
    return " · ".join(part for part in parts if part)


def _show_spent(account: Mapping[str, Any]) -> str:
    """Say what was spent on one person; exact where budgets were chosen in advance."""
    releases = "release" if account["releases"] == 1 else "releases"
    limit = (
        f", and however they were chosen not more than the ledger's limit of epsilon "
        f"{account['limit']:g}"
    )
    if account["epsilon"] > account["limit"]:  # a declaration was corrected after the charge
        limit = f"; the ledger's limit of epsilon {account['limit']:g} is exceeded"
    return (
        f"at most epsilon {account['epsilon']:.4g} at delta {account['delta']:g} on one person, if "
        f"all budgets were chosen in advance{limit}; {account['releases']} {releases} may be about "
        "persons of this population"
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
        else f"with both, and whatever else was released about the same {kind.persons}, there was "
        f"spent {_show_spent(account)}"
    )
    reason = said["reason"].rstrip()
    reason += "" if reason.endswith((".", "!", "?")) else "."
    return [
        *sentences,
        f"This release takes the place of version {said['supersedes']}: {reason} "
        "Each has noise of its own, so their numbers differ also where nothing was corrected. What "
        f"was published once stays known: {together}.",
    ]


def list_points(record: Mapping[str, Any]) -> dict[str, str]:
    """Return NIST's points, each with this release's answer; none where nothing is promised."""
    guarantee, kind = record["guarantee"], find_kind(record)
    if not guarantee["is_private"]:
        return {}
    is_local = "shuffler" in record["settings"]
    return {
        "Privacy loss": f"epsilon {guarantee['epsilon']:g}, delta {guarantee['delta']:g}, computed "
        "exactly or bounded from above, never approximated from below.",
        "Unit of privacy": f"{guarantee['unit']}, under {guarantee['neighbours']}.",
        "Trust model": f"Central: whoever holds the {kind.answers} is trusted with them; whoever "
        "reads the release is not."
        + (" Every answer was randomised by a coin of its own before it was counted." * is_local),
        "Mechanism and its proof": f"{record['mechanism']}; its sensitivity and accounting are "
        "proved in "
        f"{PROOFS.get(record['mechanism'], 'docs/privacy.md')} and docs/privacy-accounting.md of "
        f"{record['software']}{_name_source(record)}.",
        "Implementation": "What was randomised are integers, by exact samplers on the operating "
        "system's secure generator; every published number was computed from the randomised "
        "integers and from public parameters.",
        "Audit": _tell_audit(record),
        "Side channels": "The time that sampling takes is not constant, and error messages of a "
        "release depend on the data: both are for the steward alone, and nothing of either is in "
        "this bundle.",
        "Access": f"Neither {kind.answers} nor exact counts are in this bundle; who may see them "
        "is decided by whoever holds them.",
        "What is not protected": f"Public: {', '.join(list_public(record))}. Whatever was "
        "collected is as exposed as it was before.",
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


def has_steps(record: Mapping[str, Any]) -> bool:
    """Say whether some item of a release has more than one step."""
    return any(step > 1 for step in record.get("steps", ()))


def list_public(record: Mapping[str, Any]) -> list[str]:
    """Name what a release does not protect, because it was public before."""
    kind = find_kind(record)
    cap = f"the cap of {record[kind.cap]} {kind.answers} per {kind.person}"
    known = [f"the list of {kind.items}", cap]
    if record[kind.persons] is not None:
        fixed = record.get("number_fixed")
        how = "fixed in advance" if fixed else "and with it whether somebody took part at all"
        known.append(f"the number of {kind.persons} ({how})")
    if has_steps(record):
        known.append("how many steps each item has")
    if record.get("forms"):
        known.append(f"the forms of the test and which {kind.items} are in each")
    if "shuffler" in record["settings"]:
        known.append(f"the pattern of answered {kind.items} of each {kind.person}")
    return known
