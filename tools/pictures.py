"""Draw the picture of the README: ``python -m tools.pictures`` writes ``docs/images/lsat.png``.

The file carries the numbers that it shows, so that a test can tell when they are old.
"""

from __future__ import annotations

import json
from pathlib import Path

from PIL import Image

import discreet
from discreet.figures import difficulty_plot

__all__ = ["PICTURE", "describe", "draw", "numbers_of"]

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "lsat.png"


def describe(estimate: discreet.Estimate) -> dict[str, list[float]]:
    """Return what the picture shows: difficulty and standard error of every item."""
    rows = zip(estimate.items, estimate.difficulty, estimate.se, strict=True)
    return {item: [round(float(b), 3), round(float(se), 3)] for item, b, se in rows}


def numbers_of(path: Path) -> dict[str, list[float]]:
    """Return the numbers that a picture carries."""
    with Image.open(path) as picture:
        found: dict[str, list[float]] = json.loads(picture.info["Description"])
    return found


def draw(path: Path) -> None:
    """Draw the difficulties of the bundled answers, as the README fits them."""
    estimate = discreet.fit(discreet.datasets.lsat())
    note = {"Description": json.dumps(describe(estimate))}
    difficulty_plot(estimate).figure.savefig(path, dpi=110, metadata=note)


if __name__ == "__main__":
    draw(PICTURE)
