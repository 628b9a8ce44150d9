"""A plan: a complete study, the error it will have, and what privacy costs.

In: all but one of persons, items, answers, epsilon and a target. Out: a frozen :class:`Plan`, in
which the one that was left out is solved for, or an error that says the best that can be had.
The search for it is here: where the predicted error meets a target. Public parameters only: no data
is ever read here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import ceil, exp, log, log10, sqrt
from statistics import NormalDist

from discreet.checking import checked
from discreet.choices import NamedMechanism, PlainDict, PlannedDesign, Relation
from discreet.errors import BadBudget, BadUsage, FitWarning, WarningKind
from discreet.planning.forecast import (
    predict_rmse,
    predict_rmse_without_privacy,
    predict_threshold_rmse,
)
from discreet.planning.study import (
    AT_RANDOM,
    FORECASTS,
    LEAST_SPREAD,
    MOST_SPREAD,
    Assumptions,
    Setting,
    forecast_difference,
)
from discreet.privacy.accounting import Neighbours, as_neighbours, surest_belief
from discreet.privacy.accounting.spend import GaussianBound, largest_mu, tail_probability
from discreet.privacy.mechanisms import check_mechanism, find_mechanism
from discreet.tabular import Tabular
from discreet.text import show_chance, show_probability_bound

MOST_PERSONS = 10**9
SMALLEST_EPSILON, LARGEST_EPSILON = 1e-3, 50.0
MOST_ITEMS = 1000
GRID_POINTS = 10
#: Relative error of a solution, far below that of the prediction itself.
CLOSE = 1e-3

#: The predicted error at a value of the quantity that is solved for.
ErrorAt = Callable[[float], float]


def solve_persons(error_at: ErrorAt, target: float) -> int:
    """Fewest persons with which the predicted error is at most ``target``."""
    return _solve_whole(error_at, target, _grid(10, MOST_PERSONS), "persons")


def solve_epsilon(error_at: ErrorAt, target: float) -> float:
    """Smallest epsilon with which the predicted error is at most ``target``."""
    condition = f"epsilon {LARGEST_EPSILON:g}; more persons or more answers are needed"
    _check_reachable(target, error_at(LARGEST_EPSILON), condition)
    epsilon = _first_below(error_at, target, SMALLEST_EPSILON, LARGEST_EPSILON)
    digits = 2 - ceil(log10(epsilon))
    return min(round(ceil(epsilon * 10.0**digits) / 10.0**digits, 12), LARGEST_EPSILON)


def solve_answers(error_at: ErrorAt, target: float, *, highest: int) -> int:
    """Fewest answers per person with which the predicted error is at most ``target``."""
    return _solve_whole(error_at, target, _grid(2, highest), "answers per person")


def solve_items(error_at: ErrorAt, target: float, *, fewest: int) -> int:
    """Most items with which the predicted error is at most ``target``."""
    return _solve_whole(error_at, target, _grid(fewest, MOST_ITEMS)[::-1], "items")


def _solve_whole(error_at: ErrorAt, target: float, grid: list[int], noun: str) -> int:
    """Return the first number along the grid that meets the target, to the last unit."""
    errors = [error_at(number) for number in grid]
    best = min(errors)
    _check_reachable(target, best, f"{grid[errors.index(best)]:,} {noun}")
    first = next(index for index, error in enumerate(errors) if error <= target)
    missed, met = grid[max(first - 1, 0)], grid[first]
    while abs(met - missed) > 1:
        middle = (missed + met) // 2
        missed, met = (missed, middle) if error_at(middle) <= target else (middle, met)
    return met


def _grid(low: int, high: int) -> list[int]:
    """Whole numbers from low to high in equal ratios."""
    ratio = (high / low) ** (1 / (GRID_POINTS - 1))
    return sorted({min(high, round(low * ratio**k)) for k in range(GRID_POINTS)} | {low, high})


def _first_below(
    error_at: Callable[[float], float], target: float, low: float, high: float
) -> float:
    """Where a falling curve reaches the target; regula falsi in logarithms (Illinois rule)."""
    left, right = log(low), log(high)
    at_left, at_right = log(error_at(low) / target), log(error_at(high) / target)
    if at_left <= 0:
        return low
    for _ in range(60):
        if right - left < CLOSE or at_right == 0:
            break
        # The curve is flat where the noise drowns everything; halving gets out of there.
        middle = (left * at_right - right * at_left) / (at_right - at_left)
        middle = min(max(middle, left + 0.02 * (right - left)), right - 0.02 * (right - left))
        value = log(error_at(exp(middle)) / target)
        if abs(value) < CLOSE / 4:
            return exp(middle)
        if value <= 0:
            right, at_right, at_left = middle, value, at_left / 2
        else:
            left, at_left, at_right = middle, value, at_right / 2
    return exp(right)


def _check_reachable(target: float, best: float, condition: str) -> None:
    if best > target:
        raise BadUsage(
            f"a root mean square error of {target:g} logits cannot be reached: the best is "
            f"{best:.3g}, with {condition}. Ask for less precision, or change what was held fixed"
        )


ACCURACY = (
    "Predicted and simulated error differ by less than 10% in most settings (margins and pairs: "
    "197 of the 204 settings it was fitted to, 110 of 132 others drawn at random); in the worst "
    "ones, margins with few answers each and widely spread items, the error is up to half as "
    "large again as predicted."
)
#: Share of the spread of the difficulties: an error above it leaves a quarter of their variance
#: explained, and most items cannot be told from the average one.
HOPELESS = 0.85

LARGE_EPSILON = 5.0
#: Budgets whose promise is listed beside that of a plan.
SHOWN_EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
ORDERED_GAP = 0.5
#: How often two items shall come out in the right order to be called clearly apart.
CLEARLY = 0.95
#: How often a difference between groups shall be found to be called visible.
OFTEN = 0.8
#: What a plan says as plain values, in this order.
PLAIN = (
    *("persons", "items", "answers", "epsilon", "delta", "mechanism", "rmse"),
    *("rmse_without_privacy", "equivalent_persons", "neighbours", "solved", "order_probability"),
    *("design", "warnings", "accuracy"),
)


@dataclass(frozen=True)
class Plan(Tabular):
    """Result of a plan: a study, and the predicted error of its private release.

    Attributes
    ----------
    setting
        Persons, items, answers per person, budget, mechanism and assumptions.
    rmse
        Predicted root mean square error of the released difficulties, in logits. It is also
        the typical standard error.
    rmse_without_privacy
        Of the non-private estimate from the same study.
    solved
        The quantity that was left out.
    threshold_rmse
        Predicted error of the released thresholds, where items have several steps; ``rmse`` is
        then that of their locations.
    difference_se
        Predicted standard error of an item's difference between two of the ``groups``.

    Examples
    --------
    >>> import discreet
    >>> study = discreet.plan(persons=1000, items=50, answers=20, epsilon=1.0)
    >>> study.mechanism, study.rmse > study.rmse_without_privacy
    ('margins', True)
    """

    setting: Setting
    rmse: float
    rmse_without_privacy: float
    solved: str = "rmse"
    threshold_rmse: float | None = None
    difference_se: float | None = None

    from_answers = False

    @property
    def persons(self) -> int:
        """How many persons answer."""
        return self.setting.persons

    @property
    def items(self) -> int:
        """How many items are on the list."""
        return self.setting.items

    @property
    def answers(self) -> int:
        """How many items each person answers; also the cap."""
        return self.setting.answers

    @property
    def steps(self) -> int:
        """How many steps every item has: 1 for right and wrong."""
        return self.setting.steps

    @property
    def epsilon(self) -> float:
        """One person changes any probability by a factor of at most e^epsilon, and delta."""
        return self.setting.epsilon

    @property
    def delta(self) -> float:
        """What one person may change any probability by, beyond the factor e^epsilon."""
        return self.setting.delta

    @property
    def mechanism(self) -> str:
        """How noise is added."""
        return self.setting.mechanism

    @property
    def neighbours(self) -> Neighbours:
        """Between which data sets the promise holds."""
        return self.setting.neighbours

    @property
    def design(self) -> str:
        """Who answers which items: ``"uniform"`` or ``"booklets"``."""
        return self.setting.design

    @property
    def equivalent_persons(self) -> int:
        """With how many persons a non-private study would have the same error."""
        ratio = min(1.0, self.rmse_without_privacy / self.rmse)
        return round(self.persons * ratio**2)

    @property
    def order_probability(self) -> float:
        """Chance that two items half a logit apart are released in the right order."""
        return order_probability(self.rmse, self.setting.assumptions.difficulty_spread)

    @property
    def half_width(self) -> float:
        """How far a 95% interval of a released difficulty reaches to either side, in logits."""
        return NormalDist().inv_cdf(0.975) * self.rmse

    @property
    def clear_gap(self) -> float:
        """How far apart two items must lie to come out in the right order 19 times in 20.

        In logits; infinite where the release says nothing.
        """
        return clear_gap(self.rmse, self.setting.assumptions.difficulty_spread)

    @property
    def difference_found(self) -> float | None:
        """How large a difference of one item is found in 80% of releases, in logits.

        At 5% for all items and groups together.
        """
        if self.difference_se is None:
            return None
        tests = self.items * (self.setting.groups - 1)
        normal = NormalDist()
        critical = -normal.inv_cdf((1 - 0.95 ** (1 / tests)) / 2)
        reach = (critical + normal.inv_cdf(OFTEN)) * self.difference_se
        return reach / (1 - 1 / self.items)  # the others share what one item differs

    @checked
    def top_overlap(self, top: int) -> float:
        """Return the share of the truly hardest ``top`` items that the release will find."""
        if not 1 <= top < self.items:
            raise BadUsage(f"top must lie between 1 and {self.items - 1}, found {top}")
        return top_overlap(self.rmse, top / self.items, self.setting.assumptions.difficulty_spread)

    @property
    def warnings(self) -> tuple[FitWarning, ...]:
        """What a committee should hear before it agrees."""
        return tuple(FitWarning(WarningKind.WEAK_PLAN, text) for text in _say_weaknesses(self))

    @property
    def accuracy(self) -> str:
        """How far the prediction itself can be trusted."""
        return ACCURACY

    def compare(self) -> dict[str, Plan]:
        """Return the same study under every mechanism that has this guarantee."""
        names = plannable(self.neighbours, self.steps)
        if self.design != "uniform":
            names = [name for name in names if name not in AT_RANDOM]
        return dict(_plan_each(self.setting, names))

    @checked
    def curve(self, over: str, values: Sequence[float]) -> list[Plan]:
        """Return this plan with ``over`` (persons, items, answers or epsilon) at each value."""
        if over not in ("persons", "items", "answers", "epsilon"):
            raise BadUsage(f"a curve runs over persons, items, answers or epsilon, found {over!r}")
        return [make_plan(_with_value(self.setting, over, value)) for value in values]

    def wrong_assumptions(self) -> dict[str, float]:
        """Return the predicted error if an assumption is off by a third either way."""
        assumed = self.setting.assumptions
        spread, ability = assumed.difficulty_spread, assumed.ability_spread
        closer, wider = max(LEAST_SPREAD, spread / 1.5), min(MOST_SPREAD, spread * 1.5)
        changed: dict[str, dict[str, float]] = {
            "difficulties a third closer together": {"difficulty_spread": closer},
            "difficulties half as far apart again": {"difficulty_spread": wider},
            "abilities half as far apart again": {
                "ability_spread": min(MOST_SPREAD, ability * 1.5)
            },
            "persons one logit stronger": {"ability_mean": min(5.0, assumed.ability_mean + 1.0)},
        }
        return {
            name: predict_rmse(replace(self.setting, assumptions=replace(assumed, **changes)))
            for name, changes in changed.items()
        }

    def to_dict(self) -> PlainDict:
        """Return plain values, the contract's names first."""
        plain = {name: getattr(self, name) for name in PLAIN}
        if self.steps > 1:
            plain |= {"steps": self.steps, "threshold_rmse": self.threshold_rmse}
        if self.setting.groups:
            plain |= {name: getattr(self, name) for name in ("difference_se", "difference_found")}
        return {**plain, "neighbours": str(self.neighbours), "warnings": list(self.warnings)}


