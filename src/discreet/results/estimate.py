"""The result of a calibration: difficulties, how sure they are, why some are missing.

In: numbers from an estimator. Out: a frozen value with its tables and intervals. It holds no
answers; whether it may be published depends on ``guarantee``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import numpy as np
import numpy.typing as npt

from discreet.checking import as_numbers, checked
from discreet.coding.reading import Reading
from discreet.errors import BadUsage, FitWarning, WarningKind, escape_controls
from discreet.privacy.accounting import Guarantee
from discreet.results.facets import FacetLevels, ItemEffectTest, find_reliability
from discreet.results.thresholds import Thresholds, make_one_step
from discreet.schema import Along, Count, Distinct, Within
from discreet.tabular import Columns, Tabular, make_frame, make_table
from discreet.text import count_of, name_some
from discreet.types import FloatArray, Int64Array

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from matplotlib.axes import Axes


class Status(StrEnum):
    """Why an item has a number, or has none."""

    ESTIMATED = "estimated"
    ANCHORED = "anchored"
    ALWAYS_RIGHT = "always_right"
    ALWAYS_WRONG = "always_wrong"
    NO_ANSWERS = "no_answers"
    NOT_CONNECTED = "not_connected"
    #: Of a step beside a kept category that nobody is in: the sum of these steps is estimated.
    UNUSED = "unused_category"


@dataclass(frozen=True)
class Solution:
    """How the numbers were found: the solver, its accuracy, what it took."""

    solver: str
    iterations: Count
    residual: float
    notes: tuple[str, ...] = ()


#: Gaussian draws behind a simultaneous quantile; its 95% point is then known to about 1%.
ERROR_DRAWS = 10_000


@dataclass(frozen=True, eq=False)
class Estimate(Tabular):
    """Item difficulties in logits, mean zero over the estimated items, harder is larger.

    The difficulty of an item with several steps is its location, the mean of its thresholds.

    Attributes
    ----------
    items
        Item names in the order of the input.
    difficulty, se
        NaN where there is no number; ``status`` says why.
    status
        One :class:`Status` per item.
    method
        The method that was taken: ``"conditional"``, ``"refined"``, ``"spectral"``,
        ``"marginal"``, ``"conditional given paths"`` of a routed test, or the estimator of a
        release.
    covariance
        Of the estimated items only, in their order; ``None`` where it was not computed.
    answers, right
        Per item, with steps the sum of the answers; ``None`` in a release.
    persons
        How many persons; ``None`` where that is not public.
    guarantee
        The privacy guarantee, or ``None`` for a confidential estimate.
    solution
        How it was computed.
    steps
        Per item, how many steps it has: 1 for right and wrong.
    model
        ``"rasch"``: right and wrong answers. ``"partial-credit"``: every step has a threshold of
        its own. ``"rating-scale"``: thresholds are an item's location plus a distance that is
        the same for all items.
    choice
        Why this method, where the method was left to the library; else empty.
    degrees
        Degrees of freedom of the standard errors, where these come from folds of persons:
        intervals then have Student's quantiles. None where standard errors count as known.
    se_method
        How the standard errors were computed, and from which persons: a sentence, or empty where
        that is not known.
    displacement, displacement_se
        Per anchored item, what its difficulty would be if only this anchor were free, minus its
        anchored value; NaN for other items. None where nothing was anchored.
    displacement_reason
        Per item, why an anchor has no displacement; empty where it has.
    ladder
        The thresholds with their covariance, statuses and categories. Those of right and wrong
        answers, one for each item, follow from the difficulties and are not passed.
    facets
        Of ratings: by the facet's name, the measures of its levels (the severities of raters).
    item_effect
        Of ratings compared on the same item: a test whether persons differ by item, which would
        draw severities together if all pairs were compared. None where it was not made.
    design_effect
        Per item, where persons had weights: the variance of its difficulty over what it would be
        if as many persons were a simple random sample. None without weights.
    reading
        How values became answers, where the answers were read: which items were reversed, what was
        merged or missing, where scales begin and end. New answers are read so. None where unknown.
    has_steps
        Whether the model is one of answers with steps, not of right and wrong answers.
    estimated
        Which items have a difficulty.
    thresholds, threshold_se
        ``[item, step]``, NaN beyond an item's steps; of one step the difficulty and its error.
    threshold_covariance
        Of the thresholds that have a number, item after item, step after step.
    """

    items: Annotated[tuple[str, ...], Distinct()]
    difficulty: Annotated[FloatArray, Along("items")]
    se: Annotated[FloatArray, Along("items")]
    status: Annotated[tuple[Status, ...], Along("items")]
    method: str
    solution: Solution
    covariance: FloatArray | None = None
    answers: Annotated[Int64Array | None, Along("items")] = None
    right: Annotated[Int64Array | None, Along("items")] = None
    persons: Count | None = None
    guarantee: Guarantee | None = None
    warnings: tuple[FitWarning, ...] = field(default=())
    steps: Annotated[tuple[int, ...], Along("items", may_be_empty=True)] = field(default=())
    model: str = "rasch"
    choice: str = ""
    degrees: Annotated[int, Within(1, 1 << 30)] | None = None
    se_method: str = ""
    ladder: Thresholds = None  # type: ignore[assignment]
    displacement: Annotated[FloatArray | None, Along("items")] = None
    displacement_se: Annotated[FloatArray | None, Along("items")] = None
    displacement_reason: Annotated[tuple[str, ...], Along("items", may_be_empty=True)] = ()
    facets: Mapping[str, FacetLevels] = field(default_factory=dict)
    item_effect: ItemEffectTest | None = None
    design_effect: Annotated[FloatArray | None, Along("items")] = None
    reading: Reading | None = None
    has_steps: bool = field(init=False)
    estimated: npt.NDArray[np.bool_] = field(init=False)
    thresholds: FloatArray = field(init=False)
    threshold_se: FloatArray = field(init=False)
    threshold_covariance: FloatArray | None = field(init=False)

    def __post_init__(self) -> None:
        counts = self.answers, self.right
        moves = self.displacement, self.displacement_se
        for array in (self.difficulty, self.se, self.covariance, *counts, *moves):
            if array is not None:
                array.setflags(write=False)
        if not self.steps:
            object.__setattr__(self, "steps", (1,) * len(self.items))
        object.__setattr__(self, "has_steps", self.model != "rasch")
        if self.ladder is None or not self.has_steps:
            object.__setattr__(self, "ladder", make_one_step(self))
        estimated = ~np.isnan(self.difficulty)
        estimated.setflags(write=False)
        object.__setattr__(self, "estimated", estimated)
        object.__setattr__(self, "thresholds", self.ladder.value)
        object.__setattr__(self, "threshold_se", self.ladder.se)
        object.__setattr__(self, "threshold_covariance", self.ladder.covariance)

    def find_contradiction(self) -> str:
        """Return what does not belong together in a file; empty if everything does."""
        if self.difficulty.ndim != 1 or np.isinf(self.difficulty).any():
            return "a difficulty is infinite"
        if self.se.ndim != 1 or (self.se < 0).any() or np.isinf(self.se).any():
            return "a standard error is negative or infinite"
        if any(
            (counts is not None and (counts < 0).any()) for counts in (self.answers, self.right)
        ):
            return "a number of answers is negative"
        n_estimated = int(self.estimated.sum())
        if self.covariance is not None and self.covariance.shape != (n_estimated, n_estimated):
            return "the covariance is not one of the items that have a difficulty"
        return "" if self.ladder.steps == self.steps else "the thresholds do not fit the steps"

    @property
    def derived_parts(self) -> tuple[str, ...]:
        """Parts that follow from others, so that a file does not hold them."""
        return () if self.has_steps else ("ladder",)

    @checked
    def threshold_interval(self, level: float = 0.95, *, simultaneous: bool = False) -> FloatArray:
        """Lower and upper end of each threshold's interval, ``float[item, step, 2]``.

        Parameters
        ----------
        level
            Probability that an interval contains its threshold.
        simultaneous
            Whether it is the probability that all of them do at once.
        """
        check_level(level)
        value, se = self.thresholds, self.threshold_se
        if simultaneous:
            factor = self._largest_error(level, None, se, self.threshold_covariance)
        else:
            factor = two_sided_quantile(1 - level, self.degrees)
        return np.stack([value - factor * se, value + factor * se], axis=2)

    def thresholds_to_dict(self) -> Columns:
        """One list per column: item, step, threshold, se, lower, upper, status."""
        interval = self.threshold_interval()
        item, step = np.nonzero(np.arange(max(self.steps)) < np.array(self.steps)[:, None])
        return {
            "item": [self.items[i] for i in item],
            "step": (step + 1).tolist(),
            "threshold": self.thresholds[item, step].tolist(),
            "se": self.threshold_se[item, step].tolist(),
            "lower": interval[item, step, 0].tolist(),
            "upper": interval[item, step, 1].tolist(),
            "status": [str(self.ladder.status[i][k]) for i, k in zip(item, step, strict=True)],
        }

    def thresholds_to_dataframe(self) -> pd.DataFrame:
        """Return the thresholds as a table with one row per step, as :meth:`to_dataframe` does."""
        return make_frame(make_table(self.thresholds_to_dict()))

    @checked
    def interval(self, level: float = 0.95) -> FloatArray:
        """Lower and upper end of each item's own interval, ``float[item, 2]``."""
        half = two_sided_quantile(1 - check_level(level), self.degrees) * self.se
        return np.column_stack([self.difficulty - half, self.difficulty + half])

    @checked
    def simultaneous_interval(
        self, level: float = 0.95, *, rng: np.random.Generator | None = None
    ) -> FloatArray:
        """Intervals that contain all difficulties at once with the given probability.

        The half-width is the quantile of the largest standardised error over all items, from
        Gaussian draws with the estimate's covariance (in law a multiplier bootstrap on the
        persons' scores). Without a covariance it is the Bonferroni quantile, which is a
        little wider.

        Parameters
        ----------
        level
            Probability that every interval contains its difficulty.
        rng
            Source of the draws; by default always the same one.

        Returns
        -------
        numpy.ndarray
            ``float[item, 2]``; NaN where there is no number.
        """
        factor = self._largest_error(check_level(level), rng, self.se, self.covariance)
        half = factor * self.se
        return np.column_stack([self.difficulty - half, self.difficulty + half])

    def _largest_error(
        self,
        level: float,
        rng: np.random.Generator | None,
        se: FloatArray,
        covariance: FloatArray | None,
    ) -> float:
        """Quantile of the largest error over items or steps, in standard errors."""
        n_errors = int(np.isfinite(se).sum())
        if covariance is None or n_errors < 2:
            return two_sided_quantile((1 - level) / max(n_errors, 1), self.degrees)
        spread = np.sqrt(covariance.diagonal())
        draws = draw_errors(covariance, rng, self.degrees)
        with np.errstate(invalid="ignore", divide="ignore"):
            largest = np.nanmax(np.abs(draws / spread), axis=1)
        return float(np.quantile(largest, level))

    @property
    def sums(self) -> list[int] | None:
        """Sums of the answers to each item as the data code them; None without counts."""
        if self.answers is None or self.right is None:
            return None
        if self.ladder.categories is None:
            return list((self.right + self.ladder.lowest * self.answers).tolist())
        pairs = zip(self.ladder.labels, self.ladder.categories.tolist(), strict=True)
        return [sum(k * n for k, n in zip(own, counts, strict=False)) for own, counts in pairs]

    def to_dict(self) -> Columns:
        """One list per column: item, difficulty, se, lower, upper, status, answers, right.

        With weights also the design effect, with anchors the displacement and its error.
        """
        interval = self.interval()
        columns: Columns = {
            "item": list(self.items),
            "difficulty": self.difficulty.tolist(),
            "se": self.se.tolist(),
            "lower": interval[:, 0].tolist(),
            "upper": interval[:, 1].tolist(),
            "status": [str(status) for status in self.status],
        }
        if self.answers is not None and self.right is not None:
            columns["answers"] = self.answers.tolist()
            columns["right"] = self.right.tolist()
        if self.design_effect is not None:
            columns["design_effect"] = self.design_effect.tolist()
        if self.displacement is not None and self.displacement_se is not None:
            columns["displacement"] = self.displacement.tolist()
            columns["displacement_se"] = self.displacement_se.tolist()
        return columns

    def rounded(self, decimals: int, *, covariance: bool) -> Estimate:
        """Return the estimate as a table with so many decimals writes it; NaN stays."""

        def write(values: FloatArray) -> FloatArray:
            written = [float(f"{value:.{decimals}f}") for value in values.flat]
            return np.array(written).reshape(values.shape)

        ladder = self.ladder
        return replace(
            self,
            difficulty=write(self.difficulty),
            se=write(self.se),
            covariance=self.covariance if covariance else None,
            ladder=replace(
                ladder,
                value=write(ladder.value),
                se=write(ladder.se),
                covariance=ladder.covariance if covariance else None,
            ),
        )

    def anchors_to_dict(self) -> Columns:
        """One list per column, of the anchored items: item, anchor, displacement, se, reason."""
        held = [i for i, status in enumerate(self.status) if status == Status.ANCHORED]
        missing = np.full(len(self.items), np.nan)
        moved = missing if self.displacement is None else self.displacement
        error = missing if self.displacement_se is None else self.displacement_se
        reason = self.displacement_reason or ("",) * len(self.items)
        return {
            "item": [self.items[i] for i in held],
            "anchor": self.difficulty[held].tolist(),
            "displacement": moved[held].tolist(),
            "se": error[held].tolist(),
            "reason": [reason[i] for i in held],
        }

    def to_arrow(self) -> pa.Table:
        """Return the table as a :class:`pyarrow.Table`, with steps also every threshold.

        Then there are the columns categories, threshold_1, threshold_1_se, threshold_2 and so on,
        so that the table can stand for the estimate wherever a calibration is taken.
        """
        steps = self.ladder.to_columns() if self.has_steps else {}
        return make_table({**self.to_dict(), **steps})

    @property
    def item_reliability(self) -> float:
        """Share of the variance of the difficulties that is not error; NaN without errors."""
        return find_reliability(self.difficulty, self.se)

    @checked
    def predict_proba(
        self, ability: object, item: str | Sequence[str] | None = None
    ) -> float | FloatArray:
        """Return the probability of a right answer; with steps, of every category.

        Parameters
        ----------
        ability
            In logits: a number, several, a person of :func:`discreet.score`
            (``scores["ann"]``), or all of its result.
        item
            A name, several, or None for all items.

        Returns
        -------
        float or numpy.ndarray
            A number for one ability and one item; else ``[ability, item]``, without the axis of
            what is single. With steps a last axis holds the categories from 0, NaN beyond an
            item's last. NaN for an item without a difficulty.

        Examples
        --------
        >>> import discreet
        >>> estimate = discreet.fit(discreet.datasets.lsat())
        >>> round(estimate.predict_proba(0.5, "Item3"), 3)
        0.324
        """
        from discreet.results.chances import category_chances

        theta = as_numbers("ability", getattr(ability, "ability", ability))
        if theta.ndim > 1:
            raise BadUsage(
                "an ability is a number, several, or what discreet.score(answers, estimate) "
                "returns; call it as predict_proba(0.5, 'Q1')"
            )
        names = [item] if isinstance(item, str) else self.items if item is None else list(item)
        unknown = [name for name in names if name not in self.items]
        if unknown:
            raise BadUsage(f"there is no item {unknown[0]!r} in this calibration; see .items")
        thresholds = self.thresholds[[self.items.index(name) for name in names]]
        shares = category_chances(np.atleast_1d(theta), thresholds)
        shares[:, :, 1:][:, np.isnan(thresholds)] = np.nan
        if thresholds.shape[1] == 1:
            shares = shares[..., 1]
        shares = shares[:, 0] if isinstance(item, str) else shares
        shares = shares if theta.ndim else shares[0]
        return float(shares) if np.ndim(shares) == 0 else shares

    @checked
    def plot(self, *, level: float = 0.95, ax: Axes | None = None) -> Axes:
        """Draw the difficulties with their intervals (extra ``report``); returns matplotlib Axes.

        A notebook shows the picture; ``.figure.savefig(path)`` writes it to a file. Others are in
        :mod:`discreet.figures`.
        """
        import discreet

        return discreet.figures.difficulty_plot(self, level=level, ax=ax)

    def __repr__(self) -> str:
        return f"<Estimate: {escape_controls(self._facts())}>"

    def _facts(self) -> str:
        persons = "" if self.persons is None else f", {self.persons:,} persons"
        access = describe_access(self.guarantee)
        return f"{len(self.items):,} items{persons}, {self.method}, {access}"

    def describe(self) -> list[str]:
        """Return the sentences that a summary begins with: what was estimated, how and how well."""
        without = int((~self.estimated).sum())
        estimated = np.flatnonzero(self.estimated)
        notes = [sentence for sentence in (self.choice, self.se_method) if sentence]
        lines = [f"{self.model} model: {self._facts()}", *notes]
        if len(estimated):
            low, high = (
                estimated[pick(self.difficulty[estimated])] for pick in (np.argmin, np.argmax)
            )
            lines.append(
                f"easiest {self.items[low]} ({self.difficulty[low]:.3f} logits), hardest "
                f"{self.items[high]} ({self.difficulty[high]:.3f} logits)"
            )
        if np.isfinite(self.item_reliability):
            lines.append(f"item separation reliability {self.item_reliability:.3f}")
        return [*lines, *([f"{count_of(without)} without a difficulty"] if without else [])]


