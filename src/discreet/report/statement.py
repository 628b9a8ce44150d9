"""The privacy statement of a release, its identity, and NIST's points.

In: the privacy record of a release. Out: sentences in plain words, as a value that the page shows
and as Markdown that a steward can sign, in the language of the record. Nothing here that is not in
the record.

The points are those that NIST SP 800-226 ("Guidelines for Evaluating Differential Privacy
Guarantees", 2025) asks about a guarantee, each with the answer of the release at hand.
"""

from __future__ import annotations

from dataclasses import dataclass

from discreet.choices import PlainMapping
from discreet.models.noisy.spectral import FLOOR_LIMIT, has_room
from discreet.privacy.accounting import CHARGED, NO_LEDGER, Guarantee, best_guess, surest_belief
from discreet.privacy.ledger import EVERYONE
from discreet.privacy.mechanisms.group_means import NAME as MEANS
from discreet.report.conditions import (
    explain_choices,
    explain_reading,
    explain_unit,
    has_step_items,
)
from discreet.text import markdown_table, markdown_text, show_chance, show_probability_bound
from discreet.words import ENGLISH, Language, mark, mark_of, speak

#: What the promise compares, in the words of the statement.
RELATION = {
    "replace-one": mark_of(
        "It was made with differential privacy: nothing in it would look much different if any one "
        "{person}'s {answers} had been replaced by others (the number of {persons} in the data is "
        "public, so whether somebody is in the data at all is not protected)."
    ),
    "fixed number": mark_of(
        "It was made with differential privacy: nothing in it would look much different if any one "
        "{person}'s {answers} had been replaced by others, or by none (the number of {persons} is "
        "public and was fixed in advance)."
    ),
    "stated number": mark_of(
        "It was made with differential privacy: nothing in it would look much different if any one "
        "{person}'s {answers} had been replaced by others, or by none (the number of {persons} is "
        "public, and was stated after the {answers} had been looked at)."
    ),
    "add-remove": mark_of(
        "It was made with differential privacy: nothing in it would look much different if any one "
        "{person} had not taken part."
    ),
}

PLAINLY = mark_of(
    "Nobody's {answers} are on this page, and random noise was added to protect each {person}. "
    "Suppose somebody knows everybody else's {answers}, and can only toss a coin about something "
    "in one {person}'s {answers}. Without this page they are right in 50% of cases, with it in "
    "{right}."
)
GUESSED = mark_of(
    "Somebody who knows everybody else's {answers}, and for whom a fact about one {person}'s "
    "{answers} is as likely as not, guesses it right with a probability of {right} after reading "
    "this release."
)
BELIEVED = mark_of(
    "Somebody who knows everybody else's {answers}, and for whom a fact about one {person}'s "
    "{answers} is as likely as not, can become {sure} sure of it by reading this release."
)
MOSTLY_BELIEVED = mark_of(
    "Somebody who knows everybody else's {answers}, and for whom a fact about one {person}'s "
    "{answers} is as likely as not, can become {sure} sure of it by reading this release, except "
    "with probability at most {beyond}."
)

#: What the steward stated about the design; intervals rely on it, the promise does not.
DESIGNS = {
    "complete": mark("everybody answered every item that was given to them"),
    "random": mark("which items somebody answered did not depend on ability"),
}

#: The file with the statement in English, beside one in another language.
REFERENCE = "statement.en.md"


@dataclass(frozen=True)
class Statement:
    """The privacy statement, part by part.

    Attributes
    ----------
    warning
        That nothing is private, where the noise was for tests; else empty.
    facts
        Name and value of each parameter.
    promise
        The sentences, a paragraph each.
    """

    warning: str
    facts: dict[str, str]
    promise: tuple[str, ...]


def make_statement(record: PlainMapping) -> Statement:
    """Say what a release promises, to whom and on what conditions, in the record's language."""
    guarantee, tell = record["guarantee"], speak(record)
    return Statement(
        warning=""
        if guarantee["is_private"]
        else tell("The noise came from a seeded source, which exists for tests only."),
        facts=_facts(record),
        promise=(
            " ".join([say_published(record), *_compare(record), explain_promise(record)]),
            *explain_unit(record),
            *map(tell.term, guarantee["conditions"]),
            explain_ledger(record),
            *explain_versions(record),
            explain_reading(record),
            explain_choices(record),
            *explain_floor(record),
            *_explain_errors(record),
            *([] if tell.language == "en" else [_name_reference(record)]),
        ),
    )


