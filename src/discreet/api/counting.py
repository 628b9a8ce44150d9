"""Counts of pairs, of anything that holds answers.

In: answers, or where they are. Out: :class:`~discreet.PairCounts`.
"""

from __future__ import annotations

import warnings
from typing import Unpack

from discreet.answers.protocol import Answers
from discreet.answers.responses import Responses
from discreet.answers.select import refuse_routing
from discreet.answers.survey import refuse_weights
from discreet.choices import Engine, WeightingName
from discreet.coding.reading import ReadingWords
from discreet.counts import PairCounts
from discreet.counts.folds import PersonWeight, Tally, explain_folds
from discreet.counts.pairs import Weighting
from discreet.errors import LOG, BadUsage, name_source
from discreet.readers.opening import opened

WHOLE_NUMBERS = "counts are of whole persons. Give the answers without weights, or fit them"


def count_pairs(
    source: object,
    *,
    engine: Engine = "auto",
    weighting: Weighting | WeightingName | None = None,
    folds: int | None = None,
    **reading: Unpack[ReadingWords],
) -> PairCounts:
    """Count, for every pair of items, the persons with one right and the other wrong.

    Parameters
    ----------
    source
        Answers, a matrix ``[person, item]`` (of a scipy sparse matrix what it holds are the
        answers), a data frame of any kind (pandas,
        polars, pyarrow, a DuckDB relation, Spark), or where answers are: a file, folder or
        pattern, a DuckDB database (``"file.duckdb::table"``) or a query, for engine "spark" the
        name of a table.
    engine
        ``"auto"``, "memory", "disk" (also called "duckdb") or "spark". The result is the
        same, to the last integer. Auto means "memory", but "spark" for Spark DataFrames, and
        "disk" for queries, databases and files whose answers would fill more than half of the
        free memory.
    weighting
        Integer weight per person as a function of how many items the person answered and
        how many of them right, or its name: "refined" (one over the number of answers, as the
        method of that name has it), "none". By default every person counts once, but in folds
        as for "refined".
    folds
        Also count persons in so many folds (32, say), by a fixed hash of the id's text that is
        the same in every engine and on every day: :func:`discreet.fit` then finds standard
        errors from counts alone, also from the sum of counts of several days. A sketch of the
        ids is kept too, by which counts with the same persons are recognised; 0 keeps the
        sketch alone. Where folds of many items would take more than a gigabyte there are fewer
        or none, with a warning. For standard errors of the method "spectral" weight by "none".
    reading
        ``person=``, ``item=``, ``response=`` and the other keywords of
        :func:`discreet.read_responses`, for sources that have columns.

    Returns
    -------
    PairCounts
        With more than 2000 items of which few pairs were compared ``right_wrong`` is a
        ``scipy.sparse.csr_array`` (see :func:`discreet.counts.prefers_sparse`).

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.answers.responses import Responses
    >>> answers = Responses.from_array(np.array([[1, 0], [1, 0], [0, 1]]))
    >>> count_pairs(answers).right_wrong
    array([[0, 2],
           [1, 0]])
    """
    function, tally = plan_count(weighting, folds)
    LOG.info("counting pairs of %s, engine %s", name_source(source), engine)
    with opened(source, engine, reading) as answers:
        if isinstance(answers, Answers):
            refuse_weights(answers.sample, "counting pairs", WHOLE_NUMBERS)
        if isinstance(answers, Responses):
            refuse_routing(answers.routing, "counting pairs")
        counts = answers.count(function, tally)
    LOG.info("counted pairs of %d items, %d persons", len(counts.items), counts.persons)
    return say_folds(counts, tally)


def plan_count(
    weighting: Weighting | str | None, folds: int | None
) -> tuple[Weighting | None, Tally | None]:
    """Return how pairs are weighted, and what else is kept of persons."""
    weightings = {"refined": PersonWeight(), "none": None}
    is_known = weighting in weightings if isinstance(weighting, str) else callable(weighting)
    if weighting is not None and not is_known:
        raise BadUsage(
            f"weighting must be 'refined', 'none' or a function of two arrays (items that a person "
            f"answered, items right); found {weighting!r} of type {type(weighting).__name__}"
        )
    function = weightings[weighting] if isinstance(weighting, str) else weighting
    if folds is None:
        return function, None
    return function, Tally(folds) if weighting is None else Tally(folds, function)


def say_folds(counts: PairCounts, tally: Tally | None) -> PairCounts:
    """Return the counts, and warn where not all folds fitted into memory."""
    n_folds = 0 if counts.folds is None else counts.folds.number
    if tally is not None and n_folds != tally.folds:
        warnings.warn(explain_folds(tally.folds, n_folds, counts.steps), stacklevel=3)
    return counts
