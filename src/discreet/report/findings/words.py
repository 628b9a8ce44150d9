"""Words in which findings, tables and reports of items with steps differ from right and wrong.

In: an estimate, or whether there are steps. Out: the words, every one of them here.
"""

from __future__ import annotations

from dataclasses import dataclass

from discreet.results.estimate import Estimate


@dataclass(frozen=True)
class AnswerWords:
    """How answers of one kind are spoken of.

    Attributes
    ----------
    number, numbers
        What is known of each item.
    extremes, measured
        What persons have whose answers say little, and who the others are.
    noise
        What to look for in items that are answered unpredictably.
    direction
        What to do first about an item that does not go along with the ability.
    items, misfits
        What the tables of items and of persons with unexpected answers are about.
    model
        What was estimated, and who proposed it.
    alpha
        What Cronbach's coefficient is called.
    """

    number: str
    numbers: str
    extremes: str
    measured: str
    noise: str
    direction: str
    items: str
    misfits: str
    model: str
    alpha: str


RIGHT_WRONG = AnswerWords(
    number="difficulty",
    numbers="difficulties",
    extremes="everything right or everything wrong",
    measured="persons with right and wrong answers",
    noise="Look for guessing, unclear wording, a wrong key or a second skill.",
    direction="Check the answer key first: a wrong key makes it negative.",
    items="Difficulties in logits, harder is larger; infit and outfit are 1 and the discrimination "
    "is 1 where the model holds.",
    misfits="Wrong where they should be right, or right where they should be wrong: look for "
    "guessing, carelessness, copied or lost answers.",
    model="Item difficulties of the Rasch model (Rasch, 1960)",
    alpha="KR-20 (alpha)",
)
PARTIAL_CREDIT = AnswerWords(
    number="location",
    numbers="locations",
    extremes="the lowest or the highest score",
    measured="persons with neither the lowest nor the highest score",
    noise="Look for unclear wording, categories that are understood differently, wrong coding or a "
    "second skill.",
    direction="Check the coding first: an item that is worded the other way round makes it "
    "negative (--reverse).",
    items="The difficulty is the item's location in logits, the mean of its thresholds, harder is "
    "larger; the score is the sum of the answers; infit and outfit are 1 and the discrimination is "
    "1 where the model holds.",
    misfits="Low where they should be high, or high where they should be low: look for "
    "carelessness, answers all in one column, copied or lost answers.",
    model="Thresholds of the partial credit model (Masters, 1982)",
    alpha="Cronbach's alpha",
)
MODEL_WORDS = {
    "rasch": RIGHT_WRONG,
    "partial-credit": PARTIAL_CREDIT,
    "rating-scale": AnswerWords(
        **vars(PARTIAL_CREDIT) | {"model": "Thresholds of the rating scale model (Andrich, 1978)"}
    ),
}


def words_for(estimate: Estimate) -> AnswerWords:
    """Return the words for an estimate."""
    return RIGHT_WRONG if estimate.ladder is None else MODEL_WORDS[estimate.model]
