"""Many tests at once: adjusted p-values.

In: p-values, NaN where there was no test. Out: adjusted p-values in the same places.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.errors import BadUsage

__all__ = ["ADJUSTMENTS", "adjust"]

FloatArray = npt.NDArray[np.float64]

ADJUSTMENTS = ("benjamini-hochberg", "holm", "none")


def adjust(p_value: npt.ArrayLike, method: str) -> FloatArray:
    """Adjust p-values for their number.

    Parameters
    ----------
    p_value
        NaN where there was no test; such places do not count.
    method
        ``"benjamini-hochberg"`` bounds the expected share of false alarms among the alarms,
        ``"holm"`` the probability of any false alarm, ``"none"`` changes nothing.

    Examples
    --------
    >>> adjust([0.01, 0.04, 0.03], "holm").round(3).tolist()
    [0.03, 0.06, 0.06]
    >>> adjust([0.01, 0.04, 0.03], "benjamini-hochberg").round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    if method not in ADJUSTMENTS:
        raise BadUsage(f"adjustment must be one of {', '.join(ADJUSTMENTS)}; found {method!r}")
    p = np.array(p_value, dtype=np.float64)
    tested = np.flatnonzero(~np.isnan(p))
    if method == "none" or not len(tested):
        return p
    order = tested[np.argsort(p[tested], kind="stable")]
    n = len(order)
    rank = np.arange(1, n + 1)
    if method == "holm":
        p[order] = np.minimum(np.maximum.accumulate(p[order] * (n - rank + 1)), 1.0)
    else:
        scaled = p[order] * n / rank
        p[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return p