def plan(
    persons: int | None = None,
    items: int | None = None,
    answers: int | None = None,
    epsilon: float | None = None,
    delta: float = 1e-6,
    *,
    target_rmse: float | None = None,
    target_overlap: tuple[int, float] | None = None,
    steps: int = 1,
    mechanism: NamedMechanism | None = None,
    neighbours: Relation = "replace-one",
    difficulty_spread: float = 1.0,
    ability_spread: float = 1.0,
    ability_mean: float = 0.0,
    design: PlannedDesign = "uniform",
    groups: int = 0,
) -> Plan:
    """Plan a private release before there is any data.

    Leave out exactly one of ``persons``, ``items``, ``epsilon`` and the target; it is solved for.
    With all four given and ``answers`` left out, ``answers`` is solved for; otherwise leaving it
    out means that everybody answers everything.

    Parameters
    ----------
    persons, items, answers
        The study: how many persons each answer how many of how many items.
    epsilon, delta
        The budget.
    target_rmse
        The root mean square error (the typical standard error) wanted, in logits.
    target_overlap
        Instead: (K, share), the share of the K hardest items that the release shall find.
    steps
        Of every item; 1 for right and wrong. The plan supposes that a release is told that
        everybody answers everything, or items drawn at random (``design=``).
    mechanism, neighbours
        How noise is added (by default ``margins``, and ``totals`` for several steps), and between
        which data sets the promise holds.
    difficulty_spread, ability_spread, ability_mean
        Assumed standard deviations of difficulties and abilities, and the persons' average
        ability above the average difficulty, in logits.
    design
        Who answers which items: ``"uniform"``, a random part; ``"booklets"``, two neighbouring
        blocks of items, in a ring, as :func:`discreet.simulate` gives them out.
    groups
        Into how many groups of one size the persons fall, which :func:`discreet.release_dif`
        compares; the plan then has ``difference_se`` and ``difference_found`` too.

    Examples
    --------
    >>> import discreet
    >>> study = discreet.plan(persons=1000, items=50, answers=20, epsilon=1.0)
    >>> 0.2 < study.rmse < 0.5
    True
    >>> discreet.plan(items=50, answers=20, epsilon=1.0, target_rmse=0.1).solved
    'persons'
    """
    mechanism = mechanism or ("residuals" if groups else "totals" if steps > 1 else "margins")
    check_mechanism(mechanism)
    find_mechanism(mechanism)
    assumed = Assumptions(difficulty_spread, ability_spread, ability_mean)
    target = _target(target_rmse, target_overlap, items, difficulty_spread)
    quantities: dict[str, float | None] = {
        "persons": persons,
        "items": items,
        "epsilon": epsilon,
        "target": target,
    }
    missing = _find_missing(quantities, answers)
    relation = as_neighbours(neighbours)

    def build(**solved: float) -> Setting:
        values: PlainDict = {"persons": persons, "items": items, "epsilon": epsilon, **solved}
        values.setdefault("answers", values["items"] if answers is None else answers)
        return Setting(
            **values,
            delta=delta,
            mechanism=mechanism,
            neighbours=relation,
            assumptions=assumed,
            steps=steps,
            design=design,
            groups=groups,
        )

    if missing == "target":
        return make_plan(build())

    def error_at(value: float) -> float:
        return predict_rmse(build(**{missing: value}))

    solve: dict[str, Callable[[ErrorAt, float], float]] = {
        "persons": solve_persons,
        "epsilon": solve_epsilon,
        "items": partial(solve_items, fewest=answers or 2),
        "answers": partial(solve_answers, highest=items or 2),
    }
    return make_plan(build(**{missing: solve[missing](error_at, float(target or 0.0))}), missing)


