"""The introduction's remark on randomized response: ten answers each are too many for it.

The paper says that no algorithm can then be accurate. So beside its own estimate stands the
library's, which knows how often answers were flipped. No figure of the paper has ten items.

    python -m experiments.ten_items [--quick] [--trials N] [--workers W]
"""

from __future__ import annotations

from dataclasses import replace

from experiments.panels import draw_figure
from experiments.results import read_options
from experiments.synthetic import make_panel

NAME = "ten_items"
PERSONS = (200, 1000)
CURVES = (
    "published response",
    "randomized-response",
    "published Gauss",
    "margins",
    "non-private",
    "all zero",
)


def main() -> None:
    options = read_options(__doc__ or "", trials=100, quick_trials=4)
    panels = [replace(make_panel(10, n), curves=CURVES) for n in PERSONS]
    draw_figure(NAME, "Ten items: error against the true difficulties", panels, options)


if __name__ == "__main__":
    main()
