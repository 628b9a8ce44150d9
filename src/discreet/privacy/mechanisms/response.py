"""Randomized response: every answer is flipped by its own coin before anything is counted.

In: public parameters and a budget. Out: the exact epsilon of one answer, and counts of flipped
answers.

A person with at most q answers flips each with probability 1 / (1 + e^(epsilon / q)), so that
the whole set of answers is protected with epsilon. It randomises answers, not which items were
answered: the guarantee is for the answers given that pattern, and every artefact says so. Its
output shows the number of persons, so it is for replace-one only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import exp, sqrt
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from discreet.answers.pack import pack_rows
from discreet.answers.protocol import Answers, Job
from discreet.choices import PlainMapping
from discreet.counts.pairs import count_joint
from discreet.counts.planes import AnswerStore
from discreet.errors import BadResponses, BadUsage
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.accounting.amplification import calibrate_local
from discreet.privacy.mechanisms.base import CompleteMechanism
from discreet.privacy.protocol import NoiseCalibration, NoiselessValues, Public
from discreet.privacy.wall import check_person_count
from discreet.secure import RandomSource, SystemSource, check_coin, flip_coins
from discreet.types import Int64Array
from discreet.words import mark

if TYPE_CHECKING:
    from discreet.privacy.attack_statistics import NeighbourCells, Statistic, Values

PATTERN_CONDITION = mark(
    "The guarantee protects which answers a person gave, given which items the person answered. "
    "Which items were answered is not protected: it must be public by design, or the same for "
    "everyone."
)
SHUFFLE_CONDITION = mark(
    "The guarantee counts on a trusted shuffler that removes the order and the identity of the "
    "randomised rows before anybody sees them, and on every person answering every listed item."
)
CHUNK_PERSONS = 16_384

#: Matrices over items: persons who seem to have both right, one right and one wrong, both wrong.
COUNTED = ("right_right", "right_wrong", "wrong_wrong")


@dataclass(frozen=True)
class RandomizedResponse(CompleteMechanism):
    """Flip every answer with a public probability, then count.

    Attributes
    ----------
    shuffler
        ``"none"``: the guarantee holds against whoever collects the randomised answers.
        ``"trusted"``: somebody shuffles the rows first, and the guarantee is amplified.
    public_pattern
        Whether everybody may know who answered which items. The counts of flipped answers show
        how many persons answered which two items together, so they are published beside the
        difficulties only then, or where everybody answers everything.
    """

    relations: ClassVar[frozenset[Neighbours]] = frozenset({Neighbours.REPLACE_ONE})
    hides_pattern: ClassVar[bool] = False
    growth: ClassVar[float] = 0.5

    shuffler: Literal["none", "trusted"] = "none"
    name: str = "randomized-response"
    public_pattern: bool = False

    def __post_init__(self) -> None:
        if self.shuffler not in ("none", "trusted"):
            raise BadUsage(f"shuffler must be 'none' or 'trusted', found {self.shuffler!r}")

    def calibrate(self, public: Public, budget: Budget, source: RandomSource) -> NoiseCalibration:  # noqa: ARG002
        """Find the largest share of truthful answers that keeps the budget."""
        shuffled = public.persons if self.shuffler == "trusted" else None
        share, spend = calibrate_local(
            public.max_answers, budget, shuffled_persons=shuffled, mechanism=self.name
        )
        choices = {"shuffler": self.shuffler, "public_pattern": self.public_pattern}
        conditions = (PATTERN_CONDITION, *([] if shuffled is None else [SHUFFLE_CONDITION]))
        return NoiseCalibration({}, spend, {"answer_epsilon": share, **choices}, conditions)

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

    def prepare(
        self, answers: Answers, public: Public, calibration: NoiseCalibration
    ) -> NoiselessValues:
        """Count nothing yet: answers are flipped first, and that is the noise."""
        check_coin(calibration.settings["answer_epsilon"])
        return NoiselessValues(
            answers.n_persons,
            dict.fromkeys(COUNTED, (len(public.items),) * 2),
            lambda noise: self.randomise(answers, calibration, noise.source),
        )

    def randomise(
        self, answers: Answers, calibration: NoiseCalibration, source: RandomSource
    ) -> dict[str, Int64Array]:
        """Flip the answers and count the flipped ones; nothing else leaves this function.

        Returns how many persons seem to have both items right, one right and the other wrong,
        and both wrong: matrices over items, of which the first and last are symmetric.
        """
        share: Fraction = calibration.settings["answer_epsilon"]
        persons, totals = answers.reduce(CountFlipped(share, source))
        check_person_count(persons, answers.n_persons)
        return dict(zip(COUNTED, totals, strict=True))

    def attack_cells(
        self,
        person: Any,
        public: Public,  # noqa: ARG002
        calibration: NoiseCalibration,  # noqa: ARG002
    ) -> Mapping[str, npt.NDArray[Any]]:
        """Return which items a made-up person has right."""
        return {"right": (person.to_array() == 1).sum(axis=0).astype(float)}

    def statistic(
        self, public: Public, calibration: NoiseCalibration, cells: NeighbourCells, group: int
    ) -> Statistic:
        """Return how many flipped answers agree with the first data set rather than the second."""
        from scipy.special import ndtri
        from scipy.stats import binom

        from discreet.privacy.attack_statistics import Statistic, join_values, pure_epsilon

        first, second = cells["right"]
        direction, middle = first - second, group * (first + second) / 2
        answers = int(np.abs(direction).sum())
        share = float(calibration.settings["answer_epsilon"])

        def score(values: Values, calibration: NoiseCalibration) -> float:  # noqa: ARG001
            return float((np.diag(values["right_right"]) - middle) @ direction)

        def separate(factor: float, answers: int) -> float:
            number, truth = group * answers, 1 / (1 + exp(-factor * share))
            below = binom.cdf([np.ceil(number / 2) - 1, number // 2], number, truth)
            return float(-2 * ndtri(max(below.mean(), 1e-300)))

        truth = 1 / (1 + exp(-share))
        return Statistic(
            reach=sqrt(answers) * (2 * truth - 1) / sqrt(truth * (1 - truth)),
            score=score,
            separation=lambda factor: separate(factor, answers),
            permitted=lambda factor: separate(factor, min(answers, public.max_answers)),
            ceiling=lambda factor: separate(factor, min(answers, public.max_answers)),
            epsilon=pure_epsilon(calibration),
            arrange=join_values,
            redraw=lambda _: calibration,
        )


def find_flip_probability(settings: PlainMapping) -> float:
    """Return the public probability with which an answer is flipped."""
    return 1 / (1 + exp(float(settings["answer_epsilon"])))


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
            total += count_joint(pack_rows(randomize_answers(rows, self.share, self.source)))
        return store.n_persons, total

    def add(
        self, first: tuple[int, Int64Array], second: tuple[int, Int64Array]
    ) -> tuple[int, Int64Array]:
        """Add persons and counts."""
        return first[0] + second[0], first[1] + second[1]


def randomize_answers(
    rows: npt.NDArray[np.int8], share: Fraction, source: RandomSource
) -> npt.NDArray[np.int8]:
    """Flip each answer with probability 1 / (1 + e^share); a missing one stays missing.

    Every cell draws a coin, answered or not, so that the number of coins says nothing.
    """
    lies = flip_coins(share, rows.size, source).reshape(rows.shape)
    return np.where((rows >= 0) & lies, 1 - rows, rows).astype(np.int8)
