"""Answers from known parameters, under the designs that real tests use.

In: how many persons and items, who gets which items, a random generator. Out: answers with the
truth behind them. Works through the persons in pieces, so a million persons need little more
memory than their answers take. Never used for privacy noise.

Who gets which item decides which estimator is right (the table of designs in the
documentation): pairs are sound under ``uniform``, ``booklets`` and ``targeted``, where the
assignment is known before the person answers, and biased under ``adaptive`` and ``two-stage``,
where it follows from the same person's answers. Items may have several steps. Comparisons of judges
come from known strengths in the same way.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from discreet.answers.comparisons import Comparisons
from discreet.answers.pack import pack_rows
from discreet.answers.ratings import Ratings
from discreet.answers.responses import Responses
from discreet.choices import DesignName, Model
from discreet.counts import planes
from discreet.counts.planes import BitPlanes, Nodes, SparseRows
from discreet.errors import BadUsage
from discreet.simulation import designs
from discreet.simulation.designs import DESIGNS, Items, SimulatedAnswers, Steps
from discreet.tabular import brief_repr
from discreet.types import FloatArray, Int64Array

__all__ = ["SimulatedComparisons", "Simulation", "simulate", "simulate_comparisons"]

Vector: TypeAlias = Sequence[float] | npt.NDArray[np.floating] | None

#: Persons drawn before they are packed: one full block of bit planes.
BLOCK_PERSONS = 64 * planes.BLOCK_WORDS

#: Cells that can be counted in floating point, and addressed.
MOST_CELLS = 1 << 53

#: Cells drawn at a time: 16 MB of float64, so that temporaries stay near the cache.
PIECE_CELLS = 1 << 21


@dataclass(frozen=True, eq=False)
class Simulation:
    """Answers and the parameters that made them.

    Attributes
    ----------
    responses
        The answers.
    difficulty
        ``float64[item]``; mean zero when it was drawn, exactly as given otherwise.
        Of an item with several steps its location, the mean of its thresholds.
    ability
        ``float64[person]``.
    thresholds
        ``float64[item, step]``, NaN beyond an item's steps; of right/wrong items the difficulty.

    Examples
    --------
    >>> made = simulate(100, 5, rng=np.random.default_rng(0))
    >>> made.difficulty.shape, made.ability.shape, made.thresholds.shape
    ((5,), (100,), (5, 1))
    """

    responses: Responses
    difficulty: FloatArray
    ability: FloatArray
    thresholds: FloatArray

    __repr__ = brief_repr

    def __post_init__(self) -> None:
        for array in (self.difficulty, self.ability, self.thresholds):
            array.setflags(write=False)


def simulate(
    persons: SupportsIndex,
    items: SupportsIndex,
    answered: float = 1.0,
    *,
    design: DesignName = "uniform",
    difficulty: Vector = None,
    ability: Vector = None,
    steps: Steps = None,
    thresholds: object = None,
    model: Model = "auto",
    rng: np.random.Generator | None = None,
) -> Simulation:
    """Draw Rasch answers: ``P(right) = 1 / (1 + exp(-(ability - difficulty)))``.

    With ``steps`` or ``thresholds``, answers are scores from 0 to an item's steps, and
    ``log P(score k) - log P(score k - 1) = ability - threshold k``.

    Parameters
    ----------
    persons, items
        How many.
    answered
        Share of the items that a person gets, in (0, 1]. Under ``uniform`` each cell is
        answered with this probability; the other designs give every person the same number,
        ``round(answered * items)``, which has to be at least 2.
    design
        ``"uniform"``; ``"booklets"``: overlapping runs of neighbouring items, a booklet drawn
        for each person; ``"targeted"``: items near the person's ability, chosen before the
        first answer; ``"adaptive"``: each item chosen near the ability that the answers so far
        suggest; ``"two-stage"``: a common first half, then an easier or a harder second half
        by the score on the first.
    difficulty, ability
        Used as given; drawn from N(0, 1) when left out. Drawn difficulties are then shifted to
        mean zero, because that is the scale on which estimates are reported. Subtract the mean
        from given ones before comparing them with an estimate.
    steps
        One number for all items, or one for each: 4 for answers from 0 to 4. By default right and
        wrong. Thresholds are drawn around the difficulties, 0.8 logits apart.
    thresholds
        A row for each item, used as given, instead of ``difficulty`` and ``steps``.
    model
        ``"partial-credit"`` (with steps the default): each item's thresholds are uneven in its own
        way, SD 0.3. ``"rating-scale"``: all items have the same distances.
    rng
        The generator; a fresh one, and so another result every time, when left out.

    Returns
    -------
    Simulation
        ``responses``, ``difficulty``, ``ability`` and ``thresholds``.

    Examples
    --------
    >>> import numpy as np
    >>> sim = simulate(1000, 50, 0.3, rng=np.random.default_rng(0))
    >>> sim.responses.n_persons, sim.responses.n_items
    (1000, 50)
    >>> simulate(3, 2, steps=4, rng=np.random.default_rng(0)).responses.to_array().tolist()
    [[3, 1], [3, 1], [0, 0]]
    """
    n, m = _count("persons", persons), _count("items", items)
    if n * m > MOST_CELLS:
        raise BadUsage(
            f"{n:,} persons and {m:,} items are {n * m:,} cells, more than any machine holds; "
            "draw fewer"
        )
    if design not in DESIGNS:
        raise BadUsage(f"there is no design {design!r}; choose one of {', '.join(DESIGNS)}")
    each = _items_each(answered, m, design)
    rng = rng or np.random.default_rng()
    item_set = _items(m, difficulty, steps, thresholds, model, rng)
    theta = _parameters("ability", ability, n, rng)

    def draw(start: int, stop: int) -> SimulatedAnswers:
        return item_set.split(DESIGNS[design](theta[start:stop], item_set, each, rng))

    item_steps = tuple(item_set.steps.tolist())
    dense = planes.prefers_planes(
        n, sum(item_steps), int(n * each * designs.nodes_per_answer(item_steps))
    )
    store = planes.step_store((_planes if dense else _rows)(draw, n, sum(item_steps)), item_steps)
    return Simulation(Responses.from_store(store), item_set.location, theta, item_set.thresholds)


def _items(
    m: int,
    difficulty: Vector,
    steps: Steps,
    thresholds: object,
    model: Model,
    rng: np.random.Generator,
) -> Items:
    """Return the items: as given, or drawn."""
    if thresholds is not None:
        if difficulty is not None or model != "auto":
            raise BadUsage(
                "thresholds= says where all steps are, so that difficulty= and model= have nothing "
                "to say; leave them out"
            )
        return designs.accept_thresholds(thresholds, m, steps)
    item_steps = designs.accept_steps(steps, m)
    model_name = designs.accept_model(model, item_steps)
    b = _parameters("difficulty", difficulty, m, rng)
    return designs.place_items(
        b - b.mean() if difficulty is None else b, item_steps, model_name, rng
    )


#: Right and wrong answers to nodes, of persons from the first number to the second.
Draw: TypeAlias = Callable[[int, int], SimulatedAnswers]


def _pieces(start: int, stop: int, m: int) -> Iterator[tuple[int, int]]:
    """Yield runs of persons with at most ``PIECE_CELLS`` cells."""
    size = max(PIECE_CELLS // m, 1)
    for low in range(start, stop, size):
        yield low, min(low + size, stop)


def _planes(draw: Draw, n: int, m: int) -> Nodes:
    """Bit planes, block after block; only one block is ever held as a matrix."""
    size = min(n, BLOCK_PERSONS)
    blocks = []
    for start in range(0, n, size):
        # The last block is filled up with persons without answers, so that all blocks have
        # the same number of words.
        matrix = np.full((size, m), planes.MISSING, dtype=np.int8)
        for low, high in _pieces(start, min(start + size, n), m):
            answers = draw(low, high)
            person = np.repeat(np.arange(low - start, high - start), answers.per_person)
            matrix[person, answers.item] = answers.score
        blocks.append(pack_rows(matrix))
    right = np.concatenate([block.right for block in blocks])
    return BitPlanes(right, np.concatenate([block.wrong for block in blocks]), n)


def _rows(draw: Draw, n: int, m: int) -> Nodes:
    """Sparse rows, appended piece by piece."""
    parts = []
    for low, high in _pieces(0, n, m):
        answers = draw(low, high)
        right = answers.score.astype(np.bool_)
        parts.append((answers.per_person, planes.narrow_items(answers.item, m), right))
    per_person, item, right = (np.concatenate(part) for part in zip(*parts, strict=True))
    return SparseRows(np.concatenate([[0], np.cumsum(per_person)]), item, right, m)


def _count(name: str, value: SupportsIndex) -> int:
    if (count := operator.index(value)) < 1:
        raise BadUsage(f"{name} must be a whole number of at least 1, found {value!r}")
    return count


def _items_each(answered: float, m: int, design: str) -> float:
    """Items per person: expected under ``uniform``, exact otherwise."""
    if not isinstance(answered, Real) or not 0 < answered <= 1:
        raise BadUsage(
            f"answered must lie in (0, 1], found {answered!r}; it is the share of the items "
            "that a person gets, 0.3 for 30%"
        )
    if design == "uniform":
        return answered * m
    each = round(answered * m)
    if each < 2:
        raise BadUsage(
            f"answered={answered} of {m} items gives every person {each} item(s); the design "
            f"{design!r} needs at least 2 to link items; raise answered or the number of items"
        )
    return each


def _parameters(name: str, vector: Vector, size: int, rng: np.random.Generator) -> FloatArray:
    if vector is None:
        return rng.standard_normal(size)
    try:
        values = np.array(vector, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadUsage(f"{name} must hold {size} numbers: {error}") from error
    if values.shape != (size,):
        raise BadUsage(f"{name} must hold {size} numbers, found an array of shape {values.shape}")
    if not np.isfinite(values).all():
        index = int(np.flatnonzero(~np.isfinite(values))[0])
        raise BadUsage(f"{name}[{index}] is {values[index]}; every entry must be a finite number")
    return values


@dataclass(frozen=True, eq=False)
class SimulatedComparisons:
    """Comparisons, and the strengths that made them.

    Examples
    --------
    >>> made = simulate_comparisons(10, 3, 2, rng=np.random.default_rng(0))
    >>> made.comparisons.n_judges, made.strength.shape
    (10, (3,))
    """

    comparisons: Comparisons
    strength: FloatArray

    __repr__ = brief_repr


def simulate_comparisons(
    judges: int,
    items: int,
    comparisons: int,
    *,
    strength: npt.ArrayLike | None = None,
    taste: float = 0.0,
    rng: np.random.Generator,
) -> SimulatedComparisons:
    """Draw comparisons: every judge compares the same number of different random pairs.

    Parameters
    ----------
    judges, items, comparisons
        How many judges, objects, and comparisons of each judge.
    strength
        By default drawn from N(0, 1) and centred.
    taste
        Standard deviation of each judge's own liking of each object, on top of its strength.
        Zero is the Bradley-Terry model.
    rng
        Source of all draws.

    Examples
    --------
    >>> made = simulate_comparisons(3, 4, 2, rng=np.random.default_rng(1))
    >>> made.comparisons
    <Comparisons: 3 judges, 4 objects, 6 comparisons>
    """
    first, second = np.triu_indices(items, 1)
    if not 0 <= comparisons <= len(first):
        raise BadUsage(
            f"a judge can compare 0 to {len(first)} different pairs of {items} objects, found "
            f"{comparisons}"
        )
    truth = rng.standard_normal(items) if strength is None else np.asarray(strength, dtype=float)
    truth = truth - truth.mean()
    chosen = [rng.choice(len(first), comparisons, replace=False) for _ in range(judges)]
    pairs = np.concatenate([np.zeros(0, dtype=np.int64), *chosen])
    judge = np.repeat(np.arange(judges), comparisons)
    left, right = first[pairs], second[pairs]
    apart = truth[left] - truth[right]
    if taste:
        liking = taste * rng.standard_normal((judges, items))
        apart = apart + liking[judge, left] - liking[judge, right]
    won = rng.random(len(pairs)) < 1 / (1 + np.exp(-apart))
    sides = np.where(won, left, right), np.where(won, right, left)
    names = [f"object {number}" for number in range(items)]
    return SimulatedComparisons(
        Comparisons.from_codes(judge, *sides, items=names, judges=judges), truth
    )


#: Persons drawn together, so that many of them do not fill the memory.
_AT_ONCE = 20_000
#: Up to here the raters of a person are all different.
_FEW_RATERS = 1000


@dataclass(frozen=True, eq=False)
class SimulatedRatings:
    """Ratings and what they were drawn from.

    Attributes
    ----------
    ratings
        The facet is called "rater".
    thresholds
        ``[item, step]``, with mean zero.
    severity
        Of the raters, with mean zero.
    """

    ratings: Ratings
    thresholds: FloatArray
    severity: FloatArray


def simulate_ratings(
    persons: int,
    items: int,
    raters: int,
    *,
    rng: np.random.Generator,
    steps: int = 3,
    marks: int = 2,
    answered: int | None = None,
    severity_sd: float = 0.5,
    effect_sd: float = 0.0,
) -> SimulatedRatings:
    """Draw ratings from the facets model with normal abilities.

    Parameters
    ----------
    persons, items, raters
        How many.
    rng
        Source of randomness.
    steps
        Steps of every item: 3 for scores from 0 to 3.
    marks
        Raters of each person, chosen at random; they rate all of the person's items.
    answered
        Items per person, chosen at random; by default all.
    severity_sd
        Standard deviation of the severities.
    effect_sd
        Standard deviation of persons' strengths at single items (a person x item effect).

    Examples
    --------
    >>> study = simulate_ratings(50, 3, 6, rng=np.random.default_rng(0))
    >>> study.ratings
    <Ratings: 300 ratings of 50 persons on 3 items; rater: 6 levels>
    """
    if marks > raters:
        raise BadUsage(f"marks={marks} raters per person need as many raters; found {raters}.")
    spacing = np.sort(rng.normal(0, 1.2, (items, steps)), axis=1)
    location, severity = rng.normal(0, 0.7, items), rng.normal(0, severity_sd, raters)
    spacing += (location - location.mean())[:, None] - spacing.mean(axis=1, keepdims=True)
    severity -= severity.mean()
    parts = []
    for low in range(0, persons, _AT_ONCE):
        n = min(_AT_ONCE, persons - low)
        item = _choose(rng, n, items, answered or items)
        rater = _choose(rng, n, raters, marks)
        level = rng.normal(size=(n, 1)) + effect_sd * rng.normal(size=item.shape)
        logits = (
            level[:, :, None, None] - spacing[item][:, :, None] - severity[rater][:, None, :, None]
        )
        draws = rng.gumbel(size=(*logits.shape[:3], steps + 1))
        draws[..., 1:] += np.cumsum(logits, axis=3)
        person = np.arange(low, low + n)[:, None, None]
        columns = person, item[:, :, None], rater[:, None, :]
        cells = np.broadcast_arrays(*columns, draws.argmax(axis=3))
        parts.append(np.stack([cell.ravel().astype(np.int32) for cell in cells]))
    person, item, rater, score = np.concatenate(parts, axis=1)
    names = {"rater": [f"R{number + 1:0{len(str(raters))}}" for number in range(raters)]}
    facets = {"rater": rater} if raters > 1 else {}
    ratings = Ratings.from_codes(
        person, item, score, facets=facets,
        items=[f"I{number + 1}" for number in range(items)], levels=names,
    )  # fmt: skip
    return SimulatedRatings(ratings, spacing, severity)


def _choose(rng: np.random.Generator, persons: int, size: int, count: int) -> Int64Array:
    """Return ``count`` of ``size`` numbers for each person, different where they are few."""
    if count == size:
        return np.tile(np.arange(size), (persons, 1))
    if size > _FEW_RATERS and count > 1:
        return rng.integers(0, size, (persons, count))
    return np.argpartition(rng.random((persons, size)), count - 1, axis=1)[:, :count]
