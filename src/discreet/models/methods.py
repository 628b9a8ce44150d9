"""The table of methods: adding one is one line here.

In: nothing. Out: what each method does, by name. Pair methods need pair counts only; answer
methods need the answers themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from discreet.answers.protocol import Answers
from discreet.counts.folds import PersonWeight
from discreet.counts.matrix import PairMatrix
from discreet.errors import BadUsage
from discreet.hints import check_choice_name
from discreet.models.item_parameters import KnownItems
from discreet.models.laplacian import Laplacian
from discreet.models.refined import RefinedScoring, curvature, solve_refined, solve_within
from discreet.models.spectral import SpectralScoring, balance, project_within, solve_stationary
from discreet.models.standard_errors import PairContribution
from discreet.models.structure import Structure
from discreet.results.estimate import Estimate, Solution
from discreet.types import FloatArray


@dataclass(frozen=True)
class Method:
    """An estimator: how to solve it, its Laplacian and its scores for standard errors."""

    solve: Callable[[Any], tuple[FloatArray, Solution]]
    laplacian: Callable[[Any, FloatArray], Laplacian]
    scoring: Callable[[FloatArray], PairContribution]
    weighting: PersonWeight | None
    #: The same among the thresholds of a structure: for a rating scale, or beside anchors.
    solve_within: Callable[[Any, Structure], tuple[FloatArray, Solution]]

    def find_solution(self, rates: PairMatrix, structure: Structure) -> tuple[FloatArray, Solution]:
        """Solve for the thresholds of a structure."""
        return self.solve(rates) if structure.is_identity else self.solve_within(rates, structure)

    def score(
        self, rates: PairMatrix, scoring: PairContribution, difficulty: FloatArray
    ) -> FloatArray:
        """Return how the objective grows with every threshold, elsewhere than at the solution."""
        dense = rates if isinstance(rates, np.ndarray) else rates.toarray()
        flow = dense * scoring.residual(difficulty[:, None], difficulty[None, :])
        return np.asarray(flow.sum(axis=0) - flow.sum(axis=1))


@dataclass(frozen=True)
class FitRequest:
    """What the caller of :func:`discreet.fit` asked for.

    ``undecided`` says whether conditional likelihood shall be tried, ``choice`` why a method was
    taken where none was named.
    """

    method: str
    standard_errors: bool = True
    regularisation: float = 0.0
    ability: str = "normal"
    model: str = "auto"
    undecided: bool = False
    choice: str = ""
    anchors: KnownItems | None = None
    keep_categories: bool = False


PAIR_METHODS: dict[str, Method] = {
    "refined": Method(
        solve_refined, curvature, lambda _: RefinedScoring(), PersonWeight(), solve_within
    ),
    "spectral": Method(
        solve_stationary, balance, lambda b: SpectralScoring(float(b.max())), None, project_within
    ),
}


def choose_keeping(request: FitRequest, has_anchors: bool) -> FitRequest:
    """Return a request to keep categories that nobody is in, by the one method that can."""
    if has_anchors:
        raise BadUsage(
            "keep_categories= (--keep-categories) and anchors= (--anchors) do not go together: "
            "pairs of answers say what is linked to anchors. Leave keep_categories= out"
        )
    if request.method not in ("auto", "conditional"):
        raise BadUsage(
            f"keep_categories= (--keep-categories) is for the method 'conditional', found "
            f"{request.method!r}: pairs of answers say nothing about two steps at once. Name the "
            "method 'conditional', or leave keep_categories= out"
        )
    return replace(request, method="conditional", keep_categories=True)


def choose_routed(request: FitRequest) -> FitRequest:
    """Return a request for answers with paths, by a method that is right there."""
    if request.method in PAIR_METHODS:
        raise BadUsage(
            f"the method {request.method!r} is wrong for routed answers: it compares pairs of "
            "answers without the path. Leave method= out, or name 'conditional' or 'marginal'"
        )
    choice = TOOK_PATHS if request.method == AUTO else ""
    is_marginal = request.method == "marginal"
    return request if is_marginal else replace(request, method="conditional", choice=choice)


class AnswerMethod(Protocol):
    """An estimator that needs the answers themselves and has its own standard errors."""

    def __call__(
        self, responses: Answers, *, ability: str, model: str, anchors: KnownItems | None
    ) -> Estimate: ...


def _conditional(
    responses: Answers, *, ability: str, model: str, anchors: KnownItems | None
) -> Estimate:
    if ability != "normal":
        raise BadUsage(
            "the method 'conditional' assumes nothing about abilities; leave ability out"
        )
    from discreet.models.conditional.estimator import fit_conditional

    return fit_conditional(responses, model, anchors)


def _marginal(
    responses: Answers, *, ability: str, model: str, anchors: KnownItems | None
) -> Estimate:
    from discreet.models.marginal.estimator import fit_marginal

    return fit_marginal(responses, model, ability=ability, anchors=anchors)


ANSWER_METHODS: dict[str, AnswerMethod] = {"conditional": _conditional, "marginal": _marginal}


def fit_by_likelihood(answers: Answers, request: FitRequest) -> Estimate:
    """Fit by a method that needs the answers themselves."""
    model, anchors = request.model, request.anchors
    if request.keep_categories:
        from discreet.models.conditional.estimator import fit_conditional

        return fit_conditional(answers, model, anchors, keep_categories=True)
    fit_by = ANSWER_METHODS[request.method]
    return fit_by(answers, ability=request.ability, model=model, anchors=anchors)


#: Choose a method automatically; see :mod:`discreet.models.conditional.estimator`.
AUTO = "auto"

#: What estimates of routed tests call the method "conditional".
GIVEN_PATHS = "conditional given paths"
TOOK_PATHS = "The method is conditional given paths: it is exact, whatever the abilities."

#: Every method by name.
METHODS: dict[str, Method | AnswerMethod] = {**PAIR_METHODS, **ANSWER_METHODS}


@dataclass(frozen=True)
class MethodWords:
    """What a paper says of a method: how difficulties and their standard errors were estimated."""

    how: str
    errors: str


_SANDWICH = "Standard errors are sandwich estimates over persons"
_INFORMATION = "Standard errors come from the information matrix"

#: Words for every method whose estimates this library makes or reads.
METHOD_WORDS: dict[str, MethodWords] = {
    "refined": MethodWords(
        "pairwise conditional maximum likelihood, each person weighted by one over the number of "
        "answers given and started from the spectral estimate (Nguyen & Zhang, 2023)",
        _SANDWICH,
    ),
    "spectral": MethodWords(
        "the spectral method, which reads the difficulties off the stationary distribution of a "
        "Markov chain on the items (Nguyen & Zhang, 2023)",
        _SANDWICH,
    ),
    "conditional": MethodWords("conditional maximum likelihood (Andersen, 1972)", _INFORMATION),
    GIVEN_PATHS: MethodWords(
        "conditional maximum likelihood, given the total score and the path through the modules "
        "(Zwitser & Maris, 2015)",
        _INFORMATION,
    ),
    "marginal": MethodWords("marginal maximum likelihood (Bock & Aitkin, 1981)", _INFORMATION),
    "noise-aware": MethodWords(
        "a fit to noisy counts with full knowledge of their noise",
        "Standard errors include both the sampling of persons and the noise",
    ),
    "winsteps": MethodWords(
        "Winsteps, whose item file was read", "Standard errors are those of that file"
    ),
}

#: Words for estimates of other makers.
OTHER_WORDS = MethodWords(
    "a method called {name}", "How their standard errors were estimated is not known here"
)


def check_method_name(name: str, ability: str) -> None:
    """Refuse a method that is not in the table, and options that it does not have."""
    check_choice_name("method", name, (AUTO, *METHODS))
    if ability != "normal" and name in (AUTO, *PAIR_METHODS):
        raise BadUsage(f"ability is an option of the method 'marginal' only, found {name!r}")
