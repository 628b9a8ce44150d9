"""How often tests of rater bias raise an alarm where nobody is biased.

::

    python -m experiments.calibration.rater_bias --commit `git log -1 --format=%h`

That is 400 studies of each design and takes 6 minutes.

Studies are drawn from a facets model without interactions, so that every p-value below the level is
a false alarm. The tests of one study depend on each other: the error of a share is found from the
shares of the studies. Rows go to the end of ``rater_bias.csv`` beside this file.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np

import discreet
from discreet.analysis import study_ratings
from discreet.answers.ratings import Ratings

FILE = Path(__file__).with_suffix(".csv")
LEVELS = 0.05, 0.01
SEED = 1000
#: By name: persons, items, raters, raters of a person, strengths of persons at items (SD), facets.
DESIGNS: dict[str, tuple[int, int, int, int, float, tuple[str, str]]] = {
    "items": (200, 4, 8, 3, 0.0, ("rater", "item")),
    "two raters": (200, 4, 8, 2, 0.0, ("rater", "item")),
    "few persons": (60, 4, 5, 2, 0.0, ("rater", "item")),
    "strengths at items": (200, 4, 8, 3, 1.0, ("rater", "item")),
    "drift": (200, 4, 8, 3, 0.0, ("rater", "month")),
}


def find_p_values(design: str, seed: int) -> np.ndarray:
    """Draw a study and test every pair of levels."""
    persons, items, raters, marks, effect, facets = DESIGNS[design]
    drawn = discreet.simulate_ratings(
        persons, items, raters, marks=marks, effect_sd=effect, rng=np.random.default_rng(seed)
    ).ratings
    # Half of the persons are rated in each of two months.
    ratings = Ratings.from_codes(
        drawn.person, drawn.item, drawn.score, facets={**drawn.codes, "month": drawn.person % 2}
    )
    study = study_ratings(ratings, discreet.fit(ratings, facets=["rater"]))
    p = study.find_bias(*facets).p
    return p[np.isfinite(p)]


def measure(design: str, studies: int) -> dict[str, object]:
    """Return the shares of false alarms and their errors by study."""
    p_values = [find_p_values(design, SEED + study) for study in range(studies)]
    row: dict[str, object] = {
        "design": design,
        "studies": studies,
        "tests": sum(map(len, p_values)),
    }
    for level in LEVELS:
        shares = np.array([(p < level).mean() for p in p_values])
        row[f"below {level}"] = round(float(shares.mean()), 4)
        row[f"error {level}"] = round(float(shares.std(ddof=1)) / studies**0.5, 4)
    return row


def main() -> None:
    """Measure every design and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--commit", required=True, help="what is measured")
    given = parser.parse_args()
    for design in DESIGNS:
        row = measure(design, given.studies) | {"seed": SEED, "commit": given.commit}
        is_new = not FILE.exists()
        with FILE.open("a", newline="") as file:
            writer = csv.DictWriter(file, list(row), lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerow(row)
        print(*(f"{name} {value}" for name, value in row.items()), sep=", ", flush=True)


if __name__ == "__main__":
    main()
