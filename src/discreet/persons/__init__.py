"""Abilities of persons, with the item difficulties held fixed.

In: answers and a calibration. Out: abilities with standard errors and statuses, and the table
from raw score to ability. Confidential: an ability is about one person and is never part of a
release (the table is about items only).
"""

from discreet.persons.calibrated import Calibration, known_difficulties
from discreet.persons.prior import NormalPrior
from discreet.persons.scores import PersonScores, PersonStatus, ScoreTable, score, tabulate_scores
from discreet.persons.solving import Abilities, abilities

__all__ = [
    "Abilities",
    "Calibration",
    "NormalPrior",
    "PersonScores",
    "PersonStatus",
    "ScoreTable",
    "abilities",
    "known_difficulties",
    "score",
    "tabulate_scores",
]
