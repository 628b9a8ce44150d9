"""How well the Rasch model fits: residuals, tests between groups, item functioning.

In: answers and a calibration. Out: tables about items, persons and groups. Confidential: all of
it is computed from the answers without any protection, and stays with the data steward.
"""

from discreet.itemfit.differences import DifTable, WaldTest, find_dif, run_wald
from discreet.itemfit.fitting import (
    FitStatistics,
    ItemFit,
    PersonFit,
    Reliability,
    measure_fit,
)
from discreet.itemfit.likelihoods import AndersenTest, run_andersen
from discreet.itemfit.multiplicity import ADJUSTMENTS, adjust
from discreet.itemfit.residuals import (
    InformationCurve,
    ResidualCorrelations,
    correlate_residuals,
    trace_information,
)

__all__ = [
    "ADJUSTMENTS",
    "AndersenTest",
    "DifTable",
    "FitStatistics",
    "InformationCurve",
    "ItemFit",
    "PersonFit",
    "Reliability",
    "ResidualCorrelations",
    "WaldTest",
    "adjust",
    "correlate_residuals",
    "find_dif",
    "measure_fit",
    "run_andersen",
    "run_wald",
    "trace_information",
]
