"""The scalogram of a small test: answers in Guttman's order, with those that surprise.

In: answers and a calibration. Out: different rows of answers, the ablest on top, items from the
easiest to the hardest, and which cells the model hardly expects. Confidential.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Unpack

import numpy as np
from scipy.special import expit

from discreet.errors import BadUsage, escape_controls
from discreet.items.residuals import prepare
from discreet.models.item_parameters import refuse_steps
from discreet.schema import Along, Count, Within
from discreet.tables.reading import ReadingWords
from discreet.tabular import Tabular, brief_repr
from discreet.types import BoolArray, FloatArray

MOST_ITEMS, MOST_ROWS = 40, 120
"""Larger tables cannot be read at one look."""
SURPRISING = 2.0
"""Standardised residual from which on an answer is hardly expected: odds of 4 to 1 against it."""
SIGNS = {1: "1", 0: "0", -1: "."}
"""How answers are written."""


@dataclass(frozen=True)
class Scalogram(Tabular):
    """Answers of persons in order: equal rows are one row. Confidential.

    Attributes
    ----------
    items
        From the easiest to the hardest.
    answers
        ``[row][item]``: 1 right, 0 wrong, -1 missing; the ablest persons first.
    surprising
        ``[row][item]``: whether the model hardly expects the answer.
    persons, ability
        How many persons have this row, and what it says about them (weighted likelihood).
    reproducibility
        Guttman's coefficient: the share of answers that the number right alone gives back when
        persons get exactly their easiest items right.
    """

    items: tuple[str, ...]
    answers: Annotated[tuple[tuple[Annotated[int, Within(-1, 1)], ...], ...], Along("", "items")]
    surprising: Annotated[tuple[tuple[bool, ...], ...], Along("answers", "items")]
    persons: Annotated[tuple[Count, ...], Along("answers")]
    ability: Annotated[tuple[float, ...], Along("answers")]
    reproducibility: float

    __repr__ = brief_repr

    def to_dict(self) -> dict[str, list[Any]]:
        """One row per kind of answers: persons, ability, and a column for each item."""
        cells = [[None if answer < 0 else answer for answer in row] for row in self.answers]
        columns = zip(*cells, strict=True)
        return {
            "persons": list(self.persons),
            "ability": list(self.ability),
            **{item: list(answer) for item, answer in zip(self.items, columns, strict=True)},
        }

    def to_text(self) -> str:
        """Return the table as lines: 1 right, 0 wrong, a dot for missing, * after a surprise."""
        width = max(len(str(max(self.persons))), len("persons"))
        labels = [escape_controls(item) for item in self.items]
        tall = max(map(len, labels))
        names = [item.rjust(tall) for item in labels]
        head = [
            " " * (width + 10) + "".join(f"{name[line]} " for name in names).rstrip()
            for line in range(tall)
        ]
        lines = [f"{'persons':>{width}}  ability"]
        for row, odd, number, ability in zip(
            self.answers, self.surprising, self.persons, self.ability, strict=True
        ):
            cells = "".join(
                SIGNS[code] + ("*" if flag else " ") for code, flag in zip(row, odd, strict=True)
            )
            lines.append(f"{number:>{width}}  {ability:7.2f} {cells.rstrip()}")
        return "\n".join([*head, *lines])


def order_answers(responses: Any, calibration: Any, **reading: Unpack[ReadingWords]) -> Scalogram:
    """Put the answers of a small test in order. Confidential.

    Parameters
    ----------
    responses, calibration, reading
        As for :func:`discreet.score`. At most 40 items, and 120 different rows of answers.

    Raises
    ------
    BadUsage
        If the table would be too large to be read.

    References
    ----------
    Guttman, L. (1944). A basis for scaling qualitative data. American Sociological Review 9(2),
    139-150.

    Examples
    --------
    >>> import numpy as np
    >>> answers = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1]])
    >>> print(order_answers(answers, {"0": -1.0, "1": 0.0, "2": 1.0}).to_text())
                     0 1 2
    persons  ability
          1     0.64 1 1 0
          1    -0.64 1 0 0
          1    -0.64 0 0 1*
    """
    prepared = prepare(responses, calibration, "warm", reading)
    refuse_steps("a scalogram", prepared.responses.steps)
    scores, difficulty = prepared.scores, prepared.difficulty
    order = np.argsort(difficulty, kind="stable")
    answered = np.flatnonzero(scores.answered > 0)
    _check_size(len(order))
    cells = prepared.responses.to_array()[answered][:, order]
    rows, first, number = np.unique(cells, axis=0, return_index=True, return_counts=True)
    _check_size(len(order), len(rows))
    ability = scores.ability[answered][first]
    turn = np.lexsort((*(-rows.T[::-1]), -ability))
    surprising = _surprise(rows, ability, difficulty[order])
    return Scalogram(
        items=tuple(scores.items[i] for i in order),
        answers=tuple(tuple(row) for row in rows[turn].tolist()),
        surprising=tuple(tuple(row) for row in surprising[turn].tolist()),
        persons=tuple(number[turn].tolist()),
        ability=tuple(ability[turn].tolist()),
        reproducibility=_reproduce(rows, number),
    )


def _check_size(items: int, rows: int = 1) -> None:
    if items > MOST_ITEMS or not 1 <= rows <= MOST_ROWS:
        raise BadUsage(
            f"a scalogram shows up to {MOST_ITEMS} items and {MOST_ROWS} different rows of "
            f"answers, found {items} and {rows if items <= MOST_ITEMS else 'more'}; select items "
            "or persons"
        )


def _surprise(rows: Any, ability: FloatArray, difficulty: FloatArray) -> BoolArray:
    chance = expit(ability[:, None] - difficulty)
    residual = (rows - chance) / np.sqrt(chance * (1 - chance))
    return np.asarray((rows >= 0) & (np.abs(residual) >= SURPRISING))


def _reproduce(rows: Any, number: Any) -> float:
    """Compare each row with the same number right on its easiest items."""
    answered = rows >= 0
    right = (rows == 1).sum(axis=1, keepdims=True)
    ideal = answered & (np.cumsum(answered, axis=1) <= right)
    errors = (answered & (ideal != (rows == 1))).sum(axis=1)
    return float(1 - (errors * number).sum() / (answered.sum(axis=1) * number).sum())