def say_published(record: PlainMapping) -> str:
    """Say what a release publishes."""
    tell, count = speak(record), len(record["items"])
    if has_step_items(record):
        return tell(
            "This release publishes the thresholds of all steps and the difficulties (their means) "
            "of {count} items.",
            count=count,
        )
    if record["mechanism"] == MEANS:
        return tell(
            "This release publishes the mean abilities of {count} groups, by {items} items whose "
            "difficulties were public before.",
            count=len(record["groups"]),
            items=count,
        )
    if record.get("groups"):
        return tell(
            "This release publishes the difficulties of {items} items, and how they differ between "
            "{count} groups.",
            count=len(record["groups"]),
            items=count,
        )
    return tell.of("This release publishes the {numbers} of {count} {items}.", count=count)


def _explain_errors(record: PlainMapping) -> list[str]:
    tell = speak(record)
    if record["mechanism"] == MEANS:
        return [
            tell(
                "Standard errors and intervals of means include both the sampling of persons and "
                "the privacy noise, and not what is unsure about the difficulties. They were "
                "computed from the noisy values alone; abilities are taken as normal within each "
                "group."
            )
        ]
    if not has_errors(record):
        return []
    return [
        tell.of(
            "Standard errors and intervals include both the sampling of {persons} and the "
            "privacy noise. They were computed from the noisy values alone."
        )
    ]


def _name_reference(record: PlainMapping) -> str:
    """Say that a translation is one, and where the words are that count."""
    tell = speak(record)
    return tell(
        "This statement is a translation. The English one, in {file}, is the reference.",
        file=REFERENCE,
    )


def name_access(record: PlainMapping) -> str:
    """Say of what a release is, and whether it is private."""
    tell = speak(record)
    if record["guarantee"]["is_private"] and record["mechanism"] == MEANS:
        return tell("Mean abilities of groups, released with differential privacy")
    if record["guarantee"]["is_private"]:
        return tell.of("{title}, released with differential privacy")
    return tell.of("{title}, not private: made with noise for tests")


def warn(record: PlainMapping) -> str:
    """Say on a page that nothing is private, where the noise was for tests; else nothing."""
    if record["guarantee"]["is_private"]:
        return ""
    tell = speak(record)
    return tell("Not private: made with a seeded source for tests.")


