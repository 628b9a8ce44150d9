"""Leaderboards: measures of models, ranks as far as they are sure, tiers that cannot be told apart.

In: counts of right answers of models to questions. Out: a :class:`Leaderboard`. Questions are what
was sampled, so every error adds up over questions, or over clusters of them (passages). It holds
for further questions of the kind, and with any dependence between the answers to one question.
Confidential where the answers are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.answers.repeated import SampleCounts
from discreet.choices import CountMethod, PlainMapping
from discreet.errors import BadUsage, DisconnectedItems, FitWarning, WarningKind
from discreet.models.repeated import fit_counts, sum_clusters
from discreet.results.differences import find_differences
from discreet.results.estimate import Estimate, check_level, explain_left_out
from discreet.scales.ranks import RankRanges, find_probability, rank_ranges
from discreet.tabular import AnalysisTable, Columns, Tabular, list_field_columns
from discreet.text import count_of, markdown_table, minus, name_some
from discreet.types import FloatArray, IndexArray, Int64Array

#: Models whose names begin alike are called a family from so many on.
FAMILY = 3

#: Models for each question from which on models may be the questions.
MANY_MODELS = 2

REASONS = {
    "always_right": "had everything right",
    "always_wrong": "had everything wrong",
    "no_answers": "have no answers",
    "not_connected": "share too few questions with the others",
}
ANY_RANK = ". Such a model may have any rank, and all ranges allow for it"


@dataclass(frozen=True, eq=False)
class Leaderboard(Tabular):
    """Models by their measure, the best first.

    Attributes
    ----------
    estimate
        The measures with their covariance, as an estimate of what is called items there.
    ranges
        Rank ranges of the models that have a measure, see :func:`discreet.rank_ranges`.
    accuracy, accuracy_se
        Mean share of right answers over the questions that a model answered, and its standard
        error.
    rank_low, rank_high
        The best and the worst rank that a model may have; all of them hold together with
        probability ``level``. A model without a measure may have any rank, and may stand above or
        below every other.
    tier
        A model of tier t is surely worse than one of tier t - 1, and not surely better or worse
        than any of its own. 0 without a standard error.
    pass_at
        For which k ``passed`` holds pass@k.
    passed, passed_se
        ``[model, k]``: the chance that at least one of k samples is right, averaged over
        questions, and its standard error.
    questions, clusters, samples
        How many questions there are, how many clusters of them, and the most samples of a cell.
    families
        Groups of models whose names begin alike.
    warnings
        Which models have no measure, and what else to know.

    Examples
    --------
    >>> import discreet
    >>> board = discreet.leaderboard(discreet.simulate(persons=4, items=300).responses)
    >>> len(board.models), board.questions
    (4, 300)
    """

    estimate: Estimate
    ranges: RankRanges
    accuracy: FloatArray
    accuracy_se: FloatArray
    rank_low: Int64Array
    rank_high: Int64Array
    tier: Int64Array
    questions: int
    clusters: int
    samples: int
    pass_at: tuple[int, ...]
    passed: FloatArray
    passed_se: FloatArray
    families: tuple[tuple[str, ...], ...]
    warnings: tuple[FitWarning, ...]

    noun = "model"

    def __repr__(self) -> str:
        return f"<Leaderboard: {self.describe()[0].partition('.')[0]}>"

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models, the best first; those without a measure last."""
        return self.estimate.items

    @property
    def measure(self) -> FloatArray:
        """Measures in logits with mean zero; NaN where there is none."""
        return self.estimate.difficulty

    @property
    def se(self) -> FloatArray:
        """Standard errors of the measures."""
        return self.estimate.se

    @property
    def status(self) -> tuple[str, ...]:
        """Why a model has a measure, or none."""
        return tuple(str(status) for status in self.estimate.status)

    @property
    def level(self) -> float:
        """The probability that all rank ranges hold together."""
        return self.ranges.level

    @property
    def comparisons(self) -> AnalysisTable:
        """Every pair of models: their difference and what is sure about it.

        ``lower`` and ``upper`` hold for all pairs together, ``probability`` is that of the order of
        this pair alone, and ``told_apart`` takes all pairs into account.
        """
        differences, names = find_differences(self.estimate), self.ranges.items
        first, second = np.triu_indices(len(names), 1)
        error = differences.errors()[first, second]
        apart = differences.value[first] - differences.value[second]
        pairs = zip(apart.tolist(), error.tolist(), strict=True)
        return AnalysisTable(
            "comparisons",
            "Pairs of models",
            "A row for every pair of models, the better first; differences are in logits.",
            {
                "first": [names[i] for i in first],
                "second": [names[i] for i in second],
                "difference": apart.tolist(),
                "se": error.tolist(),
                "lower": (apart - self.ranges.quantile * error).tolist(),
                "upper": (apart + self.ranges.quantile * error).tolist(),
                "probability": [find_probability(*pair, differences.degrees) for pair in pairs],
                "told_apart": (apart > self.ranges.bar * error).tolist(),
            },
        )

    def to_dict(self) -> Columns:
        """One list per column: model, measure, se, accuracy, ..., rank_low, rank_high, tier."""
        names = ("measure", "se", "accuracy", "accuracy_se", "rank_low", "rank_high", "tier")
        columns: Columns = {"model": list(self.models), **list_field_columns(self, *names)}
        for number, k in enumerate(self.pass_at):
            columns[f"pass@{k}"] = self.passed[:, number].tolist()
            columns[f"pass@{k}_se"] = self.passed_se[:, number].tolist()
        return {**columns, "status": list(self.status)}

    def list_numbers(self) -> list[tuple[str, FloatArray, FloatArray, int]]:
        """Return what tables show: its name, values, their standard errors, digits."""
        passed = zip(self.pass_at, self.passed.T, self.passed_se.T, strict=True)
        return [
            ("accuracy", self.accuracy, self.accuracy_se, 3),
            *((f"pass@{k}", value, se, 3) for k, value, se in passed),
            ("measure", self.measure, self.se, 2),
        ]

    def to_markdown(self) -> str:
        """Return the table for a README: model, rank, tier, accuracy, measure."""
        ranks = [self.show_rank(n) for n in range(len(self.models))]
        columns = {"model": self.models, "rank": ranks, "tier": [str(t or "–") for t in self.tier]}
        for name, values, errors, digits in self.list_numbers():
            cells = zip(values, errors, strict=True)
            columns[name] = [_write(value, se, digits) for value, se in cells]
        notes = [*self.describe(), *map(str, self.warnings)]
        table = markdown_table([*columns], [*zip(*columns.values(), strict=True)])
        return "\n\n".join([table, *notes]) + "\n"

    def show_rank(self, row: int) -> str:
        """Return the ranks that a model may have, such as "3" or "2–7"."""
        low, high = int(self.rank_low[row]), int(self.rank_high[row])
        return f"{low}" if low == high else f"{low}\N{EN DASH}{high}"

    def describe(self) -> list[str]:
        """Return the sentences that a summary begins with."""
        clusters = count_of(self.clusters, "cluster")
        within = f" in {clusters}" if self.clusters < self.questions else ""
        samples = f", up to {self.samples} samples each" if self.samples > 1 else ""
        return [
            f"{count_of(len(self.models), 'model')}, {count_of(self.questions, 'question')}"
            f"{within}{samples}. Values after ± are standard errors over "
            f"{'clusters' if within else 'questions'}; with {self.level:.0%} confidence all true "
            "ranks are in the ranges. Models of one tier cannot be told apart."
        ]


