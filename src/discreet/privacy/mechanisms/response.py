"""Randomized response: every answer is flipped by its own coin before anything is counted.

In: public parameters and a budget. Out: the exact epsilon of one answer, and counts of flipped
answers.

A person with at most q answers flips each with probability 1 / (1 + e^(epsilon / q)), so that
the whole set of answers is protected with epsilon. It randomises answers, not which items were
answered: the guarantee is for the answers given that pattern, and every artefact says so. Its
output shows the number of persons, so it is for replace-one only.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
import numpy.typing as npt

from discreet.answers.protocol import Answers, Job
from discreet.counts.memory import count_joint
from discreet.errors import BadResponses, BadUsage, DiscreetError
from discreet.privacy.accounting.budget import Budget
from discreet.privacy.accounting.local import calibrate_local
from discreet.privacy.noise.coins import flip_coins
from discreet.privacy.protocol import Calibration, Public
from discreet.secure import RandomSource, SystemSource
from discreet.store.pack import pack_rows
from discreet.store.planes import AnswerStore
from discreet.types import Int64Array

PATTERN_CONDITION = (
    "The guarantee protects which answers a person gave, given which items the person answered. "
    "Which items were answered is not protected: it must be public by design, or the same for "
    "everyone."
)
SHUFFLE_CONDITION = (
    "The guarantee counts on a trusted shuffler that removes the order and the identity of the "
    "randomised rows before anybody sees them, and on every person answering every listed item."
)
CHUNK_PERSONS = 16_384

COUNTED = ("right_right", "right_wrong", "wrong_wrong")
"""Matrices over items: persons who seem to have both right, one right and one wrong, both wrong."""


@dataclass(frozen=True)
class RandomizedResponse:
    """Flip every answer with a public probability, then count.

    Attributes
    ----------
    shuffler
        ``"none"``: the guarantee holds against whoever collects the randomised answers.
        ``"trusted"``: somebody shuffles the rows first, and the guarantee is amplified.
    """

    shuffler: Literal["none", "trusted"] = "none"
    name: str = "randomized-response"

    def __post_init__(self) -> None:
        if self.shuffler not in ("none", "trusted"):
            raise BadUsage(f"shuffler must be 'none' or 'trusted', found {self.shuffler!r}")

    def calibrate(self, public: Public, budget: Budget, source: RandomSource) -> Calibration:  # noqa: ARG002
        shuffled = public.persons if self.shuffler == "trusted" else None
        share, spend = calibrate_local(
            public.max_answers, budget, shuffled_persons=shuffled, mechanism=self.name
        )
        return Calibration(
            laws={},
            spend=spend,
            settings={"answer_epsilon": share, "shuffler": self.shuffler},
            conditions=(PATTERN_CONDITION, *([] if shuffled is None else [SHUFFLE_CONDITION])),
        )

    def check_answers(self, answers: Answers, persons: int | None) -> None:
        """Refuse answers out of reach, and shuffling where people answered different items."""
        answers.admit(CountFlipped(Fraction(1), SystemSource()))
        rows = answers.n_persons if persons is None else persons
        if self.shuffler == "trusted" and answers.n_answers < rows * len(answers.items):
            raise BadResponses(
                "amplification by shuffling holds only when every person answers every listed "
                "item, and some answers are missing; use shuffler='none'"
            )
        if not answers.n_answers:
            raise BadResponses(
                "randomized-response flips answers, and every answer here is missing; take another "
                "mechanism, which gives noise to what nobody answered too"
            )

    def randomise(
        self, answers: Answers, calibration: Calibration, source: RandomSource
    ) -> dict[str, Int64Array]:
        """Flip the answers and count the flipped ones; nothing else leaves this function.

        Returns how many persons seem to have both items right, one right and the other wrong,
        and both wrong: matrices over items, of which the first and last are symmetric.
        """
        share: Fraction = calibration.settings["answer_epsilon"]
        persons, totals = answers.reduce(CountFlipped(share, source))
        if persons != answers.n_persons:
            raise DiscreetError(
                f"the release was prepared for {answers.n_persons:,} persons, and {persons:,} were "
                "found: the answers changed in between, and nothing was released"
            )
        return dict(zip(COUNTED, totals, strict=True))


@dataclass(frozen=True)
class CountFlipped(Job[tuple[int, Int64Array]]):
    """Flip every answer, and count persons and :data:`COUNTED`, ``[3, item, item]``."""

    share: Fraction
    source: RandomSource
    travels = False
    needs = (
        "randomized-response flips every answer by itself (other mechanisms do not), so it needs "
        "the rows"
    )

    def block(self, store: AnswerStore) -> tuple[int, Int64Array]:
        """Return how many persons there are, and the counts of their flipped answers."""
        total = np.zeros((3, store.n_items, store.n_items), dtype=np.int64)
        for start in range(0, store.n_persons, CHUNK_PERSONS):
            rows = store.rows(start, start + CHUNK_PERSONS)
            total += count_joint(pack_rows(flip_answers(rows, self.share, self.source)))
        return store.n_persons, total

    def add(
        self, one: tuple[int, Int64Array], other: tuple[int, Int64Array]
    ) -> tuple[int, Int64Array]:
        """Add persons and counts."""
        return one[0] + other[0], one[1] + other[1]


def flip_answers(
    rows: npt.NDArray[np.int8], share: Fraction, source: RandomSource
) -> npt.NDArray[np.int8]:
    """Flip each answer with probability 1 / (1 + e^share); a missing one stays missing.

    Every cell draws a coin, answered or not, so that the number of coins says nothing.
    """
    lies = flip_coins(share, rows.size, source).reshape(rows.shape)
    return np.where((rows >= 0) & lies, 1 - rows, rows).astype(np.int8)
