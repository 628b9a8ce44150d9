"""Find items that abler persons get wrong: mislabelled questions, wrong keys, reversed items.

In: answers and a calibration. Out: for every item its discrimination (1 is what the model says)
with its error, the probability that it is negative, and which items to look at. Confidential.

A question whose key is wrong has the discrimination of a good one, with the other sign. With a few
dozen persons no test of one item against zero can tell that among thousands, but all items together
show how steep good ones are: slopes ``s exp(u)`` have a sign ``s``, negative for an unknown share
of the items, and ``u`` is normal with an unknown mean and variance. These three numbers are
estimated from all items (empirical Bayes, by EM), and with them the probability of either sign for
every item. An item's intercept is integrated out by Laplace's method. In a short test abilities are
those without the item itself, which would otherwise look steeper than it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from discreet.answers.responses import Responses
from discreet.answers.select import refuse_routing
from discreet.errors import BadUsage
from discreet.items.groups import take_group
from discreet.models.categories import refuse_steps
from discreet.persons.scoring import PersonScores, score
from discreet.results.calibrated import Calibration
from discreet.tabular import Columns, Tabular, list_field_columns
from discreet.types import BoolArray, FloatArray, Int64Array

#: Expected share of false alarms among the items that are flagged.
LEVEL = 0.05
#: No item is flagged that is more likely sound, however sure the others are.
LIKELY = 0.5
#: Groups of persons of like ability; with fewer persons everybody is a group.
PERSON_GROUPS = 64
#: From a ninth of the model's slope to four times it; steps of half a usual error or less.
LOG_SLOPES = np.linspace(-2.2, 1.4, 19)
#: As much as that many items say, slopes are beforehand 1, give or take a third.
FEWEST_ITEMS, USUAL_SPREAD = 10, 0.3
#: And so many items of either kind are added: one in fifty, where the answers say nothing.
SOUND, MISLABELLED = 49, 1
#: Weak prior of an item's intercept, in logits: keeps it finite for any slope.
INTERCEPT_SD = 3.0
#: Newton steps for the first slope, and from each slope to the next.
FIRST_STEPS, STEPS = 8, 4
#: Items up to which an item is left out of the ability that it is compared with.
SHORT = 40
#: Of a short test; more would change nothing that is shown.
MOST_PERSONS = 5000
CHUNK_CELLS = 1 << 22
#: Item, discrimination, its error, the probability that it is negative.
Suspect = tuple[str, float, float, float]
ROUNDS, TOL = 500, 1e-8
CHUNK_ITEMS = 4096


@dataclass(frozen=True, eq=False)
class Mislabelled(Tabular):
    """Which items look mislabelled. Confidential.

    Attributes
    ----------
    items, answers
        Items with a difficulty, and their answers (of a short test, those looked at).
    discrimination, se
        How steeply the chance rises with ability, as a multiple of what the model says; mean and
        standard deviation given the answers to all items.
    probability
        That the discrimination is negative.
    flagged
        The items to look at: of them a share of ``level`` is expected to be sound.
    share
        Estimated share of items with a negative discrimination.
    level
        What was asked for.

    Examples
    --------
    >>> import discreet
    >>> from discreet import analysis
    >>> answers = discreet.datasets.lsat()
    >>> estimate = discreet.fit(answers)
    >>> analysis.find_mislabelled(answers, estimate).suspects
    ()
    """

    items: tuple[str, ...]
    answers: Int64Array
    discrimination: FloatArray
    se: FloatArray
    probability: FloatArray
    flagged: BoolArray
    share: float
    level: float

    @property
    def suspects(self) -> tuple[str, ...]:
        """The flagged items, the surest first."""
        order = np.argsort(-self.probability, kind="stable")
        return tuple(self.items[i] for i in order if self.flagged[i])

    def list_suspects(self) -> tuple[Suspect, ...]:
        """Return the flagged items, the surest first, with their numbers."""
        columns = self.to_dict()
        names = ("item", "discrimination", "se", "probability", "flagged")
        rows = zip(*(columns[name] for name in names), strict=True)
        return tuple((item, slope, se, p) for item, slope, se, p, flagged in rows if flagged)

    def to_dict(self) -> Columns:
        """One list per column, the most suspicious item first."""
        names = ("answers", "discrimination", "se", "probability", "flagged")
        columns = {"item": list(self.items), **list_field_columns(self, *names)}
        # Many of the surest have the same probability, to the last digit.
        order = np.lexsort((self.discrimination, -self.probability))
        return {name: [values[i] for i in order] for name, values in columns.items()}


def find_mislabelled(
    responses: Responses, calibration: Calibration, *, level: float = LEVEL
) -> Mislabelled:
    """Find items that abler persons get wrong more often than less able ones. Confidential.

    Parameters
    ----------
    responses, calibration, reading
        As for :func:`discreet.score`.
    level
        Expected share of sound items among those that are flagged.

    Examples
    --------
    >>> import numpy as np
    >>> import discreet
    >>> answers = discreet.simulate(60, 300, rng=np.random.default_rng(1)).responses.to_array()
    >>> answers[:, 7] = 1 - answers[:, 7]
    >>> answers = discreet.Responses.from_array(answers.astype(float))
    >>> find_mislabelled(answers, discreet.fit(answers, method="refined")).suspects
    ('7',)
    """
    if not 0 < level < 1:
        raise BadUsage(f"level must lie between 0 and 1, found {level}; use 0.05 for 5%")
    refuse_steps("the search for mislabelled items", responses.steps)
    refuse_routing(responses.routing, "the search for mislabelled items")
    sample = _thin_out(responses)
    scores = score(sample, calibration)
    grouped = _group_answers(sample.select(scores.items), scores, calibration)
    weight, share = _weigh_slopes(_likelihoods(grouped))
    probability = weight[1].sum(axis=0)
    mean, sd = _moments(weight)
    return Mislabelled(
        items=scores.items,
        answers=grouped.count.sum(axis=0).astype(np.int64),
        discrimination=mean,
        se=sd,
        probability=probability,
        flagged=_flag(probability, level),
        share=share,
        level=level,
    )


@dataclass(frozen=True, eq=False)
class _Grouped:
    """Answers of groups of persons: those who were right, then those who were wrong.

    ``count`` and mean ``ability`` are ``[group, item]``; the first half of the groups is right.
    """

    count: FloatArray
    ability: FloatArray


def _group_answers(
    responses: Responses, scores: PersonScores, calibration: Calibration
) -> _Grouped:
    """Add up answers and abilities of persons of like ability."""
    measured = np.flatnonzero(np.isfinite(scores.ability))
    groups = min(PERSON_GROUPS, len(measured))
    member = np.zeros((groups, responses.n_persons))
    order = measured[np.argsort(scores.ability[measured], kind="stable")]
    member[np.arange(len(measured)) * groups // len(measured), order] = 1
    ability = _abilities(responses, scores, calibration)
    count, total = np.zeros((2, 2 * groups, responses.n_items))
    step = max(1, CHUNK_CELLS // responses.n_items)
    for start in range(0, responses.n_persons, step):
        cells = responses.rows(start, start + step)
        here = slice(start, start + len(cells))
        for half, rows in (cells == 1, slice(groups)), (cells == 0, slice(groups, None)):
            half &= np.isfinite(ability[here])
            count[rows] += member[:, here] @ half
            total[rows] += member[:, here] @ np.where(half, ability[here], 0.0)
    return _Grouped(count, np.divide(total, count, out=np.zeros_like(total), where=count > 0))


def _abilities(responses: Responses, scores: PersonScores, calibration: Calibration) -> FloatArray:
    """Abilities, ``[person, 1]``; of a short test, without the item itself, ``[person, item]``."""
    if responses.n_items > SHORT:
        return scores.ability[:, None]
    columns = []
    for left_out in responses.items:
        remaining = responses.select([name for name in responses.items if name != left_out])
        columns.append(score(remaining, calibration).ability)
    return np.column_stack(columns)


def _thin_out(responses: Responses) -> Responses:
    """Return evenly spaced persons of a short test that very many took."""
    if responses.n_items > SHORT or responses.n_persons <= MOST_PERSONS:
        return responses
    chosen = np.zeros(responses.n_persons, dtype=bool)
    chosen[:: -(-responses.n_persons // MOST_PERSONS)] = True
    return take_group(responses, chosen)


def _likelihoods(grouped: _Grouped) -> FloatArray:
    """Log-likelihood of every slope, ``[sign, slope, item]``, without the intercepts."""
    m = grouped.count.shape[1]
    log_likelihood = np.empty((2, len(LOG_SLOPES), m))
    for start in range(0, m, CHUNK_ITEMS):
        part = slice(start, start + CHUNK_ITEMS)
        n, ability = grouped.count[:, part], grouped.ability[:, part]
        right = n.copy()
        right[len(n) // 2 :] = 0
        for sign in (0, 1):
            log_likelihood[sign][:, part] = _trace_slopes(ability, n, right, (1.0, -1.0)[sign])
    return log_likelihood


def _trace_slopes(
    ability: FloatArray, n: FloatArray, right: FloatArray, sign: float
) -> list[FloatArray]:
    """Log-likelihood of items, one slope after the other, of one sign."""
    total, answers = right.sum(axis=0), n.sum(axis=0)
    intercept = np.log((total + 0.5) / (answers - total + 0.5))
    log_likelihoods = []
    for number, slope in enumerate(sign * np.exp(LOG_SLOPES)):
        lean = slope * ability
        for _ in range(STEPS if number else FIRST_STEPS):
            pull, curvature = _derive(lean, n, total, intercept)
            intercept = intercept + np.clip(pull / curvature, -1.5, 1.5)
        curvature = _derive(lean, n, total, intercept)[1]
        chance = (right * lean).sum(axis=0) - (n * np.logaddexp(0, lean + intercept)).sum(axis=0)
        prior = -((intercept / INTERCEPT_SD) ** 2) / 2
        log_likelihoods.append(chance + total * intercept + prior - np.log(curvature) / 2)
    return log_likelihoods


def _derive(
    lean: FloatArray, n: FloatArray, total: FloatArray, intercept: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """First derivative in the intercepts, and minus the second."""
    p = expit(lean + intercept)
    pull = total - (n * p).sum(axis=0) - intercept / INTERCEPT_SD**2
    return pull, (n * p * (1 - p)).sum(axis=0) + 1 / INTERCEPT_SD**2


def _weigh_slopes(log_likelihood: FloatArray) -> tuple[FloatArray, float]:
    """Probability of every slope, ``[sign, slope, item]``, and the share of negative ones."""
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=(0, 1)))
    m = likelihood.shape[2]
    share, centre, spread = MISLABELLED / (SOUND + MISLABELLED), 0.0, USUAL_SPREAD
    for _ in range(ROUNDS):
        density = np.exp(-(((LOG_SLOPES - centre) / spread) ** 2) / 2)
        before = np.array([1 - share, share])[:, None] * density / density.sum()
        weight = likelihood * before[:, :, None]
        weight /= weight.sum(axis=(0, 1))
        slopes = weight.sum(axis=(0, 2))
        was = share, centre, spread
        share = float((weight[1].sum() + MISLABELLED) / (m + SOUND + MISLABELLED))
        centre = float(slopes @ LOG_SLOPES / (m + FEWEST_ITEMS))
        around = float(slopes @ (LOG_SLOPES - centre) ** 2) + FEWEST_ITEMS * USUAL_SPREAD**2
        spread = float(np.sqrt(around / (m + FEWEST_ITEMS)))
        if np.abs(np.subtract(was, (share, centre, spread))).max() < TOL:
            break
    return weight, share


def _moments(weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the slope of every item."""
    slope = np.exp(LOG_SLOPES)
    mean = slope @ (weight[0] - weight[1])
    square = slope**2 @ (weight[0] + weight[1])
    return mean, np.sqrt(np.maximum(square - mean**2, 0.0))


def _flag(probability: FloatArray, level: float) -> BoolArray:
    """Flag the surest items while the mean probability that they are sound is small enough."""
    order = np.argsort(-probability, kind="stable")
    false = np.cumsum(1 - probability[order]) / np.arange(1, len(order) + 1)
    flagged = np.zeros(len(order), dtype=bool)
    flagged[order[false <= level]] = True
    return flagged & (probability > LIKELY)