def _write(value: float, se: float, digits: int) -> str:
    if not np.isfinite(value):
        return "–"
    error = f" ± {se:.{digits}f}" if np.isfinite(se) else ""
    return minus(f"{round(value, digits) + 0.0:.{digits}f}{error}")


def make_leaderboard(
    counts: SampleCounts,
    *,
    cluster: PlainMapping | None = None,
    method: CountMethod = "refined",
    level: float = 0.95,
    pass_at: Sequence[int] = (),
    rng: np.random.Generator | None = None,
) -> Leaderboard:
    """Rank models; see :func:`discreet.leaderboard`."""
    level = check_level(level)
    if cluster is not None:
        counts = counts.group(cluster)
    if len(counts.items) < 2:
        raise DisconnectedItems(
            f"found {count_of(len(counts.items), 'model')}, and a leaderboard compares at least "
            "two. Name the column of models with person= (--person)"
        )
    try:
        fitted = fit_counts(counts, method)
    except DisconnectedItems:
        raise DisconnectedItems(
            f"no two of the {len(counts.items)} models can be compared: each must have right, on "
            f"some of {count_of(len(counts.units), 'question')}, what the other has wrong, "
            "directly or through further models. Let the models answer the same questions"
        ) from None
    order = np.lexsort((np.arange(len(counts.items)), fitted.difficulty))
    models = _turn(fitted, order)
    ranges = rank_ranges(models, level=level, rng=rng)
    tried = np.maximum(counts.tried, 1)
    shares = _average(counts, counts.success / tried, order)
    passes = [_average(counts, _find_passes(counts, k), order) for k in pass_at]
    families = find_families(models.items)
    kept = WarningKind.WEAK_LINK, WarningKind.ROUGH
    warnings = (
        *explain_left_out(("measure", "model"), models.items, models.status, REASONS, ANY_RANK),
        *(one for one in fitted.warnings if one.kind in kept),
        *_doubt_names(families, models.items),
        *_doubt_shape(len(models.items), len(counts.units)),
    )
    low, high = _widen(models, ranges)
    return Leaderboard(
        estimate=models,
        ranges=replace(ranges, noun="model"),
        accuracy=shares[0],
        accuracy_se=shares[1],
        rank_low=low,
        rank_high=high,
        tier=_find_tiers(models, ranges),
        questions=len(counts.units),
        clusters=len(np.unique(counts.cluster)),
        samples=int(counts.tried.max(initial=0)),
        pass_at=tuple(pass_at),
        passed=np.array([value for value, _ in passes]).reshape(-1, len(order)).T,
        passed_se=np.array([se for _, se in passes]).reshape(-1, len(order)).T,
        families=families,
        warnings=warnings,
    )


