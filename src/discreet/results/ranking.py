"""Rankings with confidence: which items are in the top K, how sure that is, and strengths.

In: an estimate, confidential or released. Out: a :class:`Ranking`, or the same numbers in words
that fit comparisons (an object that is hard to beat is difficult). Both may be shown to whom the
estimate may be shown; neither needs answers.

An item is surely in the top K when it is surely harder than all but K - 1 of the others; it is
possibly in when fewer than K items are surely harder. Both statements hold together, for all items:
:class:`Bars` says how large a difference must be for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np

from discreet.errors import BadUsage, FitWarning
from discreet.html import HtmlColumn, preview_table
from discreet.privacy.accounting import Guarantee
from discreet.results.calibrated import RANK_WORDS, CalibrationOrScores
from discreet.results.differences import (
    Bars,
    Differences,
    as_ranked,
    find_differences,
    name_without_error,
    sort_out,
)
from discreet.results.estimate import Estimate, Solution, Status, check_level, describe_access
from discreet.tabular import Columns, Tabular, brief_repr
from discreet.types import FloatArray


@dataclass(frozen=True)
class Ranking(Tabular):
    """The top K items by estimate, and what is sure about them.

    Attributes
    ----------
    top
        The K hardest (or easiest) items by estimate, the most extreme first. Equal estimates
        keep the order of the input.
    surely_in, possibly_in
        Items that are in the true top K with simultaneous confidence; and a set that contains
        the true top K with the same confidence. In the order of the estimates.
    gap
        Estimated difference, in logits, between the last item in and the first item out; NaN
        where one of the two does not exist.
    gap_interval
        Interval of the difference between those two items, simultaneous over all pairs.
    tied
        Items left out of ``top`` whose estimate equals that of the last item in.
    excluded
        Items without a number; nothing is said about them.
    level, easiest, quantile
        The confidence, the direction, and the half-width of the intervals in standard errors.
    bar
        How many standard errors a difference needs for ``surely_in`` and ``possibly_in``. Lower
        than ``quantile``, since only comparisons across the line can put an item on its wrong
        side.
    without_error
        Items whose standard error is not known, so that they are possibly in and never surely.
    noun
        What is ranked: ``"item"``, ``"person"``, ``"object"`` or ``"model"``.

    Examples
    --------
    >>> import discreet
    >>> from discreet.datasets import lsat
    >>> ranking = discreet.rank(discreet.fit(lsat()), top=2)
    >>> ranking.top, ranking.surely_in
    (('Item3', 'Item2'), ('Item3', 'Item2'))
    """

    top: tuple[str, ...]
    surely_in: tuple[str, ...]
    possibly_in: tuple[str, ...]
    gap: float
    gap_interval: tuple[float, float]
    tied: tuple[str, ...]
    excluded: tuple[str, ...]
    level: float
    easiest: bool
    quantile: float
    bar: float = float("nan")
    without_error: tuple[str, ...] = ()
    noun: str = "item"

    __repr__ = brief_repr

    def to_dict(self) -> Columns:
        """One list per column, for all items that are possibly in, in their order."""
        names = self.possibly_in
        return {
            self.noun: list(names),
            "place": list(range(1, len(names) + 1)),
            "in_top": [name in self.top for name in names],
            "surely_in": [name in self.surely_in for name in names],
        }


def rank(
    estimate: CalibrationOrScores,
    top: int,
    *,
    easiest: bool = False,
    level: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Ranking:
    """Find the hardest items and say how sure that is.

    Parameters
    ----------
    estimate
        From :func:`discreet.fit`, a release, a bank, or a data frame with the columns item,
        difficulty and se; or scores of persons, strengths of objects, a leaderboard. Without its
        covariance the errors of two items are taken as independent, and the probabilities of all
        errors are added up (Bonferroni), which makes statements a little more cautious; so it is
        above 2,000 items. Without standard errors nothing is sure.
    top
        How many items, from 0 to the number of items with a difficulty.
    easiest
        Rank from the easiest instead of from the hardest (persons from the least able).
    level
        Probability that all statements hold together.
    rng
        Source of the draws for the simultaneous quantile; by default always the same one.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.api.calibrating import fit
    >>> answers = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [1, 0, 1], [0, 0, 1]] * 40)
    >>> rank(fit(answers), top=1).top
    ('1',)
    """
    level = check_level(level)
    ranked, noun = as_ranked(estimate, "a ranking")
    differences = find_differences(ranked, easiest=easiest)
    top = _check_top(top, len(differences.value), noun)
    bars = Bars(differences, level, rng)
    bar = bars.top(top)
    surely, possibly = sort_out(differences, bar, top)
    names = [ranked.items[i] for i in differences.order]
    value, half = differences.value, bars.interval
    gap, error = _gap(differences, top)
    return Ranking(
        top=tuple(names[:top]),
        surely_in=tuple(names[i] for i in np.flatnonzero(surely)),
        possibly_in=tuple(names[i] for i in np.flatnonzero(possibly)),
        gap=gap,
        gap_interval=(gap - half * error, gap + half * error),
        tied=tuple(names[i] for i in range(top, len(names)) if top and value[i] == value[top - 1]),
        excluded=tuple(np.array(ranked.items, dtype=object)[~ranked.estimated]),
        level=level,
        easiest=easiest,
        quantile=half,
        bar=bar,
        without_error=name_without_error(ranked),
        noun=noun,
    )


def _check_top(top: int, available: int, noun: str) -> int:
    if not 0 <= top <= available:
        number = RANK_WORDS[noun][0]
        raise BadUsage(
            f"top must lie between 0 and {available}, the number of {noun}s with a {number}, "
            f"found {top}"
        )
    return top


def _gap(differences: Differences, top: int) -> tuple[float, float]:
    """Return the gap at ``top`` and its standard error."""
    if not 0 < top < len(differences.value):
        return float("nan"), float("nan")
    last, following = differences.value[top - 1 : top + 1]
    error = differences.errors(slice(top - 1, top))[0, top]
    return float(last - following), float(error)


#: What the chain calls an item, said of an object.
STATUS_WORDS = {
    Status.ESTIMATED: "estimated",
    Status.ANCHORED: "anchored",
    Status.ALWAYS_RIGHT: "always_lost",
    Status.ALWAYS_WRONG: "always_won",
    Status.NO_ANSWERS: "no_comparisons",
    Status.NOT_CONNECTED: "not_connected",
}

#: The columns that have other names than an estimate's.
COLUMNS = {"difficulty": "strength", "answers": "compared", "right": "won"}

REASONS = {
    "always_won": "never lost",
    "always_lost": "never won",
    "no_comparisons": "nobody compared",
    "not_connected": "the comparisons do not link to the largest set of objects in both directions",
}


@dataclass(frozen=True, eq=False)
class Effects(Tabular):
    """What votes depend on beside the objects.

    Attributes
    ----------
    names, effect, se
        The covariates, what one unit more of them adds to the log-odds of winning, and standard
        errors. Where ties count by Davidson's model, "tie" is the logarithm of its parameter: of
        two equal objects ties have the odds ``exp(tie) / 2``.
    """

    names: tuple[str, ...]
    effect: FloatArray
    se: FloatArray

    __repr__ = brief_repr

    def to_dict(self) -> Columns:
        """One list per column: name, effect, se."""
        return {"name": list(self.names), "effect": self.effect.tolist(), "se": self.se.tolist()}


@dataclass(frozen=True, eq=False)
class Strengths(Tabular):
    """Strengths of objects in logits, mean zero over the estimated ones, winners are higher.

    An object with strength a beats one with strength b with probability 1 / (1 + exp(b - a)).

    Attributes
    ----------
    estimate
        The same with strengths as difficulties, for functions that take an estimate.
    warnings
        Sentences about objects that were left out.
    effects
        Of covariates and ties, where these were asked for.

    Examples
    --------
    >>> import discreet
    >>> votes = discreet.Comparisons.from_codes(
    ...     judge=[0, 1, 2, 3], winner=[0, 0, 0, 1], loser=[1, 1, 1, 0], items=["ash", "elm"]
    ... )
    >>> discreet.rank(discreet.rank_comparisons(votes), 1).top
    ('ash',)
    """

    estimate: Estimate
    warnings: tuple[FitWarning, ...] = ()
    effects: Effects | None = None

    noun = "object"
    __repr__ = brief_repr

    @property
    def items(self) -> tuple[str, ...]:
        """Names of the objects, in the order of the input."""
        return self.estimate.items

    @property
    def strength(self) -> FloatArray:
        """One number per object; NaN where there is none, and ``status`` says why."""
        return self.estimate.difficulty

    @property
    def se(self) -> FloatArray:
        """Standard error of each strength."""
        return self.estimate.se

    @property
    def status(self) -> tuple[str, ...]:
        """``estimated``, ``always_won``, ``always_lost``, ``no_comparisons``, ``not_connected``."""
        return tuple(STATUS_WORDS[status] for status in self.estimate.status)

    @property
    def covariance(self) -> FloatArray | None:
        """Covariance of the estimated strengths, in their order."""
        return self.estimate.covariance

    @property
    def method(self) -> str:
        """``refined``, ``spectral``, or ``noise-aware`` for a release."""
        return self.estimate.method

    @property
    def solution(self) -> Solution:
        """How it was computed."""
        return self.estimate.solution

    @property
    def judges(self) -> int | None:
        """How many judges; None where that is not public."""
        return self.estimate.persons

    @property
    def guarantee(self) -> Guarantee | None:
        """The privacy guarantee, or None for a confidential result."""
        return self.estimate.guarantee

    def interval(self, level: float = 0.95) -> FloatArray:
        """Lower and upper end of each object's own interval, ``float[object, 2]``."""
        return self.estimate.interval(level)

    def to_dict(self) -> Columns:
        """One list per column: item, strength, se, lower, upper, status, compared, won."""
        table = self.estimate.to_dict() | {"status": list(self.status)}
        columns = {COLUMNS.get(name, name): values for name, values in table.items()}
        if "won" in columns:  # what is right of an item is lost by an object
            pairs = zip(columns["compared"], columns["won"], strict=True)
            columns["won"] = [compared - lost for compared, lost in pairs]
        return columns

    def _repr_html_(self) -> str:
        """Show the first objects in a notebook, and whether they may leave it."""
        access = describe_access(self.guarantee)
        judges = "" if self.judges is None else f", {self.judges:,} judges"
        caption = escape(f"{len(self.items):,} objects{judges}, {self.method}, {access}")
        columns = [HtmlColumn(name, values) for name, values in self.to_dict().items()]
        return f"<div>{preview_table(columns, caption=caption)}</div>"
