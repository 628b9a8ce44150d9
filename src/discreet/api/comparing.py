"""Comparisons of judges: counts of wins and strengths, of anything that holds comparisons.

In: comparisons, counts of wins, a file or a data frame. Out: counts, :class:`~discreet.Strengths`.
"""

from __future__ import annotations

from typing import Unpack

from discreet.choices import PairMethod
from discreet.counts import ComparisonCounts
from discreet.models.compared import estimate_strengths
from discreet.readers.comparisons import ComparisonWords, open_comparisons
from discreet.results.ranking import Strengths


def count_comparisons(data: object, **reading: Unpack[ComparisonWords]) -> ComparisonCounts:
    """Count how often each object beat each other one; ties are left out.

    Parameters
    ----------
    data
        Comparisons, or a file or data frame with them.
    reading
        The keywords of :func:`discreet.read_comparisons`, for a file or data frame.

    Returns
    -------
    ComparisonCounts
        ``wins[i, j]`` is how often i beat j. Counts of different judges add up. Confidential.

    Examples
    --------
    >>> from discreet import Comparisons
    >>> votes = Comparisons.from_codes(judge=[0, 1], winner=[0, 0], loser=[1, 1], items=["a", "b"])
    >>> count_comparisons(votes).wins.tolist()
    [[0, 2], [0, 0]]
    """
    return open_comparisons(data, reading).count()


def rank_comparisons(
    data: object,
    *,
    method: PairMethod = "refined",
    regularisation: float = 0.0,
    **reading: Unpack[ComparisonWords],
) -> Strengths:
    """Estimate the strength of every object.

    Parameters
    ----------
    data
        Comparisons, a file or data frame with them, or counts.
    method
        ``"refined"`` (Bradley-Terry maximum likelihood) or ``"spectral"`` (rank centrality).
    regularisation
        Added to both directions of every compared pair, in comparisons. The default, none,
        leaves objects without a number where the comparisons do not determine one.
    reading
        The keywords of :func:`discreet.read_comparisons`, for a file or data frame. Among them are
        ``ties=`` and ``covariates=``.

    Returns
    -------
    Strengths
        Strengths in logits with mean zero. Standard errors hold also where the comparisons of
        one judge depend on each other (they add up over whole judges); from counts alone, and
        from votes without judges, all comparisons are taken as independent, and the notes of the
        solution say so. ``effects`` has those of covariates and ties.

    Raises
    ------
    DisconnectedItems
        If no two objects are linked: each must have beaten the other, directly or in a circle.

    Examples
    --------
    >>> from discreet import Comparisons
    >>> votes = Comparisons.from_codes(
    ...     judge=[0, 1, 2, 3], winner=[0, 0, 0, 1], loser=[1, 1, 1, 0], items=["ash", "elm"]
    ... )
    >>> import numpy as np
    >>> from discreet.results.ranking import rank
    >>> result = rank_comparisons(votes)
    >>> float(np.round(result.strength[0] - result.strength[1], 6)), rank(result, 1).top
    (1.098612, ('ash',))
    """
    if isinstance(data, ComparisonCounts) and not reading:
        return estimate_strengths(data, method=method, regularisation=regularisation)
    source = open_comparisons(data, reading)
    return estimate_strengths(source, method=method, regularisation=regularisation)
