"""Rasch item difficulties, with uncertainty, and their release under differential privacy.

The public names below are loaded on first use, so that ``import discreet`` and
``discreet --help`` cost next to nothing.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet import datasets, errors
    from discreet.calibrate import fit
    from discreet.comparisons import (
        Comparisons,
        PublishedRanking,
        Strengths,
        count_comparisons,
        rank_comparisons,
        read_comparisons,
        read_released_ranking,
        release_comparisons,
        simulate_comparisons,
    )
    from discreet.counts import PairCounts
    from discreet.engines import count_pairs
    from discreet.estimate import Estimate
    from discreet.linking import (
        Anchored,
        Bank,
        Link,
        create_bank,
        fit_anchored,
        grow_bank,
        link_calibrations,
        read_bank,
        write_bank,
    )
    from discreet.persons import PersonScores, score
    from discreet.planning import Plan, plan
    from discreet.privacy.accounting import Budget, Guarantee
    from discreet.privacy.ledger import Ledger
    from discreet.publish import Published, read_release, release
    from discreet.rasch import PrivateRasch, SpectralRasch
    from discreet.responses import Responses, read_responses
    from discreet.resuming import resume_release
    from discreet.simulation import simulate
    from discreet.topk import Ranking, rank
    from discreet.verification import verify

__version__ = "0.1.0"

_HOME = {
    "Anchored": "discreet.linking",
    "Bank": "discreet.linking",
    "Budget": "discreet.privacy.accounting",
    "Comparisons": "discreet.comparisons",
    "Estimate": "discreet.estimate",
    "Guarantee": "discreet.privacy.accounting",
    "Ledger": "discreet.privacy.ledger",
    "Link": "discreet.linking",
    "PairCounts": "discreet.counts",
    "PersonScores": "discreet.persons",
    "Plan": "discreet.planning",
    "PrivateRasch": "discreet.rasch",
    "Published": "discreet.publish",
    "PublishedRanking": "discreet.comparisons",
    "Ranking": "discreet.topk",
    "Responses": "discreet.responses",
    "SpectralRasch": "discreet.rasch",
    "Strengths": "discreet.comparisons",
    "count_comparisons": "discreet.comparisons",
    "count_pairs": "discreet.engines",
    "create_bank": "discreet.linking",
    "fit": "discreet.calibrate",
    "fit_anchored": "discreet.linking",
    "grow_bank": "discreet.linking",
    "link_calibrations": "discreet.linking",
    "plan": "discreet.planning",
    "rank": "discreet.topk",
    "rank_comparisons": "discreet.comparisons",
    "read_bank": "discreet.linking",
    "read_comparisons": "discreet.comparisons",
    "read_release": "discreet.publish",
    "read_released_ranking": "discreet.comparisons",
    "read_responses": "discreet.responses",
    "release": "discreet.publish",
    "release_comparisons": "discreet.comparisons",
    "resume_release": "discreet.resuming",
    "score": "discreet.persons",
    "simulate": "discreet.simulation",
    "simulate_comparisons": "discreet.comparisons",
    "verify": "discreet.verification",
    "write_bank": "discreet.linking",
}
"""Every public name and the module it comes from; modules are found by their own name."""

__all__ = [
    "Anchored",
    "Bank",
    "Budget",
    "Comparisons",
    "Estimate",
    "Guarantee",
    "Ledger",
    "Link",
    "PairCounts",
    "PersonScores",
    "Plan",
    "PrivateRasch",
    "Published",
    "PublishedRanking",
    "Ranking",
    "Responses",
    "SpectralRasch",
    "Strengths",
    "__version__",
    "count_comparisons",
    "count_pairs",
    "create_bank",
    "datasets",
    "errors",
    "fit",
    "fit_anchored",
    "grow_bank",
    "link_calibrations",
    "plan",
    "rank",
    "rank_comparisons",
    "read_bank",
    "read_comparisons",
    "read_release",
    "read_released_ranking",
    "read_responses",
    "release",
    "release_comparisons",
    "resume_release",
    "score",
    "simulate",
    "simulate_comparisons",
    "verify",
    "write_bank",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name, f"discreet.{name}")
    if name.startswith("_") or find_spec(home) is None:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    module = importlib.import_module(home)
    value = getattr(module, name) if name in _HOME else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