def plannable(neighbours: Neighbours, steps: int = 1) -> list[str]:
    """Names of the mechanisms with a forecast that can promise something about such data sets."""
    mechanisms = [find_mechanism(name) for name in FORECASTS]
    return [
        mechanism.name
        for mechanism in mechanisms
        if neighbours in mechanism.relations and (steps == 1 or mechanism.takes_steps)
    ]


def make_plan(setting: Setting, solved: str = "rmse") -> Plan:
    """Predict the errors of a complete setting."""
    without = predict_rmse_without_privacy(setting)
    thresholds = predict_threshold_rmse(setting)
    difference = forecast_difference(setting) if setting.groups else None
    return Plan(setting, predict_rmse(setting), without, solved, thresholds, difference)


def _plan_each(setting: Setting, names: Sequence[str]) -> Iterator[tuple[str, Plan]]:
    for name in names:
        # Delta 0 is out of reach of Gaussian noise, whatever its amount.
        with suppress(BadBudget):
            yield name, make_plan(replace(setting, mechanism=name, groups=0))


def order_probability(rmse: float, spread: float) -> float:
    """Chance that two items half a logit apart come out in the right order.

    Shrinkage does not change an order, so what counts is the reliability 1 - (rmse / spread)^2.
    """
    reliability = max(0.0, 1 - (rmse / spread) ** 2)
    return NormalDist().cdf(ORDERED_GAP * sqrt(reliability / 2) / rmse)


