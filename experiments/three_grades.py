"""Figure 2b: three marks of 649 pupils.

The error is the distance to the spectral estimate without privacy.

    python -m experiments.three_grades [--quick] [--trials N] [--workers W]
"""

from __future__ import annotations

from experiments.education import PANELS, make_panel
from experiments.panels import draw_figure
from experiments.results import read_options

NAME = "three_grades"


def main() -> None:
    options = read_options(__doc__ or "", trials=100, quick_trials=20)
    panel = make_panel("three_grades", PANELS["three_grades"])
    draw_figure(
        NAME,
        "Three grades of Portuguese pupils: distance to the non-private estimate",
        [panel],
        options,
    )


if __name__ == "__main__":
    main()