def write_statement(record: PlainMapping) -> str:
    """Return the statement as Markdown."""
    statement, tell = make_statement(record), speak(record)
    points = [
        f"- **{markdown_text(name)}.** {markdown_text(value)}"
        for name, value in list_nist_points(record).items()
    ]
    title = record.get("identity", {}).get("title")
    first, *others = map(markdown_text, statement.promise)
    parts = [
        f"# {tell('Privacy statement')}" + (f": {markdown_text(title)}" if title else ""),
        statement.warning and f"**{tell('NOT PRIVATE.')}** {statement.warning}",
        first,
        markdown_table(("", ""), statement.facts.items()),
        *others,
        *([f"## {tell('The points of NIST SP 800-226')}", "\n".join(points)] if points else []),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def explain_promise(record: PlainMapping) -> str:
    """Say what a release promises to one person; nothing where the noise was for tests."""
    guarantee, tell = Guarantee.from_dict(record["guarantee"]), speak(record)
    if not guarantee.is_private:
        return tell("It promises nothing to anybody, because its noise can be drawn again.")
    return explain_belief(guarantee, tell)


def explain_belief(guarantee: Guarantee, tell: Language = ENGLISH) -> str:
    """Say in one sentence what somebody can learn about one person from a release."""
    if guarantee.tail is None:
        right = best_guess(guarantee.epsilon, guarantee.delta, guarantee.neighbours)
        return tell.of(GUESSED, right=show_probability_bound(right, tell))
    sure = show_probability_bound(surest_belief(guarantee.epsilon, guarantee.neighbours), tell)
    if not guarantee.tail:
        return tell.of(BELIEVED, sure=sure)
    return tell.of(MOSTLY_BELIEVED, sure=sure, beyond=show_chance(guarantee.tail))


def explain_plainly(record: PlainMapping) -> str:
    """Say in everyday words what a page gives away about one person; nothing without a promise."""
    guarantee, tell = Guarantee.from_dict(record["guarantee"]), speak(record)
    if not guarantee.is_private:
        return ""
    right = best_guess(guarantee.epsilon, guarantee.delta, guarantee.neighbours)
    return tell.of(PLAINLY, right=show_probability_bound(right, tell))


def _compare(record: PlainMapping) -> list[str]:
    if not record["guarantee"]["is_private"]:
        return []
    relation, tell = record["guarantee"]["neighbours"], speak(record)
    if record["number_fixed"]:
        relation = "stated number" if record["looked"] else "fixed number"
    hidden = tell("Which group somebody is in is protected too, so the sizes of groups have noise.")
    compared = tell.of(RELATION[relation])
    return [compared, hidden] if record.get("groups") else [compared]


def _facts(record: PlainMapping) -> dict[str, str]:
    guarantee, tell = record["guarantee"], speak(record)
    facts = {
        **list_identity(record),
        tell("protected"): tell.term(guarantee["unit"]),
        tell("neighbouring data sets"): tell.term(guarantee["neighbours"]),
        tell("epsilon"): f"{guarantee['epsilon']:g}",
        tell("delta"): f"{guarantee['delta']:g}",
    }
    if guarantee["rho"] is not None:
        facts[tell("rho (zero-concentrated)")] = f"{guarantee['rho']:.4g}"
    counted = tell.of("{answers} counted per {person}")
    facts |= {
        tell("mechanism"): record["mechanism"],
        tell("noise"): tell.term(guarantee["noise"]),
        counted: tell("at most {cap}", cap=record[tell.kind.cap]),
    }
    if record[tell.kind.persons] is not None:
        facts[tell.of("{persons}")] = str(record[tell.kind.persons])
    if record.get("forms"):
        facts[tell("forms")] = tell.of(
            "{count}; every {person} was given one of them", count=len(record["forms"])
        )
    if record.get("design", "unknown") != "unknown":
        inspected = record["looked"]
        stated = (
            tell("who answered what, as stated")
            if inspected
            else tell("who answered what, as stated in advance")
        )
        facts[stated] = tell.term(DESIGNS[record["design"]])
    if record.get("centre_from"):
        facts[tell("looked at answers around")] = tell.term(record["centre_from"])
    if record.get("groups"):
        names = ", ".join(record["groups"])
        facts[tell("groups compared")] = f"{record['group_column']}: {names}"
    return facts


#: Where the sensitivity of a mechanism is proved; else in docs/privacy.md.
PROOFS = {"margins": "docs/margins.md", "laplace-margins": "docs/margins.md"}

IDENTITY = {
    "title": mark("title"),
    "version": mark("version"),
    "date": mark("date of publication"),
    "body": mark("responsible"),
    "contact": mark("contact"),
    "supersedes": mark("takes the place of version"),
    "reason": mark("because"),
}


def list_identity(record: PlainMapping) -> dict[str, str]:
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


def name_edition(record: PlainMapping) -> str:
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


def _show_spent(account: PlainMapping, tell: Language) -> str:
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


def explain_versions(record: PlainMapping) -> list[str]:
    """Say what it means that a release takes the place of another one."""
    identity, account = record.get("identity", {}), record.get("account")
    sentences = [identity["note"]] if "note" in identity else []
    if "supersedes" not in identity:
        return sentences
    tell = speak(record)
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
            "What was published once stays known: with both, and whatever else was released about "
            "the same {persons}, there was spent {spent}.",
            spent=_show_spent(account, tell),
        )
    )
    return [*sentences, f"{replaced} {together}"]


def explain_ledger(record: PlainMapping) -> str:
    """Say which ledger was charged, or that none was."""
    charged, tell = record["guarantee"]["ledger"], speak(record)
    return tell.term(NO_LEDGER) if charged is None else tell.term(CHARGED).format(ledger=charged)


