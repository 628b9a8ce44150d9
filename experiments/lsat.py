"""Figure 2a: the Law School Admission Test, section 6.

The error is the distance to the spectral estimate without privacy.

    python -m experiments.lsat [--quick] [--trials N] [--workers W]
"""

from __future__ import annotations

from experiments.education import PANELS, make_panel
from experiments.panels import draw_figure
from experiments.results import read_options

NAME = "lsat"


def main() -> None:
    options = read_options(__doc__ or "", trials=100, quick_trials=20)
    panel = make_panel("lsat", PANELS["lsat"])
    draw_figure(
        NAME, "Law School Admission Test: distance to the non-private estimate", [panel], options
    )


if __name__ == "__main__":
    main()