def _turn(fitted: Estimate, order: IndexArray) -> Estimate:
    """Return difficulties of models as measures, the best first."""
    estimated = np.flatnonzero(fitted.estimated)
    position = np.full(len(order), -1)
    position[estimated] = np.arange(len(estimated))
    kept = position[order][position[order] >= 0]
    covariance = fitted.covariance
    return replace(
        fitted,
        items=tuple(fitted.items[i] for i in order),
        difficulty=-fitted.difficulty[order],
        se=fitted.se[order],
        status=tuple(fitted.status[i] for i in order),
        covariance=None if covariance is None else covariance[np.ix_(kept, kept)],
        answers=None if fitted.answers is None else fitted.answers[order],
        right=None,
    )


def _widen(models: Estimate, ranges: RankRanges) -> tuple[Int64Array, Int64Array]:
    """Return the ranks among all models: those without a measure may stand anywhere."""
    number = len(models.items)
    low, high = np.ones(number, dtype=np.int64), np.full(number, number, dtype=np.int64)
    known = len(ranges.items)  # they come first, in the same order
    low[:known], high[:known] = ranges.first, ranges.last + number - known
    return low, high


def _find_tiers(models: Estimate, ranges: RankRanges) -> Int64Array:
    """Return one more than the highest tier of the models that are surely better."""
    tier = np.zeros(len(models.items), dtype=np.int64)
    above = find_differences(models).surely_above(slice(None), ranges.bar)
    for row in np.flatnonzero(np.isfinite(models.se)).tolist():
        tier[row] = 1 + tier[: len(above)][above[:, row]].max(initial=0)
    return tier


