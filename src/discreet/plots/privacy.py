"""What privacy costs: the error of difficulties against epsilon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.errors import BadUsage
from discreet.plots.style import BLUE, GREEN, GREY, ORANGE, VERMILLION, clean, new_axes

__all__ = ["privacy_plot"]

LINES = ((BLUE, "o-"), (VERMILLION, "s--"), (GREEN, "D-."), (ORANGE, "^:"), ("black", "v-"))
"""Colours and markers: one kind of line for each mechanism."""


def privacy_plot(
    epsilon: Sequence[float],
    error: Sequence[float] | Mapping[str, Sequence[float]],
    *,
    without_privacy: float | None = None,
    axes: Any = None,
) -> Any:
    """Draw the error of the difficulties against epsilon, on logarithmic axes.

    Parameters
    ----------
    epsilon
        The budgets.
    error
        Root mean square error in logits for each budget; or one such list per mechanism.
    without_privacy
        The error that sampling persons leaves anyway, as a line.
    axes
        Draw here; a new figure when left out.

    Returns
    -------
    matplotlib.axes.Axes
    """
    curves = dict(error) if isinstance(error, Mapping) else {"": error}
    _check_curves(epsilon, curves)
    axes = new_axes() if axes is None else axes
    for (name, values), (colour, style) in zip(curves.items(), LINES, strict=False):
        axes.loglog(epsilon, values, style, color=colour, label=name or "with privacy")
    if without_privacy is not None:
        axes.axhline(without_privacy, color=GREY, linestyle=":", label="without privacy")
    axes.set_xlabel("epsilon (less privacy to the right)")
    axes.set_ylabel("error of a difficulty in logits")
    axes.set_xticks(list(epsilon), [f"{value:g}" for value in epsilon])
    _label_decades(axes, [v for values in curves.values() for v in values], without_privacy)
    axes.minorticks_off()
    axes.grid(visible=True, color=GREY, alpha=0.2)
    clean(axes, "What privacy costs")
    axes.legend(frameon=False)
    return axes


def _check_curves(epsilon: Sequence[float], curves: Mapping[str, Sequence[float]]) -> None:
    if len(curves) > len(LINES):
        raise BadUsage(f"one picture holds up to {len(LINES)} curves, found {len(curves)}")
    for name, values in curves.items():
        if len(values) != len(epsilon):
            raise BadUsage(
                f"the curve {name!r} has {len(values)} errors for {len(epsilon)} values of epsilon"
            )
    numbers = np.concatenate(
        [np.asarray(list(epsilon), dtype=float), *map(np.asarray, curves.values())]
    )
    if not (numbers.size and (numbers > 0).all()):
        raise BadUsage("epsilon and errors must be above zero to be drawn on logarithmic axes")


def _label_decades(axes: Any, values: Sequence[float], floor: float | None) -> None:
    """Mark 1, 2 and 5 times powers of ten within the errors; a plain log axis shows too few."""
    shown = [*values, *([] if floor is None else [floor])]
    low, high = 0.8 * min(shown), 1.25 * max(shown)
    axes.set_ylim(low, high)
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    ticks = [times * 10.0**power for power in powers for times in (1, 2, 5)]
    ticks = [tick for tick in ticks if low <= tick <= high]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
