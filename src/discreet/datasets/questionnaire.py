"""A questionnaire that nobody answered: simulated answers that look like real ones.

In: nothing. Out: answers with steps, and the texts of the items. ``python -m tools.wellbeing``
made the table.
"""

from __future__ import annotations

import csv
from importlib.resources import files

import numpy as np

from discreet.answers.responses import Responses
from discreet.answers.steps import store_codes

WELLBEING_TEXTS = {
    "cheerful": "I was cheerful and in good spirits.",
    "calm": "I felt calm and relaxed.",
    "active": "I felt active and vigorous.",
    "rested": "I woke up fresh and rested.",
    "interested": "My days were filled with things that interest me.",
    "hopeful": "I looked forward to the next day.",
    "close": "I felt close to other people.",
    "useful": "What I did seemed useful to me.",
    "focused": "I could think clearly.",
    "proud": "I was proud of something I had done.",
    "laughed": "I laughed heartily.",
    "exercised": "I moved enough to be out of breath.",
}
"""What the items of :func:`wellbeing` say, about the past two weeks."""

WELLBEING_ANSWERS = ("never", "rarely", "sometimes", "often", "always")
"""What the scores 0 to 4 of :func:`wellbeing` mean."""


def wellbeing() -> Responses:
    """Return a questionnaire on well-being: 600 persons, 12 items, scores from 0 to 4.

    The answers are simulated from the partial credit model and stand under the licence of this
    library; texts are in ``WELLBEING_TEXTS``, the meaning of the scores in ``WELLBEING_ANSWERS``.
    As in real ones, some answers are missing, and not everything is in order: "exercised" is
    easier for persons below 40 than their well-being explains, and of "proud" hardly anybody
    chooses "rarely". The column of groups is called "age".

    References
    ----------
    Simulated: no persons stand behind it.

    Examples
    --------
    >>> answers = wellbeing()
    >>> answers.n_persons, answers.n_items, set(answers.steps)
    (600, 12, {4})
    """
    with (files("discreet") / "data" / "wellbeing.csv").open(encoding="utf-8") as lines:
        header, *rows = csv.reader(lines)
    items = header[2:]
    codes = np.array([[int(cell or -1) for cell in row[2:]] for row in rows], dtype=np.int8)
    store = store_codes(codes, [len(WELLBEING_ANSWERS) - 1] * len(items))
    persons, age = ([row[column] for row in rows] for column in (0, 1))
    return Responses(tuple(items), persons, store, groups={"age": tuple(age)})
