"""What a release says about itself: its privacy statement, and a draft for the OpenDP registry.

In: the privacy record of a release. Out: sentences in plain words, as a value that the page shows
and as Markdown that a steward can sign; and YAML with the fields of the registry of privacy
deployments, where what only the steward can know is a marked blank. Neither contains anything
that is not in ``privacy.json``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.output.points import (
    explain_floor,
    explain_ledger,
    explain_versions,
    has_errors,
    has_steps,
    list_identity,
    list_points,
    list_public,
)
from discreet.privacy.accounting import Guarantee, Neighbours
from discreet.privacy.accounting.gaussian import explain_belief
from discreet.results.kinds import find_kind
from discreet.words import mark, mark_of, speak, translate_record

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
    "add-remove": mark_of(
        "It was made with differential privacy: nothing in it would look much different if any one "
        "{person} had not taken part."
    ),
}
"""What the promise compares, in the words of the statement."""

METRICS = {
    Neighbours.REPLACE_ONE: "change-one distance: one {person}'s {answers} differ, the number of "
    "{person}s is public",
    Neighbours.ADD_REMOVE: "symmetric distance: one {person} is added or removed",
}
"""What the promise compares, in the words of the registry."""

DESIGNS = {
    "complete": mark("everybody answered every item that was given to them"),
    "random": mark("which items somebody answered did not depend on ability"),
}
"""What the steward stated about the design; intervals rely on it, the promise does not."""

REFERENCE = "statement.en.md"
"""The file with the statement in English, beside one in another language."""

MODELS = {"none": "Local", "trusted": "Shuffle"}
"""Whom the guarantee holds against, by who shuffles randomised answers."""


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


def make_statement(record: Mapping[str, Any]) -> Statement:
    """Say what a release promises, to whom and on what conditions, in the record's language."""
    guarantee, tell = record["guarantee"], speak(record)
    return Statement(
        warning=""
        if guarantee["is_private"]
        else tell("The noise came from a seeded source, which exists for tests only."),
        facts=_facts(record),
        promise=(
            " ".join([_say_published(record), *_compare(record), explain_promise(record)]),
            *map(tell.term, guarantee["conditions"]),
            explain_ledger(record),
            *explain_versions(record),
            _explain_choices(record),
            *explain_floor(record),
            *_explain_errors(record),
            *([] if tell.language == "en" else [_name_reference(record)]),
        ),
    )


def _say_published(record: Mapping[str, Any]) -> str:
    tell, count = speak(record), len(record["items"])
    if has_steps(record):
        return tell(
            "This release publishes the thresholds of all steps and the difficulties (their means) "
            "of {count} items.",
            count=count,
        )
    kind = find_kind(record)
    return tell.of(kind, "This release publishes the {numbers} of {count} {items}.", count=count)


def _explain_choices(record: Mapping[str, Any]) -> str:
    """Say what has to be chosen without looking."""
    tell = speak(record)
    if has_steps(record):
        return tell(
            "The item list with its steps, the cap on answers, epsilon, delta and the mechanism "
            "have to be chosen without looking at the data. Choosing any of them after looking "
            "voids this promise."
        )
    return tell.of(
        find_kind(record),
        "The {listed}, the cap on {answers}, epsilon, delta and the mechanism have to be chosen "
        "without looking at the data. Choosing any of them after looking voids this promise.",
    )


def _explain_errors(record: Mapping[str, Any]) -> list[str]:
    if not has_errors(record):
        return []
    tell = speak(record)
    return [
        tell.of(
            find_kind(record),
            "Standard errors and intervals include both the sampling of {persons} and the "
            "privacy noise. They were computed from the noisy values alone.",
        )
    ]


def _name_reference(record: Mapping[str, Any]) -> str:
    """Say that a translation is one, and where the words are that count."""
    tell = speak(record)
    return tell(
        "This statement is a translation. The English one, in {file}, is the reference.",
        file=REFERENCE,
    )


def _name_numbers(record: Mapping[str, Any]) -> str:
    """Say what a release publishes of each item, for the registry."""
    numbers = f"the {find_kind(record).numbers}"
    return f"the thresholds of all steps and {numbers} (their means)" * has_steps(record) or numbers


def _name_errors(record: Mapping[str, Any]) -> str:
    """Say in the registry what standard errors include, or that there are none."""
    if has_errors(record):
        return "with standard errors that include the privacy noise"
    return "without standard errors"


def name_access(record: Mapping[str, Any]) -> str:
    """Say of what a release is, and whether it is private."""
    kind, tell = find_kind(record), speak(record)
    if record["guarantee"]["is_private"]:
        return tell.of(kind, "{title}, released with differential privacy")
    return tell.of(kind, "{title}, not private: made with noise for tests")


def warn(record: Mapping[str, Any]) -> str:
    """Say on a page that nothing is private, where the noise was for tests; else nothing."""
    if record["guarantee"]["is_private"]:
        return ""
    tell = speak(record)
    return tell("Not private: made with a seeded source for tests.")


