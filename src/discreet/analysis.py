"""Analyses beyond difficulties: persons, fit, groups, links, plans.

In: answers and a calibration. Out: tables about items, persons and groups. Confidential: all of
it is computed from the answers without any protection, and stays with the data steward; only
plans, which never see data, and links between releases may be shown.
"""

from discreet.api.opening import opens
from discreet.checking import check_exports
from discreet.items import (
    cutoffs,
    dif,
    dimensionality,
    distractors,
    fit,
    group_differences,
    groups,
    likelihood_ratios,
    martin_loef,
    mislabelled,
    residuals,
    resolving,
)
from discreet.items.cutoffs import FitCutoffs
from discreet.items.dif import DifTable, OmnibusDif
from discreet.items.dimensionality import Alpha, Contrast, Dimensionality, ReliabilityByTestlet
from discreet.items.distractors import Distractors
from discreet.items.fit import CategoryFit, FitStatistics, ItemFit, PersonFit, Reliability
from discreet.items.given_totals import UnexpectedAnswers
from discreet.items.group_differences import WaldTest
from discreet.items.groups import ADJUSTMENTS, GroupMeans, adjust
from discreet.items.likelihood_ratios import AndersenTest, StepModelTest
from discreet.items.martin_loef import MartinLoefTest
from discreet.items.mislabelled import Mislabelled
from discreet.items.raters import BiasTable, LevelFit, RatedPersons, study_ratings
from discreet.items.residuals import InformationCurve, ResidualCorrelations
from discreet.items.resolving import ResolvedDif
from discreet.items.study import Study
from discreet.persons import scoring
from discreet.persons.plausible import LatentRegression
from discreet.persons.scoring import ScoreTable
from discreet.report import diagnosis
from discreet.report.diagnosis import FitChange, ModelCheck, ModelTest, compare_fit

__all__ = [
    "ADJUSTMENTS", "Alpha", "AndersenTest", "BiasTable", "CategoryFit", "Contrast", "DifTable",
    "Dimensionality", "Distractors", "FitChange", "FitCutoffs", "FitStatistics", "GroupMeans",
    "InformationCurve", "ItemFit", "LatentRegression", "LevelFit", "MartinLoefTest",
    "Mislabelled", "ModelCheck", "ModelTest", "OmnibusDif", "PersonFit", "RatedPersons",
    "Reliability", "ReliabilityByTestlet", "ResidualCorrelations", "ResolvedDif", "ScoreTable",
    "StepModelTest", "Study", "UnexpectedAnswers", "WaldTest", "adjust", "analyse_distractors",
    "check_model", "combine_testlets", "compare_fit", "compare_step_models",
    "correlate_residuals", "find_dif", "find_dimensions", "find_group_means",
    "find_mislabelled", "measure_alpha", "measure_fit", "measure_testlets", "resolve_dif",
    "run_andersen", "run_martin_loef", "run_wald", "simulate_cutoffs", "split_items",
    "study_ratings", "tabulate_scores", "trace_information",
]  # fmt: skip

#: Functions of the engine, which open what they are given first.
simulate_cutoffs = opens(cutoffs.simulate_cutoffs)
find_dif = opens(dif.find_dif)
combine_testlets = opens(dimensionality.combine_testlets)
find_dimensions = opens(dimensionality.find_dimensions)
measure_alpha = opens(dimensionality.measure_alpha)
measure_testlets = opens(dimensionality.measure_testlets)
analyse_distractors = opens(distractors.analyse_distractors)
measure_fit = opens(fit.measure_fit)
run_wald = opens(group_differences.run_wald)
find_group_means = opens(groups.find_group_means)
compare_step_models = opens(likelihood_ratios.compare_step_models)
run_andersen = opens(likelihood_ratios.run_andersen)
run_martin_loef = opens(martin_loef.run_martin_loef)
find_mislabelled = opens(mislabelled.find_mislabelled)
correlate_residuals = opens(residuals.correlate_residuals)
resolve_dif = opens(resolving.resolve_dif)
split_items = opens(resolving.split_items)
trace_information = opens(residuals.trace_information)
tabulate_scores = opens(scoring.tabulate_scores)
check_model = opens(diagnosis.check_model)

check_exports(globals(), __all__)
