"""What a release says about itself: its privacy statement, and a draft for the OpenDP registry.

In: the privacy record of a release. Out: sentences in plain words, as a value that the page shows
and as Markdown that a steward can sign; and YAML with the fields of the registry of privacy
deployments, where what only the steward can know is a marked blank. Neither contains anything
that is not in ``privacy.json``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from unicodedata import normalize

from discreet.privacy.accounting import Guarantee, Neighbours
from discreet.privacy.accounting.gaussian import explain_belief
from discreet.report.statement_points import (
    explain_floor,
    explain_ledger,
    explain_versions,
    has_errors,
    has_step_items,
    list_identity,
    list_nist_points,
    list_unprotected,
)
from discreet.text import markdown_table, markdown_text
from discreet.words import find_kind, mark, mark_of, speak, translate_record

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
    if has_step_items(record):
        return tell(
            "This release publishes the thresholds of all steps and the difficulties (their means) "
            "of {count} items.",
            count=count,
        )
    kind = find_kind(record)
    return tell.of(kind, "This release publishes the {numbers} of {count} {items}.", count=count)


def _explain_choices(record: Mapping[str, Any]) -> str:
    """Say what has to be chosen without looking, or that somebody looked before."""
    tell = speak(record)
    if record.get("looked") and has_step_items(record):
        return tell(
            "The answers were looked at before the item list with its steps, the cap on answers, "
            "epsilon, delta and the mechanism were set. If any of them was chosen because of what "
            "was seen, this promise is void."
        )
    if record.get("looked"):
        return tell.of(
            find_kind(record),
            "The {answers} were looked at before the {listed}, the cap on {answers}, epsilon, "
            "delta and the mechanism were set. If any of them was chosen because of what was seen, "
            "this promise is void.",
        )
    if has_step_items(record):
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
    return (
        f"the thresholds of all steps and {numbers} (their means)" * has_step_items(record)
        or numbers
    )


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


def explain_promise(record: Mapping[str, Any]) -> str:
    """Say what a release promises to one person; nothing where the noise was for tests."""
    guarantee, tell = Guarantee.from_dict(record["guarantee"]), speak(record)
    if not guarantee.is_private:
        return tell("It promises nothing to anybody, because its noise can be drawn again.")
    return explain_belief(guarantee, find_kind(record), tell)


def _compare(record: Mapping[str, Any]) -> list[str]:
    if not record["guarantee"]["is_private"]:
        return []
    relation, tell = record["guarantee"]["neighbours"], speak(record)
    if record.get("number_fixed"):
        relation = "stated number" if record.get("looked") else "fixed number"
    return [tell.of(find_kind(record), RELATION[relation])]


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
        inspected = record.get("looked")
        stated = (
            tell("who answered what, as stated")
            if inspected
            else tell("who answered what, as stated in advance")
        )
        facts[stated] = tell.term(DESIGNS[record["design"]])
    return facts


BLANK = "TO FILL IN"
"""What only the steward knows, in the draft for the registry."""
NO_DATE = "1900-01-01"
"""The registry takes dates only; its own template has this one for a date to fill in."""
LIMIT = "The ledger's limit on one person, for all releases together, is epsilon"
SECTORS = "Technology, Healthcare, Education, Government, Energy or Finance"


def write_registry_entry(record: Mapping[str, Any]) -> str:
    """Return the YAML draft for a release, from its privacy record; the registry is in English.

    Its fields are those of the registry's schema of July 2026. A release with noise for tests gets
    a status that the registry refuses.
    """
    record = translate_record(record, "en")
    is_private = record["guarantee"]["is_private"]
    entry = {
        "url_slug": _make_slug(record.get("identity", {})),
        "status": "Draft" if is_private else "NOT PRIVATE: not to be registered",
        "tier": 3,
        "deployment": {
            "basic": _describe_product(record),
            "dp_variant": _describe_variant(record),
            "privacy_loss": _describe_loss(record),
            "deployment_model": _describe_model(record),
            "accounting": {
                "post_processing": f"Estimation of {_name_numbers(record)} from the noisy values",
                "composition": _find_point(record, "Releases together"),
            },
            "implementation": _describe_implementation(record),
            "administrative": _describe_authors(record),
        },
    }
    return "\n".join(_yaml(entry)) + "\n"


def _make_slug(identity: Mapping[str, str]) -> str:
    """Return title and version in the letters that an address of the registry has."""
    words = normalize(
        "NFKD", f"{identity.get('title', '')} {identity.get('version', '')}".casefold()
    )
    plain = words.encode("ascii", "ignore").decode()
    return "_".join(re.findall(r"[a-z0-9]+", plain)) or "to_fill_in"


def _describe_product(record: Mapping[str, Any]) -> dict[str, Any]:
    identity, kind = record.get("identity", {}), find_kind(record)
    numbers = _name_numbers(record)
    dated = (
        {"publication_date": identity["date"]}
        if "date" in identity
        else {
            "# publication_date": f"{BLANK}: the day of publication",
            "publication_date": NO_DATE,
        }
    )
    return {
        "name": identity.get("title", f"{BLANK}: name of the test or data set"),
        "data_curators": [identity.get("body", BLANK)],
        "intended_use": _name_use(record),
        "data_product_type": "Summary statistics",
        "data_product_region": f"{BLANK}: where the {kind.persons} live, or whose laws apply",
        "description": f"{numbers[0].upper()}{numbers[1:]} of {len(record['items'])} {kind.items} "
        f"in logits, {_name_errors(record)}",
        **dated,
        "# data_product_sector": f"{BLANK}: {SECTORS}",
    }


def _describe_variant(record: Mapping[str, Any]) -> dict[str, str]:
    return {
        "variant_name": "Approximate DP" if record["guarantee"]["delta"] else "Pure DP",
        "data_domain": STEPPED if has_step_items(record) else find_kind(record).domain,
        "unprotected_quantities": ", ".join(list_unprotected(record)),
    }


def _describe_loss(record: Mapping[str, Any]) -> dict[str, Any]:
    guarantee, kind = record["guarantee"], find_kind(record)
    relation = METRICS[Neighbours(guarantee["neighbours"])].format_map(vars(kind))
    return {
        "privacy_unit": f"{kind.person.capitalize()}-level",
        "privacy_unit_details": f"{guarantee['unit']}; {relation}; the distance is at most 1",
        "privacy_parameters": _parameters(guarantee),
        "privacy_parameters_details": " ".join(guarantee["conditions"])
        or "Holds as stated, without further conditions.",
    }


def _describe_model(record: Mapping[str, Any]) -> dict[str, str]:
    kind, account = find_kind(record), record.get("account")
    limit = "" if account is None else f"{LIMIT} {account['limit']:g}. "
    return {
        "model_name": "Central",
        "model_name_details": _find_point(record, "Trust model"),
        "actors": f"Whoever holds the {kind.answers} is trusted with them; readers of the release "
        f"are not trusted. {BLANK}: who else can see the {kind.answers}",
        "release_type": "One release",
        "release_type_details": f"{limit}{BLANK}: plans for further releases about these "
        f"{kind.persons}",
        "data_source_type": "Static",
        "access_type": "Non-interactive",
    }


def _describe_implementation(record: Mapping[str, Any]) -> dict[str, str]:
    guarantee, kind = record["guarantee"], find_kind(record)
    mechanism = f"{record['mechanism']}, {guarantee['noise']}; {record['software']}."
    more = [_find_point(record, name) for name in ("Implementation", "Side channels")]
    audit = f"Audit: {_find_point(record, 'Audit')}" if record.get("audit") else ""
    return {
        "preprocessing_and_hyperparameter_tuning": f"At most {record[kind.cap]} {kind.answers} of "
        f"a {kind.person} are counted; of more, as many are drawn at random. {BLANK}: what else "
        "was done with the data before the release, and whether that was accounted for",
        "mechanisms": " ".join(filter(None, [mechanism, *more, audit])),
        "justification": f"Mechanism: {record['choice']}. {BLANK}: who chose epsilon, delta, the "
        f"cap and the {kind.items}, when and why",
    }


def _describe_authors(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return who wrote the entry, and what the ledger and the approvers' request are called."""
    approval = record.get("approval")
    signed = "" if approval is None else f" Approved request: SHA-256 {approval['sha256']}."
    return {
        "sources": f"{BLANK}: where the release and its documents are published",
        "notes": f"{explain_ledger(record)}{signed}",
        "registry_authors": [record.get("identity", {}).get("body", BLANK)],
    }