def write_statement(record: Mapping[str, Any]) -> str:
    """Return the statement as Markdown."""
    made, tell = make_statement(record), speak(record)
    rows = [f"| {as_cell(name)} | {as_cell(value)} |" for name, value in made.facts.items()]
    points = [f"- **{name}.** {value}" for name, value in list_points(record).items()]
    title = record.get("identity", {}).get("title")
    parts = [
        f"# {tell('Privacy statement')}" + (f": {as_cell(title)}" if title else ""),
        made.warning and f"**{tell('NOT PRIVATE.')}** {made.warning}",
        made.promise[0],
        "\n".join(["| | |", "|---|---|", *rows]),
        *made.promise[1:],
        *([f"## {tell('The points of NIST SP 800-226')}", "\n".join(points)] if points else []),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def as_cell(text: str) -> str:
    """Return words of a steward as they stand in a table, whatever signs they have."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def explain_promise(record: Mapping[str, Any]) -> str:
    """Say what a release promises to one person; nothing where the noise was for tests."""
    guarantee, tell = Guarantee.from_dict(record["guarantee"]), speak(record)
    if not guarantee.is_private:
        return tell("It promises nothing to anybody, because its noise can be drawn again.")
    return explain_belief(guarantee, find_kind(record), tell)


def _compare(record: Mapping[str, Any]) -> list[str]:
    if not record["guarantee"]["is_private"]:
        return []
    fixed = record.get("number_fixed")
    relation = RELATION["fixed number" if fixed else record["guarantee"]["neighbours"]]
    tell = speak(record)
    return [tell.of(find_kind(record), relation)]


def _facts(record: Mapping[str, Any]) -> dict[str, str]:
    guarantee, kind, tell = record["guarantee"], find_kind(record), speak(record)
    facts = {
        **list_identity(record),
        tell("protected"): tell.term(guarantee["unit"]),
        tell("neighbouring data sets"): tell.term(guarantee["neighbours"]),
        tell("epsilon"): f"{guarantee['epsilon']:g}",
        tell("delta"): f"{guarantee['delta']:g}",
    }
    if guarantee["rho"] is not None:
        facts[tell("rho (zero-concentrated)")] = f"{guarantee['rho']:.4g}"
    counted = tell.of(kind, "{answers} counted per {person}")
    facts |= {
        tell("mechanism"): record["mechanism"],
        tell("noise"): tell.term(guarantee["noise"]),
        counted: tell("at most {cap}", cap=record[kind.cap]),
    }
    if record[kind.persons] is not None:
        facts[tell.of(kind, "{persons}")] = str(record[kind.persons])
    if record.get("forms"):
        facts[tell("forms")] = tell.of(
            kind,
            "{count}; every {person} was given one of them",
            count=len(record["forms"]),
        )
    if record.get("design", "unknown") != "unknown":
        stated = tell("who answered what, as stated in advance")
        facts[stated] = tell.term(DESIGNS[record["design"]])
    return facts


def write_registry_entry(record: Mapping[str, Any]) -> str:
    """Return the YAML draft for a release, from its privacy record; the registry is in English."""
    record = translate_record(record, "en")
    guarantee, kind = record["guarantee"], find_kind(record)
    said, points = record.get("identity", {}), list_points(record)
    relation = METRICS[Neighbours(guarantee["neighbours"])]
    fields: dict[str, Any] = {
        "status": "Draft" if guarantee["is_private"] else "NOT PRIVATE: not to be registered",
        "deployment": {
            "product": {
                "name": said.get("title", "TO FILL IN: name of the test or data set"),
                "data_curators": [said.get("body", "TO FILL IN")],
                "intended_use": _name_use(record),
                "data_product_type": "Summary statistics",
                "data_product_region": "TO FILL IN",
                "description": f"{_capital(_name_numbers(record))} of {len(record['items'])} "
                f"{kind.items} in logits, {_name_errors(record)}",
                "publication_date": said.get("date", "TO FILL IN"),
                "data_product_sector": "TO FILL IN",
            },
            "dp_flavor": {
                "name": "Approximate DP" if guarantee["delta"] else "Pure DP",
                "input_metric": relation.format_map(vars(kind)),
                "bound_on_input_distance": "1",
                "data_domain": STEPPED if has_steps(record) else kind.domain,
                "unprotected_quantities": ", ".join(list_public(record)),
            },
            "privacy_loss": {
                "privacy_unit": "Person-level",
                "privacy_unit_description": guarantee["unit"],
                "privacy_parameters": _parameters(guarantee),
                "privacy_parameters_description": " ".join(guarantee["conditions"])
                or "Holds as stated, without further conditions.",
            },
            "model": {
                "model_name": MODELS.get(record["settings"].get("shuffler"), "Central"),
                "release_type": "One release",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "composition": points.get("Releases together", guarantee["ledger_note"]),
                "post_processing": f"Estimation of {_name_numbers(record)} from the noisy values",
            },
            "implementation": {
                "mechanisms": f"{record['mechanism']}, {guarantee['noise']}; {record['software']}",
                **({"audit": points["Audit"]} if points and record.get("audit") else {}),
                "justification": "TO FILL IN: how epsilon, delta, the cap and the items were "
                "chosen, before looking at the data",
            },
        },
    }
    return "\n".join(_yaml(fields)) + "\n"


STEPPED = "Answers of persons to listed items in ordered categories, or missing"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _name_use(record: Mapping[str, Any]) -> str:
    if not has_steps(record):
        return find_kind(record).use
    return f"Thresholds and locations of items by the {record['model'].replace('-', ' ')} model"


def _parameters(guarantee: Mapping[str, Any]) -> dict[str, Any]:
    names = ("epsilon", "delta", "rho")
    return {name: guarantee[name] for name in names if guarantee[name] is not None}


def _yaml(value: Any, indent: int = 0) -> list[str]:
    """Write nested mappings, lists of strings and scalars; all this file needs of YAML."""
    pad = " " * indent
    lines = []
    for key, entry in value.items():
        if isinstance(entry, Mapping):
            lines += [f"{pad}{key}:", *_yaml(entry, indent + 2)]
        elif isinstance(entry, list):
            lines += [f"{pad}{key}:", *(f"{pad}  - {_scalar(one)}" for one in entry)]
        else:
            lines.append(f"{pad}{key}: {_scalar(entry)}")
    return lines


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return format(value, "g") if isinstance(value, float) else str(value)
