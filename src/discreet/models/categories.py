"""Categories of items with steps: the model they ask for, and answers without unused categories.

In: answers with steps. Out: the same answers in the categories that a model or a calibration has,
and what is said of categories that nobody used. Confidential.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.answers.protocol import Answers, Job
from discreet.answers.responses import Responses
from discreet.answers.select import join_stores, refuse_routing
from discreet.choices import MODELS
from discreet.counts import PairCounts
from discreet.counts.matrix import Recoding, keep_used
from discreet.counts.planes import AnswerStore, StepStore
from discreet.errors import BadResponses, BadUsage, DisconnectedItems, FitWarning, WarningKind
from discreet.hints import check_choice_name
from discreet.results.estimate import Estimate
from discreet.text import count_of, name_some
from discreet.types import FloatArray, Int64Array

RASCH, PARTIAL_CREDIT, RATING_SCALE = MODELS


def choose_model(model_name: str, steps: Sequence[int]) -> str:
    """Return the model: what was asked for, or what the answers ask for.

    Parameters
    ----------
    model_name
        A model, or "auto".
    steps
        Per item, its highest category.
    """
    binary = all(step == 1 for step in steps)
    if model_name == "auto":
        return RASCH if binary else PARTIAL_CREDIT
    check_choice_name("model", model_name, ("auto", *MODELS))
    if model_name == RASCH and not binary:
        raise BadUsage(
            "the model 'rasch' is for right and wrong answers, found answers with up to "
            f"{max(steps)} steps; use 'partial-credit', or say from which score on answers count "
            "as right with at_least= (--at-least)"
        )
    return RASCH if binary else model_name


def refuse_steps(feature: str, steps: Sequence[int]) -> None:
    """Refuse what is there for right and wrong answers only."""
    if max(steps, default=1) > 1:
        raise BadUsage(
            f"{feature} is for right and wrong answers, found answers with up to {max(steps)} "
            "steps; say from which score on answers count as right with at_least= (--at-least)"
        )


class Recoded(Job[Any]):
    """A job on answers without unused categories; of itself it says what the job says."""

    def __init__(self, job: Job[Any], recoding: Recoding) -> None:
        self._job, self._recoding = job, recoding
        self.sample, self.travels = job.sample, job.travels
        self.is_sum, self.needs = job.is_sum, job.needs
        self.every = job.every

    def block(self, store: AnswerStore) -> Any:
        """Return the value of some persons."""
        return self._job.block(recode_store(store, self._recoding))

    def stand(self, store: AnswerStore) -> Int64Array:
        """Return how many persons everybody stands for, if drawn."""
        return self._job.stand(recode_store(store, self._recoding))

    def of_everybody(self) -> Recoded:
        """Return the same job for all persons."""
        return Recoded(self._job.of_everybody(), self._recoding)

    def add(self, first: Any, second: Any) -> Any:
        """Return the value of the persons of both."""
        return self._job.add(first, second)


def recode_store(store: AnswerStore, recoding: Recoding) -> AnswerStore:
    """Return answers without the categories that nobody used."""
    if not recoding.changes or not isinstance(store, StepStore):
        return store
    return store.recode(recoding)


def match_categories(responses: Responses, estimate: Any) -> Responses:
    """Return answers in the categories that an estimate has, to be read with its thresholds.

    A category that nobody used when the estimate was made is not in its model, and the numbers of
    those above it changed; the same is done to these answers. Right and wrong answers are returned
    as they are, and so are those to items that the estimate does not have.

    Raises
    ------
    BadResponses
        If somebody is in a category that the estimate knows nothing about.
    """
    return match_known(responses, dict(zip(estimate.items, estimate.ladder.kept, strict=True)))


def match_known(responses: Responses, categories_of: Mapping[str, tuple[int, ...]]) -> Responses:
    """Return answers in the known categories of their items, as :func:`match_categories` does."""
    if (
        max(map(len, categories_of.values()), default=2) == 2
        and max(responses.steps, default=1) == 1
    ):
        return responses
    pairs = list(zip(responses.items, responses.steps, strict=True))
    kept_categories = tuple(categories_of.get(item, tuple(range(most + 1))) for item, most in pairs)
    steps = tuple(max(most, own[-1]) for (_, most), own in zip(pairs, kept_categories, strict=True))
    store, recoding = responses.store, Recoding(steps, kept_categories)
    if steps != responses.steps:
        store = join_stores([responses], dict(zip(responses.items, steps, strict=True)))
    _check_categories(store, responses.items, recoding, responses.lowest)
    if recoding.changes:
        refuse_routing(responses.routing, "leaving out a category that nobody is in")
    store = recode_store(store, recoding)
    if store is responses.store:
        return responses
    return Responses(
        responses.items,
        responses.person_ids,
        store,
        responses.groups,
        reading=responses.reading,
        sample=responses.sample,
        routing=responses.routing,
    )


def category_totals(store: AnswerStore) -> Int64Array:
    """Per item, how many persons are in each category; zero beyond an item's steps."""
    if isinstance(store, StepStore):
        return store.category_totals()
    answers, right = store.item_totals()
    return np.stack([answers - right, right], axis=1)


