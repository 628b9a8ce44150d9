"""Which raters and other levels are beyond chance, by ratings that are drawn again.

In: ratings, what a facets model says of each, and a way to fit it again. Out: levels whose ratings
the others foretell too little or too well, levels that differ from the mean, and the share of
persons with unexpected ratings. Confidential.

Mean squares given the totals hardly see a rater who marks at random, whose scores say nothing
about the other scores. What sees it is the surprise (:mod:`discreet.items.raters.surprise`), less
the mean of the facet's levels where these are four or more. Its law is that of ratings drawn from
the model with abilities from their fitted normal law; each drawing moves thresholds, severities and
abilities as a refit would. Of all levels and items together the largest surprise is beyond chance
in 3% of sound sets, the smallest in 1%. The share of persons with a small chance
(:mod:`discreet.items.cutoffs`), from ratings drawn given the totals, has the last 1% of 5%.

Who differs from the mean is said by the same drawings: the largest distance of any level of a facet
from its true measure, in standard errors that each drawing has anew. So neither the correlation of
the measures nor the few persons of a rater make the limits too wide or too narrow.

A rater who marks at random spoils the fit of others, and draws the steps together. So the worst one
is named, its ratings are taken out, the model is fitted again, and the others are tested again,
until none is beyond.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr

from discreet.answers.ratings import Ratings
from discreet.errors import DiscreetError
from discreet.items.cutoffs import FEW, FEWEST, PersonShares, SmallChances, take_largest
from discreet.items.raters.laws import ITEM, RatingLaws
from discreet.items.raters.surprise import Surprise, tabulate_chances
from discreet.models.facets.refit import Refit
from discreet.results.estimate import Estimate
from discreet.results.limits import FIT_HIGH, FIT_LOW
from discreet.types import FloatArray

#: With fewer levels than this, a rater who marks at random cannot be told from the others.
FEWEST_TOLD = 4
#: Levels that are named.
MOST_NAMED = 10
#: Shares of sound sets in which a level is called erratic or too predictable, and persons are.
ERRATIC, PREDICTABLE, UNEXPECTED = 0.03, 0.01, 0.01
#: Ratings up to which 199 sets, and up to which 99 sets are drawn: a second, and some seconds.
FEW_RATINGS, MOST_RATINGS = 3_000, 100_000
#: Rounds towards the law of abilities: of the ratings, and of each set that is drawn.
LAW_ROUNDS, DRAWN_ROUNDS = 60, 2


@dataclass(frozen=True)
class Misfit:
    """A level (or of few the two worst) beyond a limit, without those that were found before.

    ``z`` is the surprise in standard deviations: positive where ratings are erratic.
    """

    facet: str
    levels: tuple[str, ...]
    z: float
    infit: float


@dataclass(frozen=True, eq=False)
class RatingLimits:
    """What is beyond chance.

    Attributes
    ----------
    z
        Surprise of all levels, facet after facet, in standard deviations; NaN of very many ratings.
    limits
        Below the first one ratings are too predictable, above the second one erratic.
    beyond
        Levels beyond.
    far_p
        Of all levels: the chance that any of the facet would be so many standard errors from the
        mean if none differed; NaN of items.
    person_p, persons
        Chance of each person's ratings, and the share of persons with a small one.
    sets
        How many sets were drawn.
    """

    z: FloatArray
    limits: tuple[float, float]
    beyond: npt.NDArray[np.bool_]
    far_p: FloatArray
    person_p: FloatArray
    persons: SmallChances | None
    sets: int


def simulate_limits(ratings: Ratings, estimate: Estimate, laws: RatingLaws) -> RatingLimits:
    """Draw ratings again; of very many ratings infit is held against a rule of thumb."""
    infit = np.concatenate([part[0] for part in laws.square_levels().values()])
    if len(laws.rows) > MOST_RATINGS:
        beyond = np.asarray((infit < FIT_LOW) | (infit > FIT_HIGH))
        unknown, nobody = np.full(len(infit), np.nan), np.full(len(laws.start) - 1, np.nan)
        far_p = _compare_many(estimate, len(infit))
        return RatingLimits(unknown, (np.nan, np.nan), beyond, far_p, nobody, None, 0)
    sets = FEW if len(laws.rows) <= FEW_RATINGS else FEWEST
    rng = np.random.default_rng(0)
    surprise, far_p = _Drawings.of(ratings, estimate, laws).draw(sets, rng)
    mean, sd = surprise.mean(axis=0), surprise.std(axis=0)
    z = (surprise - mean) / np.where(sd > 0, sd, np.inf)
    low = -take_rarest(take_largest(-z), PREDICTABLE)
    high = take_rarest(take_largest(z), ERRATIC)
    drawn = [*(laws.draw(rng) for _ in range(sets)), laws.score]
    shares = PersonShares.of(np.stack([laws.reach(score) for score in drawn]).astype(np.float32))
    persons = shares.conclude(take_rarest(shares.z.max(axis=0), UNEXPECTED))
    with np.errstate(invalid="ignore"):
        beyond = ((z[-1] > high) & (infit > 1)) | ((z[-1] < low) & (infit < 1))
    return RatingLimits(z[-1], (low, high), beyond, far_p, shares.list_chances(), persons, sets)


def take_rarest(largest: FloatArray, share: float) -> float:
    """Return the limit that this share of the sets exceeds."""
    return float(np.sort(largest)[len(largest) - 1 - int(share * len(largest))])


def _compare_many(estimate: Estimate, size: int) -> FloatArray:
    """Return the chances of distances from the mean by Bonferroni's inequality and Student's t."""
    parts = []
    for facet in estimate.facets.values():
        t = np.abs(facet.measure / facet.se)
        p = 2 * stdtr(np.where(facet.degrees > 0, facet.degrees, 1e9), -t)
        parts.append(np.minimum(1, p * max(1, np.isfinite(t).sum())))
    known = np.concatenate(parts) if parts else np.zeros(0)
    return np.concatenate([known, np.full(size - len(known), np.nan)])


@dataclass(frozen=True, eq=False)
class _Drawings:
    """Ratings that are drawn again under an estimate.

    ``nodes`` and ``columns`` are the columns of the steps and of the levels of every cell of items
    and levels; ``kept`` has the categories of every rating's item.
    """

    laws: RatingLaws
    estimate: Estimate
    refit: Refit
    surprise: Surprise
    nodes: Any
    columns: Any
    kept: Any

    @classmethod
    def of(cls, ratings: Ratings, estimate: Estimate, laws: RatingLaws) -> _Drawings:
        refit = Refit.of(ratings, estimate)
        design, rows = refit.design, laws.rows
        item = ratings.item[rows]
        places = np.column_stack([item, design.find_levels(ratings)[rows]])
        cells, cell = np.unique(places, axis=0, return_inverse=True)
        step = np.arange(max(design.steps))
        nodes = design.first_node[cells[:, :1]] + step
        nodes[step >= np.array(design.steps)[cells[:, 0], None]] = -1
        firsts = np.cumsum([0, *(len(own) for own in laws.levels.values())])
        codes = [
            laws.codes[name] + first
            for (name, own), first in zip(laws.levels.items(), firsts, strict=False)
            if len(own) > 1
        ]
        columns = np.ascontiguousarray(np.array(codes, np.int32).reshape(len(codes), len(rows)).T)
        found = cell.ravel(), columns, int(firsts[-1])
        surprise = Surprise.of(laws.start, *found, laws.ability, laws.error)
        widest = max(map(len, design.kept))
        kept = np.array([[*own, *[0] * (widest - len(own))] for own in design.kept], np.int32)
        return cls(laws, estimate, refit, surprise, nodes, cells[:, 1:], kept[item])

    def draw(self, sets: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return surprises of all sets, the real one last, and how far levels are from the mean."""
        wide, refit = self.surprise, self.refit
        table = self._tabulate(refit, wide.node)
        law = wide.fit_law(self.laws.score, table, wide.begin_law(), LAW_ROUNDS)
        surprise = wide.narrow(law)
        found, moves, errors = [], [], []
        for _ in range(sets):
            score = self._draw_scores(
                law.mean + rng.normal(0, law.variance**0.5, len(law.mean)), rng
            )
            drawn = refit.draw(self._put(score))
            table_then = self._tabulate(drawn, surprise.node)
            law_then = surprise.fit_law(score, table_then, law, DRAWN_ROUNDS)
            found.append(surprise.measure(score, table_then, law_then))
            moves.append(drawn.thresholds - refit.thresholds)
            errors.append(drawn.find_errors())
        table = self._tabulate(refit, surprise.node)
        found.append(surprise.measure(self.laws.score, table, law))
        return self._centre(np.stack(found)), self._compare(np.stack(moves), errors)

    def _centre(self, surprise: FloatArray) -> FloatArray:
        """Take the mean of each facet off, set by set.

        Few ratings a level spread all estimates, and those of drawn sets twice: then all ratings
        are a little more surprising than drawn ones.
        """
        place = 0
        for levels in self.laws.levels.values():
            own = surprise[:, place : place + len(levels)]
            if len(levels) >= FEWEST_TOLD:
                own -= np.nanmean(own, axis=1, keepdims=True)
            place += len(levels)
        return surprise

    def _tabulate(self, refit: Refit, node: FloatArray) -> FloatArray:
        values = np.append(refit.thresholds, np.nan)
        severity = values[self.columns].sum(axis=1, keepdims=True)
        return tabulate_chances(values[self.nodes] + severity, node)

    def _draw_scores(self, ability: FloatArray, rng: np.random.Generator) -> Any:
        """Return scores of persons with these abilities."""
        steps = ability[self.surprise.person, None] - self.laws.threshold
        odds = np.exp(np.cumsum(np.insert(np.where(np.isnan(steps), -np.inf, steps), 0, 0, 1), 1))
        reached = np.cumsum(odds, axis=1)
        below = reached < rng.random((len(reached), 1)) * reached[:, -1:]
        return below.sum(axis=1).astype(np.int32)

    def _put(self, score: Any) -> Any:
        """Return all scores of the ratings, with those that were drawn in their places."""
        every = self.refit.ratings.score.copy()
        every[self.laws.rows] = self.kept[np.arange(len(score)), score]
        return every

    def _compare(self, moves: FloatArray, errors: Any) -> FloatArray:
        """Return, by level, the chance of such a distance from the mean."""
        far_p, place = np.full(len(self.surprise.counts), np.nan), 0
        for (_, columns), facet in zip(
            self.refit.design.list_terms(), self.estimate.facets.values(), strict=True
        ):
            error = np.broadcast_to(moves.std(axis=0), moves.shape)[:, columns]
            if errors[0] is not None:
                # Of few persons the error is too small, as that of the estimate would be.
                factor = np.sqrt((facet.degrees + 1) / np.maximum(facet.degrees, 1))
                robust = np.stack(errors)[:, columns] * factor
                error = np.where(facet.degrees > 0, robust, error)
            with np.errstate(invalid="ignore", divide="ignore"):
                largest = take_largest(np.abs(moves[:, columns]) / error)
                beyond = largest[:, None] >= np.abs(facet.measure / facet.se)
            levels = slice(place, place + len(facet.levels))
            far_p[levels] = (1 + beyond.sum(axis=0)) / (1 + len(moves))
            far_p[levels][np.isnan(facet.measure / facet.se)] = np.nan
            place += len(facet.levels)
        return far_p


