"""The picture of a plan: what epsilon buys.

In: a plan, and the same plan at other epsilons. Out: a sheet, which a template writes as SVG.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log10

from discreet.analysis.planning import Plan
from discreet.output.sheet import Sheet

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Named below the picture."""


def choose_epsilons(plan: Plan, points: int) -> list[float]:
    """Return epsilons in equal ratios around the usual ones, as far as the plan's own."""
    low, high = min(EPSILONS[0], plan.epsilon), max(EPSILONS[-1], plan.epsilon)
    return [low * (high / low) ** (k / (points - 1)) for k in range(points)]


def draw_epsilons(plan: Plan, others: Sequence[Plan]) -> Sheet:
    """Draw the error against epsilon, with the plan's own as a dot; dashed without privacy."""
    x = [log10(one.epsilon) for one in others]
    y = [one.rmse for one in others]
    sheet = Sheet(
        x=(x[0], x[-1]),
        y=(0, 1.05 * max(y)),
        description=f"Typical error by epsilon: {y[0]:.2f} logits at epsilon "
        f"{others[0].epsilon:.2g}, {y[-1]:.2f} at {others[-1].epsilon:.2g}; without privacy "
        f"{plan.rmse_without_privacy:.2f}",
        top=24,
    )
    sheet.x_axis("epsilon, in equal ratios", ticks={log10(e): f"{e:g}" for e in EPSILONS})
    sheet.y_axis("typical error in logits")
    sheet.line("second", sheet.x, (plan.rmse_without_privacy,) * 2)
    sheet.line("line", x, y)
    chosen = f"epsilon {plan.epsilon:g}: {plan.rmse:.3f} logits"
    sheet.dot("dot", log10(plan.epsilon), plan.rmse, 6, chosen)
    return sheet
