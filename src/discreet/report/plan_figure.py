"""The picture of a plan: what epsilon buys.

In: a plan. Out: a sheet, which a template writes as SVG.
"""

from __future__ import annotations

from math import log10

from discreet.planning.plan import Plan
from discreet.report.svg_canvas import Sheet

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Those of the picture, beside the plan's own: few, because exact noise takes its time."""


def draw_epsilons(plan: Plan) -> Sheet:
    """Draw the error against epsilon, with the plan's own as a dot; dashed without privacy."""
    others = plan.curve("epsilon", sorted({*EPSILONS, plan.epsilon}))
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
