"""Three ways to thresholds that a user would take instead of `totals`, at the same guarantee.

Everybody answers every item with a score from 0 to the item's steps, and all items have as many
steps. The guarantee is (epsilon, delta) for one person, replace-one, accounted exactly:

- ``shares``: Gaussian noise on the number of persons in each category of each item, then a
  textbook fit to the shares. One person moves one unit out of a category and one into another in
  each of m items: a squared distance of 2 m.
- ``gradients``: gradient ascent on the marginal likelihood, every person's gradient clipped at C,
  Gaussian noise on each round's sum. Replacing a person moves it by at most 2 C, and rounds
  add up as Gaussian mechanisms do: with the root of their number.
- ``responses``: every person reports r answers at random, each by k-ary randomized response. The
  privacy loss of r reports is a walk with three kinds of steps, and its delta is summed exactly.

All three are told that abilities are standard normal, and have settings to tune. Noise comes from
a numpy generator: good for measuring errors, not for a release.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from discreet.privacy.accounting.spend import largest_mu

NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(31)
WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
"""Standard normal abilities."""


def reach_chances(thresholds, nodes=NODES):
    """Return P(score >= k) for k = 1 .. steps, and the log of its denominator, at every node."""
    below = np.cumsum(thresholds, axis=1)
    score = np.arange(1, thresholds.shape[1] + 1)
    logit = score[:, None] * nodes - below[:, :, None]
    top = np.maximum(logit.max(axis=1, keepdims=True), 0.0)
    raised = np.exp(logit - top)
    whole = raised.sum(axis=1, keepdims=True) + np.exp(-top)
    reached = np.cumsum((raised / whole)[:, ::-1], axis=1)[:, ::-1]
    return reached, (np.log(whole) + top)[:, 0]


# -- the textbook fit ------------------------------------------------------------------------


def tidy_shares(shares, floor):
    """Lift shares to a floor, in units of an equal share, and let them add up to one."""
    lifted = np.maximum(shares, floor / shares.shape[1])
    return lifted / lifted.sum(axis=1, keepdims=True)


def fit_shares(shares, rounds=60):
    """Thresholds under which standard normal abilities have these shares, by Newton's method."""
    above = np.cumsum(shares[:, ::-1], axis=1)[:, ::-1][:, 1:]
    steps = above.shape[1]
    higher = np.maximum.outer(np.arange(steps), np.arange(steps))
    thresholds = np.zeros_like(above)
    for _ in range(rounds):
        reached, _ = reach_chances(thresholds)
        mean = reached @ WEIGHTS
        slope = mean[:, higher] - np.einsum("ijt,ilt,t->ijl", reached, reached, WEIGHTS)
        step = np.linalg.solve(slope, (mean - above)[..., None])[..., 0]
        thresholds += step * (1 / np.maximum(1.0, np.abs(step).max(axis=1, keepdims=True)))
        if np.abs(step).max() < 1e-8:
            break
    return thresholds - thresholds.mean()


def count_categories(codes, steps):
    """Return how many persons are in each category of each item."""
    return np.stack([(codes == k).sum(axis=0) for k in range(steps + 1)], axis=1)


# -- noise on shares -------------------------------------------------------------------------


@dataclass(frozen=True)
class Shares:
    """Noise on category counts.

    Attributes
    ----------
    floor
        The least share that is believed, in units of an equal share.
    shrink
        What thresholds are multiplied with.
    """

    floor: float
    shrink: float = 1.0

    def __call__(self, codes, steps, epsilon, delta, rng):
        persons, items = codes.shape
        counts = count_categories(codes, steps)
        sigma = np.sqrt(2 * items) / largest_mu(epsilon, delta)
        noisy = (counts + rng.normal(0, sigma, counts.shape)) / persons
        return self.shrink * fit_shares(tidy_shares(noisy, self.floor))


# -- randomized response ---------------------------------------------------------------------


def response_delta(answers, categories, local, epsilon):
    """Delta of so many k-ary randomized responses of one person, all of which may change."""
    kept = np.exp(local) / (np.exp(local) + categories - 1)
    other = 1 / (np.exp(local) + categories - 1)
    step = np.array([other, 1 - kept - other, kept])
    walk = np.ones(1)
    for _ in range(answers):
        walk = np.convolve(walk, step)
    loss = local * np.arange(-answers, answers + 1)
    return float(walk @ -np.expm1(np.minimum(epsilon - loss, 0.0)))


