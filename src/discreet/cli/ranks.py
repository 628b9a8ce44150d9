"""``discreet top``, ``compare-items`` and ``compare rank``: what is extreme, what is told apart.

In: answers, comparisons, a calibration, a bank or a release. Out: names, ranks and differences as
far as they are sure. What is said of a release may be said to everyone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from discreet.cli.answers import Columns, ComparisonsFile, ReadingOptions, read_answers, read_votes
from discreet.cli.calibrations import check_method, find_calibration
from discreet.cli.fit import Regularisation
from discreet.cli.options import AsJson, Method, argument, flag, option
from discreet.cli.output import (
    TableColumn,
    conclude,
    list_rows,
    note,
    print_columns,
    print_json,
    print_table,
    say,
    working,
)
from discreet.errors import BadUsage

if TYPE_CHECKING:
    from discreet.results.estimate import Estimate
    from discreet.results.ranking import Ranking
    from discreet.results.ranks import ItemComparison, RankRanges
    from discreet.words import ReleaseKind

Level = Annotated[float, option("P", "Confidence level of 'surely' and of the ranks.", "--level")]


def top(
    file: Annotated[
        str, argument("FILE_OR_DIR", "Answers, a calibration, a bank, or a release of `release`.")
    ],
    *,
    k: Annotated[int, option("K", "How many items.", "-k", "--count", min=0)],
    easiest: Annotated[bool, flag("The easiest instead of the hardest.", "--easiest")] = False,
    level: Level = 0.95,
    method: Method = "auto",
    regularisation: Regularisation = 0.0,
    as_json: AsJson = False,
    reading: ReadingOptions,
) -> None:
    """Name the K hardest (or easiest) items."""
    check_method(method)
    stored_calibration = find_calibration(Path(file))
    if stored_calibration is None:
        estimate = _fit(file, method, regularisation, reading)
    else:
        _refuse_options(file, method, regularisation, reading)
        estimate = _as_estimate(stored_calibration)
    from discreet.results.ranking import rank
    from discreet.results.ranks import rank_ranges

    with working("Comparing items"):
        ranking = rank(estimate, k, easiest=easiest, level=level)
        ranges = rank_ranges(estimate, easiest=easiest, level=level)
    if as_json:
        print_json(_top_document(estimate, ranking, ranges))
    else:
        _print_ranking(estimate, ranking, ranges, find_words(stored_calibration))
    conclude(estimate.warnings, choice=estimate.choice)


def find_words(calibration: Any) -> ReleaseKind:
    """Return the words for what a calibration is about: items of persons, or objects of judges."""
    from discreet.words import find_kind

    return find_kind(getattr(calibration, "record", {}))


def _fit(file: str, method: str, regularisation: float, reading: ReadingOptions) -> Estimate:
    responses = read_answers(file, reading)
    from discreet.models.calibrate import fit

    with working("Estimating difficulties"):
        return fit(
            responses,
            method=check_method(method),
            model=reading.model,
            regularisation=regularisation,
        )


def _refuse_options(file: str, method: str, regularisation: float, reading: ReadingOptions) -> None:
    """Refuse what would have no effect: these numbers are estimated already."""
    if method != "auto" or regularisation or reading != ReadingOptions():
        raise BadUsage(
            f"{file} is a calibration, whose numbers are estimated already: --method, "
            "--regularisation and the options for reading answers belong to answers. Leave them "
            "out."
        )


def _as_estimate(calibration: Any) -> Estimate:
    from discreet.results.calibrated import as_estimate

    return as_estimate(calibration, "a ranking")


def _top_document(estimate: Estimate, ranking: Ranking, ranges: RankRanges) -> dict[str, Any]:
    names = {name: list(getattr(ranking, name)) for name in ("top", "surely_in", "possibly_in")}
    columns = ranges.to_dict()
    estimation = {"method": estimate.method, "choice": estimate.choice}
    ranks = list_rows({name: columns[name] for name in ("item", "first", "last")})
    return {**names, "gap": ranking.gap, **estimation, "ranks": ranks}


def _print_ranking(
    estimate: Estimate, ranking: Ranking, ranges: RankRanges, kind: ReleaseKind
) -> None:
    from discreet.results.ranks import show_ranks

    best, superlative = set(ranking.top), kind.least if ranking.easiest else kind.most
    rivals = [item for item in ranking.possibly_in if item not in best]
    names = [*ranking.top, *rivals]
    indices = {item: index for index, item in enumerate(estimate.items)}
    rows = [indices[name] for name in names]
    words = dict.fromkeys(ranking.possibly_in, "possibly")
    words |= dict.fromkeys(ranking.surely_in, "surely")
    say(
        f"The {len(best):,} {superlative} of {len(estimate.items):,} {kind.items}, at "
        f"{ranking.level:.0%} confidence"
    )
    say()
    ranks = [str(number) for number in range(1, len(best) + 1)]
    rank_texts = show_ranks(ranges, "-")
    print_table(
        [
            TableColumn("rank", [*ranks, *["rival"] * len(rivals)]),
            TableColumn(kind.item, names),
            TableColumn(kind.number, estimate.difficulty[rows].tolist(), digits=3),
            TableColumn("se", estimate.se[rows].tolist(), digits=3),
            TableColumn(f"among the {superlative}", [words.get(name, "no") for name in names]),
            TableColumn("possible ranks", [rank_texts[name] for name in names]),
        ]
    )
    if ranking.gap == ranking.gap:  # not NaN: there is an item on either side of the line
        say()
        say(f"Gap between the last {kind.item} in and the first one out: {ranking.gap:.3f} logits")


def compare_items(
    calibration: Annotated[
        Path, argument("CALIBRATION", "What `fit --out`, `release` or `bank` wrote.")
    ],
    first: Annotated[str, argument("A", "An item.")],
    second: Annotated[str, argument("B", "Another item.")],
    *,
    level: Annotated[float, option("P", "Probability of the intervals.", "--level")] = 0.95,
    as_json: AsJson = False,
) -> None:
    """Compare two items: their difference, its interval, and how sure their order is."""
    stored_calibration = find_calibration(calibration)
    if stored_calibration is None:
        raise BadUsage(
            f"{calibration} is no calibration: give a release, a folder of `discreet fit --out`, "
            "a bank, or a saved estimate."
        )
    from discreet.results.ranks import compare_items as compare
    from discreet.results.ranks import rank_ranges

    estimate = _as_estimate(stored_calibration)
    pair = compare(estimate, first, second, level=level)
    ranges = rank_ranges(estimate, level=level)
    half = ranges.quantile * pair.se
    every = {"lower": pair.difference - half, "upper": pair.difference + half}
    is_sure = abs(pair.difference) > ranges.bar * pair.se
    if as_json:
        plain = {name: value for name, value in pair.to_dict().items() if name != "simultaneous"}
        print_json({**plain, "for_all_pairs": every, "told_apart": is_sure})
    else:
        _print_comparison(pair, every, find_words(stored_calibration), is_sure=is_sure)


def _print_comparison(
    pair: ItemComparison, every: dict[str, float], kind: ReleaseKind, *, is_sure: bool
) -> None:
    from discreet.text import show_probability

    say(f"{pair.first} less {pair.second}: {pair.difference:+.3f} logits (se {pair.se:.3f})")
    say()
    columns: dict[str, list[Any]] = {
        "interval": ["of this pair alone", f"of all pairs of {kind.items} at once"],
        "lower": [pair.lower, every["lower"]],
        "upper": [pair.upper, every["upper"]],
    }
    print_columns(
        columns, ("interval", "lower", "upper"), titles={"lower": f"{pair.level:.0%} from"}
    )
    say()
    chance = show_probability(pair.probability)
    say(f"Probability that {pair.first} is the {kind.scale} one, for this pair alone: {chance}")
    verdict = "can" if is_sure else "cannot"
    say(f"Among all {kind.items}, the two {verdict} be told apart at {pair.level:.0%}.")


def rank_objects(
    file: ComparisonsFile,
    *,
    k: Annotated[
        int, option("K", "How many of the strongest objects to name.", "-k", "--count", min=0)
    ] = 1,
    method: Annotated[
        Literal["refined", "spectral"],
        flag("refined: Bradley-Terry likelihood. spectral: rank centrality."),
    ] = "refined",
    as_json: AsJson = False,
    reading: Columns,
) -> None:
    """Estimate strengths, without privacy, and name the strongest objects. Confidential."""
    data = read_votes(file, reading)
    from discreet.models.compared import rank_comparisons

    with working("Estimating strengths"):
        strengths = rank_comparisons(data, method=method)
        ranking = strengths.rank(min(k, int(strengths.estimate.estimated.sum())))
    columns = strengths.to_dict()
    for sentence in strengths.warnings:
        note(sentence)
    if as_json:
        top = {name: list(getattr(ranking, name)) for name in ("top", "surely_in", "possibly_in")}
        about = {"judges": strengths.judges, "method": strengths.method}
        print_json({**about, **top, "items": list_rows(columns)})
        return
    say(f"{strengths.judges:,} judges, {data.n_comparisons:,} comparisons, {strengths.method}")
    say()
    names = ["item", "strength", "se", "lower", "upper", "compared", "won"]
    print_columns(columns, names + ["status"] * (set(columns["status"]) != {"estimated"}))
    say()
    say(f"Top {len(ranking.top)}: {', '.join(ranking.top)}")
    say(f"Surely in (95%): {', '.join(ranking.surely_in) or 'none'}")
    say(f"Possibly in:     {', '.join(ranking.possibly_in)}")
