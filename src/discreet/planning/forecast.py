"""The error that a release will have, predicted without any data.

In: a setting (public parameters and assumptions). Out: mean square errors.

The prediction is the library's own noise-aware fit, taken at what the release is expected to
hold. Difficulties are normal quantiles; expected disagreements come from the assumed abilities;
the noise is the mechanism's own calibration. One linear step around the truth then has an error
with three parts, all in closed form: sampling, privacy noise, and shrinkage toward zero.
What a linear step leaves out (noise in the estimated disagreements, curvature, the learnt
spread) is a smooth factor fitted to simulations once: ``experiments/calibration/planning.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, sqrt
from statistics import NormalDist

import numpy as np

from discreet.answers.logistic import logistic
from discreet.models.noisy import PRIOR_ITEMS, PRIOR_SPREAD, SPREADS, laplacian, tanh_differences
from discreet.models.noisy.disagreements import MISFIT
from discreet.models.noisy.iterate import Around
from discreet.models.noisy.totals.fit import TotalsForecast
from discreet.planning.study import GRAPH_SEED, Assumptions, NoiseForecast, Setting, forecast_noise
from discreet.privacy.mechanisms.pairs import draw_connected_graph
from discreet.secure import SeededSource
from discreet.types import FloatArray

#: An epsilon at which there is next to no noise.
NO_NOISE = 1e6

#: Rounds of the expected fit, from the truth; more change the prediction by less than 1%.
ROUNDS = 4

#: Square of an eigenvalue over that of the noise beyond which the fit sees it.
SEEN_STRENGTH = 1.5

_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(21)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()


@dataclass(frozen=True, eq=False)
class ExpectedCounts:
    """What a study of this kind holds on average, per pair of items.

    Attributes
    ----------
    difficulty
        Normal quantiles, centred.
    disagreement
        Expected weighted disagreements of one pair.
    smooth
        The same if items were given out at random: what a fit that is not told the design
        believes before it looks.
    sampling
        The same with each person's weight w replaced by answers * w^2: half its Laplacian,
        damped by 1 - tanh^2, is the sampling covariance of the totals.
    scatter
        Sampling variance of each total over what that Laplacian says: 1 for equal difficulties.
    counted
        One where a pair is counted.
    others
        How many other items one evaluated item stands for, over how many are evaluated.
    density
        Share of the pairs that are counted.
    """

    difficulty: FloatArray
    disagreement: FloatArray
    smooth: FloatArray
    sampling: FloatArray
    scatter: FloatArray
    counted: FloatArray
    others: float
    density: float


def spread_difficulties(items: int, assumptions: Assumptions, size: int) -> FloatArray:
    """Quantiles of the assumed difficulties with the mean square that drawn ones would have."""
    quantiles = np.array([NormalDist().inv_cdf((k + 0.5) / size) for k in range(size)])
    square = assumptions.difficulty_spread**2 * (items - 1) / items
    return np.asarray(quantiles * sqrt(square / float(np.mean(quantiles**2))))


def expect_study(setting: Setting, weights: FloatArray, density: float = 1.0) -> ExpectedCounts:
    """Return the expected disagreements.

    ``weights[k]`` is that of a person with k answers right, ``density`` the share of the pairs
    that are counted.
    """
    assumed, m, a = setting.assumptions, setting.items, setting.answers
    together = give_out(setting)
    difficulty = spread_difficulties(m, assumed, together.size)
    if setting.design == "booklets":  # hard and easy items stand in every block
        difficulty = difficulty[np.random.default_rng(GRAPH_SEED).permutation(together.size)]
    ability = assumed.ability_mean + assumed.ability_spread * _NODES
    # Both chances on their own: far from an item, one minus the larger would be 0.
    right = logistic(ability - difficulty[:, None])
    wrong = logistic(difficulty[:, None] - ability)
    # Of a person who disagrees on two items one is right; the other a - 2 answers are drawn.
    score = _binomial(a - 2, right.mean(axis=0), wrong.mean(axis=0))
    inner = weights[1:a]

    def pairs(per_ability: FloatArray, shares: FloatArray) -> FloatArray:
        one_way = (right * (_NODE_WEIGHTS * per_ability)) @ wrong.T
        return np.asarray(setting.persons * shares * (one_way + one_way.T))

    square = score @ (a * inner**2)
    counted, others = _counted_pairs(m, together, density)
    return ExpectedCounts(
        difficulty,
        pairs(score @ inner, together.shares) * counted,
        pairs(score @ inner, together.average * counted),
        pairs(square, together.shares) * counted,
        _scatter(difficulty, right, wrong, _NODE_WEIGHTS * square, a),
        counted,
        others,
        density,
    )


def give_out(setting: Setting) -> Together:
    """Return which items a prediction looks at, and how often two are given to one person."""
    give = give_booklets if setting.design == "booklets" else give_at_random
    return give(setting.items, setting.answers)


def _counted_pairs(m: int, together: Together, density: float) -> tuple[FloatArray, float]:
    """Return which pairs get counted, and how many items each one stands for.

    A thinned random graph keeps the degrees instead of the share.
    """
    size = together.size
    if density == 1:
        return 1 - np.eye(size), together.others
    share = min(1.0, density * (m - 1) / (size - 1))
    edges = draw_connected_graph(size, share, SeededSource(GRAPH_SEED))
    counted = np.zeros((size, size))
    counted[edges[:, 0], edges[:, 1]] = counted[edges[:, 1], edges[:, 0]] = 1.0
    degree = float(counted.sum()) / size
    return counted, density * (m - 1) / degree


def _scatter(
    difficulty: FloatArray,
    right: FloatArray,
    wrong: FloatArray,
    per_ability: FloatArray,
    answers: int,
) -> FloatArray:
    """Return the sampling variance of an item's total over its slope.

    One person's part of the total of item i is a mean over the person's other items j of
    ``(1 - t) Y_ij - (1 + t) Y_ji``. A single pair has variance ``v1 = D (1 - t^2)``, two pairs of
    the same item have covariance ``v2``, and the slope is v1 / 2: with r answers the ratio is
    ``(v1 + (r - 2) v2) / (r v1 / 2)``.
    """
    differ = right[:, None, :] * wrong[None, :, :] + right[None, :, :] * wrong[:, None, :]
    off = (1 - np.eye(len(difficulty))) / (len(difficulty) - 1)
    pair_slope = off * (1 - tanh_differences(difficulty) ** 2)
    single = np.einsum("ij,ijt,t->i", pair_slope, differ, per_ability)
    # Given the ability, E[(1 - t) (1 - X_j)] over j, which is what a right answer on i brings.
    mean = np.einsum("ij,ijt->it", off, 2 * (right * wrong)[None] / differ)
    common = (right * wrong * mean**2) @ per_ability
    return np.asarray((single + (answers - 2) * common) / (answers * single / 2))


def _binomial(trials: int, success: FloatArray, failure: FloatArray) -> FloatArray:
    """Probabilities of 0 .. trials successes, one row per probability of success."""
    k = np.arange(trials + 1)
    factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, trials + 1)))])
    ways = factorial[trials] - factorial - factorial[::-1]
    odds = (np.log(success) - np.log(failure))[:, None]
    return np.asarray(np.exp(ways + k * odds + trials * np.log(failure)[:, None]))


def predict_rmse(setting: Setting) -> float:
    """Root mean square error of the released difficulties, over items and studies.

    Examples
    --------
    >>> round(predict_rmse(Setting(1_000_000, 20, 20, epsilon=1.0)), 2)
    0.0
    """
    everything = setting.assumptions.difficulty_spread * sqrt((setting.items - 1) / setting.items)
    forecast = forecast_noise(setting)
    if isinstance(forecast, TotalsForecast):
        return min(forecast.location, everything)
    raw = min(sqrt(_predict_square(setting, forecast)) / everything, 1.0)
    unlike = give_out(setting).is_uneven
    # Factor for what the linear step leaves out, by the share of the spread that is lost.
    constants = LEFT_OUT[forecast.fitted]
    features = (1.0, raw, raw**2, raw**3, _thinned(setting) * (1 - raw))
    left_out = exp(sum(c * x for c, x in zip(constants, features, strict=True)))
    return everything * raw * left_out * (UNEVEN if unlike else 1.0)


def predict_threshold_rmse(setting: Setting) -> float | None:
    """Root mean square error of the released thresholds; None where items have one step."""
    forecast = forecast_noise(setting) if setting.steps > 1 else None
    return forecast.threshold if isinstance(forecast, TotalsForecast) else None


def predict_rmse_without_privacy(setting: Setting) -> float:
    """Root mean square error of the non-private estimate of the same study."""
    if setting.steps > 1:
        return predict_rmse(replace(setting, epsilon=NO_NOISE))
    return sqrt(predict_square_without_noise(setting)) * exp(LEFT_OUT_PLAIN * _thinned(setting))


def _thinned(setting: Setting) -> float:
    """Share of the items that stand behind the evaluated ones: quantiles leave out the tails."""
    return 1 - give_out(setting).size / setting.items


LEFT_OUT = {
    "totals": (0.054, -0.81, 1.722, -0.95, 0.029),
    "pairs": (0.063, -0.869, 1.713, -0.882, -0.021),
}
LEFT_OUT_PLAIN = 0.05
#: Constants of the factors by what is fitted, printed by ``experiments/calibration/planning.py
#: --fit``; and the factor where some pairs are given out more often than others
#: (``experiments/calibration/planning.py --booklets``).
UNEVEN = 1.03


def predict_square(setting: Setting) -> float:
    """Mean square error of the linear step, before the fitted factor."""
    forecast = forecast_noise(setting)
    if isinstance(forecast, TotalsForecast):
        return forecast.location**2
    return _predict_square(setting, forecast)


def _predict_square(setting: Setting, forecast: NoiseForecast) -> float:
    study = expect_study(setting, forecast.weights, forecast.density)
    view = _pairs_view if forecast.fitted == "pairs" else _totals_view
    return _expected_risk(setting.items, study, view(setting, study, forecast))


def predict_square_without_noise(setting: Setting) -> float:
    """Mean square error of the non-private estimate, before the small-sample factor."""
    study = expect_study(setting, np.full(setting.answers + 1, 1 / setting.answers))
    damped = (1 - tanh_differences(study.difficulty) ** 2) / 2
    slope = laplacian(study.disagreement * damped) * study.others
    sampling = _scale(laplacian(study.sampling * damped) * study.others, study.scatter)
    # The constant direction, which the data do not determine, gets a slope of its own and no
    # variance: the covariance of the totals is centred.
    inverse = np.linalg.inv(slope + float(np.trace(slope)) / len(slope) ** 2)
    return float(np.trace(inverse @ sampling @ inverse)) / len(slope)


def _scale(covariance: FloatArray, ratio: FloatArray) -> FloatArray:
    """Scale a covariance of totals, which always add up to zero."""
    root = np.sqrt(ratio)
    rows = covariance * root[:, None] * root
    rows = rows - rows.mean(axis=0)
    return np.asarray(rows - rows.mean(axis=1, keepdims=True))


def _trust(study: ExpectedCounts, sigma: float, weight: float) -> FloatArray:
    """Weight of each raw disagreement, as the denoiser is expected to choose it."""
    structure, share = _find_structure(study, sigma)
    model = study.smooth
    square = model**2 * study.counted
    total = float((square**2).sum()) / 2 * study.others**2
    # What is left of booklets is misfit to a fit that is not told of them.
    excess = weight * model + (study.disagreement - model - structure) ** 2
    observed = float((excess * square).sum()) / 2 * study.others**2 / total
    # Noise alone is seen as misfit half of the time: E max(0, N(0, s)) = .4 s, s^2 = 2 / total.
    observed += 0.56 * sigma**2 / sqrt(total)
    observed_weight = total / (2 * sigma**4)
    prior = MISFIT**2
    misfit = (observed * observed_weight + 1 / prior) / (observed_weight + 1 / prior**2)
    real = misfit * square + weight * model
    return np.asarray(np.minimum(share + real / (real + sigma**2), 1.0))


def _find_structure(study: ExpectedCounts, sigma: float) -> tuple[FloatArray, float]:
    """Part of a design that stands out of the noise as eigenvectors, and the noise it brings.

    An eigenvalue w is seen as w + s / w, s = m sigma^2, where that is beyond 2.04 sqrt(s), is
    shrunk to w - s / w, and its vector is turned by as much (`keep_eigenvectors`).
    """
    excess = study.disagreement - study.smooth
    if not excess.any():
        return excess, 0.0
    items = len(excess) * study.others
    values, vectors = np.linalg.eigh(excess)
    strength = (study.others * values) ** 2 / (items * sigma**2)
    visible = strength > SEEN_STRENGTH
    eigenvalues = values * visible * (1 - 1 / np.maximum(strength, 1.0)) ** 2
    structure = (vectors * eigenvalues) @ vectors.T * study.counted
    return np.asarray(structure), 1.4 * int(visible.sum()) / items


@dataclass(frozen=True, eq=False)
class _Equations:
    """Normal equations that the fit is expected to form: ``precision b = target + noise``."""

    precision: FloatArray
    target: FloatArray
    noise: FloatArray


View = Callable[[FloatArray, float], tuple[_Equations, _Equations]]


def _totals_view(setting: Setting, study: ExpectedCounts, noise: NoiseForecast) -> View:
    truth = study.difficulty
    typical = float(noise.weights[setting.answers // 2])
    trust = _trust(study, noise.disagreement, typical)
    damped = (1 - tanh_differences(truth) ** 2) / 2
    sampling = _scale(laplacian(study.sampling * damped) * study.others, study.scatter)
    expected = study.others * (study.disagreement * tanh_differences(truth)).sum(axis=1)
    least = 1e-4 * float(np.trace(sampling)) / len(truth)

    def view(at: FloatArray, stretch: float) -> tuple[_Equations, _Equations]:
        tanh = tanh_differences(at / stretch)
        slope = -laplacian(study.disagreement * (1 - tanh**2) / (2 * stretch)) * study.others
        left = noise.disagreement**2 * (tanh**2 * trust).sum(axis=1) * study.others
        # Without any noise the weights of the equations do not matter; keep them finite.
        private = np.diag(np.maximum(noise.total**2 + left, least))
        surprise = expected - study.others * (study.disagreement * tanh).sum(axis=1) + slope @ at

        def equations(variance: FloatArray) -> _Equations:
            gain = np.linalg.solve(variance, slope).T
            return _Equations(gain @ slope, gain @ surprise, gain @ (private + sampling) @ gain.T)

        return equations(private), equations(private + sampling)

    return view


def _pairs_view(setting: Setting, study: ExpectedCounts, noise: NoiseForecast) -> View:
    truth = study.difficulty
    trust = _trust(study, noise.disagreement, 1.0)
    typical = setting.answers * study.density
    expected = study.disagreement * tanh_differences(truth)
    steep = study.disagreement * (1 - tanh_differences(truth) ** 2) / 2

    def view(at: FloatArray, stretch: float) -> tuple[_Equations, _Equations]:
        tanh = tanh_differences(at / stretch)
        slope = study.disagreement * (1 - tanh**2) / (2 * stretch)
        private = noise.total**2 * (1 + trust * tanh**2)
        variance = private + typical * slope
        weight = study.counted * slope / variance
        precision = laplacian(weight * slope) * study.others
        surprise = weight * (expected - study.disagreement * tanh)
        target = precision @ at - study.others * surprise.sum(axis=1)
        scatter = laplacian(weight**2 * private) * study.others
        scatter = scatter + _scale(_sampling_of_pairs(setting, study, weight, steep), study.scatter)
        more = (weight * slope).sum() / (weight * slope * private / variance).sum()
        return (
            _Equations(precision * more, target * more, scatter * more**2),
            _Equations(precision, target, scatter),
        )

    return view


def _sampling_of_pairs(
    setting: Setting, study: ExpectedCounts, weight: FloatArray, steep: FloatArray
) -> FloatArray:
    """Return the sampling covariance of the weighted sums of pair differences.

    What a person adds to two pairs of one item is correlated through that item. With
    ``together`` the share of a pair's takers who also take a third item, a difference has the
    variance ``2 together`` of two items and ``2 (1 - together)`` of its own, in slopes. Over all
    pairs this adds up to ``answers`` slopes per pair.
    """
    if study.density == 1.0:
        return laplacian(weight**2 * setting.answers * steep) * study.others
    together = (setting.answers - 2) / max(setting.items - 2, 1)
    spread = laplacian(weight)
    item = together * steep.sum(axis=1) / study.counted.sum(axis=1)
    pair_variance = laplacian(weight**2 * 2 * (1 - together) * steep)
    return np.asarray((spread * item) @ spread + pair_variance) * study.others


def _expected_risk(items: int, study: ExpectedCounts, view: View) -> float:
    """Follow the fit on the expected release; return bias squared plus variance."""
    m = len(study.difficulty)
    at, variance, square = study.difficulty, 0.0, 0.0
    for _ in range(ROUNDS):
        step, full = view(at, Around(0.0, variance).stretch)
        spread = _expected_spread(full, items)
        inverse = np.linalg.inv(step.precision + np.eye(m) / spread**2)
        at = inverse @ step.target
        at = at - at.mean()
        believed = (float(np.trace(inverse)) - float(inverse.sum()) / m) / (m - 1)
        variance = min(believed, PRIOR_SPREAD**2)
        scatter = inverse @ step.noise @ inverse
        square = float(np.mean((at - study.difficulty) ** 2))
        square += (float(np.trace(scatter)) - float(scatter.mean()) * m) / m
    return square


def _expected_spread(full: _Equations, items: int) -> float:
    """Spread that the fit is expected to learn: its scores at their expected squares.

    As `solve_posterior` does it, with each evaluated item standing for several.
    """
    values, vectors = np.linalg.eigh(full.precision)
    values, vectors = np.maximum(values[1:], 1e-300)[:, None], vectors[:, 1:]
    square = (vectors.T @ full.target) ** 2 + (vectors * (full.noise @ vectors)).sum(axis=0)
    variance = 1 + values * SPREADS**2
    loss = (np.log(variance) + square[:, None] / values / variance).sum(axis=0)
    loss *= (items - 1) / len(values)
    loss += PRIOR_ITEMS * (np.log(SPREADS**2) + PRIOR_SPREAD**2 / SPREADS**2)
    weight = np.exp(-(loss - loss.min()) / 2)
    return sqrt(float(weight @ SPREADS**2) / float(weight.sum()))


#: Items at which a longer list is looked at: the error per item depends on the sums over the
#: other items, which quantiles give as well with 24 as with 500 (at most 6%
#: lower, tested; the fitted factor knows).
THIN_ITEMS = 24
#: In booklets so many, if there are more: as many blocks as there are, because what links distant
#: ones goes through all between, and at least two items in each.
BOOKLET_ITEMS, BOOKLET_BLOCKS, BLOCK_ITEMS = 120, 150, 2


@dataclass(frozen=True, eq=False)
class Together:
    """Items that stand for all, and how often two of them are given to one person.

    Attributes
    ----------
    shares
        Chance that a person is given both, ``float[item, item]``; zero on the diagonal.
    others
        How many items each of them stands for.
    """

    shares: FloatArray
    others: float

    @property
    def size(self) -> int:
        """How many items are looked at."""
        return len(self.shares)

    @property
    def is_uneven(self) -> bool:
        """Whether some two items are given together more often than others."""
        off = self.shares[~np.eye(self.size, dtype=bool)]
        return bool(np.ptp(off) > 0)

    @property
    def average(self) -> float:
        """The mean chance over all pairs."""
        return float(self.shares.sum()) / (self.size * (self.size - 1))


def give_at_random(items: int, answers: int) -> Together:
    """Return the chances where everybody answers a random part of the items."""
    size = min(items, THIN_ITEMS)
    share = answers * (answers - 1) / (items * (items - 1))
    return Together(share * (1 - np.eye(size)), (items - 1) / (size - 1))


def give_booklets(items: int, answers: int) -> Together:
    """Return the chances where everybody answers two neighbouring blocks of items.

    Blocks stand in a ring, as :func:`discreet.simulate` gives them out.

    Examples
    --------
    >>> give_booklets(6, 4).shares[0].round(2).tolist()
    [0.0, 0.67, 0.33, 0.33, 0.33, 0.33]
    """
    size, each = items, answers
    if items > BOOKLET_ITEMS:
        blocks = min(-(-items // max(answers // 2, 1)), BOOKLET_BLOCKS)
        block = max(BLOCK_ITEMS, BOOKLET_ITEMS // blocks)
        size, each = min(items, blocks * block), min(items, 2 * block)
    block = max(each // 2, 1)
    starts = block * np.arange(-(-size // block))
    booklets = np.zeros((len(starts), size))
    booklets[np.arange(len(starts))[:, None], (starts[:, None] + np.arange(each)) % size] = 1.0
    shares = booklets.T @ booklets / len(starts)
    np.fill_diagonal(shares, 0.0)
    return Together(shares, items / size if size < items else 1.0)
