"""Open answers, wherever they are.

In: answers, or where they are. Out: :class:`~discreet.answers.protocol.Answers`. Adding a place
where answers can be is one module that fulfils the protocol, and one branch of
:func:`open_answers`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from discreet.answers.matrices import MATRIX_WORDS, is_matrix, read_matrix
from discreet.answers.protocol import Answers
from discreet.answers.survey import DesignWords
from discreet.choices import PlainMapping
from discreet.coding.agreement import check_alike, find_reading
from discreet.coding.reading import (
    VALUE_FIELDS,
    FitWords,
    ListedWords,
    Reading,
    ReadingWords,
    check_words,
)
from discreet.counts import PairCounts, holds_counts
from discreet.errors import LOG, BadResponses, BadUsage, OutOfReach, log_answers, name_source
from discreet.tables.carrying import carry_reading
from discreet.tables.columns import RATED
from discreet.tables.lists import state_reading
from discreet.tables.sources import has_head, is_spark

if TYPE_CHECKING:
    from discreet.answers.responses import Responses
    from discreet.tables.resources import Progress, Resources

ENGINES = ("memory", "disk", "spark")
#: Other names of engines.
SYNONYMS = {"duckdb": "disk"}


@contextmanager
def opened(
    source: object,
    engine: str = "auto",
    words: ListedWords | Reading | None = None,
    *,
    resources: Resources | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Iterator[Answers]:
    """Give answers as :func:`open_answers` does; close them unless the caller had them open.

    A :class:`Reading` is taken as it is; with words a file is inspected for what is not stated.
    """
    if not isinstance(words, Reading):
        words = plan_words(source, words, is_inspected=engine != "spark")
    answers = open_answers(source, engine, reading=words, resources=resources, progress=progress)
    try:
        yield answers
    finally:
        if answers is not source:
            answers.close()


def open_answers(
    source: Any,
    engine: str = "auto",
    *,
    reading: Reading | None = None,
    resources: Resources | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Answers:
    """Return answers of whole persons; close them, or use them in a ``with`` statement.

    Parameters
    ----------
    source
        Answers, an array, or where answers are; not counts, of which nobody can say any more
        which answers belong to one person.
    engine
        As for `count_pairs`.
    reading
        Column names, layout and scoring, from :class:`discreet.coding.reading.Reading`.
    resources
        For the engine "disk": memory and a folder for what does not fit.
    progress
        For the engine "disk": called with the rows read so far.
    """
    if isinstance(source, PairCounts) or holds_counts(source):
        raise BadUsage(
            "a release needs the answers themselves, found pair counts: they do not say which "
            "answers are of the same person, so no cap on a person's answers can be drawn. Give "
            "the answers, or where they are"
        )
    from discreet.answers.ratings import Ratings, StoredRatings

    if isinstance(source, Ratings | StoredRatings):
        raise BadUsage(
            "found ratings, whose raters differ in severity. Only fit takes them. A release of "
            f"ratings is refused: {RATED}."
        )
    chosen = check_engine(engine)
    if chosen == "auto":
        chosen = _choose_engine(source, reading)
    if isinstance(source, Answers):
        return source
    if chosen == "spark":
        from discreet.readers.spark import open_frame

        return open_frame(source, reading=reading)
    if chosen == "disk":
        from discreet.readers.streamed import open_stream

        return open_stream(source, reading=reading, resources=resources, progress=progress)
    return open_memory(source, reading)


def open_memory(source: object, reading: Reading | None = None) -> Responses:
    """Return answers in memory: read from where they are, or copied from a frame or an array."""
    from discreet.readers.answers import read_frame, read_planned
    from discreet.tables.inspection.refusals import advise_listed

    if isinstance(source, str | PathLike):
        return read_planned(source, reading)
    if is_matrix(source):
        with advise_listed():
            return read_matrix(source, reading or Reading())
    return read_frame(source, reading or Reading())


def load_answers(
    source: object,
    words: ReadingWords | None = None,
    *,
    group: str | Sequence[str] = (),
    like: object = None,
    items: Collection[str] = (),
) -> Responses:
    """Return answers in memory, where single persons can be looked at.

    Parameters
    ----------
    source
        As for `count_pairs`, but for Spark.
    words
        How to read it.
    group
        Columns that are needed as groups where the words name none.
    like
        A calibration: a table is read as its answers were, and answers that were read must agree.
    items
        All that can be items, where they are known.
    """
    from discreet.answers.responses import Responses

    options: ReadingWords = {**(words or {})}
    known = find_reading(like)
    if isinstance(source, Responses):
        plan_words(source, options)
        check_alike(known, source.reading, source.items)
        return source
    if isinstance(source, Answers):
        raise OutOfReach(
            "this looks at single persons and needs their answers in memory; give the file, frame "
            "or query that they come from, or a part of it"
        )
    if group and "group" not in options and not is_matrix(source):
        options["group"] = group
    if isinstance(source, PairCounts):
        raise BadUsage(
            "this analysis needs the answers of each person, found pair counts, which no longer "
            "show persons. Give the answers"
        )
    LOG.info("reading answers of %s", name_source(source))
    plan = plan_words(source, options, is_inspected=True, known=known, items=items)
    return log_answers(open_memory(source, plan))


def weigh_answers(
    source: object, design: DesignWords, words: ReadingWords, like: object = None
) -> Responses:
    """Return answers in memory with the weights and the sampling design of their persons.

    Parameters
    ----------
    source
        As for :func:`load_answers`.
    design
        Columns of weights, strata, clusters and replicate weights.
    words, like
        How to read it, and as the answers of which calibration.
    """
    from discreet.answers.responses import Responses

    if "weight" not in design:
        words_stated = ", ".join(f"{word}=" for word in design)
        raise BadUsage(
            f"{words_stated} needs the column of the weights too; say weight= (--weight)"
        )
    if isinstance(source, Responses):
        return load_answers(source, words, like=like).weigh(**design)
    columns = [column for word, column in design.items() if word != "replication"]
    listed: list[Any] = [column for column in (words.get("group"), *columns) if column is not None]
    names = [[column] if isinstance(column, str) else list(column) for column in listed]
    options: ReadingWords = {**words, "group": list(dict.fromkeys(chain.from_iterable(names)))}
    return load_answers(source, options, like=like).weigh(**design)


def plan_words(
    source: object,
    words: ListedWords | None,
    *,
    is_inspected: bool = False,
    known: Reading | None = None,
    items: Collection[str] = (),
) -> Reading | None:
    """Return how to read a source; refuse words about columns of what has none.

    ``is_inspected`` looks at a file for what is not stated; a release states all. ``known`` is how
    the answers of a calibration were read, and ``items`` are those that it has.
    """
    words = words or {}
    fields = MATRIX_WORDS if is_matrix(source) else VALUE_FIELDS
    if not words:
        carried = carry_reading(known, {}, fields)
        return _inspect(source, carried, items) if is_inspected else None
    check_words(words)
    keywords = ", ".join(f"{word}=" for word in words)
    if isinstance(source, Answers | PairCounts):
        raise BadUsage(
            f"{keywords} says how a table is read, but {type(source).__name__} was read already. "
            "Say it where the answers are read, or give the table itself."
        )
    if is_matrix(source) and set(words) - MATRIX_WORDS:
        raise BadUsage(
            f"{keywords} speaks of columns with names, and a matrix has none: its columns are the "
            "items. Give a data frame, or leave it out."
        )
    carried = carry_reading(known, words, fields)
    return _inspect(source, carried, items) if is_inspected else state_reading(carried)


def _inspect(source: object, words: PlainMapping, items: Collection[str]) -> Reading | None:
    if not isinstance(source, str | PathLike) and not has_head(source):
        return state_reading(words) if words else None
    from discreet.tables.inspection import decide_reading

    try:
        return decide_reading(source, words, items)
    except BadResponses as error:
        if not words and holds_comparisons(source):
            raise BadResponses(
                "Each row of this table compares two objects, and answers have a person, an item "
                "and an answer each. Call rank_comparisons (discreet compare rank) to rank the "
                "objects, or name columns with person=, item= and response= if these are answers"
            ) from error
        raise


def holds_comparisons(source: object) -> bool:
    """Say whether the columns of a table are those of votes between two objects."""
    from discreet.readers.comparisons import name_roles
    from discreet.tables.dataset import is_query, names_database
    from discreet.tables.opener import read_tables

    if is_query(source) or names_database(source):
        return False
    roles = read_tables(source, lambda sources: name_roles(next(iter(sources)).names))
    is_row_of_two = {"left", "right"} <= roles and bool({"winner", "outcome"} & roles)
    return {"winner", "loser"} <= roles or is_row_of_two


def name_model(source: object, model: str, words: FitWords) -> ReadingWords:
    """Let the reader know a model that was named; answers that were read already have their own."""
    model_word = {} if model == "auto" or isinstance(source, Answers) else {"model": model}
    return cast(ReadingWords, {**words, **model_word})


def check_engine(name: str) -> str:
    """Return an engine's own name for any of its names; refuse what is none."""
    engine = SYNONYMS.get(name, name)
    if engine not in ("auto", *ENGINES):
        engines = ", ".join(["auto", *ENGINES])
        raise BadUsage(f"there is no engine called {name!r}; choose one of: {engines}")
    return engine


def _choose_engine(source: object, reading: Reading | None) -> str:
    if is_spark(source):
        return "spark"
    if not isinstance(source, str | PathLike):
        return "memory"
    from discreet.tables.dataset import is_too_large

    return "disk" if is_too_large(source, reading) else "memory"