def weigh_categories(store: AnswerStore, weight: FloatArray | None) -> Any:
    """Return the sum of the weights of the persons in each category; without weights, persons."""
    if weight is None:
        return category_totals(store)
    cells = store.rows(0, store.n_persons)
    total = [weight @ (cells == k) for k in range(category_totals(store).shape[1])]
    return np.stack(total, axis=1)


def leave_unused(responses: Responses, keep_between: bool = False) -> Responses:
    """Return answers without the categories that nobody is in, or of these the lowest, highest."""
    used = keep_used(category_totals(responses.store), responses.steps)
    if keep_between:
        used = used.fill_gaps()
    if not used.changes:
        return responses
    return match_known(responses, dict(zip(responses.items, used.kept, strict=True)))


def _check_categories(
    store: AnswerStore, items: Sequence[str], recoding: Recoding, lowest: int
) -> None:
    """Refuse answers in categories that are left out."""
    if not recoding.changes:
        return
    totals = category_totals(store)
    lost = np.argwhere((totals > 0) & (recoding.codes() < 0))
    if len(lost):
        item, category = lost[0].tolist()
        categories = ", ".join(str(lowest + one) for one in recoding.kept[item])
        raise BadResponses(
            f"item '{items[item]}' has {count_of(int(totals[item, category]), 'answer')} in "
            f"category {lowest + category}, but the calibration knows its categories {categories} "
            "only, so that nothing says what such an answer is worth. Count these answers as "
            "missing, merge the category with a neighbour, or calibrate anew with these answers "
            "included"
        )


def tell_unused(
    items: Sequence[str], recoding: Recoding, lowest: int = 0
) -> tuple[FitWarning, ...]:
    """Say of every item what became of the categories that nobody used, the lowest called so."""
    warnings = []
    for item, categories, highest in zip(items, recoding.kept, recoding.steps, strict=True):
        lost = [
            str(lowest + category) for category in range(highest + 1) if category not in categories
        ]
        if lost:
            moved = [
                (old + lowest, new + lowest) for new, old in enumerate(categories) if new != old
            ]
            became = ", ".join(f"{old} to {new}" for old, new in moved)
            sentence = f"nobody is in category {' or '.join(lost)} of item '{item}': left out"
            sentence += f", and those above move down ({became})" if became else ""
            warnings.append(FitWarning(WarningKind.UNUSED_CATEGORY, sentence, [item]))
    return tuple(warnings)


def tell_kept(items: Sequence[str]) -> FitWarning:
    """Say of items with a category that nobody is in, and that was kept, what is known of it."""
    sentence = (
        f"nobody is in a category of {name_some(list(items))}; it was kept, so that of the steps "
        "around it only the sum is estimated"
    )
    return FitWarning(WarningKind.KEPT_CATEGORY, sentence, items)


def check_rating_scale(counts: PairCounts) -> None:
    """Refuse a rating scale whose items differ in steps, or with a category that none uses."""
    most_steps = max(counts.steps)
    pairs = zip(counts.items, counts.steps, strict=True)
    short = [item for item, step in pairs if step < most_steps]
    if short:
        raise BadUsage(
            f"in a rating scale all items have the same categories; {len(short)} of "
            f"{len(counts.items)} items have fewer than {most_steps} steps ({name_some(short)}). "
            f"If they share the scale and nobody chose the top, say steps={most_steps} "
            f"(--steps {most_steps}); otherwise use the model 'partial-credit'"
        )
    total = counts.categories.sum(axis=0)
    if (total == 0).any():
        raise DisconnectedItems(
            f"nobody is in category {int(np.argmin(total))} of any item, so that the steps around "
            "it are not determined; merge it with a neighbour"
        )


def call_categories(estimate: Estimate, answers: Answers) -> Estimate:
    """Return an estimate that knows how its answers were read, and calls categories as they do."""
    estimate, lowest = replace(estimate, reading=answers.reading), answers.lowest
    if not estimate.has_steps or not lowest:
        return estimate
    unused_warnings = tell_unused(
        estimate.items, Recoding(answers.steps, estimate.ladder.kept), lowest
    )
    others = (
        warning for warning in estimate.warnings if warning.kind is not WarningKind.UNUSED_CATEGORY
    )
    return replace(
        estimate,
        ladder=replace(estimate.ladder, lowest=lowest),
        warnings=(*unused_warnings, *others),
    )
