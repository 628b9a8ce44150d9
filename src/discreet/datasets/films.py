"""Film ratings (MovieLens), and the way from ratings to answers.

In: the publisher's file at a path that you give. Out: `FilmRatings`, and from them answers that
everyone gave to everything, as the paper's figures on recommender data use them. A publisher's file
may be plain, gzipped, zipped or in its folder; nothing is downloaded and nothing is written.
"""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from discreet.answers.responses import Responses
from discreet.errors import BadResponses, BadUsage
from discreet.tabular import brief_repr
from discreet.types import FloatArray, Int64Array

#: The file of ratings in ml-latest-small and in ml-100k.
MEMBERS = ("ratings.csv", "u.data")

#: Of the matrix estimate. The paper gives none. Of 1, 2, 5, 10 to 16, 20 and 50 this one was chosen
#: because it came nearest to the printed figure. The authors' script takes 30 sparse non-negative
#: factors.
RANK = 11


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
    Transactions on Interactive Intelligent Systems 5(4), 19.

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
    popularity.

    Parameters
    ----------
    ratings
        The ratings.
    rank
        Of the estimated matrix.
    rounds
        1: the best approximation of the matrix in which missing ratings are 0, as in our figures.
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
    """Prepare ratings as the paper does: estimate, split at the mean, draw items.

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
    return FilmRatings(
        tuple(persons.tolist()), tuple(items.tolist()), person_place, item_place, values
    )


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
        return _member_of_folder(file, members)
    if zipfile.is_zipfile(file):
        return _member_of_archive(file, members)
    raw = file.read_bytes()
    return _decode(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)


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


def _member_of_folder(folder: Path, members: Sequence[str]) -> str:
    for name in members:
        if (folder / name).is_file():
            return read_archive_text(folder / name)
    raise _nothing_inside(folder, members)


def _member_of_archive(archive: Path, members: Sequence[str]) -> str:
    with zipfile.ZipFile(archive) as opened:
        for name in members:
            for inside in opened.namelist():
                if inside.split("/")[-1] == name:
                    return _decode(opened.read(inside))
    raise _nothing_inside(archive, members)


def _nothing_inside(path: Path, members: Sequence[str]) -> BadUsage:
    expected = " or ".join(members) or "a single data file"
    return BadUsage(f"{path} does not hold {expected}; give the path of the data file itself")


def _decode(raw: bytes) -> str:
    # Old files are Latin-1; what is read here is ASCII in either.
    return raw.decode("utf-8-sig", errors="replace")
