"""Score persons: abilities with the difficulties of a calibration, a release or a bank.

In: answers and anything that has items with known difficulties. Out: an ability, a standard error
and a status for every person. Confidential: an ability is about one person and is never part of
a release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import get_args

import numpy as np
import numpy.typing as npt

from discreet.answers.responses import Responses
from discreet.answers.survey import SurveyDesign
from discreet.choices import PlainDict, PlainMapping, ScoreMethod
from discreet.coding.reading import Reading
from discreet.counts.planes import AnswerStore
from discreet.errors import LOG, BadUsage, FitWarning, WarningKind, warn_of_dropped
from discreet.hints import check_choice_name
from discreet.models.conditional import Patterns, group_patterns
from discreet.models.item_parameters import KnownItems, known_thresholds
from discreet.persons.large import is_many, is_varied, solve_many
from discreet.persons.measures import (
    HalvesTest,
    NormalPrior,
    compare_halves,
    estimate_prior,
    find_highest,
    solve_entries,
)
from discreet.persons.plausible import LatentRegression, code_columns, fit_posterior, take_columns
from discreet.results.calibrated import Calibration
from discreet.results.chances import as_thresholds, count_item_steps
from discreet.tabular import Columns, Tabular, brief_repr, list_field_columns
from discreet.text import name_some
from discreet.types import FloatArray, Int64Array, Texts

SCORINGS: tuple[str, ...] = get_args(ScoreMethod)
#: Cells solved together: 8 MB of float64.
CHUNK_CELLS = 1 << 20
#: Persons by whom easier and harder items are compared. With more of them the test would see what
#: it neglects itself, terms of the order of one over the number of items.
MOST_COMPARED = 2000

#: Plausible values per person; surveys publish 5 to 20.
MOST_PLAUSIBLE = 1_000
#: Plausible values of all persons together: 0.8 GB.
MOST_DRAWN = 100_000_000


class PersonStatus(StrEnum):
    """What kind of ability a person has, or why none."""

    MEASURED = "measured"
    ALL_RIGHT = "all_right"
    ALL_WRONG = "all_wrong"
    NO_ANSWERS = "no_answers"


@dataclass(frozen=True, eq=False)
class PersonScores(Tabular):
    """One ability for each person, in logits on the scale of the calibration. Confidential.

    Attributes
    ----------
    persons
        Ids, in the order of the answers.
    ability, se
        NaN without an answered item that has a difficulty, and for maximum likelihood where
        everything is right or wrong; ``status`` says which.
    score, answered
        Right answers (with steps the sum of the answers as the data code them) and answers, on
        items with a difficulty.
    status
        ``measured``, ``all_right`` and ``all_wrong`` (the highest and the lowest score: the
        ability is finite by
        weighted likelihood or posterior mean, but says little more than "above" or "below"),
        ``no_answers``.
    extreme
        Who had everything right or everything wrong.
    method
        ``"warm"``, ``"ml"`` or ``"posterior"``.
    prior
        The ability distribution that posterior means were drawn towards, else ``None``.
    items
        Items that were used.
    warnings
        What was ignored, and why; and where the standard errors are too small.
    halves
        Whether the easier and the harder items agree on the abilities as well as the standard
        errors say; None where items or persons are too few.
    regression
        How abilities depend on what else is known of the persons, else ``None``.
    plausible
        Draws from each person's posterior, ``[person, draw]``, for statistics of groups: compute
        them from each draw, and take the mean. No columns where none were asked for.
    reading
        How values became answers, as of the calibration.

    Examples
    --------
    >>> import discreet
    >>> from discreet.datasets import lsat
    >>> scores = discreet.score(lsat(), discreet.fit(lsat()))
    >>> len(scores), scores.method
    (1000, 'warm')
    """

    persons: Texts
    ability: FloatArray
    se: FloatArray
    score: Int64Array
    answered: Int64Array
    status: Texts
    method: str
    items: tuple[str, ...]
    prior: NormalPrior | None = None
    warnings: tuple[FitWarning, ...] = ()
    regression: LatentRegression | None = None
    plausible: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    halves: HalvesTest | None = None
    reading: Reading | None = None
    noun = "person"
    extreme: npt.NDArray[np.bool_] = field(init=False, repr=False)

    __repr__ = brief_repr

    def __post_init__(self) -> None:
        held = (self.ability, self.se, self.score, self.answered, self.status, self.plausible)
        for array in held:
            array.setflags(write=False)
        highest, lowest = (
            self.status == one for one in (PersonStatus.ALL_RIGHT, PersonStatus.ALL_WRONG)
        )
        object.__setattr__(self, "extreme", np.asarray(highest | lowest))

    def to_dict(self) -> Columns:
        """One list per column: person, ability, se, score, answered, status; pv1, pv2, ..."""
        columns = list_field_columns(self, "ability", "se", "score", "answered")
        words = [str(value) for value in self.status]
        draws = {f"pv{number}": draw.tolist() for number, draw in enumerate(self.plausible.T, 1)}
        return {"person": list(self.persons), **columns, "status": words, **draws}


@dataclass(frozen=True, eq=False)
class ScoreTable(Tabular):
    """From raw score on a complete test to ability; about items only."""

    score: Int64Array
    ability: FloatArray
    se: FloatArray
    status: tuple[PersonStatus, ...]
    method: str

    __repr__ = brief_repr

    def to_dict(self) -> Columns:
        """One list per column: score, ability, se, status."""
        words = [str(value) for value in self.status]
        return {**list_field_columns(self, "score", "ability", "se"), "status": words}


def score(
    responses: Responses,
    calibration: Calibration,
    *,
    method: ScoreMethod | None = None,
    prior: NormalPrior | None = None,
    plausible: int = 0,
    regress: str | Sequence[str] | Mapping[str, Sequence[object]] = (),
    rng: np.random.Generator | None = None,
) -> PersonScores:
    """Estimate the ability of every person, with the item difficulties held fixed.

    Confidential: the result is about single persons, also where the calibration is a private
    release.

    Parameters
    ----------
    responses
        Answers, a data frame of any kind, an array ``[person, item]`` (its items are then "0",
        "1", ...), a path or a query; see :func:`discreet.count_pairs`.
    calibration
        An :class:`~discreet.Estimate`, a published release, anything with ``items`` and
        ``difficulty``, a mapping from item to difficulty or a data frame with these two columns.
        Its items need not all occur in the answers. Of items with steps the thresholds are
        used: in a mapping they are a list, in a data frame there is a row for each step, with
        the columns item, step and threshold, or it is one that ``to_dataframe`` of an estimate
        made.
    method
        ``"warm"`` (the default): weighted likelihood, finite for every score, nearly unbiased.
        ``"ml"``: maximum likelihood, no number for extreme scores. ``"posterior"``: mean of the
        posterior, smallest mean square error over the whole group, drawn to its centre; the
        default with ``plausible`` or ``regress``.
    prior
        For ``"posterior"``; estimated from these persons when left out.
    plausible
        How many plausible values to draw for each person: for statistics of groups, whose
        differences and variances posterior means understate. 5 to 20 are usual, 1,000 the most.
    regress
        Group columns of the answers (one name or several) on which the mean of abilities may
        depend, or a mapping from names to one value for each person. Columns of up to 30
        different values are groups; beyond, numbers.
    rng
        Source of the plausible values; by default always the same one.
    reading
        ``person=``, ``item=``, ``response=`` and the other keywords of
        :func:`discreet.read_responses`. Columns to regress on need not be named as groups.

    Returns
    -------
    PersonScores
        With a warning for every item of the answers that has no difficulty, and one where the
        easier and the harder items disagree on the abilities: their scale is then distorted, and
        where they disagree much the standard errors are too small.

    Examples
    --------
    >>> import discreet
    >>> scores = discreet.score([[1, 0], [1, 1]], {"0": -0.5, "1": 0.5})
    >>> [str(status) for status in scores.status]
    ['measured', 'all_right']
    """
    latent = plausible != 0 or len(regress) > 0
    method = method or ("posterior" if latent else "warm")
    _check_method(method, prior)
    if latent:
        _check_latent(method, prior, plausible)
    columns = take_columns(responses.groups, regress)
    _check_draws(plausible, responses.n_persons)
    calibrated = known_thresholds(calibration)
    warnings = _compare_items(responses, calibrated.items)
    warn_of_dropped(warnings)
    calibrated = calibrated.select(set(responses.items))
    b, chosen = calibrated.thresholds, calibrated.match(responses.select(calibrated.items))
    if method != "posterior" and is_many(chosen.store, b) and is_varied(chosen.store):
        measures = _solve_each(chosen.store, b, method)
    else:
        patterns = group_patterns(chosen.store, np.arange(len(b)))
        measures = _describe_entries(patterns, b)
        if latent:
            measures |= _solve_latent(patterns, b, columns, plausible, rng, responses.sample)
        else:
            measures |= _solve_grouped(patterns, b, method, prior)
    LOG.info("scored %d persons on %d items, method %s", responses.n_persons, len(b), method)
    halves = _test_halves(chosen, calibrated, measures, is_mean=method == "posterior")
    measures["score"] = _sum_answers(chosen.store, calibrated, measures["score"])
    return PersonScores(
        persons=responses.persons,
        method=method,
        items=calibrated.items,
        warnings=(*warnings, *_doubt_errors(halves)),
        halves=halves,
        reading=responses.reading,
        **measures,
    )


def _sum_answers(store: AnswerStore, known: KnownItems, score: Int64Array) -> Int64Array:
    """Return the sums of the answers as the data code them."""
    if not known.lowest and all(own == tuple(range(len(own))) for own in known.kept):
        return score
    labels = known.labels
    sums = np.zeros(len(score), dtype=np.int64)
    step = max(1, CHUNK_CELLS // len(labels))
    for start in range(0, len(sums), step):
        rows = store.rows(start, start + step)
        coded = labels[np.arange(len(labels)), np.maximum(rows, 0)]
        sums[start : start + step] = (coded * (rows >= 0)).sum(axis=1)
    return sums


def _test_halves(
    answers: Responses, calibrated: KnownItems, measures: PlainMapping, *, is_mean: bool
) -> HalvesTest | None:
    """Compare the easier with the harder items, by some evenly chosen persons of very many."""
    measured = np.flatnonzero(measures["status"] == PersonStatus.MEASURED)
    limit = min(MOST_COMPARED, max(1, CHUNK_CELLS // calibrated.thresholds.size))
    if len(measured) > limit:
        measured = measured[np.linspace(0, len(measured) - 1, limit).round().astype(np.intp)]
    if not len(measured) or answers.routing is not None:  # answers to one half may choose the other
        return None
    store, ability = answers.store.take(measured), measures["ability"][measured]
    if is_mean:  # the mean of a posterior is drawn away from what the answers say
        patterns = group_patterns(store, np.arange(len(calibrated.items)))
        ability = _solve_grouped(patterns, calibrated.thresholds, "warm", None)["ability"]
    return compare_halves(
        store.rows(0, len(measured)), calibrated.thresholds, ability, calibrated.se
    )


def _doubt_errors(halves: HalvesTest | None) -> tuple[FitWarning, ...]:
    """Warn where easier and harder items disagree by more than chance."""
    if halves is None or not halves.is_found:
        return ()
    kind = WarningKind.UNDERSTATED_ERRORS if halves.is_large else WarningKind.DISTORTED_SCALE
    return (FitWarning(kind, ". ".join([halves.title, " ".join(halves.explain())])),)


def _solve_each(store: AnswerStore, b: FloatArray, method: str) -> PlainDict:
    """Solve for one person after the other, where next to nobody shares items with another."""
    answered, right = store.person_totals()
    ability, se = solve_many(store, b[:, 0], right, correction=float(method == "warm"))
    status = name_statuses(right, answered, answered)
    return {"ability": ability, "se": se, "score": right, "answered": answered, "status": status}


def _solve_grouped(
    patterns: Patterns, b: FloatArray, method: str, prior: NormalPrior | None
) -> PlainDict:
    if method == "posterior" and prior is None:
        prior = estimate_prior(patterns, b)
    ability, se = solve_entries(patterns, b, method, prior)
    return {"ability": ability[patterns.entry], "se": se[patterns.entry], "prior": prior}


def _describe_entries(patterns: Patterns, b: FloatArray) -> PlainDict:
    """Return the score, the number of answers and the status of every person."""
    entry = patterns.entry
    return {
        "score": patterns.score[entry],
        "answered": patterns.lengths[patterns.pattern][entry],
        "status": _statuses(patterns, b)[entry],
    }


def _check_latent(method: str, prior: NormalPrior | None, plausible: int) -> None:
    if not 0 <= plausible <= MOST_PLAUSIBLE:
        raise BadUsage(
            f"plausible, the number of plausible values for each person, must be from 0 to "
            f"{MOST_PLAUSIBLE:,}, found {plausible:,}; 10 are usual"
        )
    if method != "posterior":
        raise BadUsage(
            f"plausible values and regressions belong to the method 'posterior', found {method!r}"
        )
    if prior is not None:
        raise BadUsage(
            "plausible values and regressions estimate the distribution of abilities themselves; "
            "leave out the prior"
        )


def _check_draws(plausible: int, persons: int) -> None:
    if plausible * persons > MOST_DRAWN:
        raise BadUsage(
            f"{plausible:,} plausible values for each of {persons:,} persons are "
            f"{plausible * persons:,} numbers, and at most {MOST_DRAWN:,} fit into memory. Ask for "
            "fewer (plausible=, --plausible); 10 are usual"
        )


def _solve_latent(
    patterns: Patterns,
    b: FloatArray,
    columns: Mapping[str, Sequence[object]],
    plausible: int,
    rng: np.random.Generator | None,
    sample: SurveyDesign | None,
) -> PlainDict:
    terms, design = code_columns(columns, len(patterns.entry))
    source = np.random.default_rng(0) if rng is None else rng
    posterior = fit_posterior(
        patterns, b, terms, design, draws=plausible, rng=source, sample=sample
    )
    regression = posterior.regression
    # Without columns the regression is a normal distribution, which serves new persons too.
    mean = float(regression.coefficient[0])
    return {
        "ability": posterior.mean,
        "se": posterior.sd,
        "prior": None if columns else NormalPrior(mean, regression.sd),
        "regression": regression,
        "plausible": posterior.draws,
    }


def tabulate_scores(
    calibration: Calibration, *, method: ScoreMethod = "warm", prior: NormalPrior | None = None
) -> ScoreTable:
    """Ability and standard error for every raw score on all items of a calibration.

    Scores are sums as the data code the answers. Where categories between used ones were closed up,
    such a sum does not say the ability, and scores count the categories that are left from 0.

    Parameters
    ----------
    calibration
        As for :func:`score`.
    method
        ``"warm"``, ``"ml"`` or ``"posterior"`` (by default with a standard normal prior).

    Examples
    --------
    >>> tabulate_scores({"a": 0.0, "b": 0.0}).ability.round(4).tolist()
    [-1.6094, 0.0, 1.6094]
    """
    _check_method(method, prior)
    known = known_thresholds(calibration)
    b = known.thresholds
    if method == "posterior" and prior is None:
        prior = NormalPrior(0.0, 1.0)
    patterns = _complete(len(b), np.arange(int(count_item_steps(b).sum()) + 1))
    ability, se = solve_entries(patterns, b, method, prior)
    status = tuple(map(PersonStatus, _statuses(patterns, b)))
    return ScoreTable(patterns.score + (known.lowest_sum or 0), ability, se, status, method)


def score_answers(
    difficulty: FloatArray, right: Sequence[int], *, method: str, prior: NormalPrior | None
) -> tuple[float, float]:
    """Ability and standard error of one person, from the answers to these items.

    With steps ``difficulty`` are thresholds ``[item, step]``, and answers are categories.
    """
    patterns = _complete(len(difficulty), np.array([sum(right)]))
    ability, se = solve_entries(patterns, as_thresholds(difficulty), method, prior)
    return float(ability[0]), float(se[0])


def _complete(items: int, scores: Int64Array) -> Patterns:
    """Persons with these scores, who answered all of some items."""
    n = len(scores)
    return Patterns(
        indptr=np.array([0, items]),
        item=np.arange(items),
        pattern=np.zeros(n, dtype=np.int64),
        score=scores,
        persons=np.ones(n, dtype=np.int64),
        entry=np.arange(n),
        n_items=items,
    )


def _check_method(method: str, prior: NormalPrior | None) -> None:
    check_choice_name("method", method, SCORINGS)
    if prior is not None and method != "posterior":
        raise BadUsage(f"a prior belongs to the method 'posterior', found {method!r}")


def _compare_items(source: Responses, items: tuple[str, ...]) -> tuple[FitWarning, ...]:
    calibrated = set(items)
    ignored = [name for name in source.items if name not in calibrated]
    if len(ignored) == source.n_items:
        raise BadUsage(
            f"none of the {source.n_items} items of the answers ({name_some(ignored)}) has a "
            f"difficulty in the calibration ({name_some(list(items))}); items are matched by name"
        )
    if not ignored:
        return ()
    noun = "item was" if len(ignored) == 1 else "items were"
    sentence = (
        f"{len(ignored)} {noun} ignored because the calibration has no difficulty for them: "
        f"{name_some(ignored)}"
    )
    return (FitWarning(WarningKind.IGNORED, sentence, ignored),)


def _statuses(patterns: Patterns, b: FloatArray) -> Texts:
    length = patterns.lengths[patterns.pattern]
    return name_statuses(patterns.score, find_highest(patterns, b), length)


def name_statuses(score: Int64Array, highest: Int64Array, answered: Int64Array) -> Texts:
    """Return what kind of ability comes of these scores."""
    status = np.full(len(score), PersonStatus.MEASURED, dtype=object)
    status[score == highest] = PersonStatus.ALL_RIGHT
    status[score == 0] = PersonStatus.ALL_WRONG
    status[answered == 0] = PersonStatus.NO_ANSWERS
    return status
