"""The privacy statement of a release, in plain words.

In: the privacy record. Out: Markdown that a steward can sign and a reader can understand.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp
from typing import Any

__all__ = ["explain_epsilon", "write_statement"]

RELATION = {
    "replace-one": "if any one {person}'s {answers} had been replaced by others (the number of "
    "{person}s is public)",
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


def explain_epsilon(epsilon: float) -> str:
    """Say what epsilon means for a guess about one person.

    Bayes: a guesser who held a fact for as likely as not can be at most e^eps / (1 + e^eps)
    sure of it afterwards.
    """
    sure = 100 / (1 + exp(-epsilon))
    shown = "more than 99.9%" if sure > 99.9 else f"at most {sure:.0f}%"
    return (
        f"Somebody who thinks that a fact about one person is as likely as not can become "
        f"{shown} sure of it by reading this release"
    )


def write_statement(record: Mapping[str, Any]) -> str:
    """Return the statement as Markdown."""
    guarantee = record["guarantee"]
    delta, words = guarantee["delta"], WORDS[record.get("kind", "answers")]
    exception = f", except with probability {delta:g}" if delta else ""
    parts = [
        "# Privacy statement",
        _warning(guarantee),
        f"This release publishes the {words['published']} of {len(record['items'])} "
        f"{words['items']}. It was made with differential privacy: nothing in it would look much "
        f"different {RELATION[guarantee['neighbours']].format_map(words)}. "
        f"{explain_epsilon(guarantee['epsilon'])}{exception}.",
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
