"""The result of ranking objects: strengths, how sure they are, and why some are missing.

In: an estimate of difficulties, in which an object that is hard to beat is difficult. Out: the
same in words that fit comparisons. It holds no comparisons; whether it may be published
depends on ``guarantee``.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from discreet.markup import HtmlColumn, brief_repr, preview_table
from discreet.privacy.accounting.budget import Guarantee
from discreet.results.estimate import Estimate, ItemTable, Solution, Status, describe_access
from discreet.results.ranking import Ranking, rank
from discreet.results.warnings import Kind, Notice
from discreet.types import FloatArray

STATUS_WORDS = {
    Status.ESTIMATED: "estimated",
    Status.ANCHORED: "anchored",
    Status.ALWAYS_RIGHT: "always_lost",
    Status.ALWAYS_WRONG: "always_won",
    Status.NO_ANSWERS: "no_comparisons",
    Status.NOT_CONNECTED: "not_connected",
}
"""What the chain calls an item, said of an object."""

COLUMNS = {"difficulty": "strength", "answers": "compared", "right": "won"}
"""The columns that have other names than an estimate's."""

REASONS = {
    "always_won": "never lost",
    "always_lost": "never won",
    "no_comparisons": "nobody compared",
    "not_connected": "the comparisons do not link to the largest set of objects in both directions",
}
NAMED = 5


@dataclass(frozen=True, eq=False)
class Strengths(ItemTable):
    """Strengths of objects in logits, mean zero over the estimated ones, winners are higher.

    An object with strength a beats one with strength b with probability 1 / (1 + exp(b - a)).

    Attributes
    ----------
    estimate
        The same with strengths as difficulties, for functions that take an estimate.
    warnings
        Sentences about objects that were left out.
    """

    estimate: Estimate
    warnings: tuple[Notice, ...] = ()

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

    def rank(
        self, top: int, *, level: float = 0.95, rng: np.random.Generator | None = None
    ) -> Ranking:
        """Name the strongest objects and say how sure that is; see :func:`discreet.rank`."""
        return rank(self.estimate, top, level=level, rng=rng)

    def to_dict(self) -> dict[str, list[Any]]:
        """One list per column: item, strength, se, lower, upper, status, compared, won."""
        told = self.estimate.to_dict() | {"status": list(self.status)}
        columns = {COLUMNS.get(name, name): values for name, values in told.items()}
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


def explain_left_out(items: tuple[str, ...], status: tuple[str, ...]) -> tuple[Notice, ...]:
    """Return one sentence for each reason why objects have no strength."""
    found = []
    for word, reason in REASONS.items():
        names = [item for item, own in zip(items, status, strict=True) if own == word]
        if names:
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            shown = ", ".join(names[:NAMED])
            noun = "object" if len(names) == 1 else "objects"
            sentence = f"no strength for {len(names)} {noun} that {reason}: {shown}{more}"
            found.append(Notice(Kind.LEFT_OUT, sentence, names))
    return tuple(found)
