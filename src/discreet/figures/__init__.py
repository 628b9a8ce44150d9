"""Results as pictures. Computes nothing: the numbers come from ``report/pictures.py``.

In: an estimate, scores, fit statistics, counts. Out: matplotlib Axes (extra ``report``;
``axes.figure.savefig(path)`` writes a file). A picture is exactly as confidential as the result
in it. Colours are those of Okabe and Ito, which people with colour-blindness tell apart, and no
meaning rests on colour alone.
"""

from discreet.checking import check_exports
from discreet.figures.items import (
    category_plot,
    dif_plot,
    difficulty_plot,
    ladder_plot,
    pair_plot,
    threshold_plot,
)
from discreet.figures.scale import (
    contrast_plot,
    curve_plot,
    fit_plot,
    information_plot,
    option_plot,
    privacy_plot,
    wright_plot,
)

__all__ = [
    "category_plot", "contrast_plot", "curve_plot", "dif_plot", "difficulty_plot", "fit_plot",
    "information_plot", "ladder_plot", "option_plot", "pair_plot", "privacy_plot",
    "threshold_plot", "wright_plot",
]  # fmt: skip

check_exports(globals(), __all__)