def _find_passes(counts: SampleCounts, k: int) -> FloatArray:
    """Return, for each cell, the chance that k of its samples hold a right one.

    1 - C(n - c, k) / C(n, k), which is unbiased for k <= n (Chen et al. 2021).
    """
    if not counts.is_whole:
        raise BadUsage(
            f"pass@{k} counts right samples, and scores between 0 and 1 are neither right nor "
            "wrong. Leave pass_at= (--pass-at) out, or say from which score on an answer is right"
        )
    tried = counts.tried
    fewest = int(tried[tried > 0].min(initial=k))
    if not 1 <= k <= fewest:
        raise BadUsage(
            f"pass@{k} needs k from 1 to {fewest}, the fewest samples that a model has of a "
            "question: with fewer samples than k nothing unbiased is known. Name a smaller k, or "
            "leave out the questions with few samples"
        )
    drawn = np.arange(k)[:, None, None]
    chance = np.maximum(counts.failure - drawn, 0.0) / np.maximum(tried - drawn, 1)
    return np.asarray(1.0 - chance.prod(axis=0))


def _average(
    counts: SampleCounts, cells: FloatArray, order: IndexArray
) -> tuple[FloatArray, FloatArray]:
    """Return the mean of each model over its questions, and its standard error over clusters."""
    weight = (counts.tried > 0) / np.maximum((counts.tried > 0).sum(axis=0), 1)
    mean = (weight * cells).sum(axis=0)
    variance = sum_clusters(weight * (cells - mean).round(12), counts.cluster)[0].diagonal()
    mean = np.where(counts.tried.any(axis=0), mean, np.nan)
    # Answers that are all alike show no error.
    se = np.sqrt(np.where(variance > 0, variance, np.nan))
    return mean[order], se[order]


def find_families(models: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return groups of models whose names begin with the same word.

    Examples
    --------
    >>> find_families(["llama-7b", "gpt-4", "llama-70b", "Llama-13b"])
    (('llama-7b', 'llama-70b', 'Llama-13b'),)
    """
    # Behind the maker, as in "maker/model"; a word ends before a number or a sign.
    words = [re.split(r"[\W\d_]", name.rpartition("/")[2].lower())[0] for name in models]
    often = sorted(word for word, times in Counter(words).items() if word and times >= FAMILY)
    return tuple(
        tuple(name for name, own in zip(models, words, strict=True) if own == word)
        for word in often
    )


def _doubt_names(families: Sequence[Sequence[str]], models: Sequence[str]) -> list[FitWarning]:
    """Warn of names that are one but for their case, and of families."""
    times = Counter(name.casefold() for name in models)
    alike = [name for name in models if times[name.casefold()] > 1]
    warnings = []
    if alike:
        sentence = (
            f"names that differ in upper and lower case only count as different models: "
            f"{name_some(alike)}. Write each model in one way"
        )
        warnings.append(FitWarning(WarningKind.RELATED, sentence, alike))
    # Names such as "model 1", "model 2" say nothing.
    if not families or len(families[0]) == len(models):
        return warnings
    listed = "; ".join(f"{count_of(len(one), 'model')} ({name_some(one, 3)})" for one in families)
    sentence = (
        f"models whose names begin alike look like families: {listed}. Models of a family tend to "
        "fail on the same questions. Errors of their differences take that into account; but they "
        "count as fewer models where something is averaged over models"
    )
    named = [name for one in families for name in one]
    return [*warnings, FitWarning(WarningKind.RELATED, sentence, named)]


def _doubt_shape(models: int, questions: int) -> list[FitWarning]:
    """Warn where so many models answered so few questions that they may be the questions."""
    if models <= MANY_MODELS * questions:
        return []
    sentence = (
        f"{count_of(models, 'model')} and {count_of(questions, 'question')}: if rows are "
        "questions, say layout='transposed' (--layout transposed)"
    )
    return [FitWarning(WarningKind.TRANSPOSED, sentence, ())]
