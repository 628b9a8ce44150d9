"""Results as pictures. Computes nothing beyond binning: every number comes from a result.

In: an estimate, scores, fit statistics, counts. Out: matplotlib Axes (extra ``report``;
``axes.figure.savefig(path)`` writes a file). A picture is exactly as confidential as the result
in it. Colours are those of Okabe and Ito, which people with colour-blindness tell apart, and no
meaning rests on colour alone.
"""

from discreet.plots.checks import dif_plot, fit_plot, pair_plot
from discreet.plots.items import difficulty_plot, ladder_plot
from discreet.plots.privacy import privacy_plot
from discreet.plots.scale import curve_plot, information_plot, wright_plot

__all__ = [
    "curve_plot",
    "dif_plot",
    "difficulty_plot",
    "fit_plot",
    "information_plot",
    "ladder_plot",
    "pair_plot",
    "privacy_plot",
    "wright_plot",
]
