"""Answers and comparisons the way the options say; ``discreet table counts``, ``merge``.

The options of a group below are fields of :class:`discreet.coding.reading.Reading`, which also
holds their help texts; a test compares both. Every command that reads has the group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from discreet.choices import (
    Blank,
    Invalid,
    Model,
    OneMeans,
    PlainDict,
    PrivacyUnit,
    Repeats,
    Skipped,
    TableLayout,
    Ties,
    WeightingName,
    WinnerSide,
)
from discreet.cli.output import (
    check_writable,
    conclude,
    counting_bytes,
    counting_rows,
    print_json,
    say,
    working,
)
from discreet.errors import BadUsage, hide_passwords, looks_like_address

if TYPE_CHECKING:
    from discreet.answers.comparisons import Comparisons
    from discreet.answers.protocol import Answers
    from discreet.answers.responses import Responses
    from discreet.answers.routed import RoutingDesign
    from discreet.answers.survey import DesignWords
    from discreet.coding.reading import Reading
    from discreet.counts import PairCounts
    from discreet.tables.inspection import Inspection
    from discreet.tables.resources import Resources


GIGABYTE = 1e9

#: Both names of the engine for data of any size.
DISK = ("disk", "duckdb")

Name = str | None


@dataclass(frozen=True)
class TableOptions:
    """How to read any table, of answers or of comparisons."""

    PANEL: ClassVar[str] = "Reading the file"

    repeats: Repeats = "error"
    sheet: list[str] | None = None
    delimiter: Name = None
    header: bool = True


@dataclass(frozen=True)
class ReleaseReading(TableOptions):
    """How a release reads a table of answers; the item list says which steps items have."""

    RARE: ClassVar[tuple[str, ...]] = ("ignore", "group", "order_by", "one_means", "header")

    layout: TableLayout | None = None
    person: Name = None
    item: Name = None
    response: Name = None
    ignore: list[str] | None = None
    group: list[str] | None = None
    order_by: Name = None
    one_means: OneMeans = "right"
    at_least: float | None = None
    missing: str = ""
    key: Name = None
    invalid: Invalid = "error"
    model: Model = "auto"
    lowest: int | None = None
    reverse: str = ""


@dataclass(frozen=True)
class ReadingOptions(ReleaseReading):
    """How to read a table of answers."""

    RARE: ClassVar[tuple[str, ...]] = ()

    model: Model = "auto"
    lowest: int | None = None
    steps: str = ""
    merge: list[str] | None = None
    skip_rows: int = 0
    header_rows: int = 1
    blank: Blank = "missing"
    filter: Name = None
    drop_rows: str = ""
    key_row: Name = None
    keep: list[str] | None = None
    categories: list[str] | None = None


@dataclass(frozen=True)
class Columns(TableOptions):
    """How to read a table of comparisons."""

    judge: Name = None
    winner: Name = None
    loser: Name = None
    left: Name = None
    right: Name = None
    outcome: Name = None
    ties: Ties = "error"
    one_means: WinnerSide | None = None
    covariates: list[str] | None = None
    unit: PrivacyUnit = "judge"


@dataclass(frozen=True)
class Limits:
    """Where answers are counted, and what that may use."""

    PANEL: ClassVar[str] = "Large data"

    engine: str = "auto"
    memory: float = 1.0
    spill: Path | None = None


@dataclass(frozen=True)
class ReleaseLimits(Limits):
    """The same for a release, whose help does not list all of it."""

    RARE: ClassVar[tuple[str, ...]] = ("memory", "spill")


@dataclass(frozen=True)
class WeightOptions:
    """Sampling weights, and the design of the sample."""

    PANEL: ClassVar[str] = "Sampling weights"

    weight: Name = None
    strata: Name = None
    cluster: Name = None
    replicates: Name = None
    replication: Name = None

    @property
    def stated(self) -> dict[str, str]:
        """What is stated, as keywords of :meth:`discreet.Responses.weigh`."""
        return {name: value for name, value in vars(self).items() if value is not None}

    @property
    def columns(self) -> list[str]:
        """The columns that describe persons."""
        return [value for name, value in self.stated.items() if name != "replication"]


@dataclass(frozen=True)
class RoutingOptions:
    """Modules and rules of a multistage test."""

    PANEL: ClassVar[str] = "Multistage tests"

    routing: Path | None = None
    modules: Path | None = None
    skipped: Skipped = "refuse"

    def read(self) -> RoutingDesign | None:
        """Return the design; None where none is stated."""
        if (self.routing is None) != (self.modules is None):
            raise BadUsage("--routing and --modules go together; give both files.")
        if self.routing is None:
            return None
        from discreet.readers.routing import read_routing

        return read_routing(self.routing, self.modules, skipped=self.skipped)


@dataclass(frozen=True)
class RaterOptions:
    """Facets of ratings."""

    PANEL: ClassVar[str] = "Ratings by raters"

    rater: str | None = None
    facet: list[str] | None = None
    structure: str | None = None
    within: Literal["auto", "item", "none"] = "auto"
    drift_over: str | None = None

    @property
    def facets(self) -> list[str]:
        """All facets, the rater first."""
        return [*([self.rater] if self.rater else []), *(self.facet or [])]


def plan_reading(reading: ReleaseReading) -> Reading:
    """Return the options as the readers want them."""
    from discreet.tables.lists import state_reading

    return state_reading(list_words(reading))


def decide_plan(source: str, reading: ReleaseReading, like: Any = None) -> Reading:
    """Return how to read a file: as stated, as a calibration was, as an inspection is sure."""
    from discreet.coding.agreement import find_reading, list_items
    from discreet.tables.carrying import carry_reading
    from discreet.tables.inspection import decide_reading

    words = carry_reading(find_reading(like), list_stated(reading))
    return decide_reading(source, words, list_items(like))


def inspect_answers(source: str, reading: ReadingOptions, like: Any = None) -> Inspection:
    """Return what a source seems to be; what is not looked at before it is read is as stated."""
    from discreet.coding.agreement import find_reading
    from discreet.tables.carrying import carry_reading
    from discreet.tables.dataset import describe_source
    from discreet.tables.inspection import Inspection, is_inspected, look_at

    words = carry_reading(find_reading(like), list_stated(reading))
    if is_inspected(source):
        return look_at(source, words)
    return Inspection(hide_passwords(describe_source(source)), plan_reading(reading))


def list_stated(reading: ReleaseReading) -> PlainDict:
    """Return the options that were typed as keywords of the readers."""
    defaults = list_words(type(reading)())
    words = list_words(reading)
    stated = {name: value for name, value in words.items() if value != defaults[name]}
    if words["reverse"] == ["none"]:  # the answer to a question: no item is reversed
        stated["reverse"] = []
    return stated


def list_words(reading: ReleaseReading) -> PlainDict:
    """Return the options as keywords of the readers."""
    parsed_options: PlainDict = {
        "missing": _split_codes(reading.missing),
        "reverse": split_names(reading.reverse),
    }
    if isinstance(reading, ReadingOptions):
        steps = {name: codes[-1] for name, codes in _split_codes(reading.steps).items()}
        merge = {name: ",".join(sets) for name, sets in _split_sets(reading.merge or []).items()}
        parsed_options |= {"steps": steps or None, "merge": merge or None}
        parsed_options["drop_rows"] = split_names(reading.drop_rows)
        parsed_options["categories"] = [split_names(text) for text in reading.categories or []]
    return {**vars(reading), **parsed_options}


def list_rating_words(reading: ReadingOptions) -> PlainDict:
    """Return the options that were typed as keywords of the reader of ratings."""
    from discreet.coding.reading import READING_DEFAULTS
    from discreet.readers.ratings import USEFUL_WORDS

    return {
        name: value
        for name, value in list_words(reading).items()
        if value and (name in USEFUL_WORDS or value != READING_DEFAULTS[name])
    }


def split_names(text: str) -> list[str]:
    """Return the names in a list; where a name has a comma, bars stand between them."""
    return [name.strip() for name in text.split("|" if "|" in text else ",") if name.strip()]


def _split_sets(texts: list[str]) -> dict[str, list[str]]:
    """Return sets of categories by item: "Q1:2+3"."""
    sets_by_item: dict[str, list[str]] = {}
    for text in texts:
        item, colon, together = text.rpartition(":")
        if not colon:
            raise BadUsage(
                f"--merge must say for which item, as in Q1:2+3, or *:2+3 for all; found {text!r}"
            )
        sets_by_item.setdefault(item.strip(), []).append(together)
    return sets_by_item


def _split_codes(text: str) -> dict[str, list[str]]:
    """Return codes by column: "9,Q1:99" names 9 everywhere and 99 in Q1."""
    codes: dict[str, list[str]] = {}
    for entry in text.split(","):
        column, colon, code = entry.rpartition(":")
        if code.strip():
            codes.setdefault(column.strip() if colon else "*", []).append(code)
    return codes


def check_engine(limits: Limits) -> None:
    """Refuse an engine that the command line does not have."""
    if limits.engine not in ("auto", "memory", *DISK):
        raise BadUsage(f"there is no engine {limits.engine!r} here; choose auto, memory or disk")


def goes_out_of_core(source: str, limits: Limits, plan: Reading) -> bool:
    """Say whether answers are to stay where they are."""
    if limits.engine != "auto":
        return limits.engine in DISK
    from discreet.tables.dataset import is_too_large

    return is_too_large(source, plan)


def make_resources(limits: Limits) -> Resources:
    """Return the limits as the engine wants them."""
    from discreet.tables.resources import Resources

    if not isfinite(limits.memory * GIGABYTE):
        raise BadUsage(f"--memory must be a number of gigabytes, found {limits.memory}")
    return Resources(memory=int(limits.memory * GIGABYTE), spill=limits.spill)


@contextmanager
def open_source(file: str, limits: Limits) -> Iterator[Any]:
    """Give where the data of a release is, and show progress while it is read."""
    from discreet.publishing.delivery import DataSource

    with counting_rows("Releasing") as progress:
        yield DataSource(file, limits.engine, make_resources(limits), progress)


@contextmanager
def open_answers(
    source: str,
    reading: ReleaseReading,
    limits: Limits,
    label: str,
    settle: Callable[[Reading], Reading] | None = None,
    like: Any = None,
) -> Iterator[Answers]:
    """Give answers, large ones where they are, and show progress while they are used.

    A file of counts is given as the counts: what needs the answers themselves says so. ``settle``
    may change how answers are read; ``like`` is a calibration, as whose answers they are read.
    """
    from discreet.counts import PairCounts, holds_counts

    if holds_counts(source):
        counts: Any = PairCounts.load(source)
        yield counts
        return
    plan = decide_plan(source, reading, like) if settle is None else settle(plan_reading(reading))
    if not goes_out_of_core(source, limits, plan):
        answers = _read_planned(source, plan)
        with working(label):
            yield answers.number_rows() if settle is None else answers
        return
    from discreet.readers.streamed import open_stream

    resources = make_resources(limits)
    with (
        counting_rows(label) as progress,
        open_stream(source, reading=plan, resources=resources, progress=progress) as streamed,
    ):
        yield streamed


def name_answers(source: str) -> str:
    """Return what titles and messages call the answers: never with a password."""
    from discreet.tables.dataset import describe_source, is_query

    name = describe_source(source)
    if name != source or is_query(source):
        return hide_passwords(name)
    return "answers" if looks_like_address(source) else Path(source).name


def read_answers(source: str, reading: ReadingOptions, like: Any = None) -> Responses:
    """Return the answers in a file, a database or of a query, read as those of a calibration.

    Persons without ids are rows, counted from 1, in every table that is printed or written.
    """
    return _read_planned(source, decide_plan(source, reading, like)).number_rows()


def read_weighted(
    source: str, reading: ReadingOptions, weights: WeightOptions, like: Any = None
) -> Responses:
    """Return answers with the sampling design that is stated, if any."""
    if not weights.stated:
        return read_answers(source, reading, like)
    if weights.weight is None:
        raise BadUsage("a sampling design needs weights; say --weight COL.")
    groups = list(dict.fromkeys([*(reading.group or []), *weights.columns]))
    answers = read_answers(source, replace(reading, group=groups), like)
    return answers.weigh(**cast("DesignWords", weights.stated))


def _read_planned(source: str, plan: Reading) -> Responses:
    from discreet.readers.answers import read_planned
    from discreet.tables.dataset import is_query, names_database

    if is_query(source) or names_database(source):
        with working(f"Reading {name_answers(source)}"):
            return read_planned(source, plan)

    def measure() -> int:
        from discreet.tables.paths import find_files

        return sum(path.stat().st_size for path in find_files(source))

    with counting_bytes(f"Reading {Path(source).name}", measure) as progress:
        return read_planned(source, plan, progress)


def read_votes(file: str, columns: Columns) -> Comparisons:
    """Return the comparisons in a file."""
    from discreet.readers.comparisons import read_comparisons

    with working(f"Reading {name_answers(file)}"):
        return read_comparisons(file, **vars(columns))


def counts(
    source: str,
    *,
    out: Path,
    limits: Limits,
    folds: int = 0,
    weighting: WeightingName | None = None,
    checkpoint: Path | None = None,
    force: bool = False,
    as_json: bool = False,
    reading: ReadingOptions,
) -> None:
    """Count pairs of answers of any size and save them. The file is confidential."""
    from discreet.api.counting import plan_count, say_folds

    check_writable(out.parent, [out.name], force=force)
    check_engine(limits)
    weights, tally = plan_count(weighting, folds)
    goes_on = checkpoint is not None and limits.engine == "auto"
    plan = decide_plan(source, reading)
    if goes_out_of_core(source, limits, plan) or goes_on:
        from discreet.readers.streamed.counting import count_source

        with counting_rows("Counting") as progress:
            pair_counts = count_source(
                source,
                weighting=weights,
                tally=tally,
                reading=plan,
                resources=make_resources(limits),
                checkpoint=checkpoint,
                progress=progress,
            )
    else:
        pair_counts = _read_planned(source, plan).count(weights, tally)
    _save(say_folds(pair_counts, tally), out, as_json=as_json)


def merge(files: list[Path], *, out: Path, force: bool = False, as_json: bool = False) -> None:
    """Add counts of different persons: shards, days, institutions. Stays confidential."""
    from discreet.counts import PairCounts, merge_counts
    from discreet.tables.paths import settle_path

    check_writable(out.parent, [out.name], force=force)
    files_by_path: dict[Path, Path] = {}
    for file in files:
        if files_by_path.setdefault(settle_path(file), file) is not file:
            raise BadUsage(f"{file} is named twice; its persons would be counted twice")
    _save(merge_counts(PairCounts.load(file) for file in files), out, as_json=as_json)


def _save(pair_counts: PairCounts, out: Path, *, as_json: bool) -> None:
    pair_counts.save(out)
    numbers = {
        "persons": pair_counts.persons,
        "items": len(pair_counts.items),
        "answers": int(pair_counts.categories.sum()),
        "pairs": int(pair_counts.right_wrong.sum()),
    }
    folds = 0 if pair_counts.folds is None else pair_counts.folds.number
    if as_json:
        about = {"folds": folds, "repeated": pair_counts.repeated, "out": str(out)}
        print_json({**numbers, **about})
        return
    counted = ", ".join(f"{number:,} {name}" for name, number in numbers.items())
    kind = "right and wrong" if pair_counts.is_binary else "steps"
    say(f"{counted} of {kind}" + (f", in {folds} folds" if folds else ""))
    if pair_counts.repeated:
        say(f"About {pair_counts.repeated:,} persons are in more than one of the counts")
    conclude((), [out])
