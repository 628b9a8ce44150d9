"""What the answers say before any model: how often each was given, and the points of each person.

In: answers. Out: :class:`AnsweredItem` for each item, with answers called as the file calls them,
and :class:`PersonPoints` of the persons with their names. Confidential.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import NamedTuple

import numpy as np

from discreet.answers.choices import Choices
from discreet.answers.responses import Responses
from discreet.coding.reading import Reading, label_scores
from discreet.types import Int8Array

#: Persons whose answers are counted at a time.
BLOCK = 50_000


class AnswerBar(NamedTuple):
    """How often an answer was given, as the file writes it; ``is_right`` by the key, or as 1."""

    label: str
    times: int
    is_right: bool = False


class AnsweredItem(NamedTuple):
    """How many answered an item, the mean of their scores, and how often each answer was given.

    ``steps`` is the highest score; ``is_reversed`` says that it was turned round when it was read.
    """

    name: str
    answers: int
    mean: float
    bars: tuple[AnswerBar, ...] = ()
    steps: int = 1
    is_reversed: bool = False

    @property
    def share(self) -> float:
        """The mean score in per cent of the highest one."""
        return 100 * self.mean / self.steps

    @property
    def strongest(self) -> str:
        """The wrong answer that was chosen most often; empty where nobody knows the right one."""
        wrong = [bar for bar in self.bars if not bar.is_right and bar.times]
        is_known = any(bar.is_right for bar in self.bars)
        return max(wrong, key=lambda bar: bar.times).label if is_known and wrong else ""

    @property
    def coded_mean(self) -> float:
        """The mean of the answers as the file has them; NaN where they are words."""
        try:
            total = sum(float(bar.label) * bar.times for bar in self.bars)
        except ValueError:
            return nan
        return total / self.answers if self.answers else nan


def count_answers(responses: Responses) -> tuple[AnsweredItem, ...]:
    """Count every answer to every item.

    Examples
    --------
    >>> import numpy as np
    >>> answers = Responses.from_array(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, np.nan]]))
    >>> [(item.answers, round(item.share)) for item in count_answers(answers)]
    [(3, 67), (2, 50)]
    """
    steps = max(responses.steps)
    times = np.zeros((steps + 1, responses.n_items), dtype=np.int64)
    for start in range(0, responses.n_persons, BLOCK):
        block = responses.rows(start, min(start + BLOCK, responses.n_persons))
        times += [(block == score).sum(axis=0) for score in range(steps + 1)]
    answers, score = times.sum(axis=0), np.arange(steps + 1) @ times
    means = np.divide(score, answers, where=answers > 0, out=np.full(len(answers), np.nan))
    bars = _count_choices(responses.choices)
    turned = {*(responses.reading.reverse or ())}
    for number, name in enumerate(responses.items):
        if name not in bars:
            labels = label_scores(responses.reading, name, responses.steps[number])
            own = tuple(
                AnswerBar(label, int(times[value, number]), steps == value == 1)
                for value, label in enumerate(labels)
            )
            bars[name] = own[::-1] if name in turned else own
    return tuple(
        AnsweredItem(name, int(answers[n]), float(means[n]), bars[name], top, name in turned)
        for n, (name, top) in enumerate(zip(responses.items, responses.steps, strict=True))
    )


def _count_choices(choices: Choices | None) -> dict[str, tuple[AnswerBar, ...]]:
    """Return how often each option was chosen, of the items that have a key."""
    if choices is None:
        return {}
    return {
        name: tuple(
            AnswerBar(option, int((choices.chosen[:, n] == number).sum()), choices.right[n][number])
            for number, option in enumerate(choices.options[n])
        )
        for n, name in enumerate(choices.items)
    }


def find_step_worth(reading: Reading, name: str, top: int) -> float:
    """Return what one step of an item is worth in the file, as half a point; 1 of anything else.

    Examples
    --------
    >>> find_step_worth(Reading(categories=(("0", "0.5", "1"),)), "Q1", 2)
    0.5
    """
    try:
        values = [float(label.replace(",", ".")) for label in label_scores(reading, name, top)]
    except ValueError:
        return 1.0
    unit = values[-1] / top
    return unit if 0 < unit < 1 and values == [unit * score for score in range(top + 1)] else 1.0


@dataclass(frozen=True)
class PersonPoints:
    """The points of each person.

    Attributes
    ----------
    names
        As the file names them: by a column of names, the id, or the number of the row from 1.
    groups
        The columns of groups, such as the class.
    points, possible
        The sum of the scores, and the most that the answered items could give; half points are
        halves.
    """

    names: Sequence[str]
    groups: Mapping[str, Sequence[str]]
    points: Sequence[float]
    possible: Sequence[float]

    @property
    def digits(self) -> int:
        """Decimals that points have."""
        return 0 if all(float(one).is_integer() for one in self.points) else 1

    @property
    def percent(self) -> list[float]:
        """The points in per cent of what was possible."""
        pairs = zip(self.points, self.possible, strict=True)
        return [100 * points / possible if possible else nan for points, possible in pairs]


def add_points(responses: Responses, names: Sequence[str] = ()) -> PersonPoints:
    """Add up the points of each person; ``names`` are shown in the place of ids."""
    pairs = zip(responses.items, responses.steps, strict=True)
    unit = np.array([find_step_worth(responses.reading, name, top) for name, top in pairs])
    unit = unit.astype(np.int64) if (unit == 1).all() else unit
    top = np.array(responses.steps) * unit
    points, possible = np.zeros((2, responses.n_persons), dtype=unit.dtype)
    for start in range(0, responses.n_persons, BLOCK):
        rows = slice(start, min(start + BLOCK, responses.n_persons))
        block: Int8Array = responses.rows(rows.start, rows.stop)
        points[rows] = np.where(block >= 0, block, 0) @ unit
        possible[rows] = (block >= 0) @ top
    numbers = [str(row + 1) for row in range(responses.n_persons)]
    ids = [*responses.persons] if responses.has_ids else numbers
    groups = {name: [*map(str, labels)] for name, labels in responses.groups.items()}
    return PersonPoints(names or ids, groups, points.tolist(), possible.tolist())


class ChosenAnswer(NamedTuple):
    """What a person answered to an item, the right answer where one is known, and the points."""

    item: str
    chosen: str
    right: str
    points: float | None
    possible: float


def list_chosen(responses: Responses, row: int) -> list[ChosenAnswer]:
    """Return the answers of one person as the file has them; blank where there is none."""
    (scores,) = responses.rows(row, row + 1).tolist()
    choices, listed = responses.choices, []
    columns = {name: n for n, name in enumerate(choices.items)} if choices else {}
    for name, score, top in zip(responses.items, scores, responses.steps, strict=True):
        unit = find_step_worth(responses.reading, name, top)
        points = (score if unit == 1 else score * unit) if score >= 0 else None
        if choices and name in columns:
            options, right = choices.options[columns[name]], choices.right[columns[name]]
            code = int(choices.chosen[row, columns[name]])
            key = " | ".join(one for one, is_right in zip(options, right, strict=True) if is_right)
            chosen = options[code] if code >= 0 else ""
        else:
            key = ""
            chosen = label_scores(responses.reading, name, top)[score] if score >= 0 else ""
        possible = top if unit == 1 else top * unit
        listed.append(ChosenAnswer(name, chosen, key, points, possible))
    return listed
