"""The privacy statement of a release, in plain words.

In: the privacy record. Out: Markdown that a steward can sign and a reader can understand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.privacy.accounting import Guarantee, explain_belief

__all__ = ["explain_promise", "write_statement"]

RELATION = {
    "replace-one": "if any one {person}'s {answers} had been replaced by others (the number of "
    "{person}s in the data is public, so that somebody is in the data at all is not protected)",
    "fixed number": "if any one {person}'s {answers} had been replaced by others, or by none (the "
    "number of {person}s is public and was fixed in advance)",
    "add-remove": "if any one {person} had not taken part",
}

WORDS = {
    "answers": {
        "published": "difficulties",
        "items": "items",
        "list": "item list",
        "answers": "answers",
        "person": "person",
    },
    "comparisons": {
        "published": "strengths",
        "items": "objects",
        "list": "list of objects",
        "answers": "comparisons",
        "person": "judge",
    },
}
"""How a release speaks of its data, by the record's ``kind``."""


def explain_promise(record: Mapping[str, Any]) -> str:
    """Say what a release promises to one person; nothing where the noise was for tests."""
    guarantee = Guarantee.from_dict(record["guarantee"])
    if not guarantee.is_private:
        return "It promises nothing to anybody, because its noise can be drawn again."
    words = WORDS[record.get("kind", "answers")]
    return explain_belief(guarantee, person=words["person"], answers=words["answers"])


def write_statement(record: Mapping[str, Any]) -> str:
    """Return the statement as Markdown."""
    guarantee, words = record["guarantee"], WORDS[record.get("kind", "answers")]
    parts = [
        "# Privacy statement",
        _warning(guarantee),
        f"This release publishes the {words['published']} of {len(record['items'])} "
        f"{words['items']}. {_compare(record, words)}{explain_promise(record)}",
        "| | |\n|---|---|\n" + "\n".join(f"| {name} | {value} |" for name, value in _facts(record)),
        *guarantee["conditions"],
        guarantee["ledger_note"],
        f"The {words['list']}, the cap on {words['answers']}, epsilon, delta and the mechanism "
        "have to be chosen without looking at the data. Choosing any of them after looking voids "
        "this promise.",
        f"Standard errors and intervals include both the sampling of {words['person']}s and the "
        "privacy noise. They were computed from the noisy values alone.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _compare(record: Mapping[str, Any], words: Mapping[str, str]) -> str:
    if not record["guarantee"]["is_private"]:
        return ""
    fixed = record.get("number_fixed")
    relation = RELATION["fixed number" if fixed else record["guarantee"]["neighbours"]]
    return (
        "It was made with differential privacy: nothing in it would look much different "
        f"{relation.format_map(words)}. "
    )


def _warning(guarantee: Mapping[str, Any]) -> str:
    if guarantee["is_private"]:
        return ""
    return "**NOT PRIVATE.** The noise came from a seeded source, which exists for tests only."


def _facts(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    guarantee, words = record["guarantee"], WORDS[record.get("kind", "answers")]
    facts = [
        ("protected", guarantee["unit"]),
        ("neighbouring data sets", guarantee["neighbours"]),
        ("epsilon", f"{guarantee['epsilon']:g}"),
        ("delta", f"{guarantee['delta']:g}"),
    ]
    if guarantee["rho"] is not None:
        facts.append(("rho (zero-concentrated)", f"{guarantee['rho']:.4g}"))
    facts += [
        ("mechanism", record["mechanism"]),
        ("noise", guarantee["noise"]),
        (
            f"{words['answers']} counted per {words['person']}",
            f"at most {record['max_' + words['answers']]}",
        ),
    ]
    people = f"{words['person']}s"
    if record[people] is not None:
        facts.append((people, str(record[people])))
    return facts
