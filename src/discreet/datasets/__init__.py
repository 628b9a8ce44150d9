"""Published data sets: three bundled as tables of answer patterns, others read from your copy.

Beside them a simulated questionnaire, for items with steps. In: nothing, or the path of a file as
its publisher hands it out, plain, gzipped, zipped or in its folder. Nothing is downloaded and
nothing is written. Out: answers, or film ratings (MovieLens) that `prepare_ratings` turns into
answers that everyone gave to everything, as the paper's figures on recommender data use them.
Every data set has a citation; use it where you use the data (:func:`citation`).

Examples
--------
>>> import discreet
>>> discreet.datasets.lsat()
<Responses: 1,000 persons, 5 items, 5,000 answers (100% filled)>
"""

from __future__ import annotations

import csv
import gzip
import inspect
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from os import PathLike
from pathlib import Path

import numpy as np

from discreet.answers.pack import store_codes
from discreet.answers.responses import Responses
from discreet.checking import check_exports
from discreet.errors import BadResponses, BadUsage
from discreet.tabular import brief_repr
from discreet.types import FloatArray, Int64Array

__all__ = [
    "CITATIONS", "WELLBEING_ANSWERS", "WELLBEING_TEXTS", "FilmRatings", "binarise_ratings",
    "citation", "lsat", "movielens", "prepare_ratings", "three_grades", "uci_student", "wellbeing",
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
    plain = dict(enumerate(name.lower() for name in header))
    number = [column for column, name in plain.items() if name in FREQUENCY_COLUMNS]
    items = [c for c, name in plain.items() if c not in number and name not in OTHER_COLUMNS]
    values = _whole_numbers([[row[c] for c in items + number] for row in table[1:]], source)
    answers, times = values[:, : len(items)], values[:, len(items) :]
    bad = answers[~np.isin(answers, (0, 1))]
    if bad.size:
        raise BadResponses(
            f"{source}: an answer is {bad[0]}, but every column other than a frequency "
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


def _whole_numbers(cells: Sequence[Sequence[str]], source: str) -> Int64Array:
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


# -- film ratings ----------------------------------------------------------------------------------

#: The file of ratings in ml-latest-small and in ml-100k.
MEMBERS = ("ratings.csv", "u.data")

#: Of the matrix estimate: as many as the factors of the authors' script. The paper gives none.
RANK = 30


@dataclass(frozen=True, eq=False)
class FilmRatings:
    """Who rated what how.

    Attributes
    ----------
    persons, items
        Their ids.
    person, item
        For each rating, the place in these.
    rating
        The ratings.

    Examples
    --------
    >>> first, second = np.array([0, 1]), np.array([0, 0])
    >>> FilmRatings(("ann", "bob"), ("film",), first, second, np.array([4.0, 2.5])).items
    ('film',)
    """

    persons: tuple[str, ...]
    items: tuple[str, ...]
    person: Int64Array
    item: Int64Array
    rating: FloatArray

    __repr__ = brief_repr


def movielens(path: str | PathLike[str]) -> FilmRatings:
    r"""Read MovieLens ratings, "latest-small" or "100K", from the publisher's file.

    Both are at grouplens.org/datasets/movielens. Their licence allows research but no
    redistribution, so they do not come with this library.

    Parameters
    ----------
    path
        The zip archive as downloaded, the folder it unpacks to, or the file of ratings:
        ``ratings.csv`` with the header ``userId,movieId,rating,timestamp``, or ``u.data`` with
        user, item, rating and time separated by tabs. Gzipped files are fine, and so is a header
        ``person,item,rating``.

    References
    ----------
    Harper, F. M. and Konstan, J. A. (2015). The MovieLens datasets: history and context. ACM
    Transactions on Interactive Intelligent Systems 5(4), 19. Data: GroupLens Research; no
    commercial use, no redistribution without permission.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "ratings.csv")
    ...     _ = file.write_text("userId,movieId,rating,timestamp\n1,10,4.0,0\n2,10,2.5,0\n")
    ...     movielens(file).rating.tolist()
    [4.0, 2.5]
    """
    lines = read_archive_text(path, MEMBERS).split("\n")
    if "\t" in lines[0]:
        rows, columns = [line.split("\t") for line in lines if line.strip()], [0, 1, 2]
    else:
        header = lines[0].strip().split(",")
        names = ("userId", "movieId") if "userId" in header else ("person", "item")
        columns = column_numbers(header, (*names, "rating"), path)
        rows = [line.split(",") for line in lines[1:] if line.strip()]
    cells = [[row[c] for row in rows if len(row) > max(columns)] for c in columns]
    if not cells[0] or len(cells[0]) < len(rows):
        raise BadResponses(f"{path}: some line does not have a user, an item and a rating")
    return _build(*cells, source=str(path))


def binarise_ratings(ratings: FilmRatings, *, rank: int = RANK, rounds: int = 1) -> Responses:
    """Answer every item for every person: 1 where the estimated score is below their mean.

    A matrix of the given rank estimates how each person would rate each item. A person's scores
    below the person's own mean score become 1 and the others 0, so that difficulty is
    popularity. The paper gives no method for the estimate. Here it is the matrix of least squares;
    the authors' script takes sparse non-negative factors.

    Parameters
    ----------
    ratings
        The ratings.
    rank
        Of the estimated matrix.
    rounds
        1: the best approximation of the matrix in which missing ratings are 0.
        More: put the estimates in place of the missing ratings and repeat, which tends to a
        completion that fits the given ratings only.

    Returns
    -------
    Responses
        A row for each person and a column for each item, without gaps.

    Examples
    --------
    >>> person, item = np.divmod(np.arange(4), 2)
    >>> ratings = FilmRatings(("a", "b"), ("x", "y"), person, item, np.array([5, 1, 4, 2.0]))
    >>> binarise_ratings(ratings, rank=2).to_array().tolist()
    [[0, 1], [0, 1]]
    """
    m, n = len(ratings.items), len(ratings.persons)
    if not 1 <= rank <= min(n, m):
        raise BadUsage(f"rank must lie between 1 and {min(n, m)} for these ratings, found {rank}")
    if rounds < 1:
        raise BadUsage(f"rounds must be at least 1, found {rounds}")
    filled = np.zeros((n, m))
    for _ in range(rounds):
        filled[ratings.person, ratings.item] = ratings.rating
        filled = _approximate(filled, rank)
    below = filled < filled.mean(axis=1, keepdims=True)
    return Responses.from_array(below.astype(np.int8), ratings.items, ratings.persons)


def prepare_ratings(
    ratings: FilmRatings, items: int, *, rng: np.random.Generator, rank: int = RANK, rounds: int = 1
) -> Responses:
    """Prepare ratings in the steps of the paper: estimate, split at the mean, draw items.

    Parameters
    ----------
    ratings
        The ratings.
    items
        How many items to draw at random, after the split.
    rng
        Draws them.
    rank, rounds
        As in `binarise_ratings`.

    Examples
    --------
    >>> person, item = np.divmod(np.arange(12), 4)
    >>> stars = np.array([5, 3, 1, 2, 4, 4, 2, 1, 5, 2, 1, 1.0])
    >>> ratings = FilmRatings(("a", "b", "c"), ("w", "x", "y", "z"), person, item, stars)
    >>> prepare_ratings(ratings, 2, rng=np.random.default_rng(0), rank=2).n_items
    2
    """
    answers = binarise_ratings(ratings, rank=rank, rounds=rounds)
    if not 2 <= items <= answers.n_items:
        raise BadUsage(f"items must lie between 2 and {answers.n_items}, found {items}")
    chosen = rng.choice(answers.n_items, items, replace=False)
    return answers.select([answers.items[number] for number in chosen])


def _build(person: list[str], item: list[str], rating: list[str], *, source: str) -> FilmRatings:
    try:
        values = np.array(rating, dtype=np.float64)
    except ValueError as error:
        raise BadResponses(f"{source}: a rating is not a number ({error})") from error
    persons, person_place = np.unique(np.array(person), return_inverse=True)
    items, item_place = np.unique(np.array(item), return_inverse=True)
    if len(np.unique(person_place * len(items) + item_place)) < len(values):
        raise BadResponses(f"{source}: somebody rated the same item twice; keep one rating of each")
    names = tuple(persons.tolist()), tuple(items.tolist())
    return FilmRatings(*names, person_place, item_place, values)


def _approximate(matrix: FloatArray, rank: int) -> FloatArray:
    """Best approximation of this rank, by the eigenvectors of the smaller Gram matrix."""
    if matrix.shape[0] > matrix.shape[1]:
        return _approximate(matrix.T, rank).T
    _, vectors = np.linalg.eigh(matrix @ matrix.T)
    top = vectors[:, -rank:]
    return np.asarray(top @ (top.T @ matrix))


def read_archive_text(path: str | PathLike[str], members: Sequence[str] = ()) -> str:
    """Return the text of a file.

    Parameters
    ----------
    path
        The file, its gzipped copy, or a folder or zip archive that holds one of ``members``.
    members
        File names to look for in a folder or archive, the first that is there.
    """
    file = Path(path)
    if not file.exists():
        raise BadUsage(f"there is no file {file}; give the path of your copy of the data")
    if file.is_dir():
        inside = [file / name for name in members if (file / name).is_file()]
        if inside:
            return read_archive_text(inside[0])
    elif zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            by_name = {inside.split("/")[-1]: inside for inside in reversed(archive.namelist())}
            chosen = [by_name[name] for name in members if name in by_name]
            if chosen:
                return _decode(archive.read(chosen[0]))
    else:
        raw = file.read_bytes()
        return _decode(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    expected = " or ".join(members) or "a single data file"
    raise BadUsage(f"{path} does not hold {expected}; give the path of the data file itself")


def column_numbers(
    header: Sequence[str], columns: Sequence[str], path: str | PathLike[str]
) -> list[int]:
    """Return where the wanted columns stand."""
    names = [name.strip().strip('"') for name in header]
    missing = [name for name in columns if name not in names]
    if missing:
        raise BadResponses(
            f"{path}: there is no column {missing[0]!r} among {', '.join(names[:8]) or 'none'}; "
            "is this the publisher's file as it came?"
        )
    return [names.index(name) for name in columns]


def _decode(raw: bytes) -> str:
    # Old files are Latin-1; what is read here is ASCII in either.
    return raw.decode("utf-8-sig", errors="replace")


def _read_reference(load: Callable[..., object]) -> str:
    """Return the references in the documentation of a function, in one line."""
    _, _, below = (inspect.getdoc(load) or "").partition("References\n----------\n")
    return " ".join(below.partition("\n\n")[0].split())


#: What to cite, by the name of the function that loads the data.
CITATIONS = {
    load.__name__: _read_reference(load)
    for load in (lsat, three_grades, uci_student, wellbeing, movielens)
}


check_exports(globals(), __all__)