def describe_access(guarantee: Guarantee | None) -> str:
    """Say who may see numbers with this guarantee, or without one."""
    if guarantee is None:
        return "confidential"
    return "released with privacy" if guarantee.is_private else "not private: noise for tests only"


def draw_errors(
    covariance: FloatArray,
    rng: np.random.Generator | None,
    degrees: int | None = None,
    *,
    n_draws: int | None = None,
) -> FloatArray:
    """Draw Gaussian errors with a covariance that may be singular, ``float[draw, item]``.

    Of a covariance that is estimated with so many degrees of freedom, draw Student's instead.
    """
    source = np.random.default_rng(0) if rng is None else rng
    factor, n_draws = _take_root(covariance), ERROR_DRAWS if n_draws is None else n_draws
    draws = source.standard_normal((n_draws, len(factor))) @ factor.T
    if degrees is not None:
        draws /= np.sqrt(source.chisquare(degrees, (n_draws, 1)) / degrees)
    return np.asarray(draws)


def _take_root(covariance: FloatArray) -> FloatArray:
    """Return a matrix whose product with its transpose is the covariance.

    Eigenvectors of equal eigenvalues are any, so that another machine would draw otherwise; a
    triangular root is one only, once a singular covariance is kept from being so.
    """
    try:
        return np.asarray(
            np.linalg.cholesky(covariance + np.diag(1e-10 * covariance.diagonal())), np.float64
        )
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(covariance)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def two_sided_quantile(outside: float, degrees: int | None = None) -> float:
    """Return how many standard errors an error exceeds with probability ``outside``.

    The error is normal, or Student's where the standard error has degrees of freedom.
    """
    if degrees is not None:
        from scipy.special import stdtrit

        return -float(stdtrit(degrees, outside / 2))
    # The standard library has it to the last digit; scipy.special takes 0.2 s to import.
    from statistics import NormalDist

    return -NormalDist().inv_cdf(outside / 2)


def check_level(level: float) -> float:
    """Return a confidence level between 0 and 1, or explain."""
    if not 0 < level < 1:
        raise BadUsage(f"level must lie between 0 and 1, found {level}; use 0.95 for 95%")
    return float(level)


def explain_left_out(
    words: tuple[str, str],
    items: Sequence[str],
    status: Iterable[str],
    reasons: Mapping[str, str],
    advice: str = "",
) -> tuple[FitWarning, ...]:
    """Return one sentence for each reason why some have no number.

    Examples
    --------
    >>> explain_left_out(("strength", "object"), "ab", ["won", "lost"], {"won": "never lost"})
    ('no strength for 1 object that never lost: a',)
    """
    number, noun = words
    pairs, fit_warnings = list(zip(items, status, strict=True)), []
    for code, reason in reasons.items():
        names = [item for item, own in pairs if own == code]
        if names:
            concerned = f"{count_of(len(names), noun)} that {reason}: {name_some(names)}"
            is_apart = code == Status.NOT_CONNECTED
            kind = WarningKind.NOT_LINKED if is_apart else WarningKind.LEFT_OUT
            fit_warnings.append(FitWarning(kind, f"no {number} for {concerned}{advice}", names))
    return tuple(fit_warnings)
