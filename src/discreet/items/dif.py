"""Differential item functioning: how much harder items are for a group than its ability explains.

In: answers and groups of persons. Out: for every item how much harder it is for one group than
for another, with an error, a test and a class, and a test of all groups together. Of items with
steps that is said of the location, or on request of every step. Confidential.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from typing import get_args

import numpy as np
from scipy.special import stdtr

from discreet.answers.responses import Responses
from discreet.answers.survey import DesignTest
from discreet.choices import Adjustment, DifTest, Method, Model, PlainDict
from discreet.errors import BadUsage, FitWarning
from discreet.hints import check_choice_name
from discreet.items.cutoffs import foretell_seconds
from discreet.items.group_differences import (
    ROUNDS,
    Contrasts,
    Points,
    calibrate_groups,
    compare_points,
    contrast,
    find_largest_error,
    list_compared_points,
    list_steps,
    purify,
    request_groups,
    tell_independent,
)
from discreet.items.groups import Split, adjust, split_groups, take_group, warn_of_small_groups
from discreet.items.likelihood_ratios import ItemSplit, split_item
from discreet.items.mantel_haenszel import match_scores
from discreet.models.categories import RATING_SCALE, choose_model, leave_unused
from discreet.models.methods import FitRequest
from discreet.results.estimate import two_sided_quantile
from discreet.tabular import Columns, Tabular, list_field_columns
from discreet.text import name_some
from discreet.types import BoolArray, FloatArray, Int64Array

#: Items that are named in a sentence.
MOST_NAMED = 12
DIF_TESTS: tuple[str, ...] = get_args(DifTest)
BONFERRONI = float("inf")
NO_STRATA = "no persons of both groups with equal scores and different answers"
#: Units of the ETS delta scale in a logit (Holland and Thayer 1988).
DELTA = 2.35
#: Limits of the ETS classes A | B | C in logits: 0.43 and 0.64 (Zwick 2012).
NEGLIGIBLE, LARGE = 1.0 / DELTA, 1.5 / DELTA
#: 95% point of the normal distribution: class C must be significantly above ``NEGLIGIBLE``.
ONE_SIDED = 1.6448536269514722
#: Anchors that purification leaves at least, of many items a quarter.
FEWEST_ANCHORS = 4
#: Foretold seconds of all likelihood ratios from which on they are refused.
SPLIT_SECONDS = 1800.0
#: What to know where the anchors were not stated, where they are all items, and of one test.
CHOSEN = (
    "The anchors were chosen by looking at the answers (purification). P-values hold for "
    "each row, but the error rate of all rows together is not kept: state anchors for that."
)
RELATIVE = (
    "All items are anchors, so that differences are relative to the mean of all items: they add up "
    "to about zero, and items that differ make the others seem to differ the other way."
)
SLOPES = (
    "Where items differ in slope and the groups differ in ability, Mantel-Haenszel raises more "
    "alarms than its level says."
)
#: Columns of the table, after item and reference group.
TOLD = (
    *("focal", "difference", "se", "lower", "upper", "z", "p_value", "p_adjusted"),
    *("flagged", "confirmed", "ets", "anchor", "status"),
)


@dataclass(frozen=True, eq=False)
class OmnibusDif(Tabular):
    """One test per item of all groups together. Confidential.

    ``statistic`` is chi-squared with ``degrees`` where the item works alike in all groups: the
    locations are equal (Wald), the answers do not depend on the group at equal scores (generalised
    Mantel-Haenszel), or all thresholds are equal (likelihood ratio). NaN where it was not tested.

    Examples
    --------
    >>> import discreet
    >>> table = discreet.find_dif(discreet.datasets.lsat(), ["a", "b"] * 500)
    >>> table.omnibus.degrees.tolist()
    [1, 1, 1, 1, 1]
    """

    item: tuple[str, ...]
    statistic: FloatArray
    degrees: Int64Array
    p_value: FloatArray
    p_adjusted: FloatArray

    def to_dict(self) -> Columns:
        """One list per column."""
        names = ("statistic", "degrees", "p_value", "p_adjusted")
        return {"item": list(self.item), **list_field_columns(self, *names)}


@dataclass(frozen=True, eq=False)
class DifTable(Tabular):
    """How differently items function between groups of equal ability. Confidential.

    One row for each item and focal group; by step, one for each of its steps.

    Attributes
    ----------
    item, focal, reference
        What is compared.
    difference, se
        In logits; positive: harder for the focal group than its ability explains.
    z, p_value, p_adjusted
        Difference over error, the p-value of the test, and that adjusted for the number of rows.
    lower, upper
        Intervals that hold for all rows together (max-t; 95% at a level of 0.05). NaN where the
        anchors were chosen by looking at the answers.
    flagged, confirmed
        Whether ``p_value`` is below the level (worth a look; a sound item is flagged as often
        as the level says), and whether ``p_adjusted`` is (holds for all rows together).
    ets
        ``"A"`` negligible, ``"B"`` moderate, ``"C"`` large; "" without a number.
    anchor
        Whether the item helped to put the groups on one scale.
    status
        ``compared``, or why not.
    method, choice
        The estimator of the difficulties, and why it was taken where that was left open.
    step
        The number of the step, where steps are compared; else empty.
    test
        ``"wald"``, ``"mantel-haenszel"`` or ``"likelihood-ratio"``.
    omnibus
        The test of all groups together, item by item; ``None`` of single steps.

    Examples
    --------
    >>> import discreet
    >>> table = discreet.find_dif(discreet.datasets.lsat(), ["a", "b"] * 500)
    >>> table.item, bool(table.confirmed.any())
    (('Item1', 'Item2', 'Item3', 'Item4', 'Item5'), False)
    """

    item: tuple[str, ...]
    focal: tuple[str, ...]
    reference: str
    difference: FloatArray
    se: FloatArray
    z: FloatArray
    p_value: FloatArray
    p_adjusted: FloatArray
    lower: FloatArray
    upper: FloatArray
    flagged: BoolArray
    confirmed: BoolArray
    ets: tuple[str, ...]
    anchor: BoolArray
    status: tuple[str, ...]
    adjustment: str
    level: float
    persons: dict[str, int]
    warnings: tuple[FitWarning, ...] = ()
    method: str = ""
    choice: str = ""
    step: tuple[int, ...] = ()
    test: str = "wald"
    omnibus: OmnibusDif | None = None

    @property
    def largest(self) -> float:
        """The ``d`` of "no item differs by more than d logits"; NaN without intervals.

        It is the far end of the widest of the intervals that hold together: with the probability
        that was asked for, no compared item differs by more, relative to the anchors.
        """
        ends = np.abs([self.lower, self.upper])
        return float(np.nanmax(ends)) if np.isfinite(ends).any() else float("nan")

    @property
    def caveats(self) -> tuple[str, ...]:
        """What to know about the test before the numbers are used."""
        about_anchors = CHOSEN if np.isnan(self.lower).all() else RELATIVE * bool(self.anchor.all())
        told = (about_anchors, SLOPES * (self.test == "mantel-haenszel"))
        return tuple(caveat for caveat in told if caveat)

    def describe(self) -> list[str]:
        """Return what this is, the bound for all items, and what to know about the test."""
        bound = f"no item differs by more than {self.largest:.2f} logits (all together)"
        return [*super().describe(), self.name_anchors(),
                *([bound] if self.largest == self.largest else []), *self.caveats]  # fmt: skip

    def name_anchors(self) -> str:
        """Name the items that hold the scale, or make the score: those of every comparison."""
        rows = zip(self.item, self.anchor.tolist(), strict=True)
        moved = {item for item, is_anchor in rows if not is_anchor}
        kept = [item for item in dict.fromkeys(self.item) if item not in moved]
        without = f"; without {name_some(sorted(moved), MOST_NAMED)}" if moved else ""
        return f"anchors: {len(kept)} of {len(kept) + len(moved)} items{without}"

    def to_dict(self) -> Columns:
        """One list per column."""
        about: Columns = {"item": list(self.item), **list_steps(self.step)}
        return {
            **about,
            "reference": [self.reference] * len(self.item),
            **list_field_columns(self, *TOLD),
        }


#: Item, group column, group, reference group, logits harder for the group, ETS class.
Difference = tuple[str, str, str, str, float, str]


def list_differing(differences: Mapping[str, DifTable]) -> list[Difference]:
    """Return what holds for all items together and is of ETS class B or C, the largest first."""
    rows = [
        (table.item[i], column, table.focal[i], table.reference, size, table.ets[i])
        for column, table in differences.items()
        for i in np.flatnonzero(table.confirmed)
        if table.ets[i] in ("B", "C") and np.isfinite(size := float(table.difference[i]))
    ]
    return sorted(rows, key=lambda row: -abs(row[4]))


def find_dif(
    responses: Responses,
    groups: object,
    *,
    test: DifTest = "wald",
    anchors: Sequence[str] | None = None,
    reference: str | None = None,
    adjustment: Adjustment = "benjamini-hochberg",
    level: float = 0.05,
    method: Method = "auto",
    model: Model = "auto",
    by_step: bool = False,
    keep_categories: bool = False,
) -> DifTable:
    """Find items that are harder for one group than its ability explains. Confidential.

    Parameters
    ----------
    responses
        Answers, an array ``[person, item]`` or a path.
    groups
        The name of a group column, one label for each person, or a mapping from person to label.
    test
        ``"wald"``: the groups are calibrated apart and put on one scale by the anchors.
        ``"mantel-haenszel"``: persons with the same answered items and the same score are compared;
        with steps by Mantel's test. ``"likelihood-ratio"``: conditional likelihood with the item
        split into one for each group, against the same item for all.
    anchors
        Items that are taken to work alike in all groups: they hold the scale, and make the score
        of Mantel-Haenszel (the item that is tested always counts). Without them a test chooses
        anchors by itself: those without a significant difference, chosen again until nothing
        changes (purification). Wald tests begin with the half of the items nearest to the median
        difference, the other two with all items. At least four items and a quarter stay.
    reference
        The group that the others are compared with; by default the largest.
    adjustment
        ``"benjamini-hochberg"``, ``"holm"`` or ``"none"``.
    level
        A row is flagged where its p-value, confirmed where its adjusted p-value is below.
    method, model
        The estimator of the difficulties, as in :func:`discreet.fit`; the same for all groups.
        Likelihood ratios are always conditional.
    by_step
        Whether to compare every step of the items instead of their locations (Wald only): an item
        may be as hard as a whole while one of its steps is not.
    keep_categories
        As in :func:`discreet.fit`: categories that nobody is in keep their scores. An item of which
        a group lacks a category between used ones then has a location in that group too.

    Notes
    -----
    Where the answers have weights, errors come from the design, as groups of one sample share
    primary sampling units; p-values come from Student's distribution, and the tests of all groups
    together from Rao and Scott's correction. A weighted likelihood is no likelihood: the test
    ``"likelihood-ratio"`` then compares the thresholds of the split item.

    Returns
    -------
    DifTable
        One row per item and focal group; ``omnibus`` has the tests of all groups together. An item
        of which some group lacks a category is not compared by its thresholds.

    Raises
    ------
    BadUsage
        With one group, with labels that do not fit the persons, an unknown reference or anchor.
    DisconnectedItems
        If a group's answers determine no difficulties.

    References
    ----------
    Holland, P. W. and Thayer, D. T. (1988). Differential item performance and the Mantel-Haenszel
    procedure. In H. Wainer and H. I. Braun (eds.), Test validity. Erlbaum. Zwick, R. (2012). A
    review of ETS differential item functioning assessment procedures. ETS RR-12-08.

    Examples
    --------
    >>> import discreet, numpy as np
    >>> answers = discreet.datasets.lsat()
    >>> table = discreet.find_dif(answers, ["a", "b"] * 500, test="mantel-haenszel")
    >>> table.ets
    ('A', 'A', 'A', 'A', 'A')
    """
    if not 0 < level < 1:
        raise BadUsage(f"level must lie between 0 and 1, found {level}; use 0.05 for 5%")
    check_choice_name("test", test, DIF_TESTS)
    if by_step and test != "wald":
        raise BadUsage(f"single steps are compared by test 'wald' only, found {test!r}")
    adjust([], adjustment)
    request = request_groups(method, model, keep_categories)
    split = split_groups(responses, groups)
    base = _find_reference(split, reference)
    anchor = _find_anchors(responses.items, anchors)
    if test == "wald":
        fits = calibrate_groups(split, request)
        places, points = list_compared_points(fits, split, by_step)
        chosen = None if anchor is None else anchor[places.item]
        compared = _compare_points(points, base, chosen, level)
        items = tuple(responses.items[i] for i in places.item)
        table = _tabulate(items, split, base, compared, adjustment, level)
        return replace(
            table,
            method=fits[base].estimate.method,
            choice=fits[base].estimate.choice,
            step=places.step * (len(split.labels) - 1),
            warnings=(*table.warnings, *tell_independent(points)),
        )
    run = _compare_scores if test == "mantel-haenszel" else _compare_likelihoods
    compare = partial(run, responses, split, base, request)
    compared = (
        _purify_score(compare, responses.n_items, level) if anchor is None else compare(anchor)
    )
    table = _tabulate(responses.items, split, base, compared, adjustment, level)
    return replace(table, test=test, method="conditional" if test == DIF_TESTS[2] else "")


def _find_anchors(items: tuple[str, ...], anchors: Sequence[str] | None) -> BoolArray | None:
    """Return which items are anchors; None where none were stated."""
    if anchors is None:
        return None
    anchor_items = {anchors} if isinstance(anchors, str) else set(anchors)
    unknown = sorted(anchor_items - set(items))
    if unknown or len(anchor_items) < 2:
        raise BadUsage(
            f"the answers have no item {unknown[0]!r}; anchors go by name"
            if unknown
            else f"anchors are two items or more, found {len(anchor_items)}"
        )
    return np.array([item in anchor_items for item in items])


@dataclass(frozen=True, eq=False)
class _Compared:
    """Every focal group against the reference, and all groups together.

    ``factor`` is how many errors wide intervals are that hold for all rows: NaN where they cannot,
    infinite where the rows' number decides (Bonferroni).
    """

    rows: list[tuple[Contrasts, tuple[str, ...]]]
    statistic: FloatArray
    degrees: Int64Array
    p_value: FloatArray
    factor: float = float("nan")


def _compare_points(
    points: list[Points], base: int, anchor: BoolArray | None, level: float
) -> _Compared:
    """Compare separate calibrations."""
    focal = [group_points for g, group_points in enumerate(points) if g != base]
    if anchor is None:
        rows = [purify(points[base], group_points, level) for group_points in focal]
        common = np.logical_and.reduce([contrasts.anchor for contrasts, _ in rows])
        return _Compared(rows, *compare_points(points, common))
    rows = [contrast(points[base], group_points, anchor) for group_points in focal]
    factor = find_largest_error(points, base, anchor, level)
    return _Compared(rows, *compare_points(points, anchor), factor)


def _purify_score(compare: Callable[[BoolArray], _Compared], items: int, level: float) -> _Compared:
    """Repeat a comparison without the items that differ among the anchors, until nothing changes.

    An item differs where some p-value is below the level, divided by the number of focal groups.
    """
    anchors = np.ones(items, dtype=bool)
    fewest = min(max(FEWEST_ANCHORS, -(-items // 4)), items)
    for _ in range(ROUNDS):
        compared = compare(anchors)
        p_value = np.stack([contrasts.p_value for contrasts, _ in compared.rows])
        smallest = np.fmin.reduce(p_value) * len(p_value)
        sound = ~(smallest < level)
        if sound.sum() < fewest:
            sound[np.argsort(-smallest, kind="stable")[:fewest]] = True
        if (sound == anchors).all():
            break
        anchors = sound
    return replace(compared, factor=float("nan"))


def _compare_scores(
    source: Responses, split: Split, base: int, _request: FitRequest, anchors: BoolArray
) -> _Compared:
    """Compare persons with equal scores (Mantel-Haenszel)."""
    matched = list(match_scores(source, split.number, np.flatnonzero(anchors)))
    rows = []
    for focal in (group for group in range(len(split.labels)) if group != base):
        odds = [item.compare([base, focal]) for item in matched]
        difference, se, p_value = np.array(odds).T
        status = tuple("compared" if np.isfinite(one[0]) else NO_STRATA for one in odds)
        rows.append((Contrasts(difference, se, anchors, p_value), status))
    statistic, degrees, p_value = np.array([item.compare_all() for item in matched]).T
    return _Compared(rows, statistic, degrees.astype(np.int64), p_value, factor=BONFERRONI)


def _compare_likelihoods(
    source: Responses, split: Split, base: int, request: FitRequest, anchors: BoolArray
) -> _Compared:
    """Compare likelihoods with an item split into one for each group."""
    labelled = split.number >= 0
    answers, number = take_group(source, labelled), split.number[labelled]
    chosen, keep = choose_model(request.model, answers.steps), request.keep_categories
    answers = answers if chosen == RATING_SCALE else leave_unused(answers, keep)
    seconds = foretell_seconds(answers) * answers.n_items
    if seconds > SPLIT_SECONDS:
        raise BadUsage(
            f"likelihood ratios split each of {answers.n_items:,} items in turn, which would take "
            f"{seconds / 3600:.1f} hours or more. Use test='wald' or 'mantel-haenszel' (--test), "
            "or select the items that matter"
        )
    splits = [
        split_item(answers, number, item, free=~anchors, model=chosen, keep=keep)
        for item in range(answers.n_items)
    ]
    nothing = DesignTest(float("nan"), 0, float("nan"))
    tests = [astuple(nothing if isinstance(one, str) else one.test) for one in splits]
    statistic, degrees, p_value = np.array(tests).T
    status = tuple(one if isinstance(one, str) else "compared" for one in splits)
    rows = []
    for focal in (group for group in range(len(split.labels)) if group != base):
        pairs = [_subtract(one, focal, base) for one in splits]
        difference, se = np.array(pairs).T
        contrasts = Contrasts(difference, se, anchors)
        if len(split.labels) == 2:
            contrasts = replace(contrasts, tested=p_value)
        elif source.sample is not None:
            tested = 2 * stdtr(max(source.sample.degrees, 1), -np.abs(contrasts.z))
            contrasts = replace(contrasts, tested=tested)
        rows.append((contrasts, status))
    return _Compared(rows, statistic, degrees.astype(np.int64), p_value, factor=BONFERRONI)


def _subtract(split: ItemSplit | str, focal: int, base: int) -> tuple[float, float]:
    """Return how much harder the item is for the focal group, and the error of that."""
    if isinstance(split, str):
        return float("nan"), float("nan")
    weight = np.zeros(len(split.location))
    weight[focal], weight[base] = 1.0, -1.0
    return float(weight @ split.location), float(np.sqrt(weight @ split.covariance @ weight))


def _find_reference(split: Split, reference: str | None) -> int:
    if reference is None:
        samples = [(part.sample, part.n_persons) for part in split.parts]
        sizes = [number if one is None else one.weight.sum() for one, number in samples]
        return int(np.argmax(sizes))
    if reference not in split.labels:
        raise BadUsage(
            f"there is no group {reference!r}; choose the reference among {', '.join(split.labels)}"
        )
    return split.labels.index(reference)


def _classify(contrasts: Contrasts) -> list[str]:
    """ETS classes: C is large and surely not negligible, A negligible or not significant."""
    size, se = np.abs(contrasts.difference), contrasts.se
    with np.errstate(invalid="ignore"):
        large = (size >= LARGE) & (size - NEGLIGIBLE > ONE_SIDED * se)
        small = (size < NEGLIGIBLE) | (contrasts.p_value >= 0.05)
    letters = np.where(large, "C", np.where(small, "A", "B"))
    letters[np.isnan(size)] = ""
    return [str(letter) for letter in letters]


def _tabulate(
    items: tuple[str, ...],
    split: Split,
    base: int,
    compared: _Compared,
    adjustment: Adjustment,
    level: float,
) -> DifTable:
    rows = compared.rows
    columns: PlainDict = {
        name: np.concatenate([getattr(contrasts, name) for contrasts, _ in rows])
        for name in ("difference", "se", "z", "p_value", "anchor")
    }
    p_adjusted = adjust(columns["p_value"], adjustment)
    sizes = {label: part.n_persons for label, part in zip(split.labels, split.parts, strict=True)}
    number = max(int(np.isfinite(columns["se"]).sum()), 1)
    is_known = compared.factor != BONFERRONI
    half = (compared.factor if is_known else two_sided_quantile(level / number)) * columns["se"]
    numbers = compared.statistic, compared.degrees, compared.p_value
    omnibus = OmnibusDif(items, *numbers, adjust(compared.p_value, adjustment))
    focal = [label for group, label in enumerate(split.labels) if group != base]
    return DifTable(
        item=items * len(rows),
        focal=tuple(label for label in focal for _ in items),
        reference=split.labels[base],
        **columns,
        lower=columns["difference"] - half,
        upper=columns["difference"] + half,
        p_adjusted=p_adjusted,
        flagged=columns["p_value"] < level,
        confirmed=p_adjusted < level,
        ets=tuple(letter for contrasts, _ in rows for letter in _classify(contrasts)),
        status=tuple(status for _, statuses in rows for status in statuses),
        adjustment=adjustment,
        level=level,
        persons=sizes,
        warnings=(*split.warnings, *warn_of_small_groups(split)),
        omnibus=omnibus,
    )
