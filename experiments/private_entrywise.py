"""The private entrywise error: with enough persons, privacy costs nothing.

The supplement argues that once n is of the order m^2 / epsilon^2 the noise is no larger than the
sampling error, so that the largest error of any item falls like without privacy, 1 / sqrt(n).

    python -m experiments.private_entrywise [--quick] [--trials N] [--workers W]
"""

from __future__ import annotations

import numpy as np

from experiments.results import read_options, save_figure, write_csv
from experiments.sweeps import draw_sweep, make_panels, run_sweep

NAME = "private_entrywise"
ITEMS = 25
PERSONS = (250, 500, 1000, 2000, 4000, 8000, 16000, 32000, 64000)
EPSILONS = (0.1, 1.0)
CURVES = ("published Gauss", "margins", "pairs", "laplace-pairs", "non-private", "all zero")


def main() -> None:
    options = read_options(__doc__ or "", trials=100, quick_trials=4)
    persons = PERSONS[::2] if options.quick else PERSONS
    panels = make_panels(ITEMS, persons, curves=CURVES, epsilons=EPSILONS, norm=np.inf)
    rows = run_sweep(NAME, panels, options)
    write_csv(options.out / f"{NAME}.csv", rows)
    title = f"Largest error of any item against the number of persons, {ITEMS} items"
    figure = draw_sweep(title, "largest error of any item (logits)", rows)
    save_figure(figure, options.out / f"{NAME}.png")


if __name__ == "__main__":
    main()
