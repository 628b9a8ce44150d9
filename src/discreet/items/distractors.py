"""Distractor analysis: how many persons chose each option, and how able they were.

In: answers that were read with a key, and their estimate. Out: :class:`Distractors`, a row for
each option of each item. A wrong option that attracts abler persons than those who answered
otherwise is the usual sign of a wrong key or of two right answers. Confidential.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from discreet.answers.choices import Choices
from discreet.answers.logistic import logistic
from discreet.answers.responses import Responses
from discreet.errors import BadUsage
from discreet.models.calibrate import calibrate
from discreet.persons.scoring import score
from discreet.results.estimate import Estimate
from discreet.schema import Along, Count, Logit, Proportion
from discreet.tabular import Columns, Tabular, list_field_columns
from discreet.text import name_some
from discreet.types import FloatArray, Vector

#: Groups of persons of similar ability in a curve of shares.
GROUPS = 5
#: An option chosen by fewer is never flagged: their mean ability is chance.
FEW_CHOOSERS = 5
#: 95% point of the normal distribution.
ONE_SIDED = 1.6448536269514722

#: Cells looked at together: 8 MB of float64.
CHUNK_CELLS = 1 << 20
#: Below, a person answered nothing else.
NO_INFORMATION = 1e-9

ABLER = "attracts abler persons"
#: Of groups of persons: mean ability, share who chose the option, persons.
Share = tuple[tuple[Logit, Proportion, Count], ...]


@dataclass(frozen=True)
class Distractors(Tabular):
    """A row for each option of each item with a key. Confidential.

    Attributes
    ----------
    item, option, right
        Which one, and whether the key says that it is right.
    chosen, share
        How many persons chose it, and their share of those who answered the item.
    ability
        Their mean ability in logits; NaN if nobody chose it.
    point_biserial
        Correlation of choosing it with ability on the *other* items, over the persons who
        answered the item. With the item itself included, whoever is wrong would look less able
        for that alone. The other items' ability is that on all items less one step of Newton's
        method, which is what a single item contributes.
    flag
        "attracts abler persons" for a wrong option with a positive point-biserial correlation
        beyond chance (one-sided 5%); else empty.
    curve
        Shares in groups of persons, from the least to the most able: mean ability, share,
        persons.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from discreet import analysis
    >>> from discreet.answers.responses import Responses
    >>> table = pa.table({"Q1": ["A", "A", "B", "A"], "Q2": ["C", "D", "C", "C"]})
    >>> chosen = analysis.analyse_distractors(Responses.from_dataframe(table, key="AC"))
    >>> chosen.option, chosen.share
    (('A', 'B', 'C', 'D'), (0.75, 0.25, 0.75, 0.25))
    """

    item: tuple[str, ...]
    option: Annotated[tuple[str, ...], Along("item")]
    right: Annotated[tuple[bool, ...], Along("item")]
    chosen: Annotated[tuple[Count, ...], Along("item")]
    share: Annotated[tuple[float, ...], Along("item")]
    ability: Annotated[tuple[float, ...], Along("item")]
    point_biserial: Annotated[tuple[float, ...], Along("item")]
    flag: Annotated[tuple[str, ...], Along("item")]
    curve: Annotated[tuple[Share, ...], Along("item")]

    @property
    def flagged(self) -> tuple[int, ...]:
        """Numbers of the rows with a flag."""
        return tuple(row for row, flag in enumerate(self.flag) if flag)

    def to_dict(self) -> Columns:
        """One list per column: item, option, right, chosen, share, ability, point_biserial, flag.

        Numbers that do not exist are NaN.
        """
        return list_field_columns(
            self, "item", "option", "right", "chosen", "share", "ability", "point_biserial", "flag"
        )


def analyse_distractors(responses: Responses, estimate: Estimate | None = None) -> Distractors:
    """Tell for every option who chose it. Confidential.

    Parameters
    ----------
    responses
        Answers that were read with a key (``read_responses(path, key=...)``), or, with ``key=``,
        a file or a data frame of them.
    estimate
        Their calibration; fitted when left out.
    reading
        The keywords of :func:`discreet.read_responses`.

    Raises
    ------
    BadUsage
        If the answers were read without a key.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from discreet.answers.responses import Responses
    >>> table = pa.table({"Q1": ["A", "A", "B", "A"], "Q2": ["C", "D", "C", "C"]})
    >>> found = analyse_distractors(Responses.from_dataframe(table, key="AC"))
    >>> found.option, found.chosen
    (('A', 'B', 'C', 'D'), (3, 1, 3, 1))
    """
    choices = responses.choices
    if choices is None:
        raise BadUsage(
            "these answers were read without a key, so what was chosen is not known; read them "
            "with key= (--key), from a file or a data frame that holds the chosen options"
        )
    calibration = estimate or calibrate(responses)
    ability = score(responses, calibration).ability
    information = _inform(responses, calibration, ability)
    rows = []
    for number, item in enumerate(choices.items):
        others = _leave_out(responses, calibration, item, ability, information)
        rows += _tell(choices, number, ability, others)
    return Distractors(*zip(*rows, strict=True))


def _inform(source: Responses, estimate: Estimate, ability: FloatArray) -> FloatArray:
    """Return the information of each person's answers at the person's ability."""
    total = np.zeros(source.n_persons)
    difficulty = _difficulties(source, estimate)
    step = max(1, CHUNK_CELLS // source.n_items)
    for start in range(0, source.n_persons, step):
        cells = source.rows(start, start + step)
        expected = _expect(ability[start : start + step, None], difficulty)
        held = np.where((cells >= 0) & np.isfinite(difficulty), expected * (1 - expected), 0.0)
        total[start : start + step] = held.sum(axis=1)
    return total


def _leave_out(
    source: Responses, estimate: Estimate, item: str, ability: FloatArray, information: FloatArray
) -> FloatArray:
    """Return abilities on the other items; NaN where there are none."""
    answer = source.select([item]).to_array()[:, 0]
    difficulty = _difficulties(source, estimate)[source.items.index(item)]
    if not np.isfinite(difficulty):  # it contributed nothing
        return ability
    expected = _expect(ability, difficulty)
    remaining = information - expected * (1 - expected)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = ability - (answer - expected) / remaining
    return np.where((answer >= 0) & (remaining > NO_INFORMATION), moved, np.nan)


def _difficulties(source: Responses, estimate: Estimate) -> FloatArray:
    difficulty_of = dict(zip(estimate.items, estimate.difficulty.tolist(), strict=True))
    return np.array([difficulty_of.get(name, np.nan) for name in source.items])


def _expect(ability: FloatArray, difficulty: FloatArray | float) -> FloatArray:
    return logistic(ability - difficulty)


def _tell(
    choices: Choices, number: int, ability: FloatArray, others: FloatArray
) -> list[tuple[Any, ...]]:
    """Return the rows of one item."""
    chosen = choices.chosen[:, number]
    usable = (chosen >= 0) & np.isfinite(ability)
    mine, able, apart = chosen[usable], ability[usable], others[usable]
    cuts = np.quantile(able, np.arange(1, GROUPS) / GROUPS) if len(able) else np.zeros(0)
    group = np.searchsorted(cuts, able, side="left")
    rows = []
    for code, name in enumerate(choices.options[number]):
        took = mine == code
        count, right = int(took.sum()), choices.right[number][code]
        correlation = _correlate(took, apart)
        rows.append((
            choices.items[number], name, right, count,
            count / len(mine) if len(mine) else float("nan"),
            float(able[took].mean()) if count else float("nan"),
            correlation,
            ABLER if not right and _is_abler(correlation, count, len(mine)) else "",
            _share(took, able, group),
        ))  # fmt: skip
    return rows


def _correlate(took: Vector, ability: FloatArray) -> float:
    took, ability = took[np.isfinite(ability)], ability[np.isfinite(ability)]
    if len(ability) < 2 or took.all() or not took.any() or np.ptp(ability) == 0:
        return float("nan")
    return float(np.corrcoef(took, ability)[0, 1])


def _is_abler(correlation: float, chosen: int, answered: int) -> bool:
    return chosen >= FEW_CHOOSERS and correlation * np.sqrt(answered) > ONE_SIDED


def _share(took: Vector, ability: FloatArray, group: Vector) -> Share:
    return tuple(
        (float(ability[mine].mean()), float(took[mine].mean()), int(mine.sum()))
        for number in range(GROUPS)
        if (mine := group == number).any()
    )


# The picture: what stands where. It is drawn by ``output/figures/`` and ``report/drawings.py``.


@dataclass(frozen=True)
class OptionMap:
    """The shares of an item's options among persons of rising ability.

    Attributes
    ----------
    item
        Which one.
    options, right, flagged
        What was chosen, whether it is right, and whether a wrong one attracts abler persons.
    shares
        Of each option: mean ability of a group, its share, persons.
    """

    item: str
    options: tuple[str, ...]
    right: tuple[bool, ...]
    flagged: tuple[bool, ...]
    shares: tuple[Share, ...]

    @property
    def span(self) -> tuple[float, float]:
        """From where to where abilities are drawn."""
        abilities = [point[0] for curve in self.shares for point in curve] or [0.0]
        return min(abilities) - 0.25, max(abilities) + 0.25


def option_map(distractors: Distractors, item: str) -> OptionMap:
    """Gather the options of one item, the most chosen first."""
    rows = [row for row, name in enumerate(distractors.item) if name == item]
    if not rows:
        keyed = list(dict.fromkeys(distractors.item))
        raise BadUsage(
            f"no options are known of an item {item!r}; items with a key are {name_some(keyed)}"
        )
    rows.sort(key=lambda row: (not distractors.right[row], -distractors.chosen[row]))
    return OptionMap(
        item,
        tuple(distractors.option[row] for row in rows),
        tuple(distractors.right[row] for row in rows),
        tuple(bool(distractors.flag[row]) for row in rows),
        tuple(distractors.curve[row] for row in rows),
    )


def option_maps(distractors: Distractors, limit: int) -> list[OptionMap]:
    """Return the pictures of items with a flagged option, then of others, not more than these."""
    flagged = [distractors.item[row] for row in distractors.flagged]
    names = list(dict.fromkeys([*flagged, *distractors.item]))[:limit]
    return [option_map(distractors, name) for name in names]
