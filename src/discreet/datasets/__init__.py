"""Published data sets: three bundled as tables of answer patterns, others read from your copy.

Beside them a simulated questionnaire, for items with steps. In: nothing, or the path of a file as
its publisher hands it out. Out: answers, or ratings that `prepare_ratings` turns into answers.
Every data set has a citation; use it where you use the data (:func:`citation`).
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from importlib.resources import files
from os import PathLike

import numpy as np
import numpy.typing as npt

from discreet.answers.pack import store_codes
from discreet.answers.responses import Responses
from discreet.datasets.films import (
    FilmRatings,
    binarise_ratings,
    column_numbers,
    movielens,
    prepare_ratings,
    read_archive_text,
)
from discreet.errors import BadResponses, BadUsage

__all__ = [
    "CITATIONS",
    "WELLBEING_ANSWERS",
    "WELLBEING_TEXTS",
    "FilmRatings",
    "binarise_ratings",
    "citation",
    "lsat",
    "movielens",
    "prepare_ratings",
    "three_grades",
    "uci_student",
    "wellbeing",
]

#: What to cite, by the name of the function that loads the data.
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
    "wellbeing": (
        "Simulated from the partial credit model for this library: no persons stand behind it, "
        "and there is nothing to cite but the library."
    ),
    "movielens": (
        "Harper, F. M. and Konstan, J. A. (2015). The MovieLens datasets: history and context. "
        "ACM Transactions on Interactive Intelligent Systems 5(4), 19. Data: GroupLens Research; "
        "no commercial use, no redistribution without permission."
    ),
}


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


#: Names under which pattern tables in circulation give section 6's frequencies.
FREQUENCY_COLUMNS = ("persons", "freq", "ob6", "wt6", "n")
#: Row numbers, and the frequencies of section 7, which share the table in some copies.
OTHER_COLUMNS = ("", "index", "ob7", "wt7")

GRADES = ("G1", "G2", "G3")
RESULTS = ("tnp", "twp", "iap", "esp")
GOOD_RESULTS = ("best", "vg")
#: The article behind the data, and the figures after it, use this many; the file has more.
STUDENTS = 131


def lsat(path: str | PathLike[str] | None = None) -> Responses:
    """Return section 6 of the Law School Admission Test: 1000 persons, 5 items.

    The answer patterns with their frequencies were printed by Bock and Lieberman (1970) and
    have been a textbook example since.

    Parameters
    ----------
    path
        By default the bundled table. Or a text table of your own copy with a header, columns
        separated by commas, semicolons, tabs or blanks: one row a person with 0/1 columns (as in
        the R package ltm), or one row a pattern with a column of frequencies named ``Freq``,
        ``Ob6``, ``wt6`` or ``persons`` (mirt, psych, SMIR, and the bundled table).

    References
    ----------
    Bock, R. D. and Lieberman, M. (1970). Fitting a response model for n dichotomously scored
    items. Psychometrika 35(2), 179-197.

    Examples
    --------
    >>> lsat().n_persons
    1000
    """
    if path is None:
        return _bundled("lsat6_patterns.csv")
    lines = read_archive_text(path).splitlines()
    return _patterns(_split_table(lines, str(path)), str(path))


def three_grades(path: str | PathLike[str] | None = None) -> Responses:
    """Return three marks in Portuguese of 649 pupils: 1 where a mark is above its median.

    The medians of the first, second and final grade are 11, 11 and 12. The three marks of a
    pupil depend on each other more strongly than the Rasch model says.

    Parameters
    ----------
    path
        By default the bundled table. Or ``student-por.csv`` of "Student Performance", UCI
        Machine Learning Repository (data set 320), with semicolons, as it comes.

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
    if path is None:
        return _bundled("three_grades_patterns.csv")
    header, *rows = csv.reader(read_archive_text(path).splitlines(), delimiter=";")
    columns = column_numbers(header, GRADES, path)
    marks = _whole_numbers([[row[c] for c in columns] for row in rows if row], str(path))
    return Responses.from_array((marks > np.median(marks, axis=0)).astype(np.int8), items=GRADES)


