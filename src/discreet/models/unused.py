"""Categories that nobody used: what became of them, and what the data call the others.

In: the categories that a model keeps of those that answers have. Out: sentences, and an estimate
that calls its categories as the data do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from discreet.counts.nodes import Recoding
from discreet.results.estimate import Estimate, FitWarning, WarningKind


def tell_unused(
    items: Sequence[str], recoding: Recoding, lowest: int = 0
) -> tuple[FitWarning, ...]:
    """Say of every item what became of the categories that nobody used, the lowest called so."""
    found = []
    for item, kept, most in zip(items, recoding.kept, recoding.steps, strict=True):
        lost = [str(lowest + category) for category in range(most + 1) if category not in kept]
        if lost:
            moved = [(old + lowest, new + lowest) for new, old in enumerate(kept) if new != old]
            became = ", ".join(f"{old} to {new}" for old, new in moved)
            sentence = f"nobody is in category {' or '.join(lost)} of item '{item}': left out"
            sentence += f", and those above move down ({became})" if became else ""
            found.append(FitWarning(WarningKind.UNUSED_CATEGORY, sentence, [item]))
    return tuple(found)


def call_categories(found: Estimate, steps: Sequence[int], lowest: int) -> Estimate:
    """Return an estimate that calls categories what the data call them, from ``lowest`` on.

    ``steps`` are those of the answers, before unused categories were left out.
    """
    if found.ladder is None or not lowest:
        return found
    told = tell_unused(found.items, Recoding(tuple(steps), found.ladder.kept), lowest)
    others = (one for one in found.warnings if one.kind is not WarningKind.UNUSED_CATEGORY)
    return replace(found, ladder=replace(found.ladder, lowest=lowest), warnings=(*told, *others))
