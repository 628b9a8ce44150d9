"""``discreet link``: one calibration on another's scale. ``discreet drift``: items that move.

``discreet bank``: banks that grow.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from discreet.atomic import CALIBRATION_FILES
from discreet.cli.answers import ReadingOptions, read_answers
from discreet.cli.calibrations import (
    find_calibration,
    is_item_file,
    name_calibration,
    read_calibration,
    write_calibration,
)
from discreet.cli.options import AsJson, Force, ResultOptions, Title, argument, option
from discreet.cli.output import (
    check_writable,
    conclude,
    confidential,
    list_rows,
    print_columns,
    print_json,
    say,
    working,
)
from discreet.errors import BadUsage
from discreet.text import minus, name_some

if TYPE_CHECKING:
    from discreet.scales.bank import Bank
    from discreet.scales.drift import Drift
    from discreet.scales.linking import Link


LINK_FILE = "link.confidential.csv"

FlagAt = Annotated[
    float, option("Z", "Leave out items that drift by more than Z SDs (2.576: 1% of sound ones).")
]


def link(
    base: Annotated[Path, argument("A", "The calibration whose scale stays.")],
    new: Annotated[Path, argument("B", "The calibration to put on that scale.")],
    *,
    answers_a: Annotated[
        str | None, option("FILE", "Answers to A's items, to link by persons instead of items.")
    ] = None,
    answers_b: Annotated[
        str | None, option("FILE", "Answers to B's items, by some of the same persons.")
    ] = None,
    flag_at: FlagAt = 2.576,
    title: Title = None,
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
    from discreet.scales.linking import link_calibrations

    pair = first, second
    if answers_a is not None and answers_b is not None:
        from discreet.persons.scoring import score

        pair = (
            score(read_answers(answers_a, reading), first),
            score(read_answers(answers_b, reading), second),
        )
    linkage = link_calibrations(*pair, flag_at=flag_at)
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
    files: Annotated[
        list[Path],
        argument(
            "FILES",
            "One file for each period, in the order of time: answers, counts with folds, or "
            "calibrations.",
        ),
    ],
    *,
    level: Annotated[float, option("P", "False-alarm rate when no item drifts.")] = 0.05,
    output: ResultOptions,
    reading: ReadingOptions,
) -> None:
    """Find items that drift from one period to the next: days, weeks or months."""
    output.check(DRIFT_FILE)
    names = tuple(name_calibration(file) for file in files)
    if len(set(names)) < len(names):
        names = tuple(map(str, files))
    from discreet.scales.drift import find_drift

    sources = [_read_period(file, reading) for file in files]
    with working("Comparing"):
        trends = find_drift(sources, periods=names, level=level)
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


def _drift_document(trends: Drift) -> dict[str, Any]:
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


def _link_document(linkage: Link) -> dict[str, Any]:
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


KnownCalibration = Annotated[
    Path,
    argument(
        "CALIBRATION",
        "What `fit --out`, `release` or `bank` wrote (file or folder), or a Winsteps IFILE.",
    ),
]
BankFile = Annotated[Path, argument("BANK", "The bank file.")]
SourceName = Annotated[
    str | None,
    option("NAME", "A name for the calibration. Default: the name of its file or folder."),
]


def create_bank(
    file: Annotated[Path, argument("BANK", "The new bank file.")],
    calibration: KnownCalibration,
    *,
    scale: Annotated[str, option("NAME", "A name for the scale of the bank.")],
    source: SourceName = None,
    force: Force = False,
) -> None:
    """Start a bank with the items of a calibration, whose scale becomes that of the bank."""
    check_writable(file.parent, [file.name], force=force)
    from discreet.scales.bank import create_bank as create
    from discreet.scales.bank import write_bank

    item_parameters = read_calibration(calibration)
    bank = create(item_parameters, scale=scale, source=source or name_calibration(calibration))
    write_bank(file, bank)
    say(f"Made {file} with {len(bank.items):,} items ({bank.access})")
    left = len(getattr(item_parameters, "estimate", item_parameters).items) - len(bank.items)
    conclude([f"{left} items have no difficulty and were left out"] if left else ())


def add_to_bank(
    file: BankFile,
    calibration: KnownCalibration,
    *,
    source: SourceName = None,
    flag_at: FlagAt = 2.576,
    as_json: AsJson = False,
) -> None:
    """Link a calibration to a bank and add its new items. Values in the bank do not change."""
    from discreet.scales.bank import grow_bank, read_bank, write_bank

    bank = read_bank(file)
    item_parameters = read_calibration(calibration)
    name = source or name_calibration(calibration)
    grown, link = grow_bank(bank, item_parameters, source=name, flag_at=flag_at)
    write_bank(file, grown)
    added = grown.items[len(bank.items) :]
    if as_json:
        print_json({"added": list(added), "items": len(grown.items), "link": _link_document(link)})
    else:
        _print_link(link)
        say()
        noun = "item" if len(added) == 1 else "items"
        say(f"Added {len(added):,} {noun} to {file}: {len(grown.items):,} now ({grown.access})")
    conclude(link.warnings)


def show_bank(file: BankFile, *, as_json: AsJson = False) -> None:
    """Show the items of a bank."""
    from discreet.scales.bank import read_bank

    bank = read_bank(file)
    columns = bank.to_dict()
    if as_json:
        print_json({**_describe_bank(bank), "items": list_rows(columns)})
        return
    sources = len(set(bank.source))
    noun = "calibration" if sources == 1 else "calibrations"
    say(f"{bank.scale}: {len(bank.items):,} items from {sources} {noun} ({bank.access})")
    if bank.guarantee is not None:
        say(f"{bank.guarantee.mechanism}: {bank.guarantee.summary}")
    say()
    steps = [name for name in columns if name.startswith("threshold_") and name[-1].isdigit()]
    print_columns(columns, ("item", "difficulty", "se", *steps, "n", "source", "status"))


def _describe_bank(bank: Bank) -> dict[str, Any]:
    guarantee = None if bank.guarantee is None else bank.guarantee.to_dict()
    about = {"scale": bank.scale, "unit": "logit", "access": bank.access}
    return {**about, "guarantee": guarantee}
