"""Votes with ties and covariates: Newton on the likelihood of every vote.

In: comparisons between linked objects. Out: strengths, effects of covariates, and what standard
errors need. The log-odds of a vote are ``eta = strength - strength + covariate' effect``, linear in
all parameters. With ``y`` a half for a win and zero for a tie, its log-likelihood is ``y eta +
[tied] tau - log(exp(eta / 2) + exp(-eta / 2) + exp(tau))``: Davidson's model (1970), in which ties
carry the weight ``exp(tau)`` and are the likelier the closer two objects are. Given that nobody
tied it is Bradley and Terry's, so that leaving ties out estimates the same strengths. Without the
last term a tie is half a win: that shrinks strengths, since no probability of a tie is left for
close objects.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.errors import BadResponses, NotConverged
from discreet.types import BoolArray, FloatArray, IndexArray

#: Stop after a step that moves no log-odds of a vote by more than this.
STEP_TOL = 1e-9
ROUNDS = 60
#: Log-odds of a vote beyond which a covariate is taken to separate winners from losers.
LARGEST_EFFECT = 30.0
#: Share of a covariate's information that must be left once the strengths are known.
LEAST_LEFT = 1e-9


@dataclass(frozen=True, eq=False)
class VoteTerms:
    """What every vote adds: to the score by its log-odds, to the information, and by ties.

    Attributes
    ----------
    residual, weight, variance
        First derivative of the log-likelihood by the log-odds, minus its second, and the variance
        of the first if the model holds.
    tie_residual, tie_weight, crossed
        The same by tau, and minus the derivative by both; zeros without Davidson's ties.
    value
        The log-likelihood.
    """

    residual: FloatArray
    weight: FloatArray
    variance: FloatArray
    tie_residual: FloatArray
    tie_weight: FloatArray
    crossed: FloatArray
    value: float


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes between linked objects, by their numbers.

    Attributes
    ----------
    winner, loser, tied, judge
        One entry per vote; objects count from 0.
    covariate
        ``[vote, covariate]``: what the winner has more of than the loser.
    n_objects
        How many objects there are.
    has_tau
        Whether ties have Davidson's parameter, the last one.
    """

    winner: IndexArray
    loser: IndexArray
    tied: BoolArray
    judge: IndexArray
    covariate: FloatArray
    n_objects: int
    has_tau: bool = False

    @property
    def n_effects(self) -> int:
        """How many parameters there are beside the strengths."""
        return int(self.covariate.shape[1]) + self.has_tau

    def add_up(self, parameter: FloatArray) -> FloatArray:
        """Return the log-odds of every vote."""
        strength, effect = parameter[: self.n_objects], parameter[self.n_objects :]
        covered = self.covariate @ effect[: self.covariate.shape[1]]
        return np.asarray(strength[self.winner] - strength[self.loser] + covered)

    def evaluate(self, parameter: FloatArray) -> VoteTerms:
        """Return what every vote adds at these parameters."""
        eta = self.add_up(parameter)
        tail = np.exp(-np.abs(eta))
        # Divided by exp(|eta| / 2), so that nothing overflows.
        tie = np.exp(parameter[-1] - np.abs(eta) / 2) if self.has_tau else np.zeros(1)
        total = 1.0 + tail + tie
        apart = np.copysign((1.0 - tail) / total, eta)
        tie_share = np.broadcast_to(tie / total, eta.shape)
        decided = ~self.tied
        value = (decided * eta - np.abs(eta)) / 2 - np.log(total)
        value += self.tied * parameter[-1] if self.has_tau else 0.0
        weight = ((1.0 + tail) / total - apart**2) / 4
        return VoteTerms(
            residual=np.asarray((decided - apart) / 2),
            weight=weight,
            variance=weight,
            tie_residual=self.tied - tie_share,
            tie_weight=tie_share * (1.0 - tie_share),
            crossed=-tie_share * apart / 2,
            value=float(value.sum()),
        )

    def sum_over_objects(self, value: FloatArray) -> FloatArray:
        """Add a value of each vote to its winner and take it from its loser."""
        m = self.n_objects
        plus = np.bincount(self.winner, value, minlength=m)
        return np.asarray(plus - np.bincount(self.loser, value, minlength=m))

    def score(self, terms: VoteTerms) -> FloatArray:
        """Return the first derivative by all parameters."""
        effects = [terms.residual @ self.covariate]
        tau = [[terms.tie_residual.sum()]] if self.has_tau else []
        return np.concatenate([self.sum_over_objects(terms.residual), *effects, *tau])

    def information(self, terms: VoteTerms) -> FloatArray:
        """Return minus the second derivative; moving all strengths alike has information too."""
        m, size = self.n_objects, self.n_objects + self.n_effects
        cells = np.bincount(self.winner * m + self.loser, terms.weight, minlength=m * m)
        pairs = cells.reshape(m, m) + cells.reshape(m, m).T
        out = np.zeros((size, size))
        out[:m, :m] = np.diag(pairs.sum(axis=1)) - pairs + pairs.sum() / m**2
        last = size - self.has_tau
        for number, column in enumerate(self.covariate.T, start=m):
            weighted = terms.weight * column
            out[number, :m] = self.sum_over_objects(weighted)
            out[number, m:last] = weighted @ self.covariate
        if self.has_tau:
            out[-1, :m] = self.sum_over_objects(terms.crossed)
            out[-1, m:last] = terms.crossed @ self.covariate
            out[-1, -1] = terms.tie_weight.sum()
        out[:m, m:] = out[m:, :m].T
        out[m:last, last:] = out[last:, m:last].T
        return out


