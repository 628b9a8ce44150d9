"""Three small published data sets, bundled as tables of answer patterns.

In: nothing. Out: answers, one person after another. Every data set has a citation; use it where
you use the data (:func:`citation`).
"""

from __future__ import annotations

import csv
from importlib.resources import files

import numpy as np

from discreet.errors import BadUsage
from discreet.responses import Responses

__all__ = ["CITATIONS", "citation", "lsat", "three_grades", "uci_student"]

CITATIONS = {
    "lsat": (
        "Bock, R. D. and Lieberman, M. (1970). Fitting a response model for n dichotomously "
        "scored items. Psychometrika 35(2), 179-197."
    ),
    "three_grades": (
        "Cortez, P. and Silva, A. M. G. (2008). Using data mining to predict secondary school "
        "student performance. Proceedings of the 5th Future Business Technology Conference, "
        "5-12. Data: Student Performance, UCI Machine Learning Repository, CC BY 4.0."
    ),
    "uci_student": (
        "Hussain, S., Dahan, N. A., Ba-Alwi, F. M. and Ribata, N. (2018). Educational data "
        "mining and analysis of students' academic performance using WEKA. Indonesian Journal "
        "of Electrical Engineering and Computer Science 9(2), 447-459. Data: Student Academics "
        "Performance, UCI Machine Learning Repository, CC BY 4.0."
    ),
}
"""What to cite, by the name of the function that loads the data."""


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
    return _expand("lsat6_patterns.csv")


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
    return _expand("three_grades_patterns.csv")


def uci_student() -> Responses:
    """Return four school results of 131 students: 1 for "best" or "very good".

    Class X (``tnp``), class XII (``twp``), internal assessment (``iap``) and end of semester
    (``esp``), for the first 131 students of the file.

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
    return _expand("uci_student_patterns.csv")


def citation(name: str) -> str:
    """Return what to cite for a bundled data set.

    Examples
    --------
    >>> citation("lsat")[:33]
    'Bock, R. D. and Lieberman, M. (19'
    """
    if name not in CITATIONS:
        raise BadUsage(f"there is no data set {name!r}; choose one of {', '.join(CITATIONS)}")
    return CITATIONS[name]


def _expand(file: str) -> Responses:
    """Repeat each pattern of a table as often as its last column, ``persons``, says."""
    with (files("discreet") / "data" / file).open(encoding="utf-8") as lines:
        header, *rows = csv.reader(lines)
    table = np.array(rows, dtype=np.int64)
    answers = np.repeat(table[:, :-1], table[:, -1], axis=0)
    return Responses.from_array(answers.astype(np.int8), items=header[:-1])
