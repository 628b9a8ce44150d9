"""What a release shows beside its statement: the public page, a draft for the OpenDP registry.

In: the estimate and the privacy record of a release. Out: one HTML file that works offline, in the
language of the record; and YAML with the fields of the registry of privacy deployments, where what
only the steward can know is a marked blank. Neither can show more than estimate and record hold.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from unicodedata import normalize

from discreet.choices import PlainDict, PlainMapping
from discreet.html import HtmlColumn, render, write_page
from discreet.items.curves import threshold_rows
from discreet.privacy.mechanisms.group_means import NAME as MEANS
from discreet.report import conditions, statement
from discreet.report.drawings import draw_difficulties, draw_thresholds
from discreet.report.pictures import difficulty_rows, summarise_items
from discreet.results.estimate import Estimate
from discreet.scales.ranks import ItemOrder, find_standing, list_groups, say_extremes, show_ranks
from discreet.tabular import Columns
from discreet.text import show_probability
from discreet.words import Language, find_kind, mark, speak, translate_record


@dataclass(frozen=True)
class GroupSection:
    """What a page says about groups: a title, paragraphs, and columns by their heads."""

    title: str
    notes: list[str]
    columns: Mapping[str, list[object]]


def write_public_page(
    estimate: Estimate, record: PlainMapping, groups: GroupSection | None = None
) -> str:
    """Return the page, in the language of the record."""
    tell = speak(record)
    identity = record.get("identity", {})
    has_numbers = bool(estimate.estimated.any())
    rows = difficulty_rows(estimate) if has_numbers else None
    standing = find_standing(estimate) if has_numbers and statement.has_errors(record) else None
    return write_page(
        "public.html",
        {
            "tell": tell,
            "title": identity.get("title") or statement.name_access(record),
            "about": statement.list_identity(record),
            "edition": statement.name_edition(record),
            "access": statement.name_access(record) if "title" in identity else "",
            "points": statement.list_nist_points(record),
            "warning": statement.warn(record),
            "own": {name: identity.get(name, "") for name in ("introduction", "footer")},
            "plainly": statement.explain_plainly(record),
            "exactly": statement.explain_promise(record),
            "summary": _summarise(estimate, record, standing),
            "boxes": _public_facts(record),
            "has_errors": statement.has_errors(record),
            "picture": rows and draw_difficulties(rows, tell),
            "thresholds": _show_thresholds(estimate, tell),
            "columns": _list_items(estimate, record, standing),
            "of_groups": groups,
            "group_columns": groups and [HtmlColumn(*one) for one in groups.columns.items()],
            **_describe_standing(standing, record),
            "promise": statement.make_statement(record).promise,
            "method": _method(estimate, record),
        },
        styles=["style.css", *(["steps.css"] if estimate.has_steps else [])],
        scripts=["table.js", "picture.js", "compare.js"],
    )


def _list_items(
    estimate: Estimate, record: PlainMapping, standing: ItemOrder | None
) -> list[HtmlColumn]:
    """Return the table of items."""
    columns, tell = estimate.to_dict(), speak(record)
    ranks = {} if standing is None else show_ranks(standing.ranges)
    numbers = [
        HtmlColumn(tell("item"), columns["item"]),
        HtmlColumn(tell.of("{number}"), columns["difficulty"]),
    ]
    if not statement.has_errors(record):
        return numbers
    return [
        *numbers,
        HtmlColumn(tell("possible ranks"), [ranks.get(item) for item in estimate.items]),
        HtmlColumn(tell("se"), columns["se"]),
        HtmlColumn(tell("lower"), columns["lower"]),
        HtmlColumn(tell("upper"), columns["upper"]),
    ]


def _show_thresholds(estimate: Estimate, tell: Language) -> PlainMapping | None:
    """Return the picture and the table of thresholds; None where items have one step each."""
    if not estimate.has_steps or not estimate.estimated.any():
        return None
    columns = estimate.thresholds_to_dict()
    return {
        "picture": draw_thresholds(threshold_rows(estimate), tell),
        "columns": [
            HtmlColumn(tell("item"), columns["item"]),
            HtmlColumn(tell("step"), columns["step"]),
            HtmlColumn(tell("threshold"), columns["threshold"]),
            HtmlColumn(tell("se"), columns["se"]),
            HtmlColumn(tell("lower"), columns["lower"]),
            HtmlColumn(tell("upper"), columns["upper"]),
        ],
    }


def _describe_standing(standing: ItemOrder | None, record: PlainMapping) -> PlainDict:
    """Return tables of groups and of neighbours, and what the comparison of two items needs."""
    if standing is None:
        return {"groups": None, "more_groups": "", "neighbours": None, "pairs": None}
    tell, ranges = speak(record), standing.ranges
    groups = list_groups(ranges, tell)
    more = sum(len(group) > 1 for group in ranges.groups) - len(groups["places"])
    remainder = tell.count(more, "… and {number} more group.", "… and {number} more groups.")
    return {
        "groups": [
            HtmlColumn(tell("places"), groups["places"]),
            HtmlColumn(tell("items"), groups["items"]),
        ],
        "more_groups": remainder if more else "",
        "neighbours": _list_neighbours(standing.neighbours, tell),
        "pairs": standing.pairs and {**standing.pairs, "words": _word_comparison(record)},
    }


def _list_neighbours(neighbours: Columns, tell: Language) -> list[HtmlColumn]:
    chances = [show_probability(one, tell) for one in neighbours["probability"]]
    verdicts = [tell("yes") if one else tell("no") for one in neighbours["told_apart"]]
    return [
        HtmlColumn(tell("item"), neighbours["above"]),
        HtmlColumn(tell("next"), neighbours["below"]),
        HtmlColumn(tell("difference"), neighbours["difference"]),
        HtmlColumn(tell("lower"), neighbours["lower"]),
        HtmlColumn(tell("upper"), neighbours["upper"]),
        HtmlColumn(tell("probability of the order"), chances),
        HtmlColumn(tell("told apart"), verdicts),
    ]


def _word_comparison(record: PlainMapping) -> dict[str, str]:
    """Return the sentences of a comparison; the script puts in what stands in braces."""
    tell = speak(record)
    return {
        "same": tell.of("Choose two different {items}."),
        "told": tell.of(
            "{first} less {second}: {difference} logits (standard error {se}). 95% interval of "
            "this pair alone: {alone}; of all pairs at once: {together}. Probability that {first} "
            "is the {scale} one, for this pair alone: {chance}.",
            **{
                name: f"{{{name}}}"
                for name in ("first", "second", "difference", "se", "alone", "together", "chance")
            },
        ),
        "apart": tell.of("Among all {items}, the two can be told apart at 95%."),
        "alike": tell.of("Among all {items}, the two cannot be told apart at 95%."),
        "range": tell("{low} to {high}", low="{low}", high="{high}"),
        "over": tell("over 99.9%"),
        "under": tell("under 0.1%"),
        "percent": tell("{percent}%", percent="{percent}"),
    }


def _summarise(estimate: Estimate, record: PlainMapping, standing: ItemOrder | None) -> str:
    tell = speak(record)
    count = tell.of("{count} {items}.", count=len(estimate.items))
    if not statement.has_errors(record):
        return " ".join([count, *statement.explain_floor(record)])
    if standing is None:
        return tell.of("The noise leaves nothing to say about these {items}.")
    typical = f"{summarise_items(estimate).typical_se:.2f}"
    return " ".join(
        [
            count,
            say_extremes(standing.ranges, tell),
            tell("The typical standard error is {se} logits.", se=typical),
        ]
    )


def _public_facts(record: PlainMapping) -> dict[str, str]:
    guarantee, tell = record["guarantee"], speak(record)
    counted = tell.of("{answers} per {person}")
    return {
        tell("epsilon"): f"{guarantee['epsilon']:g}",
        tell("delta"): f"{guarantee['delta']:g}",
        tell("neighbours"): tell.term(guarantee["neighbours"]),
        tell("mechanism"): record["mechanism"],
        counted: tell("at most {cap}", cap=record[tell.kind.cap]),
    }


def _method(estimate: Estimate, record: PlainMapping) -> str:
    tell = speak(record)
    noise = tell.term(record["guarantee"]["noise"])
    if "floor" in record:
        return tell(
            "{model} read off the stationary vector of a Markov chain on noisy counts, which are "
            "raised to 1 where they are below (estimator: {estimator}; Nguyen and Zhang 2023, "
            "Algorithm 2). {noise}. {software}.",
            model=_name_model(record),
            estimator=estimate.method,
            noise=noise[:1].upper() + noise[1:],
            software=record["software"],
        )
    return tell(
        "{model} estimated from noisy values only, with full knowledge of the noise (estimator: "
        "{estimator}). {noise}. {software}.",
        model=_name_model(record),
        estimator=estimate.method,
        noise=noise[:1].upper() + noise[1:],
        software=record["software"],
    )


MODELS = {
    "partial-credit": mark("Thresholds of the partial credit model"),
    "rating-scale": mark("Thresholds of the rating scale model"),
}


def _name_model(record: PlainMapping) -> str:
    tell = speak(record)
    if conditions.has_step_items(record):
        return tell.term(MODELS[record["model"]])
    if record["mechanism"] == MEANS:
        return tell("Mean abilities of groups")
    return tell.of("{model}")


#: What the promise compares, in the words of the registry.
def write_registry_entry(record: PlainMapping) -> str:
    """Return the YAML draft for a release, from its privacy record; the registry is in English.

    Its fields are those of the registry's schema of July 2026. A release with noise for tests gets
    a status that the registry refuses.
    """
    record = translate_record(record, "en")
    identity, guarantee = record.get("identity", {}), record["guarantee"]
    return render(
        "registry.yaml",
        {
            "record": record,
            "guarantee": guarantee,
            "identity": identity,
            "kind": find_kind(record),
            "slug": _make_slug(identity),
            "points": statement.list_nist_points(record),
            "has_steps": conditions.has_step_items(record),
            "has_errors": statement.has_errors(record),
            "is_means": record["mechanism"] == MEANS,
            "published": statement.say_published(record).removesuffix("."),
            "unprotected": ", ".join(statement.list_unprotected(record)),
            "unit": " ".join(conditions.explain_unit(record)),
            "choices": " ".join([*guarantee["conditions"], conditions.explain_choices(record)]),
            "reading": conditions.explain_reading(record),
            "ledger": statement.explain_ledger(record),
        },
    )


def _make_slug(identity: Mapping[str, str]) -> str:
    """Return title and version in the letters that an address of the registry has."""
    words = normalize(
        "NFKD", f"{identity.get('title', '')} {identity.get('version', '')}".casefold()
    )
    plain = words.encode("ascii", "ignore").decode()
    return "_".join(re.findall(r"[a-z0-9]+", plain)) or "to_fill_in"
