"""Published data sets: three bundled as tables of answer patterns, others read from your copy.

In: nothing, or the path of a file as its publisher hands it out. Out: answers, or ratings that
`prepare_ratings` turns into answers. Every data set has a citation; use it where you use the
data (:func:`citation`).
"""

from __future__ import annotations

from discreet.datasets.education import lsat, three_grades, uci_student
from discreet.datasets.films import Ratings, binarise_ratings, movielens, prepare_ratings
from discreet.errors import BadUsage

__all__ = [
    "CITATIONS",
    "Ratings",
    "binarise_ratings",
    "citation",
    "lsat",
    "movielens",
    "prepare_ratings",
    "three_grades",
    "uci_student",
]

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
    "movielens": (
        "Harper, F. M. and Konstan, J. A. (2015). The MovieLens datasets: history and context. "
        "ACM Transactions on Interactive Intelligent Systems 5(4), 19. Data: GroupLens Research; "
        "no commercial use, no redistribution without permission."
    ),
}
"""What to cite, by the name of the function that loads the data."""


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
