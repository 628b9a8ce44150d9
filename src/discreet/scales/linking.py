"""Link two calibrations through the items, or the persons, that they have in common.

In: two calibrations with standard errors (estimates, releases or banks), or the abilities of
persons under each of them. Out: what to add to the difficulties of the second to put them on the
scale of the first, and for every common item or person how far it disagrees. Through items nothing
here sees a person: linking releases is post-processing of both, and whoever is in both has the
protection of both together. A link through persons is confidential.

The Rasch model has one unit, the logit, so a link is a shift. It is the weighted mean of the
differences over the items that agree; items that drifted are found against a robust centre
and left out. Items with steps are linked by their locations, the means of their thresholds, and
only where both calibrations have the same categories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from discreet.checking import checked
from discreet.coding.agreement import check_alike, find_reading
from discreet.errors import BadUsage, DisconnectedItems, FitWarning, WarningKind, warn_of_dropped
from discreet.items.groups import chi_squared_tail
from discreet.persons.scoring import PersonScores, PersonStatus
from discreet.privacy.accounting import Guarantee
from discreet.privacy.accounting.spend import compose_guarantees
from discreet.results.calibrated import Calibration, find_source, make_estimate
from discreet.results.estimate import Estimate
from discreet.tabular import Columns, Tabular, list_field_columns
from discreet.text import name_some
from discreet.types import BoolArray, FloatArray

#: Standardised drift beyond which an item is left out. At most one sound item in a hundred is: the
#: two-sided 1% point of the normal law (docs/linking.md).
FLAG_AT = 2.576
#: With one common item nothing can be checked, and its drift would move the whole scale.
FEWEST = 2
#: Standard deviation of a normal variable over its median absolute deviation.
MAD_TO_SD = 1.4826
#: Variance of a difference between two values that count as exactly known.
EXACT = 1e-12
ROUNDS = 50
ITEMS, PERSONS = "items", "persons"
CORRELATION = 0.95
#: Usual limits for the correlation and the ratio of standard deviations of the common items
#: (Huynh and Meyer 2010, Practical Assessment, Research and Evaluation 15).
SPREAD = (0.9, 1.1)
#: Share of sound links whose numbers are beyond these limits and yet warned about: chance alone
#: exceeds the limits more often where common items are few or alike.
CHANCE = 0.05


@dataclass(frozen=True, eq=False)
class Link(Tabular):
    """Link of two calibrations: the shift to the scale of the first, and each common item.

    Attributes
    ----------
    shift, se
        To add to the second calibration's difficulties; from the items that are not flagged.
        The standard error includes what the items disagree beyond their standard errors.
    shift_all, se_all
        The same from every common item.
    items
        The common items that have a difficulty and a standard error in both.
    drift, drift_se, z
        Per common item: difficulty in the first minus moved difficulty in the second, its
        standard error without and its size in standard errors with the items' scatter.
    flagged
        Which common items were left out.
    scatter
        Standard deviation of true drift among the kept items, in logits.
    correlation, spread_ratio
        Of the kept items' difficulties; the ratio is second over first. NaN for fewer than 3.
    warnings
        What to look at before the link is used.
    guarantee
        What holds for these numbers: that of both releases together, or ``None``.
    linked
        The second calibration, as it was before.
    by
        ``"items"``, ``"persons"`` or a facet (``"raters"``): what the two have in common, and what
        ``items`` holds.

    Examples
    --------
    >>> import discreet
    >>> answers = discreet.datasets.lsat()
    >>> estimate = discreet.fit(answers)
    >>> link = discreet.link_calibrations(estimate, estimate)
    >>> link.flagged_items, link.by
    ((), 'items')
    """

    shift: float
    se: float
    shift_all: float
    se_all: float
    items: tuple[str, ...]
    drift: FloatArray
    drift_se: FloatArray
    z: FloatArray
    flagged: BoolArray
    scatter: float
    correlation: float
    spread_ratio: float
    warnings: tuple[FitWarning, ...] = ()
    guarantee: Guarantee | None = None
    linked: object = None
    by: str = "items"

    @property
    def flagged_items(self) -> tuple[str, ...]:
        """Names of the items (or persons) that drifted."""
        return tuple(self.items[i] for i in np.flatnonzero(self.flagged))

    @checked
    def move(self, estimate: object) -> Estimate:
        """Put the second calibration (an estimate or a release) on the scale of the first.

        The error of the link is common to all its items and is added to every standard error.
        What was a release is one no longer, unless the first calibration is a release as well:
        then the guarantees of all that went into the numbers are added up.
        """
        source = getattr(estimate, "estimate", estimate)
        if not isinstance(source, Estimate):
            raise BadUsage(
                f"only an estimate or a release can be moved, found {type(estimate).__name__}"
            )
        covariance = source.covariance
        guarantee = self.guarantee
        if source is not self.linked:  # a third calibration
            guarantee = compose_guarantees(guarantee, source.guarantee)
        if (name := self.by.removesuffix("s")) in source.facets:
            facet = source.facets[name]
            moved = facet.measure + self.shift, np.sqrt(facet.se**2 + self.se**2)
            facet = replace(facet, measure=moved[0], se=moved[1])
            warnings = (*source.warnings, *self.warnings)
            return replace(source, facets={**source.facets, name: facet}, warnings=warnings)
        return replace(
            source,
            difficulty=source.difficulty + self.shift,
            se=np.sqrt(source.se**2 + self.se**2),
            covariance=None if covariance is None else covariance + self.se**2,
            ladder=source.ladder.move(self.shift, self.se),
            warnings=(*source.warnings, *self.warnings),
            guarantee=guarantee,
        )

    def to_dict(self) -> Columns:
        """One list per column: item (or person), drift, se, z, flagged; ``se`` has the scatter."""
        se = np.hypot(self.drift_se, self.scatter).tolist()
        columns = {self.by.removesuffix("s"): list(self.items), "drift": self.drift.tolist()}
        return {**columns, "se": se, **list_field_columns(self, "z", "flagged")}


@dataclass(frozen=True)
class _Centre:
    """A weighted mean of differences that may scatter more than their standard errors say."""

    shift: float
    se: float
    scatter: float


def link_calibrations(
    base: Calibration, new: Calibration, *, flag_at: float = FLAG_AT, by: str | None = None
) -> Link:
    """Find the shift that puts ``new`` on the scale of ``base``, and check it.

    Parameters
    ----------
    base, new
        Estimates, releases, banks: anything with ``items``, ``difficulty`` and ``se``. Or what
        :func:`discreet.score` found for persons who answered both tests, each with its own
        calibration: then these persons are the link, and no item need be common.
    flag_at
        Items (persons) that drift by more than this many standard deviations are left out.
    by
        Of two estimates of ratings, the facet whose common levels are the link, such as
        ``"rater"``: then its measures are moved. Items and every facet have a zero of their own.

    Raises
    ------
    DisconnectedItems
        With fewer than two common items (persons), or two that remain.

    Notes
    -----
    Differences ``base - new`` have variance ``se_base^2 + se_new^2 + scatter^2``. Drift is first
    judged against the median and the median absolute deviation, which up to half of the items
    cannot move; then against the weighted mean and the scatter (DerSimonian and Laird 1986) of
    the items that are left, until the same items are flagged twice.

    Examples
    --------
    >>> import discreet
    >>> first = discreet.fit(discreet.datasets.lsat())
    >>> link_calibrations(first, first).shift
    0.0
    """
    if not (np.isfinite(flag_at) and flag_at > 0):
        raise BadUsage(f"flag_at must be a positive number of standard deviations, found {flag_at}")
    moved = getattr(new, "estimate", new)
    if by is None:
        by = _link_by(base, new)
    else:
        base, new = (_take_levels(source, by) for source in (base, new))
        by += "s"
    items, first, second, recoded = _common(base, new, by)
    difference = first[0] - second[0]
    variance = first[1] ** 2 + second[1] ** 2
    everything = _centre(difference, variance)
    flagged, centre = _flag(difference, variance, flag_at, by)
    used = ~flagged
    # Abilities are much less sure than difficulties, and would correlate less for that alone.
    error = [float(np.mean(se[used] ** 2)) if by == PERSONS else 0.0 for _, se in (first, second)]
    correlation, ratio = _compare_spread(first[0][used], second[0][used], error)
    drift = difference - centre.shift
    chance = _test_agreement(first, second, used)
    warnings = (
        *tell_other_steps(recoded),
        *_warn_of_persons(base, new),
        *_warn(items, flagged, by),
        *_doubt_correlation(correlation, chance=chance.scatter, by=by),
        *_doubt_spread(ratio, chance=chance.unit, by=by),
    )
    warn_of_dropped(warnings)
    return Link(
        shift=centre.shift,
        se=centre.se,
        shift_all=everything.shift,
        se_all=everything.se,
        items=items,
        drift=drift,
        drift_se=np.sqrt(variance),
        z=_standardise(drift, variance, centre.scatter),
        flagged=flagged,
        scatter=centre.scatter,
        correlation=correlation,
        spread_ratio=ratio,
        warnings=warnings,
        guarantee=compose_guarantees(find_guarantee(base), find_guarantee(new)),
        linked=moved,
        by=by,
    )


def _take_levels(calibration: Any, facet: str) -> Estimate:
    """Return the levels of a facet as items."""
    facets = getattr(find_source(calibration), "facets", {})
    if facet not in facets:
        raise BadUsage(
            f"a calibration has no facet '{facet}'; its facets are: {', '.join(facets) or 'none'}. "
            "Fit both with facets=, or leave by= out"
        )
    levels = facets[facet]
    return make_estimate(levels.levels, levels.measure, levels.se)


def _link_by(base: object, new: object) -> str:
    persons = [isinstance(source, PersonScores) for source in (base, new)]
    if persons[0] != persons[1]:
        raise BadUsage(
            "one is a calibration and the other abilities of persons; give two calibrations, to "
            "link by common items, or two results of score, to link by common persons"
        )
    return PERSONS if persons[0] else ITEMS


def find_guarantee(calibration: Calibration) -> Guarantee | None:
    """Return the guarantee of a calibration, None where it has none."""
    guarantee: Guarantee | None = getattr(find_source(calibration), "guarantee", None)
    return guarantee


def _common(
    base: Any, new: Any, by: str
) -> tuple[
    tuple[str, ...], tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray], tuple[str, ...]
]:
    """Items (persons) with numbers in both, value and standard error in each, and left out ones."""
    noun = "ability" if by == PERSONS else "difficulty"
    usable = _measured if by == PERSONS else usable_items
    first, second = usable(base, "first"), usable(new, "second")
    recoded = differ_in_steps([base, new]) if by == ITEMS else ()
    items = tuple(name for name in first if name in second and name not in recoded)
    if by == ITEMS:
        check_alike(find_reading(base), find_reading(new), items)
    if len(items) < FEWEST:
        raise DisconnectedItems(
            f"the two calibrations have {len(items)} {by} with a {noun} in common"
            + (f" ({items[0]})" if items else "")
            + f" (the first has {len(first)} {by}: {name_some(list(first))}; the second "
            f"{len(second)}: {name_some(list(second))}); a link that can be checked needs at least "
            f"{FEWEST}. {by.capitalize()} are matched by name"
            + (f"; {len(recoded)} have other categories here than there" if recoded else "")
        )
    columns = [np.array([table[name] for name in items]).T for table in (first, second)]
    return items, (columns[0][0], columns[0][1]), (columns[1][0], columns[1][1]), recoded


def differ_in_steps(calibrations: Sequence[Any]) -> tuple[str, ...]:
    """Return the items that have other categories in one calibration than in another."""
    categories_of: dict[str, set[tuple[int, ...]]] = {}
    for calibration in calibrations:
        source = find_source(calibration)
        if not hasattr(source, "difficulty"):
            continue  # refused, with a reason, where it is used
        ladder = getattr(source, "ladder", None)
        item_categories = [(0, 1)] * len(source.items) if ladder is None else ladder.kept
        for name, categories in zip(source.items, item_categories, strict=True):
            categories_of.setdefault(name, set()).add(categories)
    return tuple(name for name, ways in categories_of.items() if len(ways) > 1)


def tell_other_steps(items: tuple[str, ...]) -> tuple[FitWarning, ...]:
    """Warn of items that cannot be compared because their steps are not the same."""
    if not items:
        return ()
    noun = "item has" if len(items) == 1 else "items have"
    sentence = (
        f"{len(items)} {noun} other categories in one calibration than in the other and cannot be "
        f"compared: {name_some(list(items))}. Calibrate both with the same categories (steps=, "
        "merge=)"
    )
    return (FitWarning(WarningKind.NOT_COMPARED, sentence, items),)


def _measured(scores: PersonScores, _which: str) -> dict[str, tuple[float, float]]:
    """Persons with right and wrong answers; of the others little more is known than that."""
    rows = zip(scores.persons, scores.ability.tolist(), scores.se.tolist(), strict=True)
    measured = scores.status == PersonStatus.MEASURED
    pairs = zip(rows, measured, strict=True)
    return {str(name): (ability, se) for (name, ability, se), use in pairs if use}


def usable_items(calibration: Calibration, which: str) -> dict[str, tuple[float, float]]:
    """Return difficulty and standard error of every item that has both."""
    source = find_source(calibration)
    if not all(hasattr(source, name) for name in ("items", "difficulty", "se")):
        raise BadUsage(
            f"the {which} calibration is a {type(calibration).__name__}; a link needs items with "
            "difficulties and standard errors: the result of fit, a release, a bank or a data frame"
        )
    rows = zip(source.items, source.difficulty.tolist(), source.se.tolist(), strict=True)
    estimated = {name: (b, se) for name, b, se in rows if np.isfinite(b)}
    usable = {name: row for name, row in estimated.items() if np.isfinite(row[1])}
    if estimated and not usable:
        raise BadUsage(
            f"the {which} calibration has no standard errors, so a difference cannot be told from "
            "chance; fit it with standard errors"
        )
    return usable


def _flag(
    difference: FloatArray, variance: FloatArray, flag_at: float, by: str
) -> tuple[BoolArray, _Centre]:
    """Say which items drifted, and where the others have their centre."""
    flagged = np.zeros(len(difference), dtype=bool)
    if len(difference) <= FEWEST:
        return flagged, _centre(difference, variance)
    middle, least = _robust_centre(difference, variance)
    flagged = np.abs(_standardise(difference - middle, variance, least)) > flag_at
    for _ in range(ROUNDS):
        if (~flagged).sum() < FEWEST:
            raise DisconnectedItems(
                f"the {len(difference)} common {by} disagree so much that fewer than {FEWEST} "
                f"agree on a shift; are these the same {by}, in the same direction?"
            )
        # What is left after the extremes are gone scatters less than the items do; the robust
        # scatter of all of them keeps one flag from leading to the next.
        centre = _centre(difference[~flagged], variance[~flagged], least)
        flags = np.abs(_standardise(difference - centre.shift, variance, centre.scatter)) > flag_at
        if (flags == flagged).all():
            break
        flagged = flags
    return flagged, centre


def _robust_centre(difference: FloatArray, variance: FloatArray) -> tuple[float, float]:
    """Median, and the scatter that the median absolute deviation shows beyond the variance."""
    m = len(difference)
    middle = float(np.median(difference))
    # The factor m / (m - 0.8) removes the bias in small samples (Croux and Rousseeuw 1992).
    deviation = MAD_TO_SD * m / (m - 0.8) * float(np.median(np.abs(difference - middle)))
    return middle, float(np.sqrt(max(deviation**2 - float(np.median(variance)), 0.0)))


def _centre(difference: FloatArray, variance: FloatArray, least: float = 0.0) -> _Centre:
    """Weighted mean with the scatter of DerSimonian and Laird, but no less than ``least``."""
    # Two calibrations of exactly known items have no variance; equal weights are then right.
    variance = np.maximum(variance, EXACT)
    weight = 1 / variance
    mean = float(weight @ difference / weight.sum())
    excess = float(weight @ (difference - mean) ** 2) - (len(difference) - 1)
    room = float(weight.sum() - (weight**2).sum() / weight.sum())
    scatter = max(excess / room if room > 0 else 0.0, least**2)
    weight = 1 / (variance + scatter)
    shift = float(weight @ difference / weight.sum())
    return _Centre(shift, float(1 / np.sqrt(weight.sum())), float(np.sqrt(scatter)))


def _standardise(drift: FloatArray, variance: FloatArray, scatter: float) -> FloatArray:
    scale = np.sqrt(variance + scatter**2)
    # Where both values are exactly known, any difference is infinitely surprising, none is not.
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(drift == 0, 0.0, drift / scale)


def _compare_spread(
    first: FloatArray, second: FloatArray, error: list[float]
) -> tuple[float, float]:
    """Correlation and ratio of standard deviations, without what is error in them."""
    if len(first) < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan"), float("nan")
    spread = [float(side.var()) - part for side, part in zip((first, second), error, strict=True)]
    if min(spread) <= 0:
        return float("nan"), float("nan")
    together = float(np.mean((first - first.mean()) * (second - second.mean())))
    correlation = min(together / float(np.sqrt(spread[0] * spread[1])), 1.0)
    return correlation, float(np.sqrt(spread[1] / spread[0]))


@dataclass(frozen=True)
class _Agreement:
    """How likely chance makes two calibrations differ as much as these: in unit, and in scatter."""

    unit: float
    scatter: float


#: Values and their standard errors.
Column = tuple[FloatArray, FloatArray]


def _test_agreement(first: Column, second: Column, used: BoolArray) -> _Agreement:
    """Test whether the kept items have the same unit, and whether errors explain the rest.

    Were the units the same, differences between the calibrations would not depend on the items'
    mean locations, but for errors that are in both: the covariance is half the difference of the
    two error variances. What the slope leaves over is compared with the errors.
    """
    (first_b, first_error), (second_b, second_error) = (
        (value[used], se[used] ** 2) for value, se in (first, second)
    )
    m, variance = len(first_b), np.maximum(first_error + second_error, EXACT)
    if m < 3:
        return _Agreement(1.0, 1.0)
    difference, middle = first_b - second_b, (first_b + second_b) / 2
    difference, middle = difference - difference.mean(), middle - middle.mean()
    shared = (1 - 1 / m) * (first_error - second_error) / 2
    room = float(middle @ middle - (1 - 1 / m) * variance.sum() / 4)
    if room <= 0:  # the items do not differ by more than their errors
        return _Agreement(1.0, 1.0)
    slope = float(difference @ middle - shared.sum()) / room
    misfit = float(((difference - slope * middle) ** 2 / variance).sum())
    excess = max(misfit - (m - 2), 0.0) / float((1 / variance).sum())
    spread = float(middle**2 @ (variance + excess) + (shared**2).sum())
    z = slope * room / np.sqrt(spread)
    return _Agreement(2 * NormalDist().cdf(-abs(z)), chi_squared_tail(misfit, m - 2))


def _warn(items: tuple[str, ...], flagged: BoolArray, by: str) -> tuple[FitWarning, ...]:
    warnings = []
    if flagged.any():
        names = [items[i] for i in np.flatnonzero(flagged)]
        verb = "was" if len(names) == 1 else "were"
        changed = "version, settings" if by == PERSONS else "wording, position, key, teaching"
        sentence = (
            f"{len(names)} of {len(items)} common {by} drifted and {verb} left out of the link: "
            f"{name_some(names)}. "
            f"Look at what changed: {changed}"
        )
        warnings.append(FitWarning(WarningKind.DRIFTED, sentence, names))
    if len(items) == FEWEST:
        text = f"only {FEWEST} common {by}: if one of them drifted, nothing shows which; use more"
        warnings.append(FitWarning(WarningKind.WEAK_LINK, text, items))
    return tuple(warnings)


def _doubt_correlation(correlation: float, *, chance: float, by: str) -> tuple[FitWarning, ...]:
    """Warn of a correlation below the usual limit that chance does not explain."""
    if not (correlation < CORRELATION and chance < CHANCE):
        return ()
    values = "abilities" if by == PERSONS else "difficulties"
    sentence = (
        f"{values} of the common {by} correlate by {_below(correlation)} only (usual: at least "
        f"{CORRELATION}), beyond chance (p {chance:.3f}); the calibrations may not measure the same"
    )
    return (FitWarning(WarningKind.WEAK_LINK, sentence),)


def _doubt_spread(ratio: float, *, chance: float, by: str) -> tuple[FitWarning, ...]:
    """Warn of a ratio of spreads beyond the usual limits that chance does not explain."""
    if np.isnan(ratio) or SPREAD[0] <= ratio <= SPREAD[1] or chance >= CHANCE:
        return ()
    sentence = (
        f"the common {by} spread {ratio:.2f} times as much in the second calibration (usual: "
        f"{SPREAD[0]} to {SPREAD[1]}), beyond chance (p {chance:.3f}): one may be in another unit, "
        "noisier, or not fit the Rasch model, and a shift cannot mend that"
    )
    return (FitWarning(WarningKind.WEAK_LINK, sentence),)


def _warn_of_persons(base: Any, new: Any) -> tuple[FitWarning, ...]:
    """Warn of two releases that may be about the same persons: one ledger was charged for both."""
    ledgers = [getattr(find_guarantee(calibration), "ledger", None) for calibration in (base, new)]
    if ledgers[0] is None or ledgers[0] != ledgers[1]:
        return ()
    names = [getattr(calibration, "record", {}).get("population") for calibration in (base, new)]
    if names[0] is not None and names[0] == names[1]:
        fact = f"both releases are about the same persons (population {names[0]!r} of one ledger)"
    else:
        fact = (
            "both releases were charged to the same ledger: unless their populations are disjoint, "
            "they are about the same persons"
        )
    sentence = (
        f"{fact}. Then their sampling errors go together, so that drift is less and the link surer "
        "than it says, and whoever is in both has the protection of both together only"
    )
    return (FitWarning(WarningKind.SAME_PERSONS, sentence),)


def _below(correlation: float) -> str:
    """Write a correlation so that it does not round up to the limit it misses."""
    return f"{np.floor(correlation * 100) / 100:.2f}"