def find_misfits(
    ratings: Ratings,
    laws: RatingLaws,
    limits: RatingLimits,
    fit: Callable[[Ratings], tuple[Estimate, RatingLaws]],
) -> tuple[Misfit, ...]:
    """Name the worst level, take its ratings out, fit and test again, until none is beyond."""
    found: list[Misfit] = []
    while limits.beyond.any() and len(found) < MOST_NAMED:
        name, number, levels = _find_worst(laws, limits)
        place = sum(len(laws.levels[one]) for one in [*laws.levels][: [*laws.levels].index(name)])
        infit = float(laws.square_levels()[name][0][number])
        found.append(Misfit(name, levels, float(limits.z[place + number]), infit))
        if not limits.sets:  # of very many ratings nobody's are taken out
            limits.beyond[place + number] = False
            continue
        if name == ITEM or len(levels) > 1:
            break
        ratings = ratings.select(laws.rows[laws.codes[name] != number])
        try:
            estimate, laws = fit(ratings)
        except DiscreetError:  # what is left does not link the others
            break
        limits = simulate_limits(ratings, estimate, laws)
    return tuple(found)


def _find_worst(laws: RatingLaws, limits: RatingLimits) -> tuple[str, int, tuple[str, ...]]:
    """Return the level that is farthest beyond; an item where no other level is."""
    infit = laws.square_levels()
    rows = [
        (name, number, infit[name][0][number])
        for name, levels in laws.levels.items()
        for number in range(len(levels))
    ]
    size = np.where(np.isnan(limits.z), np.log([row[2] for row in rows]), limits.z)
    order = [i for i in np.argsort(-np.abs(size), kind="stable").tolist() if limits.beyond[i]]
    worst = next((i for i in order if rows[i][0] != ITEM), order[0])
    name, number, _ = rows[worst]
    mine = [i for i, row in enumerate(rows) if row[0] == name and np.isfinite(row[2])]
    told = [worst]
    if name != ITEM and len(mine) < FEWEST_TOLD:
        told = sorted(mine, key=lambda i: -size[i] * np.sign(size[worst]))[:2]
    return name, number, tuple(laws.levels[name][rows[i][1]] for i in told)
