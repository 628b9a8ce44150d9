"""Calibrations and comparisons beside each other: ranks, links, drift and banks.

``discreet top``, ``result compare`` and ``compare rank``: what is extreme, what is told apart.
``link``: one calibration on another's scale. ``drift``: items that move. ``bank``: banks that grow.
What is said of a release may be said to everyone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import discreet
from discreet.atomic import CALIBRATION_FILES
from discreet.choices import PairMethod, PlainDict
from discreet.cli.answers import Columns, ReadingOptions, read_answers, read_votes
from discreet.cli.calibrations import (
    check_method,
    find_calibration,
    is_item_file,
    name_calibration,
    read_calibration,
    write_calibration,
)
from discreet.cli.options import ResultOptions
from discreet.cli.output import (
    check_writable,
    conclude,
    confidential,
    list_rows,
    note,
    print_columns,
    print_json,
    say,
    show_result,
    working,
)
from discreet.errors import BadUsage
from discreet.text import minus, name_some

if TYPE_CHECKING:
    from discreet.results.estimate import Estimate
    from discreet.results.ranking import Ranking
    from discreet.scales.drift import Drift
    from discreet.scales.linking import Link
    from discreet.scales.ranks import ItemComparison, RankRanges
    from discreet.words import ReleaseKind


#: What JSON says of a ranking.
RANKED = ("top", "surely_in", "possibly_in")


def top(
    file: str,
    *,
    k: int,
    easiest: bool = False,
    level: float = 0.95,
    method: str = "auto",
    regularisation: float = 0.0,
    as_json: bool = False,
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

    with working("Comparing items"):
        ranking = discreet.rank(estimate, k, easiest=easiest, level=level)
        ranges = discreet.rank_ranges(estimate, easiest=easiest, level=level)
        ranking = ranges.narrow(ranking)
    names = {name: list(getattr(ranking, name)) for name in RANKED}
    estimation = {"gap": ranking.gap, "method": estimate.method, "choice": estimate.choice}
    columns = ranges.to_dict()
    ranks = list_rows({name: columns[name] for name in ("item", "first", "last")})
    kind = find_words(stored_calibration)
    show_result(
        {**names, **estimation, "ranks": ranks},
        lambda: _print_ranking(estimate, ranking, ranges, kind),
        as_json=as_json,
    )
    conclude(estimate.warnings, choice=estimate.choice)


def find_words(calibration: Any) -> ReleaseKind:
    """Return the words for what a calibration is about: items of persons, or objects of judges."""
    from discreet.words import find_kind

    return find_kind(getattr(calibration, "record", {}))


def _fit(file: str, method: str, regularisation: float, reading: ReadingOptions) -> Estimate:
    responses = read_answers(file, reading)

    with working("Estimating difficulties"):
        return discreet.fit(
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

    own = getattr(calibration, "estimate", None)  # of objects too
    return own if isinstance(own, discreet.Estimate) else as_estimate(calibration, "a ranking")


def _print_ranking(
    estimate: Estimate, ranking: Ranking, ranges: RankRanges, kind: ReleaseKind
) -> None:
    from discreet.scales.ranks import show_ranks

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
    columns = {
        "rank": [*ranks, *["rival"] * len(rivals)],
        kind.item: names,
        kind.number: estimate.difficulty[rows].tolist(),
        "se": estimate.se[rows].tolist(),
        f"among the {superlative}": [words.get(name, "no") for name in names],
        "possible ranks": [rank_texts[name] for name in names],
    }
    print_columns(columns, [*columns])
    if ranking.gap == ranking.gap:  # not NaN: there is an item on either side of the line
        say()
        say(f"Gap between the last {kind.item} in and the first one out: {ranking.gap:.3f} logits")


def compare_items(
    calibration: Path, first: str, second: str, *, level: float = 0.95, as_json: bool = False
) -> None:
    """Compare two items: their difference, its interval, and how sure their order is."""
    stored_calibration = find_calibration(calibration)
    if stored_calibration is None:
        raise BadUsage(
            f"{calibration} is no calibration: give a release, a folder of `discreet fit --out`, "
            "a bank, or a saved estimate."
        )

    estimate = _as_estimate(stored_calibration)
    pair = discreet.compare_items(estimate, first, second, level=level)
    ranges = discreet.rank_ranges(estimate, level=level)
    half = ranges.quantile * pair.se
    every = {"lower": pair.difference - half, "upper": pair.difference + half}
    is_sure = abs(pair.difference) > ranges.bar * pair.se
    plain = {name: value for name, value in pair.to_dict().items() if name != "simultaneous"}
    kind = find_words(stored_calibration)
    show_result(
        {**plain, "for_all_pairs": every, "told_apart": is_sure},
        lambda: _print_comparison(pair, every, kind, is_sure=is_sure),
        as_json=as_json,
    )


def _print_comparison(
    pair: ItemComparison, every: dict[str, float], kind: ReleaseKind, *, is_sure: bool
) -> None:
    from discreet.text import show_probability

    say(f"{pair.first} less {pair.second}: {pair.difference:+.3f} logits (se {pair.se:.3f})")
    say()
    columns: dict[str, list[object]] = {
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
    file: str,
    *,
    k: int = 1,
    method: PairMethod = "refined",
    as_json: bool = False,
    reading: Columns,
) -> None:
    """Estimate strengths, without privacy, and name the strongest objects. Confidential."""
    data = read_votes(file, reading)
    from discreet.models.compared import estimate_strengths
    from discreet.results.ranking import rank

    with working("Estimating strengths"):
        strengths = estimate_strengths(data, method=method)
        ranking = rank(strengths, min(k, int(strengths.estimate.estimated.sum())))
    columns = strengths.to_dict()
    for sentence in (*strengths.warnings, *strengths.solution.notes):
        note(sentence)
    if as_json:
        top = {name: list(getattr(ranking, name)) for name in RANKED}
        about = {"judges": strengths.judges, "method": strengths.method}
        effects = [] if strengths.effects is None else list_rows(strengths.effects.to_dict())
        print_json({**about, **top, "items": list_rows(columns), "effects": effects})
        return
    judges = "no" if data.unit == "vote" else f"{strengths.judges:,}"
    say(f"{judges} judges, {data.n_comparisons:,} comparisons, {strengths.method}")
    say()
    names = ["item", "strength", "se", "lower", "upper", "compared", "won"]
    print_columns(columns, names + ["status"] * (set(columns["status"]) != {"estimated"}))
    say()
    if strengths.effects is not None:
        print_columns(strengths.effects.to_dict(), ["name", "effect", "se"])
        say()
    say(f"Top {len(ranking.top)}: {', '.join(ranking.top)}")
    say(f"Surely in (95%): {', '.join(ranking.surely_in) or 'none'}")
    say(f"Possibly in:     {', '.join(ranking.possibly_in)}")


LINK_FILE = "link.confidential.csv"


def link(
    base: Path,
    new: Path,
    *,
    answers_a: str | None = None,
    answers_b: str | None = None,
    by: str | None = None,
    flag_at: float = 2.576,
    title: str | None = None,
    output: ResultOptions,
    reading: ReadingOptions,
) -> None:
    """Link calibration B to A through common items, or common persons, and check the link."""
    if (answers_a is None) != (answers_b is None):
        raise BadUsage(
            "a link by persons needs their answers to both tests: --answers-a and --answers-b."
        )
    output.check(*CALIBRATION_FILES, LINK_FILE)
    first, second = read_calibration(base), read_calibration(new)

    pair = first, second
    if answers_a is not None and answers_b is not None:
        pair = (
            discreet.score(read_answers(answers_a, reading, first), first),
            discreet.score(read_answers(answers_b, reading, second), second),
        )
    linkage = discreet.link_calibrations(*pair, flag_at=flag_at, by=by)
    written = []
    if output.out is not None:
        names = name_calibration(base), name_calibration(new)
        headline = title or f"Calibration of {names[1]} on the scale of {names[0]}"
        about = _describe_link(linkage, names[0])
        written += write_calibration(output.out, linkage.move(second), title=headline, about=about)
        written += output.write({LINK_FILE: linkage.to_dict()})
    output.show(_link_document(linkage), lambda: _print_link(linkage))
    conclude(linkage.warnings, written)


def _describe_link(linkage: Link, base: str) -> str:
    """Say for a report, in the past tense of a paper, how the difficulties got on their scale."""
    used, left = int((~linkage.flagged).sum()), linkage.flagged_items
    drifted = (
        f" ({len(left)} more had drifted and were left out: {name_some(left)})" if left else ""
    )
    return (
        f"The difficulties were put on the scale of {base} through {used} common "
        f"{linkage.by}{drifted}: "
        f"{minus(f'{linkage.shift:+.3f}')} logits were added (standard error "
        f"{linkage.se:.3f}, which every standard error includes)."
    )


DRIFT_FILE = "drift.confidential.csv"


def drift(
    files: list[Path], *, level: float = 0.05, output: ResultOptions, reading: ReadingOptions
) -> None:
    """Find items that drift from one period to the next: days, weeks or months."""
    output.check(DRIFT_FILE)
    names = tuple(name_calibration(file) for file in files)
    if len(set(names)) < len(names):
        names = tuple(map(str, files))

    sources = [_read_period(file, reading) for file in files]
    with working("Comparing"):
        trends = discreet.find_drift(sources, periods=names, level=level)
    written = output.write({DRIFT_FILE: confidential(trends.to_dict())})
    output.show(_drift_document(trends), lambda: _print_drift(trends))
    conclude(trends.warnings, written, choice=trends.choice)


def _read_period(file: Path, reading: ReadingOptions) -> Any:
    """Return the counts or the calibration in a file, else its answers."""
    from discreet.counts import PairCounts, holds_counts

    if holds_counts(file):
        return PairCounts.load(file)
    stored_calibration = read_calibration(file) if is_item_file(file) else find_calibration(file)
    return read_answers(str(file), reading) if stored_calibration is None else stored_calibration


def _drift_document(trends: Drift) -> PlainDict:
    columns = trends.to_dict()
    rows = list_rows({name: columns[name] for name in DRIFT_COLUMNS})
    for row, values in zip(rows, trends.difficulty.T.tolist(), strict=True):
        row["difficulties"] = values
    means = None if trends.cohort_mean is None else trends.cohort_mean.tolist()
    return {
        "periods": list(trends.periods),
        "level": trends.level,
        "alarm": trends.alarm,
        "test": trends.test,
        "choice": trends.choice,
        "tau": trends.tau,
        "cohort_means": means,
        "items": rows,
    }


DRIFT_COLUMNS = ("item", "change", "se", "p_value", "p_adjusted", "moved")


def _print_drift(trends: Drift) -> None:
    moved = int(trends.moved.sum()) or "none"
    say(f"{len(trends.items):,} items in {len(trends.periods)} periods, {moved} moved")
    say()
    columns = trends.to_dict()
    columns["moved"] = ["moved" if has_moved else "" for has_moved in columns["moved"]]
    print_columns(columns, DRIFT_COLUMNS)


def _link_document(linkage: Link) -> PlainDict:
    names = ("shift", "se", "shift_all", "se_all", "scatter", "correlation", "spread_ratio")
    numbers = {name: getattr(linkage, name) for name in names}
    return {**numbers, linkage.by: list_rows(linkage.to_dict())}


def _print_link(linkage: Link) -> None:
    used = int((~linkage.flagged).sum())
    say(f"Add {linkage.shift:+.3f} logits (se {linkage.se:.3f}), from {used} common {linkage.by}")
    if linkage.flagged.any():
        say(
            f"From all {len(linkage.items)} common {linkage.by} it would be "
            f"{linkage.shift_all:+.3f} (se {linkage.se_all:.3f})"
        )
    say()
    columns = linkage.to_dict()
    columns["link"] = ["left out" if is_flagged else "used" for is_flagged in columns["flagged"]]
    print_columns(columns, (linkage.by.removesuffix("s"), "drift", "se", "z", "link"))
    say()
    say(f"Every se includes the scatter of the {linkage.by}: {linkage.scatter:.3f} logits.")


def create_bank(
    file: Path, calibration: Path, *, scale: str, source: str | None = None, force: bool = False
) -> None:
    """Start a bank with the items of a calibration, whose scale becomes that of the bank."""
    check_writable(file.parent, [file.name], force=force)

    item_parameters = read_calibration(calibration)
    bank = discreet.create_bank(
        item_parameters, scale=scale, source=source or name_calibration(calibration)
    )
    discreet.write_bank(file, bank)
    say(f"Made {file} with {len(bank.items):,} items ({bank.access})")
    left = len(getattr(item_parameters, "estimate", item_parameters).items) - len(bank.items)
    conclude([f"{left} items have no difficulty and were left out"] if left else ())


def add_to_bank(
    file: Path,
    calibration: Path,
    *,
    source: str | None = None,
    flag_at: float = 2.576,
    as_json: bool = False,
) -> None:
    """Link a calibration to a bank and add its new items. Values in the bank do not change."""
    bank = discreet.read_bank(file)
    item_parameters = read_calibration(calibration)
    name = source or name_calibration(calibration)
    grown, link = discreet.grow_bank(bank, item_parameters, source=name, flag_at=flag_at)
    discreet.write_bank(file, grown)
    added = grown.items[len(bank.items) :]
    if as_json:
        print_json({"added": list(added), "items": len(grown.items), "link": _link_document(link)})
    else:
        _print_link(link)
        say()
        noun = "item" if len(added) == 1 else "items"
        say(f"Added {len(added):,} {noun} to {file}: {len(grown.items):,} now ({grown.access})")
    conclude(link.warnings)


def show_bank(file: Path, *, as_json: bool = False) -> None:
    """Show the items of a bank."""
    bank = discreet.read_bank(file)
    columns = bank.to_dict()
    if as_json:
        guarantee = None if bank.guarantee is None else bank.guarantee.to_dict()
        about = {"scale": bank.scale, "unit": "logit", "access": bank.access}
        print_json({**about, "guarantee": guarantee, "items": list_rows(columns)})
        return
    sources = len(set(bank.source))
    noun = "calibration" if sources == 1 else "calibrations"
    say(f"{bank.scale}: {len(bank.items):,} items from {sources} {noun} ({bank.access})")
    if bank.guarantee is not None:
        say(f"{bank.guarantee.mechanism}: {bank.guarantee.summary}")
    say()
    steps = [name for name in columns if name.startswith("threshold_") and name[-1].isdigit()]
    print_columns(columns, ("item", "difficulty", "se", *steps, "n", "source", "status"))