def clear_gap(rmse: float, spread: float) -> float:
    """Distance of two items at which :func:`order_probability` would be 95%."""
    reliability = 1 - (rmse / spread) ** 2
    if reliability <= 0:
        return math.inf
    return NormalDist().inv_cdf(CLEARLY) * rmse * sqrt(2 / reliability)


def top_overlap(rmse: float, share: float, spread: float) -> float:
    """Return the expected share of the truly hardest items among the released hardest ones.

    Truth and estimate are jointly normal with the correlation that the error implies.
    """
    normal = NormalDist()
    correlation = sqrt(max(0.0, 1 - (rmse / spread) ** 2))
    residual_sd = max(sqrt(1 - correlation**2), 1e-9)
    cut = normal.inv_cdf(1 - share)
    above = total = 0.0
    for step in range(400):
        truth = cut + (step + 0.5) / 50
        density = normal.pdf(truth)
        above += density * normal.cdf((correlation * truth - cut) / residual_sd)
        total += density
    return above / total


def _target(
    rmse: float | None, overlap: tuple[int, float] | None, items: int | None, spread: float
) -> float | None:
    if rmse is not None and overlap is not None:
        raise BadUsage("give target_rmse or target_overlap, not both")
    if rmse is not None and not (math.isfinite(rmse) and rmse > 0):
        raise BadUsage(f"target_rmse must be a number of logits above 0, found {rmse}")
    if overlap is None:
        return rmse
    top, goal = overlap
    if items is None or not 1 <= top < items:
        raise BadUsage(f"target_overlap needs the number of items and a K below it, found {top}")
    share = top / items
    if not share < goal < 1:
        raise BadUsage(
            f"the share of the {top} hardest items to be found must lie between {share:.3g} "
            f"(guessing) and 1, found {goal}"
        )
    low, high = 1e-4 * spread, spread
    for _ in range(30):
        middle = sqrt(low * high)
        low, high = (middle, high) if top_overlap(middle, share, spread) > goal else (low, middle)
    return low


