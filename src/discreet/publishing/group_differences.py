"""Private differential functioning: items that are harder for one group than for another.

In: a release that was made with groups stated in advance. Out: a :class:`PrivateDif`. A person adds
residuals to the own group alone, so several groups have the noise of one release, and one charge.
Everything here is computed from released values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2, norm

from discreet.errors import BadUsage
from discreet.models.noisy.fit import PUBLIC_SEED
from discreet.models.noisy.residuals import fit_without_prior
from discreet.privacy.accounting import Guarantee
from discreet.privacy.mechanisms.residuals import LAST
from discreet.privacy.wall import Release
from discreet.results.estimate import draw_errors
from discreet.tabular import Columns, Tabular
from discreet.types import FloatArray

#: Draws of the largest of all statistics where nothing differs.
DRAWS = 20_000

#: Limits of the ETS classes in logits: below the first negligible, from the second on large.
NEGLIGIBLE, LARGE = 0.43, 0.64


@dataclass(frozen=True, eq=False)
class PrivateDif(Tabular):
    """How differently items function between groups, under differential privacy.

    Attributes
    ----------
    items, groups
        What is compared: ``[item, group]``, each group with the reference.
    reference
        The group that the others are compared with.
    difference, se
        In logits; positive: harder for the group than for the reference. Differences of a group
        have the mean zero over items.
    p_value, p_adjusted
        Of each difference alone, and for all of them together (max-t).
    p_item
        Of no difference of an item between any groups, for all items together: the group farthest
        from the mean of all. It finds an item that differs in one group, the reference included,
        more often than ``p_adjusted``.
    p_omnibus
        Of no difference anywhere (Wald).
    largest
        No item differs by more than this, with 95% confidence for all together.
    ets
        ``"A"``: within .43 logits, ``"C"``: beyond .43 and estimated beyond .64, by the interval
        that holds for all together; ``"B"`` otherwise.
    guarantee
        What is promised to each person.

    Examples
    --------
    >>> from discreet import PrivateDif
    >>> [*PrivateDif.__dataclass_fields__][3:5]
    ['difference', 'se']
    """

    items: tuple[str, ...]
    groups: tuple[str, ...]
    reference: str
    difference: FloatArray
    se: FloatArray
    p_value: FloatArray
    p_adjusted: FloatArray
    p_item: FloatArray
    p_omnibus: float
    largest: float
    ets: tuple[tuple[str, ...], ...]
    guarantee: Guarantee

    def to_dict(self) -> Columns:
        """Return a row for each item and group."""
        n = len(self.groups)
        columns = ("difference", "se", "p_value", "p_adjusted")
        return {
            "item": [item for item in self.items for _ in range(n)],
            "group": [*self.groups] * len(self.items),
            **{name: getattr(self, name).ravel().tolist() for name in columns},
            "p_item": np.repeat(self.p_item, n).tolist(),
            "ets": [one for row in self.ets for one in row],
        }


def compare_groups(noisy: Release, start: FloatArray) -> PrivateDif:
    """Compare the groups of a release from its noisy values, beginning at its difficulties."""
    if not noisy.public.groups or LAST not in noisy.laws:
        raise BadUsage("this release has no groups; make one with release_dif (--dif COLUMN)")
    reference, *others = noisy.public.groups
    start = start.round(6)  # as a bundle has them
    known = noisy.values, noisy.laws, noisy.public, noisy.settings
    fits = [fit_without_prior(*known, group=k, start=start) for k in range(1 + len(others))]
    m, ((base, base_covariance), *rest) = len(start), fits
    covariance = np.tile(base_covariance, (len(rest), len(rest)))
    for index, (_, own) in enumerate(rest):
        block = slice(index * m, (index + 1) * m)
        covariance[block, block] += own
    difference = np.array([own - base for own, _ in rest])
    se = np.sqrt(np.diag(covariance)).reshape(difference.shape)
    score = np.asarray(difference / se, dtype=np.float64)
    correlation = np.asarray(covariance / np.outer(se, se))
    draws = draw_errors(correlation, np.random.default_rng(PUBLIC_SEED), n_draws=DRAWS)
    highest = np.sort(np.abs(draws).max(axis=1))
    reach = se * np.quantile(highest, 0.95)
    flat = difference.ravel()
    wald = float(flat @ np.linalg.pinv(covariance, hermitian=True, rcond=1e-8) @ flat)
    size = np.abs(difference)
    ets = np.where(size + reach < NEGLIGIBLE, "A", "B")
    ets[(size - reach > NEGLIGIBLE) & (size > LARGE)] = "C"
    return PrivateDif(
        items=noisy.public.items,
        groups=tuple(others),
        reference=reference,
        difference=difference.T,
        se=se.T,
        p_value=2 * norm.sf(np.abs(score)).T,
        p_adjusted=_find_chance(np.abs(score), highest).T,
        p_item=_compare_with_mean(score, se, correlation, draws),
        p_omnibus=float(chi2.sf(wald, len(rest) * (m - 1))),
        largest=float((size + reach).max()),
        ets=tuple(map(tuple, ets.T.tolist())),
        guarantee=noisy.guarantee,
    )


def _compare_with_mean(
    score: FloatArray, se: FloatArray, correlation: FloatArray, draws: FloatArray
) -> FloatArray:
    """Return the chance of each item: of its group farthest from the mean of all groups."""
    n, m = 1 + len(score), score.shape[1]
    of_items, drawn = np.zeros(m), np.zeros((m, len(draws)))
    for item in range(m):
        of_item = np.arange(item, score.size, m)
        apart = (np.eye(n)[:, 1:] - 1 / n) * se[:, item]
        known = correlation[np.ix_(of_item, of_item)]
        apart /= np.sqrt(np.diag(apart @ known @ apart.T))[:, None]
        of_items[item] = np.abs(apart @ score[:, item]).max()
        drawn[item] = np.abs(draws[:, of_item] @ apart.T).max(axis=1)
    return _find_chance(of_items, np.sort(drawn.max(axis=0)))


def _find_chance(values: FloatArray, draws: FloatArray) -> FloatArray:
    """Return how often sorted draws are at least as large; never 0."""
    above = len(draws) - np.searchsorted(draws, values)
    return np.asarray((1 + above) / (1 + len(draws)))
