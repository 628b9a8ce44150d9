"""Who took a test: how able the persons are, and how many of them say something about it.

In: answers, their estimate and the persons' abilities. Out: :class:`AbilitySummary`, a few
numbers and a histogram, in which no single person is left. Confidential.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from discreet.answers.responses import Responses
from discreet.items.curves import CHUNK_CELLS, bin_abilities
from discreet.items.fit import compare_spread
from discreet.persons.scoring import PersonScores, PersonStatus
from discreet.results.estimate import Estimate
from discreet.schema import Along, AtLeast, Count, Finite, Logit, NonNegative
from discreet.types import BoolArray

#: Below, chance alone makes a correlation that would look like a design.
FEW_PERSONS = 175


@dataclass(frozen=True)
class AbilitySummary:
    """How able persons are, and how many take part. Confidential.

    Attributes
    ----------
    starts, counts
        Where bins of :data:`discreet.items.curves.BIN` logits begin, and how many are in each.
    mean, sd
        Of the persons with an ability.
    measured, extreme, empty
        Persons with some answers right and some wrong; with all right or all wrong; without an
        answer to an item that has a difficulty.
    unexpected
        Persons with unexpected answers.
    answered
        Median number of answers of a person.
    matching
        Correlation over persons of ability and mean difficulty of the items they got; ``None``
        where everybody got the same items or the persons are few.
    """

    starts: Annotated[tuple[Logit, ...], AtLeast(1)]
    counts: Annotated[tuple[Count, ...], Along("starts")]
    mean: Logit
    sd: NonNegative
    measured: Count
    extreme: Count
    empty: Count
    unexpected: Count
    answered: NonNegative
    matching: Finite | None


def summarise_abilities(
    responses: Responses, estimate: Estimate, scores: PersonScores, unexpected: BoolArray
) -> AbilitySummary:
    """Return who these persons are; ``unexpected`` says whose answers are."""
    has_ability = np.isfinite(scores.ability)
    ability = scores.ability[has_ability]
    weight = None if responses.sample is None else responses.sample.weight[has_ability]
    spread = compare_spread(ability, scores.se[has_ability], weight)
    starts, counts = bin_abilities(ability)
    return AbilitySummary(
        starts=tuple(starts.tolist()),
        counts=tuple(counts.tolist()),
        mean=float(np.average(ability, weights=weight)),
        sd=float(np.sqrt(spread.variance)) if len(ability) > 1 else 0.0,
        measured=int((scores.status == PersonStatus.MEASURED).sum()),
        extreme=int(scores.extreme.sum()),
        empty=int((scores.status == PersonStatus.NO_ANSWERS).sum()),
        unexpected=int(unexpected.sum()),
        answered=float(np.median(scores.answered)),
        matching=correlate_matching(responses, estimate, scores),
    )


def correlate_matching(
    responses: Responses, estimate: Estimate, scores: PersonScores
) -> float | None:
    """Correlate ability with the mean difficulty of the items that a person got."""
    columns = np.flatnonzero(estimate.estimated)
    chosen = responses.select([estimate.items[i] for i in columns])
    b = estimate.difficulty[columns]
    total = np.zeros(chosen.n_persons)
    step = max(1, CHUNK_CELLS // len(b))
    for start in range(0, chosen.n_persons, step):
        rows = chosen.rows(start, start + step)
        total[start : start + len(rows)] = (rows >= 0) @ b
    used = np.isfinite(scores.ability) & (scores.answered > 0)
    mean = total[used] / scores.answered[used]
    # Complete answers leave only rounding errors in the means.
    if used.sum() < FEW_PERSONS or np.ptp(mean) < 1e-6:
        return None
    value = float(np.corrcoef(mean, scores.ability[used])[0, 1])
    return value if np.isfinite(value) else None