@cache
def local_epsilon(answers, categories, epsilon, delta):
    """Return the largest epsilon of one response with which all together keep the promise."""
    low, high = epsilon / answers, epsilon + 20.0
    for _ in range(60):
        middle = (low + high) / 2
        kept = response_delta(answers, categories, middle, epsilon) <= delta
        low, high = (middle, high) if kept else (low, middle)
    return low


@dataclass(frozen=True)
class Responses:
    """K-ary randomized response.

    Attributes
    ----------
    answers
        How many answers a person reports; 0 for all.
    floor
        The least share that is believed, in units of an equal share.
    shrink
        What thresholds are multiplied with.
    """

    answers: int
    floor: float
    shrink: float = 1.0

    def __call__(self, codes, steps, epsilon, delta, rng):
        items, categories = codes.shape[1], steps + 1
        reported = self.answers or items
        local = local_epsilon(reported, categories, epsilon, delta)
        shown = pick_items(rng, codes.shape, reported)
        said = randomize(rng, codes, categories, local)
        counts = count_categories(np.where(shown, said, -1), steps)
        other = 1 / (np.exp(local) + categories - 1)
        kept = np.exp(local) * other
        seen = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        right = (seen - other) / (kept - other)
        return self.shrink * fit_shares(tidy_shares(right, self.floor))


def pick_items(rng, shape, answers):
    """Let every person report so many items at random."""
    if answers == shape[1]:
        return np.ones(shape, dtype=bool)
    return np.argsort(np.argsort(rng.random(shape), axis=1), axis=1) < answers


def randomize(rng, codes, categories, local):
    """Keep an answer, or say one of the others, all alike."""
    lie = rng.random(codes.shape) >= np.exp(local) / (np.exp(local) + categories - 1)
    return (codes + lie * rng.integers(1, categories, codes.shape)) % categories


# -- clipped gradients -----------------------------------------------------------------------


@dataclass(frozen=True)
class Gradients:
    """Noisy gradient ascent on the marginal likelihood with a normal prior, from zero.

    Attributes
    ----------
    clip
        Largest length of one person's gradient, in units of the root of the thresholds' number.
    rounds
        How often the answers are looked at.
    rate
        Step length, for the mean gradient of all persons.
    prior
        Precision of the prior of every threshold, in persons.
    """

    clip: float
    rounds: int
    rate: float
    prior: float

    def __call__(self, codes, steps, epsilon, delta, rng):
        persons, items = codes.shape
        clip = self.clip * np.sqrt(items * steps)
        sigma = 2 * clip * np.sqrt(self.rounds) / largest_mu(epsilon, delta)
        passed = (codes[:, :, None] >= np.arange(1, steps + 1)).reshape(persons, -1).astype(float)
        thresholds, path = np.zeros((items, steps)), []
        for _ in range(self.rounds):
            total = sum_clipped(thresholds, passed, codes.sum(axis=1), clip)
            total += rng.normal(0, sigma, total.shape) - self.prior * thresholds
            thresholds = np.clip(thresholds + self.rate * total / persons, -9, 9)
            path.append(thresholds)
        mean = np.mean(path[self.rounds // 2 :], axis=0)  # steadier than the last round alone
        return mean - mean.mean()


def expect_steps(thresholds, highest):
    """Return the expected passed steps given each score, which gradients compare answers with."""
    reached, log_whole = reach_chances(thresholds)
    scores = np.arange(highest + 1)
    log_chance = scores[:, None] * NODES - log_whole.sum(axis=0) + np.log(WEIGHTS)
    chance = np.exp(log_chance - log_chance.max(axis=1, keepdims=True))
    return (chance / chance.sum(axis=1, keepdims=True)) @ reached.reshape(highest, -1).T


def sum_clipped(thresholds, passed, score, clip):
    """Sum of the persons' gradients of the log marginal likelihood, none longer than ``clip``."""
    expected = expect_steps(thresholds, passed.shape[1])
    square = (expected**2).sum(axis=1)[score] + score
    square -= 2 * np.einsum("lc,lc->l", expected[score], passed)
    shrink = np.minimum(1.0, clip / np.sqrt(np.maximum(square, 1e-12)))
    weight = np.bincount(score, shrink, minlength=len(expected))
    return (weight @ expected - shrink @ passed).reshape(thresholds.shape)
