"""Published data sets, bundled as tables of answer patterns, and a simulated questionnaire.

In: nothing. Out: answers. Every data set has a citation; use it where you use the data
(:func:`citation`).

Examples
--------
>>> import discreet
>>> discreet.datasets.lsat()
<Responses: 1,000 persons, 5 items, 5,000 answers (100% filled)>
"""

from __future__ import annotations

import csv
import inspect
from collections.abc import Callable
from importlib.resources import files

import numpy as np

from discreet.answers.pack import store_codes
from discreet.answers.responses import Responses
from discreet.checking import check_exports
from discreet.errors import BadUsage

__all__ = [
    "CITATIONS", "WELLBEING_ANSWERS", "WELLBEING_TEXTS", "citation", "lsat", "three_grades",
    "uci_student", "wellbeing",
]  # fmt: skip


def citation(name: str) -> str:
    """Return what to cite for a data set.

    Examples
    --------
    >>> citation("lsat")[:33]
    'Bock, R. D. and Lieberman, M. (19'
    """
    if name not in CITATIONS:
        raise BadUsage(f"there is no data set {name!r}; choose one of {', '.join(CITATIONS)}")
    return CITATIONS[name]


def lsat() -> Responses:
    """Return section 6 of the Law School Admission Test: 1000 persons, 5 items.

    The answer patterns with their frequencies were printed by Bock and Lieberman (1970) and
    have been a textbook example since.

    References
    ----------
    Bock, R. D. and Lieberman, M. (1970). Fitting a response model for n dichotomously scored
    items. Psychometrika 35(2), 179-197.

    Examples
    --------
    >>> lsat().n_persons
    1000
    """
    return _repeat_patterns("lsat6_patterns.csv")


def three_grades() -> Responses:
    """Return three marks in Portuguese of 649 pupils: 1 where a mark is above its median.

    The medians of the first, second and final grade are 11, 11 and 12. The three marks of a
    pupil depend on each other more strongly than the Rasch model says.

    References
    ----------
    Cortez, P. and Silva, A. M. G. (2008). Using data mining to predict secondary school student
    performance. Proceedings of the 5th Future Business Technology Conference, 5-12. Data:
    Student Performance, UCI Machine Learning Repository, CC BY 4.0.

    Examples
    --------
    >>> three_grades().items
    ('G1', 'G2', 'G3')
    """
    return _repeat_patterns("three_grades_patterns.csv")


def uci_student() -> Responses:
    """Return four school results of 131 students: 1 for "best" or "very good".

    Class X (``tnp``), class XII (``twp``), internal assessment (``iap``) and end of semester
    (``esp``), for the first 131 students of the file, as many as the article behind the data has.

    References
    ----------
    Hussain, S., Dahan, N. A., Ba-Alwi, F. M. and Ribata, N. (2018). Educational data mining and
    analysis of students' academic performance using WEKA. Indonesian Journal of Electrical
    Engineering and Computer Science 9(2), 447-459. Data: Student Academics Performance, UCI
    Machine Learning Repository, CC BY 4.0.

    Examples
    --------
    >>> uci_student().n_items
    4
    """
    return _repeat_patterns("uci_student_patterns.csv")


def _repeat_patterns(file: str) -> Responses:
    """Repeat each row as often as its last cell says."""
    with (files("discreet") / "data" / file).open(encoding="utf-8") as lines:
        header, *rows = csv.reader(lines)
    table = np.array(rows, dtype=np.int64)
    answers = np.repeat(table[:, :-1], table[:, -1], axis=0)
    return Responses.from_array(answers.astype(np.int8), items=header[:-1])


#: What the items of :func:`wellbeing` say, about the past two weeks.
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

#: What the scores 0 to 4 of :func:`wellbeing` mean.
WELLBEING_ANSWERS = ("never", "rarely", "sometimes", "often", "always")


def wellbeing() -> Responses:
    """Return a questionnaire on well-being: 600 persons, 12 items, scores from 0 to 4.

    The answers are simulated from the partial credit model and stand under the licence of this
    library; texts are in ``WELLBEING_TEXTS``, the meaning of the scores in ``WELLBEING_ANSWERS``.
    As in real ones, some answers are missing, and not everything is in order: "exercised" is
    easier for persons below 40 than their well-being explains, and of "proud" hardly anybody
    chooses "rarely". The column of groups is called "age".

    References
    ----------
    Simulated from the partial credit model for this library: no persons stand behind it, and
    there is nothing to cite but the library.

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


def _read_reference(load: Callable[..., object]) -> str:
    """Return the references in the documentation of a function, in one line."""
    _, _, below = (inspect.getdoc(load) or "").partition("References\n----------\n")
    return " ".join(below.partition("\n\n")[0].split())


#: What to cite, by the name of the function that loads the data.
CITATIONS = {
    load.__name__: _read_reference(load) for load in (lsat, three_grades, uci_student, wellbeing)
}


check_exports(globals(), __all__)
