"""Adaptive testing: item information, the next item to ask, and a session.

In: a calibration (an estimate, a release, a bank, a mapping from item to difficulty) and the
answers of one person so far. Out: the next item to ask, an ability and how sure it is. About one
person, and so confidential, except for the information of items. ::

    session = discreet.adaptive.start(bank, target_se=0.3)
    while session.item is not None:
        session = session.answer(ask(session.item))
    session.ability, session.se

Difficulties from few persons are uncertain, and a session finds those whose error brought them near
the ability: ask from ``shrink(bank)`` instead of ``bank`` then.

Items may have several steps: then an answer is a category, and the item that tells most is the one
with the largest variance of scores at the ability. Answers that were collected so must be
calibrated with the method ``marginal``: earlier answers chose the later items.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.answers.responses import Responses
from discreet.checking import as_numbers, check_exports
from discreet.choices import ScoreMethod
from discreet.errors import BadUsage
from discreet.models.item_parameters import KnownItems, known_thresholds
from discreet.persons.measures import NormalPrior
from discreet.persons.scoring import score_answers
from discreet.results.calibrated import Calibration
from discreet.results.chances import score_variances
from discreet.scales.bank import Bank, shrink
from discreet.tabular import Columns, Tabular
from discreet.text import name_some
from discreet.types import BoolArray, FloatArray

__all__ = [
    "AdaptiveSession",
    "Exposure",
    "Rules",
    "item_information",
    "next_item",
    "shrink",
    "start",
]

REACHED, LONG_ENOUGH, NOTHING_LEFT = "standard error reached", "number of items", "no item left"


def item_information(calibration: Calibration, ability: npt.ArrayLike) -> FloatArray:
    """Return the information that an answer to each item would give about an ability.

    Parameters
    ----------
    calibration
        As for :func:`discreet.score`.
    ability
        One ability, or several.

    Returns
    -------
    numpy.ndarray
        ``float[item]``, or ``float[ability, item]``, in the order of the calibration: the chance
        of a right answer times that of a wrong one, at most 1/4; of an item with steps the
        variance of its score. NaN for an item without a difficulty.

    Examples
    --------
    >>> item_information({"easy": -2.0, "right": 0.0, "hard": 2.0}, 0.0).round(3).tolist()
    [0.105, 0.25, 0.105]
    """
    bank = known_thresholds(calibration)
    theta = as_numbers("ability", ability)
    if theta.ndim > 1 or not np.isfinite(theta).all():
        raise BadUsage("ability must be a finite number, or a list of them")
    source: Any = getattr(calibration, "estimate", calibration)
    names = list(source) if isinstance(source, Mapping) else source.items
    column_of = {name: column for column, name in enumerate(map(str, names))}
    information = np.full((*theta.shape, len(column_of)), np.nan)
    columns = [column_of[name] for name in bank.items]
    information[..., columns] = score_variances(theta, bank.thresholds)
    return information


@dataclass(frozen=True)
class Exposure:
    """How often items were given so far, and how often they may be.

    An item that was given to ``rate`` of the persons or more has to rest until it was not, so
    that no item is ever given more than ``rate * sessions + 1`` times (Revuelta and Ponsoda 1998).

    Attributes
    ----------
    rate
        The largest share of persons who may get an item.
    sessions
        Persons so far.
    given
        To how many of them each item was given.

    Examples
    --------
    >>> from discreet.adaptive import Exposure
    >>> Exposure(0.5).after(["Q1"]).allows("Q1")
    False
    """

    rate: float
    sessions: int = 0
    given: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise BadUsage(f"the exposure rate must lie between 0 and 1, found {self.rate}")

    def allows(self, item: str) -> bool:
        """Say whether an item may be given to one more person."""
        count = self.given.get(item, 0)
        return count == 0 or count < self.rate * self.sessions

    def after(self, items: Collection[str]) -> Exposure:
        """Return the exposure after one more person, who got these items."""
        counts = Counter(self.given)
        counts.update(items)
        return replace(self, sessions=self.sessions + 1, given=dict(counts))


@dataclass(frozen=True)
class Rules:
    """What else decides about the next item, besides its information.

    Attributes
    ----------
    content
        The content area of each item; with it ``shares`` and ``at_most`` mean something.
    shares
        The share of the test that each area should have; the next item comes from the area
        that lags furthest behind (Kingsbury and Zara 1989). Areas without a share get none.
    at_most
        How many items of an area a person may get.
    among
        Draw at random among that many of the most informative items, so that not everybody
        begins with the same ones.
    exposure
        How often items were given before, and how often they may be.

    Examples
    --------
    >>> from discreet.adaptive import Rules
    >>> Rules(content={"Q1": "algebra"}, at_most={"algebra": 1}).allowed(("Q1",), ()).tolist()
    [True]
    """

    content: Mapping[str, str] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    at_most: Mapping[str, int] = field(default_factory=dict)
    among: int = 1
    exposure: Exposure | None = None

    def __post_init__(self) -> None:
        if self.among < 1:
            raise BadUsage(f"among must be 1 or more, found {self.among}")
        areas = set(self.content.values())
        unknown = [area for area in (*self.shares, *self.at_most) if area not in areas]
        if unknown:
            raise BadUsage(
                f"content has no item of the area {unknown[0]!r} (it has: "
                f"{name_some(sorted(areas)) or 'none'}), so its share or limit means nothing"
            )
        if any(not share > 0 for share in self.shares.values()):
            raise BadUsage("a share must be positive; leave out areas that shall have no items")

    def allowed(self, items: tuple[str, ...], used: Collection[str]) -> BoolArray:
        """Say which items may come next, after these."""
        gone = set(used)
        free = np.array([name not in gone for name in items], dtype=bool)
        if self.exposure is not None:
            free &= np.array([self.exposure.allows(name) for name in items], dtype=bool)
        if self.at_most or self.shares:
            free &= self._areas(items, used, free)
        return free

    def _areas(self, items: tuple[str, ...], used: Collection[str], free: BoolArray) -> BoolArray:
        """Say which items are of an area that may come next."""
        had = Counter(self.content.get(name) for name in used)
        area = [self.content.get(name) for name in items]
        full = {name for name, limit in self.at_most.items() if had[name] >= limit}
        fits = np.array([topic not in full for topic in area], dtype=bool)
        if not self.shares:
            return fits
        open_areas = {area[k] for k in np.flatnonzero(free & fits)} & set(self.shares)
        if not open_areas:
            return np.zeros(len(items), dtype=bool)
        behind = min(open_areas, key=lambda name: (had[name] / self.shares[str(name)], str(name)))
        return np.array(
            [topic == behind and fit for topic, fit in zip(area, fits, strict=True)], dtype=bool
        )


def next_item(
    calibration: Calibration,
    ability: float,
    *,
    used: Collection[str] = (),
    rules: Rules | None = None,
    rng: np.random.Generator | None = None,
) -> str | None:
    """Return the most informative item at an ability, among those that may come next.

    Parameters
    ----------
    calibration
        As for :func:`discreet.score`. Of a bank only items that did not drift are asked.
    ability
        The ability as far as known.
    used
        Items that were asked before.
    rules
        Content, exposure and a random draw among the best.
    rng
        Source of that draw.

    Returns
    -------
    str or None
        None where no item is left that the rules allow.

    Examples
    --------
    >>> next_item({"easy": -2.0, "middle": 0.1, "hard": 2.0}, 0.0, used=["middle"])
    'easy'
    """
    bank = _askable(calibration)
    _check_used(used, bank.items)
    if not np.isfinite(ability):
        raise BadUsage(f"ability must be a finite number, found {ability}")
    return _choose(bank.items, bank.thresholds, float(ability), used, rules or Rules(), rng)


def _askable(calibration: Calibration) -> KnownItems:
    return known_thresholds(calibration.active() if isinstance(calibration, Bank) else calibration)


def _check_used(used: Collection[str], items: tuple[str, ...]) -> None:
    unknown = sorted(set(used) - set(items))
    if unknown:
        raise BadUsage(
            f"the calibration has no difficulty for items that were used: {name_some(unknown)}; "
            "items are matched by name"
        )


def _choose(
    items: tuple[str, ...],
    thresholds: FloatArray,
    ability: float,
    used: Collection[str],
    rules: Rules,
    rng: np.random.Generator | None,
) -> str | None:
    free = np.flatnonzero(rules.allowed(items, used))
    if not len(free):
        return None
    if thresholds.shape[1] == 1:
        # The nearest difficulty has the most information; the order is the same, without rounding.
        loss = np.abs(thresholds[free, 0] - ability)
    else:
        loss = -score_variances(ability, thresholds[free])
    order = free[np.argsort(loss, kind="stable")][: rules.among]
    draw = 0 if len(order) == 1 else (rng or np.random.default_rng()).integers(len(order))
    return items[int(order[draw])]


@dataclass(frozen=True, eq=False)
class AdaptiveSession(Tabular):
    """One person who is asked one item after the other. Confidential.

    Attributes
    ----------
    item
        The item to ask now; None when the session is over, and ``stopped`` says why.
    items, right
        What was asked so far, and the answers; with steps the categories.
    ability, se
        As :func:`discreet.score` estimates them from these answers; before the first answer the
        place where the session starts, and an infinite error (with a prior: its mean and SD).
    path, path_se
        Ability and error after each answer.
    stopped
        None while it goes on.
    categories
        Which answers there are to items with steps.

    Examples
    --------
    >>> import discreet
    >>> session = discreet.adaptive.start({"easy": -1.0, "hard": 1.0}, max_items=1)
    >>> session.answer(True).stopped
    'number of items'
    """

    calibration: Mapping[str, float | tuple[float, ...]]
    target_se: float | None
    max_items: int | None
    rules: Rules
    method: str
    prior: NormalPrior | None
    ability: float
    se: float
    rng: np.random.Generator | None = None
    item: str | None = None
    stopped: str | None = None
    items: tuple[str, ...] = ()
    right: tuple[bool | int, ...] = ()
    path: tuple[float, ...] = ()
    path_se: tuple[float, ...] = ()
    categories: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def answer(self, right: bool | int, item: str | None = None) -> AdaptiveSession:
        """Return the session after an answer to the item that was asked, or to another one.

        Parameters
        ----------
        right
            Whether the answer was right; of an item with steps the category.
        item
            Where something else was asked than ``session.item``.
        """
        answered_item = self.item if item is None else item
        if answered_item is None:
            raise BadUsage(f"the session is over ({self.stopped}); start another one")
        _check_used([answered_item], tuple(self.calibration))
        if answered_item in self.items:
            raise BadUsage(f"item '{answered_item}' was answered before in this session")
        accepted = self._accept(answered_item, right)
        items, rights = (*self.items, answered_item), (*self.right, accepted)
        codes = [self._code(name, one) for name, one in zip(items, rights, strict=True)]
        b = _list_thresholds([self.calibration[name] for name in items])
        ability, se = score_answers(b, codes, method=self.method, prior=self.prior)
        after = replace(
            self, items=items, right=rights, ability=ability, se=se,
            path=(*self.path, ability), path_se=(*self.path_se, se),
        )  # fmt: skip
        return after.advance()

    def _accept(self, item: str, answer: bool | int) -> int:
        """Return the answer to an item, or say which answers there are."""
        if item not in self.categories:
            if answer not in (0, 1):
                raise BadUsage(f"an answer is right (True) or wrong (False), found {answer!r}")
            return bool(answer)
        if answer not in self.categories[item]:
            categories = ", ".join(map(str, self.categories[item]))
            raise BadUsage(f"item '{item}' has the categories {categories}, found {answer!r}")
        return int(answer)

    def _code(self, item: str, answer: int) -> int:
        """Return which of the item's steps an answer reaches."""
        return self.categories[item].index(answer) if item in self.categories else int(answer)

    def advance(self) -> AdaptiveSession:
        """Return the session with the item to ask now, or with the reason to stop."""
        stopped, item = None, None
        if self.target_se is not None and self.se <= self.target_se:
            stopped = REACHED
        elif self.max_items is not None and len(self.items) >= self.max_items:
            stopped = LONG_ENOUGH
        else:
            names, b = tuple(self.calibration), _list_thresholds(list(self.calibration.values()))
            item = _choose(names, b, self.ability, self.items, self.rules, self.rng)
            stopped = NOTHING_LEFT if item is None else None
        return replace(self, item=item, stopped=stopped)

    def to_responses(self) -> Responses:
        """Return the answers as those of one person, for :func:`discreet.predict_scores`."""
        codes = {name: self.categories[name] for name in self.items if name in self.categories}
        words: Any = {}
        if codes:
            steps = {name: own[-1] - own[0] for name, own in codes.items()}
            words = {"steps": steps, "lowest": min(own[0] for own in codes.values())}
        answers = np.array([[int(answer) for answer in self.right]])
        return Responses.from_array(answers, self.items, **words)

    def to_dict(self) -> Columns:
        """One row per answer: item, difficulty (location), right, and ability and se after it."""
        return {
            "item": list(self.items),
            "difficulty": [float(np.mean(self.calibration[name])) for name in self.items],
            "right": list(self.right),
            "ability": list(self.path),
            "se": list(self.path_se),
        }


