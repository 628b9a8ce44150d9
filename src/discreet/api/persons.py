"""Abilities of persons, of anything that holds answers.

In: answers and a calibration. Out: :class:`~discreet.PersonScores`.
"""

from discreet.api.opening import opens
from discreet.persons import scoring

score = opens(scoring.score)
