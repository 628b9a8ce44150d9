"""What answers and a calibration say beyond difficulties: persons, fit, groups, links, plans.

In: answers and a calibration. Out: tables about items, persons and groups. Confidential: all of
it is computed from the answers without any protection, and stays with the data steward; only
plans, which never see data, and links between releases may be shown.
"""

from discreet.analysis.before_after import FitChange, compare_fit
from discreet.analysis.category_fit import CategoryFit
from discreet.analysis.check import ModelCheck, ModelTest, check_model
from discreet.analysis.dif import DifTable, WaldTest, find_dif, run_wald
from discreet.analysis.dimensionality import Contrast, Dimensionality, find_dimensions
from discreet.analysis.distractors import Distractors, analyse_distractors
from discreet.analysis.groups import ADJUSTMENTS, AndersenTest, adjust, run_andersen
from discreet.analysis.item_fit import (
    FitStatistics,
    ItemFit,
    PersonFit,
    Reliability,
    measure_fit,
)
from discreet.analysis.martin_loef import Alpha, MartinLoefTest, measure_alpha, run_martin_loef
from discreet.analysis.mislabelled import Mislabelled, find_mislabelled
from discreet.analysis.plausible import LatentRegression
from discreet.analysis.residuals import (
    InformationCurve,
    ResidualCorrelations,
    correlate_residuals,
    trace_information,
)
from discreet.analysis.scalogram import Scalogram, order_answers
from discreet.analysis.step_models import StepModelTest, compare_step_models

__all__ = [
    "ADJUSTMENTS",
    "Alpha",
    "AndersenTest",
    "CategoryFit",
    "Contrast",
    "DifTable",
    "Dimensionality",
    "Distractors",
    "FitChange",
    "FitStatistics",
    "InformationCurve",
    "ItemFit",
    "LatentRegression",
    "MartinLoefTest",
    "Mislabelled",
    "ModelCheck",
    "ModelTest",
    "PersonFit",
    "Reliability",
    "ResidualCorrelations",
    "Scalogram",
    "StepModelTest",
    "WaldTest",
    "adjust",
    "analyse_distractors",
    "check_model",
    "compare_fit",
    "compare_step_models",
    "correlate_residuals",
    "find_dif",
    "find_dimensions",
    "find_mislabelled",
    "measure_alpha",
    "measure_fit",
    "order_answers",
    "run_andersen",
    "run_martin_loef",
    "run_wald",
    "trace_information",
]
