"""Randomized response: every answer is flipped by its own coin before anything is counted.

In: public parameters and a budget. Out: the exact epsilon of one answer, and counts of flipped
answers.

A person with at most q answers flips each with probability 1 / (1 + e^(epsilon / q)), so that
the whole set of answers is protected with epsilon. It randomises answers, not which items were
answered: the guarantee is for the answers given that pattern, and every artefact says so. Its
output shows the number of persons, so it is for replace-one only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discreet.answers.opening import Answers
from discreet.counts.memory import count_joint
from discreet.errors import BadResponses, BadUsage, DiscreetError
from discreet.privacy.accounting.budget import Budget
from discreet.privacy.accounting.local import calibrate_local
from discreet.privacy.noise.coins import flip_coins
from discreet.privacy.protocol import Calibration, Public
from discreet.secure import RandomSource
from discreet.store.pack import pack_rows
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
        store = answers.store
        if not (hasattr(store, "rows") or hasattr(store, "parts")):
            raise BadUsage(
                "randomized-response flips every answer by itself, so it needs the rows, and these "
                "answers can only be counted where they are. Write them to Parquet files and "
                "release those, or take another mechanism"
            )
        rows = store.n_persons if persons is None else persons
        if self.shuffler == "trusted" and store.n_answers < rows * store.n_items:
            raise BadResponses(
                "amplification by shuffling holds only when every person answers every listed "
                "item, and some answers are missing; use shuffler='none'"
            )
        if not store.n_answers:
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
        store = answers.store
        share: Fraction = calibration.settings["answer_epsilon"]
        shape = (store.n_items, store.n_items)
        totals = {name: np.zeros(shape, dtype=np.int64) for name in COUNTED}
        persons = 0
        for rows in _chunks(store):
            joint = count_joint(pack_rows(flip_answers(rows, share, source)))
            for name, counts in zip(COUNTED, joint, strict=True):
                totals[name] += counts
            persons += len(rows)
        if persons != store.n_persons:
            raise DiscreetError(
                f"the release was prepared for {store.n_persons:,} persons, and {persons:,} were "
                "found: the answers changed in between, and nothing was released"
            )
        return totals


def _chunks(store: Any) -> Iterator[npt.NDArray[np.int8]]:
    """Yield the rows of some persons after the other, of a stream in one pass."""
    for part in store.parts() if hasattr(store, "parts") else [store]:
        for start in range(0, part.n_persons, CHUNK_PERSONS):
            yield part.rows(start, start + CHUNK_PERSONS)


def flip_answers(
    rows: npt.NDArray[np.int8], share: Fraction, source: RandomSource
) -> npt.NDArray[np.int8]:
    """Flip each answer with probability 1 / (1 + e^share); a missing one stays missing.

    Every cell draws a coin, answered or not, so that the number of coins says nothing.
    """
    lies = flip_coins(share, rows.size, source).reshape(rows.shape)
    return np.where((rows >= 0) & lies, 1 - rows, rows).astype(np.int8)