def uci_student(path: str | PathLike[str] | None = None) -> Responses:
    """Return four school results of 131 students: 1 for "best" or "very good".

    Class X (``tnp``), class XII (``twp``), internal assessment (``iap``) and end of semester
    (``esp``), for the first 131 students of the file.

    Parameters
    ----------
    path
        By default the bundled table. Or the ARFF file of "Student Academics Performance", UCI
        Machine Learning Repository (data set 467), as it comes.

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
    if path is None:
        return _bundled("uci_student_patterns.csv")
    header, rows = _split_arff(read_archive_text(path).splitlines())
    columns = column_numbers(header, RESULTS, path)
    results = [[row[c].strip().lower() for c in columns] for row in rows[:STUDENTS]]
    if not results:
        raise BadResponses(f"{path}: there is no line after @DATA, so there are no students")
    answers = np.isin(np.array(results), GOOD_RESULTS).astype(np.int8)
    return Responses.from_array(answers, items=RESULTS)


def _bundled(file: str) -> Responses:
    with (files("discreet") / "data" / file).open(encoding="utf-8") as lines:
        return _patterns(list(csv.reader(lines)), file)


def _patterns(table: Sequence[Sequence[str]], source: str) -> Responses:
    """Repeat each row as often as its frequency says; once where there is no such column."""
    header = [name.strip() for name in table[0]]
    items = [
        column
        for column, name in enumerate(header)
        if name.lower() not in (*FREQUENCY_COLUMNS, *OTHER_COLUMNS)
    ]
    number = [column for column, name in enumerate(header) if name.lower() in FREQUENCY_COLUMNS]
    values = _whole_numbers([[row[c] for c in items + number] for row in table[1:]], source)
    answers, times = values[:, : len(items)], values[:, len(items) :]
    if not np.isin(answers, (0, 1)).all():
        bad_answer = int(answers[~np.isin(answers, (0, 1))][0])
        raise BadResponses(
            f"{source}: an answer is {bad_answer}, but every column other than a frequency "
            f"({', '.join(FREQUENCY_COLUMNS)}) has to hold 0 and 1; rename or remove that column"
        )
    if number:
        answers = np.repeat(answers, times[:, 0], axis=0)
    return Responses.from_array(answers.astype(np.int8), items=[header[c] for c in items])


def _split_table(lines: Iterable[str], source: str) -> list[list[str]]:
    filled = [line for line in lines if line.strip()]
    if len(filled) < 2:
        raise BadResponses(f"{source}: a header and at least one row were expected")
    mark = next((mark for mark in ",;\t" if mark in filled[0]), None)
    rows = [line.split() for line in filled] if mark is None else list(
        csv.reader(filled, delimiter=mark)
    )  # fmt: skip
    # R's write.table leaves the heading of the row numbers out.
    if mark is None and len(rows[0]) == len(rows[1]) - 1:
        rows[0] = ["", *rows[0]]
    return [[cell.strip('"') for cell in row] for row in rows]


def _split_arff(lines: Iterable[str]) -> tuple[list[str], list[list[str]]]:
    """Names of the attributes, and the cells below ``@data``."""
    header, rows, in_data = [], [], False
    for line in (line.strip() for line in lines):
        if not line or line.startswith("%"):
            continue
        if in_data:
            rows.append(line.split(","))
        elif line.lower().startswith("@attribute"):
            header.append(line.split()[1].strip("'\""))
        in_data = in_data or line.lower().startswith("@data")
    return header, rows


def _whole_numbers(cells: Sequence[Sequence[str]], source: str) -> npt.NDArray[np.int64]:
    try:
        return np.array(cells, dtype=np.int64)
    except ValueError as error:
        raise BadResponses(f"{source}: a cell is not a whole number ({error})") from error


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
