"""Figure 2c: four results of 131 students.

The error is the distance to the spectral estimate without privacy.

    python -m experiments.uci [--quick] [--trials N] [--workers W]
"""

from __future__ import annotations

from experiments.education import PANELS, make_panel
from experiments.panels import draw_figure
from experiments.results import read_options

NAME = "uci"


def main() -> None:
    options = read_options(__doc__ or "", trials=100, quick_trials=20)
    panel = make_panel("uci_student", PANELS["uci_student"])
    draw_figure(
        NAME, "School results of students: distance to the non-private estimate", [panel], options
    )


if __name__ == "__main__":
    main()