def _find_missing(quantities: Mapping[str, float | None], answers: int | None) -> str:
    missing = [name for name, value in quantities.items() if value is None]
    if not missing and answers is None:
        return "answers"
    if len(missing) == 1:
        return missing[0]
    omitted = "none of them" if not missing else " and ".join(missing)
    raise BadUsage(
        "leave out exactly one of persons, items, epsilon and the target (or, with all four "
        f"given, answers): that one is solved for; {omitted} was left out"
    )


def _with_value(setting: Setting, over: str, value: float) -> Setting:
    if over == "epsilon":
        return replace(setting, epsilon=value)
    if over == "persons":
        return replace(setting, persons=round(value))
    if over == "answers":
        return replace(setting, answers=round(value))
    everything = setting.answers == setting.items
    answers = round(value) if everything else min(setting.answers, round(value))
    return replace(setting, items=round(value), answers=answers)


def _say_weaknesses(draft: Plan) -> list[str]:
    sentences = []
    spread = draft.setting.assumptions.difficulty_spread
    if draft.rmse > HOPELESS * spread * sqrt((draft.items - 1) / draft.items):
        cause = f"at epsilon {draft.epsilon:g}"
        if draft.rmse_without_privacy > HOPELESS * spread:
            cause = f"with {draft.persons:,} persons, even without privacy,"
        sentences.append(
            f"{cause} the release will say nothing about most items: the error of "
            f"{draft.rmse:.2f} logits is nearly the spread of the difficulties ({spread:g})"
        )
    if draft.epsilon > LARGE_EPSILON:
        sentences.append(
            f"epsilon {draft.epsilon:g} is too large to mean much: it permits a near-certain "
            "conclusion about a person; plan for more persons or less precision"
        )
    if draft.delta * draft.persons > 1:
        sentences.append(
            f"delta {draft.delta:g} is above 1 / {draft.persons:,} persons: it would permit "
            "publishing somebody's answers outright; use a delta well below that"
        )
    return sentences


def list_beliefs(plan: Plan) -> list[tuple[str, str, str]]:
    """Say for some epsilons how sure somebody can become, and except with which probability."""
    rows = []
    for epsilon in sorted({*SHOWN_EPSILONS, plan.epsilon}):
        sure, beyond = surest_belief(epsilon, plan.neighbours), "cannot be had"
        if plan.delta > 0:
            curve = GaussianBound(Fraction(largest_mu(epsilon, plan.delta)) ** 2)
            beyond = show_chance(tail_probability(curve, epsilon, plan.neighbours))
        rows.append((f"{epsilon:g}", show_probability_bound(sure), beyond))
    return rows
