"""Difficulties drawn towards their mean, for whoever chooses items by their difficulty.

In: a calibration with standard errors. Out: a mapping from item to difficulty.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.errors import BadUsage
from discreet.scales.bank import Bank


def shrink(calibration: Any) -> dict[str, float]:
    """Draw difficulties towards their mean, each by as much as its standard error says.

    Who looks for items of a certain difficulty finds above all those whose estimate is there by
    chance, and whose true difficulty is nearer to the others. With few persons (a hundred or so)
    abilities from an adaptive session would be too far out; with these difficulties they are not.
    Normal difficulties are assumed, of the variance that the estimates have beyond their errors.

    Parameters
    ----------
    calibration
        An estimate, a release or a bank, with standard errors. Items without one are left out.

    Returns
    -------
    dict
        From item to difficulty, for :func:`discreet.adaptive.start`, :func:`discreet.next_item`
        and :func:`discreet.score`.

    Examples
    --------
    >>> import numpy as np, discreet
    >>> few = discreet.simulate(60, 200, rng=np.random.default_rng(1))
    >>> estimate = discreet.fit(few.responses, method="refined")
    >>> hardest = discreet.rank(estimate, top=1).top[0]
    >>> round(float(estimate.difficulty[estimate.items.index(hardest)]), 2)
    2.93
    >>> round(shrink(estimate)[hardest], 2)
    2.11
    """
    bank = calibration.active() if isinstance(calibration, Bank) else calibration
    source = getattr(bank, "estimate", bank)
    b, se = (np.asarray(getattr(source, name, ()), dtype=float) for name in ("difficulty", "se"))
    use = np.flatnonzero(np.isfinite(b) & np.isfinite(se)) if len(b) == len(se) else ()
    if not len(use):
        raise BadUsage(
            f"found no standard errors in the calibration (a {type(calibration).__name__}), and "
            "they say how far to shrink; give what fit returned with standard errors, a release or "
            "a bank"
        )
    b, variance = b[use], se[use] ** 2
    spread = max(float(b.var() - variance.mean()), 0.0)
    reliability = spread / np.maximum(spread + variance, np.finfo(float).tiny)
    shrunken = b.mean() + reliability * (b - b.mean())
    return {source.items[i]: float(value) for i, value in zip(use, shrunken, strict=True)}