def solve_votes(
    votes: Votes, names: tuple[str, ...], start: FloatArray
) -> tuple[FloatArray, FloatArray, int, float]:
    """Maximise the likelihood.

    Parameters
    ----------
    votes, names
        The votes, and the names of their covariates.
    start
        Strengths to begin with.

    Returns
    -------
    tuple
        Strengths with mean zero and effects; the inverse of the information; steps; the last one.
    """
    parameter = np.concatenate([start, np.zeros(votes.n_effects)])
    terms = votes.evaluate(parameter)
    for done in range(1, ROUNDS + 1):
        information = votes.information(terms)
        _refuse_determined(information, votes.n_objects, names)
        step = np.asarray(np.linalg.solve(information, votes.score(terms)), dtype=np.float64)
        size = float(np.abs(votes.add_up(step)).max()) + abs(float(step[-1])) * votes.has_tau
        before, share = terms.value, 1.0
        while True:
            terms = votes.evaluate(parameter + share * step)
            if terms.value >= before - abs(before) * 1e-12 or share < 1e-6:
                break
            share /= 2
        parameter = parameter + share * step
        parameter[: votes.n_objects] -= parameter[: votes.n_objects].mean()
        if size <= STEP_TOL:
            inverse = np.asarray(np.linalg.inv(votes.information(terms)), dtype=np.float64)
            return parameter, inverse, done, size
        effect = parameter[votes.n_objects :][: len(names)]
        reach = np.abs(votes.covariate * effect).max(initial=0.0)
        if reach > LARGEST_EFFECT:
            raise NotConverged(
                f"the covariates {', '.join(names)} tell winners from losers without a mistake, or "
                "nearly so, and their effects have no finite estimate. Leave one out"
            )
    raise NotConverged(
        f"Newton's method on the likelihood of {len(votes.winner):,} votes stopped with steps of "
        f"{size:.1e} logits; leave covariates out, or drop ties"
    )


def _refuse_determined(information: FloatArray, m: int, names: tuple[str, ...]) -> None:
    """Refuse a covariate that the two objects of a vote, or other covariates, determine."""
    scale = np.sqrt(np.maximum(information.diagonal(), 1e-300))
    scaled = information / np.outer(scale, scale)
    left = scaled[m:, m:] - scaled[m:, :m] @ np.linalg.solve(scaled[:m, :m], scaled[:m, m:])
    values, vectors = np.linalg.eigh(left)
    if values.size and values[0] < LEAST_LEFT:
        name = (*names, "tie")[int(np.abs(vectors[:, 0]).argmax())]
        raise BadResponses(
            f"the covariate {name!r} says nothing beside the objects: it is the same in all votes "
            "between the same two objects, or follows from other covariates. Leave it out"
        )