def _find_point(record: Mapping[str, Any], name: str) -> str:
    """Return what a release says to one of NIST's points; which says nothing without a promise."""
    return list_nist_points(record).get(name, "Not private: made with noise for tests.")


STEPPED = "Answers of persons to listed items in ordered categories, or missing"


def _name_use(record: Mapping[str, Any]) -> str:
    if not has_step_items(record):
        return find_kind(record).use
    return f"Thresholds and locations of items by the {record['model'].replace('-', ' ')} model"


def _parameters(guarantee: Mapping[str, Any]) -> dict[str, Any]:
    names = ("epsilon", "delta", "rho")
    return {name: guarantee[name] for name in names if guarantee[name] is not None}


def _yaml(value: Any, indent: int = 0) -> list[str]:
    """Write nested mappings, lists of strings and scalars; all this file needs of YAML.

    A name that begins with ``#`` makes a comment.
    """
    pad = " " * indent
    lines = []
    for key, entry in value.items():
        if isinstance(entry, Mapping):
            lines += [f"{pad}{key}:", *_yaml(entry, indent + 2)]
        elif isinstance(entry, list):
            lines += [f"{pad}{key}:", *(f"{pad}  - {_scalar(item)}" for item in entry)]
        else:
            lines.append(f"{pad}{key}: {_scalar(entry)}")
    return lines


def _scalar(value: Any) -> str:
    """Write a number exactly, and a text as Markdown, which the registry takes all texts for."""
    if isinstance(value, str):
        return "'" + markdown_text(value).replace("'", "''") + "'"
    # Without a point YAML 1.1 reads 1e-06 as a text.
    return re.sub(r"^(-?\d+)e", r"\1.0e", repr(value))