def list_nist_points(record: PlainMapping) -> dict[str, str]:
    """Return NIST's points, each with this release's answer; none where nothing is promised."""
    guarantee, tell = record["guarantee"], speak(record)
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
            "Neither {answers} nor exact counts are in this bundle; who may see them is decided by "
            "whoever holds them."
        ),
        tell("What is not protected"): tell(
            "Public: {names}. Whatever was collected is as exposed as it was before.",
            names=", ".join(list_unprotected(record)),
        ),
        tell("Small groups"): _tell_groups(record),
        tell("Accuracy"): _tell_accuracy(record),
        tell("Releases together"): _tell_releases(record),
    }


def _tell_groups(record: PlainMapping) -> str:
    tell = speak(record)
    if record["mechanism"] == MEANS:
        return tell(
            "A group with fewer than {least} persons, by the noisy number, has no mean; no number "
            "is rounded for privacy. The promise is the same to a member of a small group as to "
            "anybody else; a fact that holds for all members of a group can be learnt about the "
            "group.",
            least=record["settings"]["least"],
        )
    if not has_errors(record):
        return tell(
            "No number is suppressed and none is rounded for privacy. The promise is the same to a "
            "member of a small group as to anybody else; a fact that holds for all members of a "
            "group can be learnt about the group."
        )
    return tell.of(
        "No number is suppressed and none is rounded for privacy: an item with few {answers} "
        "gets a wide interval instead. The promise is the same to a member of a small group as "
        "to anybody else; a fact that holds for all members of a group can be learnt about the "
        "group."
    )


def _tell_accuracy(record: PlainMapping) -> str:
    if not has_errors(record):
        return " ".join(_explain_errors(record) or explain_floor(record))
    tell = speak(record)
    return tell.of("Standard errors and intervals include the sampling of {persons} and the noise.")


def explain_floor(record: PlainMapping) -> list[str]:
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


def has_errors(record: PlainMapping) -> bool:
    """Say whether the difficulties of a release have standard errors."""
    floor = record.get("floor")
    return record["mechanism"] != MEANS and (floor is None or has_room(**floor))


def _tell_trust(record: PlainMapping) -> str:
    tell = speak(record)
    sentence = tell.of(
        "Central: whoever holds the {answers} is trusted with them; whoever reads the release is "
        "not."
    )
    if "shuffler" not in record["settings"]:
        return sentence
    coin = tell("Every answer was randomised by a coin of its own before it was counted.")
    return f"{sentence} {coin}"


def _tell_proof(record: PlainMapping) -> str:
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


def _tell_audit(record: PlainMapping) -> str:
    audit, tell = record.get("audit"), speak(record)
    if audit is None:
        return tell(
            "None is attached to this release; 'discreet audit' attacks the mechanism at any size."
        )
    return tell.of(
        "Attacked {runs} times at {count} {items} with a claim of epsilon {claimed}: {verdict}; "
        "the attacks prove epsilon {proved}.",
        runs=tell.number(audit["runs"]),
        count=audit["items"],
        claimed=f"{audit['claimed_epsilon']:g}",
        verdict=tell.term(audit["verdict"]),
        proved=f"{audit['lower_bound']:.3g}",
    )


def _tell_releases(record: PlainMapping) -> str:
    account, tell = record.get("account"), speak(record)
    if account is None:
        return explain_ledger(record)
    about = name_population(account["population"], tell)
    return f"{explain_ledger(record)} {about}: {_show_spent(account, tell)}."


def list_unprotected(record: PlainMapping) -> list[str]:
    """Name what a release does not protect, because it was public before."""
    tell = speak(record)
    cap = tell.of("the cap of {cap} {answers} per {person}", cap=record[tell.kind.cap])
    facts = [tell.of("the list of {items}"), cap]
    if record[tell.kind.persons] is not None and record["number_fixed"]:
        inspected = record["looked"]
        facts.append(
            tell.of("the number of {persons} (as stated)")
            if inspected
            else tell.of("the number of {persons} (fixed in advance)")
        )
    elif record[tell.kind.persons] is not None:
        facts.append(
            tell.of("the number of {persons} (and with it whether somebody took part at all)")
        )
    if has_step_items(record):
        facts.append(tell("how many steps each item has"))
    if record.get("forms"):
        facts.append(tell.of("the forms of the test and which {items} are in each"))
    if "shuffler" in record["settings"]:
        facts.append(tell.of("the pattern of answered {items} of each {person}"))
    return facts