def _list_thresholds(values: Sequence[float | tuple[float, ...]]) -> FloatArray:
    """Put difficulties, and thresholds of items with steps, side by side."""
    rows = [np.atleast_1d(value) for value in values]
    out = np.full((len(rows), max(map(len, rows), default=1)), np.nan)
    for padded, row in zip(out, rows, strict=True):
        padded[: len(row)] = row
    return out


def _name_values(bank: KnownItems) -> dict[str, float | tuple[float, ...]]:
    """Return the difficulty of every item, or its thresholds where it has several."""
    rows = [row[~np.isnan(row)].tolist() for row in bank.thresholds]
    values = [row[0] if len(row) == 1 else tuple(row) for row in rows]
    return dict(zip(bank.items, values, strict=True))


def start(
    calibration: Calibration,
    *,
    target_se: float | None = None,
    max_items: int | None = None,
    ability: float | None = None,
    rules: Rules | None = None,
    method: ScoreMethod = "warm",
    prior: NormalPrior | None = None,
    rng: np.random.Generator | None = None,
) -> AdaptiveSession:
    """Begin an adaptive session; ``session.item`` is the first item to ask.

    Parameters
    ----------
    calibration
        As for :func:`discreet.score`. Of a bank only items that did not drift are asked.
    target_se
        Stop when the standard error of the ability is at most this, in logits.
    max_items
        Stop after that many items; with neither, all items are asked.
    ability
        Where to start; by default at the prior's mean, without one at the median difficulty.
    rules
        Content, exposure and a random draw among the best.
    method, prior
        How the ability is estimated, as for :func:`discreet.score`: ``"warm"``, or
        ``"posterior"`` with a prior (standard normal by default).
    rng
        Source of the draws among the best.

    Examples
    --------
    >>> session = start({"easy": -2.0, "middle": 0.0, "hard": 2.0}, max_items=2)
    >>> session.item
    'middle'
    >>> session = session.answer(True).answer(False)
    >>> session.items, session.stopped
    (('middle', 'hard'), 'number of items')
    """
    bank = _askable(calibration)
    if target_se is not None and not target_se > 0:
        raise BadUsage(f"target_se must be positive, in logits; found {target_se}")
    if max_items is not None and max_items < 1:
        raise BadUsage(f"max_items must be 1 or more, found {max_items}")
    if method not in ("warm", "posterior"):
        raise BadUsage(
            f"method must be 'warm' or 'posterior', found {method!r}: after the first answer "
            "there is no maximum of the likelihood"
        )
    if prior is not None and method != "posterior":
        raise BadUsage("a prior belongs to the method 'posterior'")
    if method == "posterior" and prior is None:
        prior = NormalPrior(0.0, 1.0)
    location = np.nanmean(bank.thresholds, axis=1)
    here = float(np.median(location)) if prior is None else prior.mean
    return AdaptiveSession(
        calibration=_name_values(bank),
        target_se=target_se,
        max_items=max_items,
        rules=rules or Rules(),
        method=method,
        prior=prior,
        ability=here if ability is None else float(ability),
        se=float("inf") if prior is None else prior.sd,
        rng=rng,
        categories={
            name: codes
            for name, codes in zip(bank.items, bank.kept, strict=True)
            if codes != (0, 1)
        },
    ).advance()


check_exports(globals(), __all__)
