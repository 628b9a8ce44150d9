"""Analyses beyond difficulties: persons, fit, groups, links, plans.

In: answers and a calibration. Out: tables about items, persons and groups. Confidential: all of
it is computed from the answers without any protection, and stays with the data steward; only
plans, which never see data, and links between releases may be shown.
"""

from discreet.checking import check_exports
from discreet.items.cutoffs import FitCutoffs, simulate_cutoffs
from discreet.items.dif import DifTable, OmnibusDif, find_dif
from discreet.items.dimensionality import (
    Alpha,
    Contrast,
    Dimensionality,
    ReliabilityByTestlet,
    combine_testlets,
    find_dimensions,
    measure_alpha,
    measure_testlets,
)
from discreet.items.distractors import Distractors, analyse_distractors
from discreet.items.fit import (
    CategoryFit,
    FitStatistics,
    ItemFit,
    PersonFit,
    Reliability,
    measure_fit,
)
from discreet.items.group_differences import WaldTest, run_wald
from discreet.items.groups import ADJUSTMENTS, GroupMeans, adjust, find_group_means
from discreet.items.likelihood_ratios import (
    AndersenTest,
    StepModelTest,
    compare_step_models,
    run_andersen,
)
from discreet.items.martin_loef import MartinLoefTest, run_martin_loef
from discreet.items.mislabelled import Mislabelled, find_mislabelled
from discreet.items.raters import BiasTable, LevelFit, RatedPersons, study_ratings
from discreet.items.residuals import (
    InformationCurve,
    ResidualCorrelations,
    correlate_residuals,
    trace_information,
)
from discreet.persons.plausible import LatentRegression
from discreet.report.diagnosis import FitChange, ModelCheck, ModelTest, check_model, compare_fit

__all__ = [
    "ADJUSTMENTS", "Alpha", "AndersenTest", "BiasTable", "CategoryFit", "Contrast", "DifTable",
    "Dimensionality", "Distractors", "FitChange", "FitCutoffs", "FitStatistics", "GroupMeans",
    "InformationCurve", "ItemFit", "LatentRegression", "LevelFit", "MartinLoefTest",
    "Mislabelled", "ModelCheck", "ModelTest", "OmnibusDif", "PersonFit", "RatedPersons",
    "Reliability", "ReliabilityByTestlet", "ResidualCorrelations", "StepModelTest",
    "WaldTest", "adjust", "analyse_distractors", "check_model", "combine_testlets", "compare_fit",
    "compare_step_models", "correlate_residuals", "find_dif", "find_dimensions",
    "find_group_means", "find_mislabelled", "measure_alpha", "measure_fit", "measure_testlets",
    "run_andersen", "run_martin_loef", "run_wald", "simulate_cutoffs",
    "study_ratings", "trace_information",
]  # fmt: skip

check_exports(globals(), __all__)
