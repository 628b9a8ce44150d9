"""The spending report of a ledger: what all releases together cost any one person, to publish.

In: what a ledger holds at one moment. Out: plain values, and from these alone a page and a text. It
names populations and public parameters of releases; it holds no fingerprint, no digest of anybody,
no path, no description and nothing that was counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from discreet import __version__
from discreet.choices import PlainDict, PlainMapping
from discreet.html import HtmlColumn, render, write_page
from discreet.privacy.accounting import Budget, Neighbours, best_guess
from discreet.privacy.ledger import EVERYONE, Ledger
from discreet.privacy.ledger.balance import History, LedgerEntry
from discreet.privacy.ledger.populations import Populations
from discreet.report.pictures import PICTURE_ITEMS
from discreet.report.sheet import NAME_ROOM, Sheet, shorten_label
from discreet.report.statement import name_population
from discreet.text import show_probability_bound
from discreet.words import ENGLISH, Language, load_words, mark

RULES = {
    "gaussian": mark(
        "Spends are added as Gaussian curves: two equal releases about one person cost less than "
        "twice the epsilon of one, and what is left is more than the limit less what is spent."
    ),
    "basic": mark("Spends are added one by one: epsilons add, and deltas add."),
}
COMPARED = {
    Neighbours.REPLACE_ONE: mark(
        "The promise compares what is published with what would have been published if any one "
        "person's answers had been others (replace-one). Nobody changes from one population to "
        "another in it."
    ),
    Neighbours.ADD_REMOVE: mark(
        "The promise compares what is published with what would have been published if any one "
        "person had not taken part (add-remove)."
    ),
}


def list_populations(history: History) -> list[PlainDict]:
    """Return a row for "everyone" and each population: spent, left, releases, what is declared."""
    populations = history.populations
    return [
        {
            **{"population": one.population, "spent": one.epsilon, "left": one.left},
            "releases": one.releases,
            "contains": populations.parts_of(one.population),
            "disjoint": populations.apart_from(one.population),
        }
        for one in history.standings()
    ]


def describe_largest(history: History) -> PlainDict:
    """Return the most that was spent on any one person, and in which populations that person is."""
    largest = history.standing()
    return {
        "epsilon": largest.epsilon,
        "delta": history.spent()[1],
        "populations": list(largest.together),
        "is_exact": largest.is_exact,
    }


def explain_relations(populations: Populations, name: str, tell: Language = ENGLISH) -> str:
    """Say what is declared about a population, with what follows from it."""
    if name == EVERYONE:
        return tell("contains all")
    parts, others = populations.parts_of(name), populations.apart_from(name)
    relations = [tell("contains {names}", names=", ".join(parts))] if parts else []
    relations += [tell("disjoint from {names}", names=", ".join(others))] if others else []
    overlap = tell("may overlap with all others") if relations else tell("may overlap with all")
    return "; ".join([*relations, overlap])


def describe_spending(ledger: Ledger, history: History, language: str = "en") -> PlainDict:
    """Return all that a spending report says, as plain values; sentences in this language."""
    relation, tell = history.relation, load_words(language)
    return {
        "title": tell("What was spent on privacy"),
        "language": tell.language,
        "ledger": ledger.id,
        "as_of": max((entry.reserved_at[:10] for entry in history.entries), default=None),
        "rule": ledger.rule,
        "neighbours": None if relation is None else str(relation),
        "limit": {"epsilon": history.limit.epsilon, "delta": history.limit.delta},
        "keeps_limit": history.keeps_limit(),
        "largest": describe_largest(history),
        "populations": [
            {**row, "declared": explain_relations(history.populations, row["population"], tell)}
            for row in list_populations(history)
        ],
        "releases": [_describe_release(entry) for entry in history.entries],
        "statement": _make_statement(ledger.rule, history, tell),
        "software": f"discreet {__version__}",
    }


def _describe_release(entry: LedgerEntry) -> PlainDict:
    identity = (entry.order or {}).get("about", {}).get("identity", {})
    return {
        "number": entry.number,
        **{name: identity[name] for name in ("title", "version", "supersedes") if name in identity},
        "date": entry.reserved_at[:10],
        "population": entry.population,
        "mechanism": entry.spend.mechanism,
        "epsilon": entry.spend.epsilon,
        "delta": entry.spend.delta,
        "finished": entry.completed_at is not None,
    }


def _make_statement(rule: str, history: History, tell: Language) -> list[str]:
    """Return the sentences, a paragraph each."""
    relation = history.relation
    holds = tell(
        "The limit holds however later releases are chosen, also after looking at earlier ones; "
        "what is shown as spent is exact where they were chosen in advance."
    )
    translated = tell("This report is a translation; the English one is the reference.")
    return [
        _explain_limit(history.limit, relation or Neighbours.REPLACE_ONE, tell),
        *([] if relation is None else [tell.term(COMPARED[relation])]),
        tell(
            "Somebody may be in several populations at once. What counts is the largest total over "
            "all sets of populations that can share a person. Populations that were not declared "
            "disjoint count as overlapping. The declarations are the word of whoever keeps the "
            "ledger."
        ),
        f"{tell.term(RULES[rule])} {holds}",
        tell(
            "A release counts from the moment at which it was begun, whether it was finished or "
            "not, and for ever: what was published cannot be taken back. Releases that were "
            "charged to another ledger, or to none, are not counted here."
        ),
        *([] if tell.language == "en" else [translated]),
    ]


def _explain_limit(limit: Budget, relation: Neighbours, tell: Language) -> str:
    return tell(
        "Somebody who knows everybody else's answers, and for whom a fact about one person's "
        "answers is as likely as not, guesses it right with a probability of {right} after "
        "reading every release that the limit allows.",
        right=show_probability_bound(best_guess(limit.epsilon, limit.delta, relation), tell),
    )


def _summarise(spending: PlainMapping, tell: Language) -> str:
    largest, limit, count = spending["largest"], spending["limit"], len(spending["releases"])
    epsilon = f"{largest['epsilon']:.4g}"
    spent = tell("epsilon {epsilon}", epsilon=epsilon)
    if not largest["is_exact"]:
        spent = tell("at most epsilon {epsilon}", epsilon=epsilon)
    values = {"spent": spent, "limit": f"{limit['epsilon']:g}", "delta": f"{limit['delta']:g}"}
    return " ".join(
        [
            tell.count(count, "{number} release so far.", "{number} releases so far."),
            _say_most(largest["populations"], values, tell),
        ]
    )


def _say_most(together: list[str], values: Mapping[str, str], tell: Language) -> str:
    if not together:
        return tell(
            "The most that was spent on one person is {spent}; the limit is epsilon {limit} at "
            "delta {delta}.",
            **values,
        )

    def join(first: str, second: str) -> str:
        return tell("{first} and in {second}", first=first, second=second)

    return tell(
        "The most that was spent on one person, who is in {populations}, is {spent}; the limit is "
        "epsilon {limit} at delta {delta}.",
        populations=reduce(join, together),
        **values,
    )


def _warn(spending: PlainMapping, tell: Language) -> str:
    if spending["keeps_limit"]:
        return ""
    return tell(
        "More than the limit was spent on some persons: releases were accepted by a declaration "
        "that was found to be wrong and was corrected. No further release about them is made."
    )


def _list_facts(spending: PlainMapping, tell: Language) -> dict[str, str]:
    relation = spending["neighbours"]
    facts = {
        tell("largest epsilon"): f"{spending['largest']['epsilon']:.4g}",
        tell("limit"): f"{spending['limit']['epsilon']:g}",
        tell("delta"): f"{spending['limit']['delta']:g}",
        tell("releases"): str(len(spending["releases"])),
        tell("rule"): spending["rule"],
        tell("neighbours"): tell.term(relation) if relation else tell("not fixed yet"),
    }
    return facts | ({tell("latest release"): spending["as_of"]} if spending["as_of"] else {})


def _list_tables(spending: PlainMapping, tell: Language) -> dict[str, list[HtmlColumn]]:
    """Return the two tables: of populations, and of releases."""
    rows, releases = spending["populations"], spending["releases"]
    finished = [tell("yes") if release["finished"] else tell("no") for release in releases]
    titles = [_name_release(release, releases, tell) for release in releases]
    return {
        "populations": [
            HtmlColumn(tell("population"), _name_all(rows, tell)),
            HtmlColumn(tell("spent"), [row["spent"] for row in rows], 4),
            HtmlColumn(tell("left"), [row["left"] for row in rows], 4),
            HtmlColumn(tell("releases"), [row["releases"] for row in rows]),
        ],
        "releases": [
            HtmlColumn(tell("release"), [str(release["number"]) for release in releases]),
            *([HtmlColumn(tell("title"), titles)] if any(titles) else []),
            HtmlColumn(tell("date"), [release["date"] for release in releases]),
            HtmlColumn(tell("population"), _name_all(releases, tell)),
            HtmlColumn(tell("mechanism"), [release["mechanism"] for release in releases]),
            HtmlColumn(tell("epsilon"), [f"{release['epsilon']:g}" for release in releases]),
            HtmlColumn(tell("delta"), [f"{release['delta']:g}" for release in releases]),
            HtmlColumn(tell("finished"), finished),
        ],
    }


def _name_release(release: PlainMapping, releases: Sequence[PlainMapping], tell: Language) -> str:
    """Return title and version of a release, and the version by which it was replaced."""
    title, version = release.get("title", ""), release.get("version", "")
    later = [
        one["version"]
        for one in releases
        if one.get("title") == title and version and one.get("supersedes") == version
    ]
    words = [tell("version {version}", version=version)] if version else []
    words += [tell("replaced by version {version}", version=later[-1])] if later else []
    return f"{title} ({', '.join(words)})" if title and words else title


def _name_all(rows: list[PlainDict], tell: Language) -> list[str]:
    return [name_population(row["population"], tell) for row in rows]


def _list_declared(spending: PlainMapping, tell: Language) -> dict[str, str]:
    rows = spending["populations"]
    return dict(zip(_name_all(rows, tell), [row["declared"] for row in rows], strict=True))


def _explain_source(spending: PlainMapping, tell: Language) -> str:
    return tell(
        "Ledger {ledger}, the number that every release charged to it names. Made by {software}.",
        ledger=spending["ledger"],
        software=spending["software"],
    )


def list_spending_values(spending: PlainMapping) -> PlainDict:
    """Return what the template of the report shows."""
    tell = load_words(spending["language"])
    return {
        "tell": tell,
        "title": spending["title"],
        "warning": _warn(spending, tell),
        "summary": _summarise(spending, tell),
        "boxes": _list_facts(spending, tell),
        "picture": draw_spending(spending),
        **_list_tables(spending, tell),
        "declared": _list_declared(spending, tell),
        "statement": spending["statement"],
        "source": _explain_source(spending, tell),
    }


def draw_spending(spending: PlainMapping) -> Sheet:
    """Draw what was spent on one person of each population, against the limit."""
    rows, limit = spending["populations"][:PICTURE_ITEMS], spending["limit"]["epsilon"]
    tell = load_words(spending["language"])
    sheet = Sheet(
        x=(0.0, 1.05 * max(limit, *(row["spent"] for row in rows))),
        y=(len(rows) - 0.5, -0.5),
        description=tell(
            "What was spent on one person of each population, and the limit; the table has the "
            "numbers"
        ),
        height=56 + 26 * len(rows),
        left=116,
    )
    if len(rows) < (count := len(spending["populations"])):
        sheet.note = tell("The first {shown} of {count} populations.", shown=len(rows), count=count)
    sheet.x_axis(tell("epsilon spent on one person; the broken line is the limit"))
    for height, row in enumerate(rows):
        name = name_population(row["population"], tell)
        numbers = {column: f"{row[column]:.4g}" for column in ("spent", "left")}
        tip = tell("{population}: spent {spent}, left {left}", population=name, **numbers)
        label = shorten_label(name, NAME_ROOM)
        sheet.text(label, sheet.left - 8, sheet.up(height) + 4, anchor="end")
        sheet.box("band", (0.0, limit), (height - 0.3, height + 0.3), tip)
        sheet.box("ring", (0.0, row["spent"]), (height - 0.3, height + 0.3), tip)
    sheet.line("second", (limit, limit), sheet.y)
    return sheet


def write_spending_page(spending: PlainMapping) -> str:
    """Return the report as one HTML file."""
    return write_page("spending.html", list_spending_values(spending), scripts=())


def write_spending_text(spending: PlainMapping) -> str:
    """Return the report as Markdown."""
    return render("spending.md", {**list_spending_values(spending), "spending": spending})
