"""What a release says beside its promise: who it is, what it adds up to, and NIST's points.

In: the privacy record of a release. Out: names and sentences for the statement, the page and the
registry, in the language of the record. Nothing here that is not in the record.

The points are those that NIST SP 800-226 ("Guidelines for Evaluating Differential Privacy
Guarantees", 2025) asks about a guarantee, each with the answer of the release at hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.models.noisy.chain import FLOOR_LIMIT, has_room
from discreet.privacy.accounting import CHARGED, NO_LEDGER
from discreet.privacy.ledger import EVERYONE
from discreet.words import Language, find_kind, mark, speak

PROOFS = {
    "margins": "docs/margins.md",
    "laplace-margins": "docs/margins.md",
    "net-wins": "docs/comparisons.md",
    "win-pairs": "docs/comparisons.md",
}
"""Where the sensitivity of a mechanism is proved; else in docs/privacy.md."""

IDENTITY = {
    "title": mark("title"),
    "version": mark("version"),
    "date": mark("date of publication"),
    "body": mark("responsible"),
    "contact": mark("contact"),
    "supersedes": mark("takes the place of version"),
    "reason": mark("because"),
}


def list_identity(record: Mapping[str, Any]) -> dict[str, str]:
    """Return what a release says about itself, by name, and what it adds up to."""
    identity, tell = record.get("identity", {}), speak(record)
    facts = {
        tell.term(words): identity[name] for name, words in IDENTITY.items() if name in identity
    }
    account = record.get("account")
    if account is not None:
        facts[tell("about the population")] = name_population(account["population"], tell)
        facts[tell("spent on it, with this release")] = _show_spent(account, tell)
    approvers = record.get("approval", {}).get("approvers", ())
    if approvers:
        names = [
            tell("{name} (key {key})", name=entry["name"], key=entry["key"]) for entry in approvers
        ]
        facts[tell("approved by")] = ", ".join(names)
    return facts


def name_population(name: str, tell: Language) -> str:
    """Return what a population is called; the one of everybody has a name in each language."""
    return tell("everyone") if name == EVERYONE else name


def name_edition(record: Mapping[str, Any]) -> str:
    """Return what stands below the title: version, date, who answers for it and who approved it."""
    identity, tell = record.get("identity", {}), speak(record)
    names = ", ".join(row["name"] for row in record.get("approval", {}).get("approvers", ()))
    parts = [
        tell("version {version}", version=identity["version"]) if "version" in identity else "",
        identity.get("date", ""),
        identity.get("body", ""),
        tell("approved by {names}", names=names) if names else "",
    ]
    line = " · ".join(part for part in parts if part)
    return line[:1].upper() + line[1:]


def _show_spent(account: Mapping[str, Any], tell: Language) -> str:
    """Say what was spent on one person; exact where budgets were chosen in advance."""
    values = {
        "epsilon": f"{account['epsilon']:.4g}",
        "delta": f"{account['delta']:g}",
        "limit": f"{account['limit']:g}",
    }
    if account["epsilon"] > account["limit"]:  # a declaration was corrected after the charge
        return tell.count(
            account["releases"],
            "at most epsilon {epsilon} at delta {delta} on one person, if all budgets were chosen "
            "in advance; the ledger's limit of epsilon {limit} is exceeded; {number} release may "
            "be about persons of this population",
            "at most epsilon {epsilon} at delta {delta} on one person, if all budgets were chosen "
            "in advance; the ledger's limit of epsilon {limit} is exceeded; {number} releases may "
            "be about persons of this population",
            **values,
        )
    return tell.count(
        account["releases"],
        "at most epsilon {epsilon} at delta {delta} on one person, if all budgets were chosen in "
        "advance, and however they were chosen not more than the ledger's limit of epsilon "
        "{limit}; {number} release may be about persons of this population",
        "at most epsilon {epsilon} at delta {delta} on one person, if all budgets were chosen in "
        "advance, and however they were chosen not more than the ledger's limit of epsilon "
        "{limit}; {number} releases may be about persons of this population",
        **values,
    )


def explain_versions(record: Mapping[str, Any]) -> list[str]:
    """Say what it means that a release takes the place of another one."""
    identity, account = record.get("identity", {}), record.get("account")
    sentences = [identity["note"]] if "note" in identity else []
    if "supersedes" not in identity:
        return sentences
    kind, tell = find_kind(record), speak(record)
    reason = identity["reason"].rstrip()
    reason += "" if reason.endswith((".", "!", "?")) else "."
    replaced = tell(
        "This release takes the place of version {version}: {reason} Each has noise of its own, so "
        "their numbers differ also where nothing was corrected.",
        version=identity["supersedes"],
        reason=reason,
    )
    together = (
        tell("What was published once stays known: nothing here counts what both allow together.")
        if account is None
        else tell.of(
            kind,
            "What was published once stays known: with both, and whatever else was released about "
            "the same {persons}, there was spent {spent}.",
            spent=_show_spent(account, tell),
        )
    )
    return [*sentences, f"{replaced} {together}"]


def explain_ledger(record: Mapping[str, Any]) -> str:
    """Say which ledger was charged, or that none was."""
    charged, tell = record["guarantee"]["ledger"], speak(record)
    return tell.term(NO_LEDGER) if charged is None else tell.term(CHARGED).format(ledger=charged)


def list_nist_points(record: Mapping[str, Any]) -> dict[str, str]:
    """Return NIST's points, each with this release's answer; none where nothing is promised."""
    guarantee, kind, tell = record["guarantee"], find_kind(record), speak(record)
    if not guarantee["is_private"]:
        return {}
    return {
        tell("Privacy loss"): tell(
            "epsilon {epsilon}, delta {delta}, computed exactly or bounded from above, never "
            "approximated from below.",
            epsilon=f"{guarantee['epsilon']:g}",
            delta=f"{guarantee['delta']:g}",
        ),
        tell("Unit of privacy"): tell(
            "{unit}, under {relation}.",
            unit=tell.term(guarantee["unit"]),
            relation=tell.term(guarantee["neighbours"]),
        ),
        tell("Trust model"): _tell_trust(record),
        tell("Mechanism and its proof"): _tell_proof(record),
        tell("Implementation"): tell(
            "What was randomised are integers, by exact samplers on the operating system's secure "
            "generator; every published number was computed from the randomised integers and from "
            "public parameters."
        ),
        tell("Audit"): _tell_audit(record),
        tell("Side channels"): tell(
            "The time that sampling takes is not constant, and error messages of a release depend "
            "on the data: both are for the steward alone, and nothing of either is in this bundle."
        ),
        tell("Access"): tell.of(
            kind,
            "Neither {answers} nor exact counts are in this bundle; who may see them is decided by "
            "whoever holds them.",
        ),
        tell("What is not protected"): tell(
            "Public: {names}. Whatever was collected is as exposed as it was before.",
            names=", ".join(list_unprotected(record)),
        ),
        tell("Small groups"): _tell_groups(record),
        tell("Accuracy"): _tell_accuracy(record),
        tell("Releases together"): _tell_releases(record),
    }


def _tell_groups(record: Mapping[str, Any]) -> str:
    tell = speak(record)
    if not has_errors(record):
        return tell(
            "No number is suppressed and none is rounded for privacy. The promise is the same to a "
            "member of a small group as to anybody else; a fact that holds for all members of a "
            "group can be learnt about the group."
        )
    return tell.of(
        find_kind(record),
        "No number is suppressed and none is rounded for privacy: an item with few {answers} "
        "gets a wide interval instead. The promise is the same to a member of a small group as "
        "to anybody else; a fact that holds for all members of a group can be learnt about the "
        "group.",
    )


def _tell_accuracy(record: Mapping[str, Any]) -> str:
    if not has_errors(record):
        return " ".join(explain_floor(record))
    tell = speak(record)
    return tell.of(
        find_kind(record),
        "Standard errors and intervals include the sampling of {persons} and the noise.",
    )


def explain_floor(record: Mapping[str, Any]) -> list[str]:
    """Say what the floor of the spectral estimate did; nothing of other estimates."""
    floor, tell = record.get("floor"), speak(record)
    if floor is None:
        return []
    if has_errors(record):
        return [
            tell(
                "The spectral estimator raised {raised} of the {counts} released counts to 1.",
                **floor,
            )
        ]
    return [
        tell(
            "The spectral estimator raised {raised} of the {counts} released counts to 1, more "
            "than {limit}. That pulls the difficulties together, so this release has no standard "
            "errors and no intervals.",
            **floor,
            limit=tell("{percent}%", percent=f"{100 * FLOOR_LIMIT:g}"),
        )
    ]


def has_errors(record: Mapping[str, Any]) -> bool:
    """Say whether a release has standard errors."""
    floor = record.get("floor")
    return floor is None or has_room(**floor)


def _tell_trust(record: Mapping[str, Any]) -> str:
    tell = speak(record)
    sentence = tell.of(
        find_kind(record),
        "Central: whoever holds the {answers} is trusted with them; whoever reads the release is "
        "not.",
    )
    if "shuffler" not in record["settings"]:
        return sentence
    coin = tell("Every answer was randomised by a coin of its own before it was counted.")
    return f"{sentence} {coin}"


def _tell_proof(record: Mapping[str, Any]) -> str:
    tell, digest = speak(record), record.get("source_sha256")
    values = {
        "mechanism": record["mechanism"],
        "proof": PROOFS.get(record["mechanism"], "docs/privacy.md"),
        "software": record["software"],
    }
    if digest is None:
        return tell(
            "{mechanism}; its sensitivity and accounting are proved in {proof} and "
            "docs/privacy-accounting.md of {software}.",
            **values,
        )
    return tell(
        "{mechanism}; its sensitivity and accounting are proved in {proof} and "
        "docs/privacy-accounting.md of {software}, whose source has the SHA-256 {digest}.",
        **values,
        digest=digest,
    )


def _tell_audit(record: Mapping[str, Any]) -> str:
    audit, tell = record.get("audit"), speak(record)
    if audit is None:
        return tell(
            "None is attached to this release; 'discreet audit' attacks the mechanism at any size."
        )
    return tell.of(
        find_kind(record),
        "Attacked {runs} times at {count} {items} with a claim of epsilon {claimed}: {verdict}; "
        "the attacks prove epsilon {proved}.",
        runs=tell.number(audit["runs"]),
        count=audit["items"],
        claimed=f"{audit['claimed_epsilon']:g}",
        verdict=tell.term(audit["verdict"]),
        proved=f"{audit['lower_bound']:.3g}",
    )


def _tell_releases(record: Mapping[str, Any]) -> str:
    account, tell = record.get("account"), speak(record)
    if account is None:
        return explain_ledger(record)
    about = name_population(account["population"], tell)
    return f"{explain_ledger(record)} {about}: {_show_spent(account, tell)}."


def has_step_items(record: Mapping[str, Any]) -> bool:
    """Say whether some item of a release has more than one step."""
    return any(step > 1 for step in record.get("steps", ()))


def list_unprotected(record: Mapping[str, Any]) -> list[str]:
    """Name what a release does not protect, because it was public before."""
    kind, tell = find_kind(record), speak(record)
    cap = tell.of(kind, "the cap of {cap} {answers} per {person}", cap=record[kind.cap])
    facts = [tell.of(kind, "the list of {items}"), cap]
    if record[kind.persons] is not None and record.get("number_fixed"):
        inspected = record.get("looked")
        facts.append(
            tell.of(kind, "the number of {persons} (as stated)")
            if inspected
            else tell.of(kind, "the number of {persons} (fixed in advance)")
        )
    elif record[kind.persons] is not None:
        facts.append(
            tell.of(
                kind,
                "the number of {persons} (and with it whether somebody took part at all)",
            )
        )
    if has_step_items(record):
        facts.append(tell("how many steps each item has"))
    if record.get("forms"):
        facts.append(tell.of(kind, "the forms of the test and which {items} are in each"))
    if "shuffler" in record["settings"]:
        facts.append(tell.of(kind, "the pattern of answered {items} of each {person}"))
    return facts
