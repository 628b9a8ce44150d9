"""Rasch item difficulties, with uncertainty, and their release under differential privacy.

The public names below are loaded on first use, so that ``import discreet`` and
``discreet --help`` cost next to nothing.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet import adaptive, datasets, errors
    from discreet import analysis as analysis  # not of __all__
    from discreet import figures as figures
    from discreet.analysis import find_dif
    from discreet.answers.comparisons import Comparisons
    from discreet.answers.ratings import Ratings
    from discreet.answers.responses import Responses
    from discreet.answers.routed import RoutingDesign
    from discreet.api.adaptive import item_information, next_item, predict_scores, select_items
    from discreet.api.banks import read_bank
    from discreet.api.calibrating import fit
    from discreet.api.comparing import count_comparisons, rank_comparisons
    from discreet.api.counting import count_pairs
    from discreet.api.drift import find_drift
    from discreet.api.leaderboards import leaderboard
    from discreet.api.loading import load
    from discreet.api.persons import score
    from discreet.api.ranks import compare_items, rank, rank_ranges
    from discreet.api.scales import create_bank, grow_bank, link_calibrations
    from discreet.coding.reading import Reading, ReadingWords
    from discreet.counts import PairCounts
    from discreet.items.dif import DifTable
    from discreet.persons.scoring import PersonScores
    from discreet.planning.plan import Plan, plan
    from discreet.privacy.accounting import Budget, Guarantee
    from discreet.privacy.ledger import Ledger
    from discreet.privacy.ledger.request import approve
    from discreet.publishing.bundle import Published, PublishedRanking
    from discreet.publishing.delivery import resume_release
    from discreet.publishing.group_differences import PrivateDif
    from discreet.publishing.group_means import PrivateMeans
    from discreet.publishing.notices import correction_notice, withdrawal_notice
    from discreet.publishing.release import (
        propose,
        release,
        release_comparisons,
        release_dif,
        release_means,
        release_request,
    )
    from discreet.publishing.verification import (
        check_ledger,
        read_release,
        read_released_ranking,
        refit,
        verify,
    )
    from discreet.readers.answers import read_responses
    from discreet.readers.comparisons import read_comparisons
    from discreet.readers.ratings import read_ratings
    from discreet.readers.routing import read_routing
    from discreet.results.estimate import Estimate
    from discreet.results.ranking import Ranking, Strengths
    from discreet.scales.bank import Bank, write_bank
    from discreet.scales.drift import Drift
    from discreet.scales.leaderboard import Leaderboard
    from discreet.scales.linking import Link
    from discreet.scales.predicted import PredictedScores
    from discreet.scales.ranks import ItemComparison, RankRanges
    from discreet.scales.reported import Scale
    from discreet.simulation import simulate, simulate_comparisons, simulate_ratings
    from discreet.sklearn import PrivateRasch, Rasch
    from discreet.tables.inspection import Inspection, inspect_table

__version__ = "0.2.0"

#: Modules and the public names that each holds.
_NAMES = {
    "api.adaptive": "item_information next_item predict_scores select_items",
    "api.drift": "find_drift",
    "api.persons": "score",
    "api.ranks": "compare_items rank rank_ranges",
    "api.scales": "create_bank grow_bank link_calibrations",
    "scales.bank": "Bank write_bank",
    "api.banks": "read_bank",
    "scales.drift": "Drift",
    "scales.linking": "Link",
    "persons.scoring": "PersonScores",
    "planning.plan": "Plan plan",
    "scales.reported": "Scale",
    "answers.comparisons": "Comparisons",
    "readers.comparisons": "read_comparisons",
    "api.counting": "count_pairs",
    "answers.ratings": "Ratings",
    "readers.ratings": "read_ratings",
    "readers.answers": "read_responses",
    "answers.responses": "Responses",
    "answers.routed": "RoutingDesign",
    "readers.routing": "read_routing",
    "counts": "PairCounts",
    "analysis": "find_dif",
    "items.dif": "DifTable",
    "api.calibrating": "fit",
    "api.comparing": "count_comparisons rank_comparisons",
    "privacy.accounting": "Budget Guarantee",
    "privacy.ledger": "Ledger",
    "privacy.ledger.request": "approve",
    "publishing.bundle": "Published PublishedRanking",
    "publishing.delivery": "resume_release",
    "publishing.notices": "correction_notice withdrawal_notice",
    "publishing.group_differences": "PrivateDif",
    "publishing.group_means": "PrivateMeans",
    "publishing.release": "propose release release_comparisons release_dif release_means"
    " release_request",
    "publishing.verification": "check_ledger read_release read_released_ranking refit verify",
    "results.estimate": "Estimate",
    "scales.predicted": "PredictedScores",
    "scales.ranks": "ItemComparison RankRanges",
    "results.ranking": "Ranking Strengths",
    "api.leaderboards": "leaderboard",
    "api.loading": "load",
    "scales.leaderboard": "Leaderboard",
    "simulation": "simulate_comparisons simulate simulate_ratings",
    "sklearn": "PrivateRasch Rasch",
    "tables.inspection": "Inspection inspect_table",
    "coding.reading": "Reading ReadingWords",
}

_HOME = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = [
    "Bank", "Budget", "Comparisons", "DifTable", "Drift", "Estimate", "Guarantee", "Inspection",
    "ItemComparison", "Leaderboard", "Ledger", "Link", "PairCounts", "PersonScores", "Plan",
    "PredictedScores", "PrivateDif", "PrivateMeans", "PrivateRasch", "Published",
    "PublishedRanking", "RankRanges", "Ranking", "Rasch", "Ratings", "Reading", "ReadingWords",
    "Responses", "RoutingDesign", "Scale", "Strengths", "__version__",
    "adaptive", "approve", "check_ledger", "compare_items", "correction_notice",
    "count_comparisons", "count_pairs", "create_bank", "datasets", "errors", "find_dif",
    "find_drift", "fit", "grow_bank", "inspect_table", "item_information", "leaderboard",
    "link_calibrations", "load", "next_item", "plan", "predict_scores", "propose", "rank",
    "rank_comparisons", "rank_ranges", "read_bank", "read_comparisons", "read_ratings",
    "read_release", "read_released_ranking", "read_responses", "read_routing", "refit",
    "release", "release_comparisons", "release_dif", "release_means", "release_request",
    "resume_release", "score", "select_items", "simulate", "simulate_comparisons",
    "simulate_ratings", "verify", "withdrawal_notice", "write_bank",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    home = f"discreet.{_HOME.get(name, name)}"
    message = f"module 'discreet' has no attribute {name!r}."
    if name.startswith("_"):
        raise AttributeError(message)
    if find_spec(home) is None:
        places = [importlib.import_module(f"discreet.{each}") for each in ("analysis", "errors")]
        calls = [f"Use {each.__name__}.{name}." for each in places if hasattr(each, name)]
        suggest = importlib.import_module("discreet.hints").suggest
        raise AttributeError(f"{message} {''.join(calls) or suggest(name, __all__)}")
    module = importlib.import_module(home)
    value = getattr(module, name) if name in _HOME else module
    if isinstance(value, FunctionType):
        value = importlib.import_module("discreet.checking").checked(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
