"""The methods section of a paper, written from what was done."""

from __future__ import annotations

from discreet import __version__
from discreet.analysis.diagnostics import Diagnostics
from discreet.analysis.finding import DEPENDENT, count_of
from discreet.results.estimate import Estimate, Status

METHOD_WORDS = {
    "refined": "pairwise conditional maximum likelihood, each person weighted by one over the "
    "number of answers given and started from the spectral estimate (Nguyen & Zhang, 2023)",
    "spectral": "the spectral method, which reads the difficulties off the stationary distribution "
    "of a Markov chain on the items (Nguyen & Zhang, 2023)",
    "conditional": "conditional maximum likelihood (Andersen, 1972)",
    "marginal": "marginal maximum likelihood (Bock & Aitkin, 1981)",
}
ERROR_WORDS = {
    "refined": "Standard errors are sandwich estimates over persons",
    "spectral": "Standard errors are sandwich estimates over persons",
    "conditional": "Standard errors come from the information matrix",
    "marginal": "Standard errors come from the information matrix",
}


def write_methods(estimate: Estimate, diagnostics: Diagnostics | None) -> str:
    """Return one paragraph in the past tense, with the references it names."""
    how = METHOD_WORDS.get(estimate.method, estimate.method)
    errors = ERROR_WORDS.get(estimate.method, "")
    left_out = len(estimate.items) - int(estimate.estimated.sum())
    sentences = [
        _describe_data(estimate),
        f"Item difficulties of the Rasch model (Rasch, 1960) were estimated by {how}, with "
        f"discreet {__version__}; they are in logits and {_describe_scale(estimate)}.",
        f"{errors}." if errors else "",
        f"{left_out} of the {len(estimate.items)} items had no estimable difficulty."
        if left_out
        else "",
    ]
    if diagnostics is not None:
        sentences += _describe_checks(diagnostics)
    return " ".join(sentence for sentence in sentences if sentence)


def _describe_scale(estimate: Estimate) -> str:
    anchors = sum(status == Status.ANCHORED for status in estimate.status)
    return f"on the scale of {anchors} anchored items" if anchors else "have mean zero"


def _describe_data(estimate: Estimate) -> str:
    if estimate.answers is None or estimate.persons is None:
        return f"The analysis covers {len(estimate.items)} items."
    answers = int(estimate.answers.sum())
    share = answers / max(estimate.persons * len(estimate.items), 1)
    given = "all cells" if share == 1 else f"{100 * share:.1f}% of all cells; others are missing"
    return (
        f"The analysis covers {answers:,} answers of {estimate.persons:,} persons to "
        f"{len(estimate.items):,} items ({given})."
    )


def _describe_checks(diagnostics: Diagnostics) -> list[str]:
    sentences = [
        "Abilities were estimated by weighted likelihood (Warm, 1989) with the difficulties held "
        f"fixed (mean {diagnostics.ability_mean:.2f}, SD {diagnostics.ability_sd:.2f}).",
        "Fit was assessed by infit and outfit mean squares (Wright & Masters, 1982).",
    ]
    if diagnostics.reliability is not None:
        sentences.append(f"Person separation reliability was {diagnostics.reliability:.2f}.")
    if diagnostics.dependent is not None:
        sentences.append(
            f"Residual correlations (Q3; Yen, 1984) exceeded their mean by more than {DEPENDENT:g} "
            f"and more than chance for {count_of(diagnostics.dependent_pairs, 'pair')} of items."
        )
    return sentences
