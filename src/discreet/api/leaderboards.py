"""Leaderboards, of whatever holds answers of models to questions.

In: a path, a frame, an array, answers. Out: a :class:`~discreet.Leaderboard`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Unpack

import numpy as np

from discreet.answers.matrices import is_matrix
from discreet.answers.protocol import Answers
from discreet.answers.repeated import SampleCounts, sum_samples
from discreet.answers.responses import Responses
from discreet.choices import PairMethod
from discreet.coding.reading import Reading, ReadingWords
from discreet.errors import BadUsage
from discreet.readers.opening import load_answers, open_memory, plan_words
from discreet.readers.testlets import name_long_columns, read_scores, read_testlets
from discreet.scales.leaderboard import Leaderboard, make_leaderboard
from discreet.tables.lists import state_reading


def leaderboard(
    answers: Any,
    *,
    cluster: str | Mapping[Any, Any] | None = None,
    pass_at: int | Sequence[int] = (),
    graded: bool = False,
    method: PairMethod = "refined",
    level: float = 0.95,
    rng: np.random.Generator | None = None,
    **reading: Unpack[ReadingWords],
) -> Leaderboard:
    """Rank models by their right answers to questions, with error bars that hold together.

    Parameters
    ----------
    answers
        Persons are the models and items the questions: answers, a data frame of any kind, an array
        ``[model, question]`` (NaN for missing), a path or a query. Columns called model, question
        and correct are found.
    cluster
        What answers to different questions depend on, such as the passage that they are about: a
        column of a long table, or a mapping from question to cluster. Standard errors then add up
        over clusters. Without it the questions count as independent of each other.
    pass_at
        Numbers k for which pass@k shall be estimated: the chance that one of k samples is right.
    graded
        Answers of a long table are scores from 0 to 1, such as those of a judge; several of a model
        on a question are averaged. Measures hold if mean scores follow the logistic curve of right
        answers, whatever the spread around it; errors assume nothing about it.
    method
        ``"refined"`` or ``"spectral"``, see :func:`discreet.fit`.
    level
        Probability that all rank ranges hold together.
    rng
        Source of the draws behind the ranks; by default always the same one.
    reading
        ``repeats="sum"`` counts the right ones of several samples of a model on a question; their
        number may differ. ``person=`` (the column of models), ``item=``, ``response=`` and the
        other keywords of :func:`discreet.read_responses`.

    Returns
    -------
    Leaderboard
        Its errors are those of a new set of questions of this kind. They hold where some models are
        better on some questions than their measures say. More samples of the same questions do
        not make such differences go away; more questions do.

    Raises
    ------
    DisconnectedItems
        If no two models are linked by questions that one has right and the other wrong.

    Examples
    --------
    >>> import numpy as np
    >>> right = np.random.default_rng(0).random((3, 400)) < np.array([[0.4], [0.6], [0.9]])
    >>> board = leaderboard(right.astype(int))
    >>> board.models, board.rank_low.tolist(), board.rank_high.tolist(), board.tier.tolist()
    (('2', '1', '0'), [1, 2, 3], [1, 2, 3], [1, 2, 3])
    """
    if graded:
        counts = _read_graded(answers, reading, pass_at)
    elif reading.get("repeats") != "sum":
        counts = sum_samples(load_answers(answers, reading))
    elif isinstance(answers, Answers) or is_matrix(answers):
        raise BadUsage(
            f"repeats='sum' counts the repeated rows of a table, and {type(answers).__name__} has "
            "one answer of a model to a question. Give the table itself, or leave repeats= out"
        )
    else:
        counts = sum_samples(_read_samples(answers, reading))
    if isinstance(cluster, str):
        cluster = _read_clusters(answers, cluster, reading)
    return make_leaderboard(
        counts,
        cluster=None if cluster is None else {str(a): str(b) for a, b in cluster.items()},
        method=method,
        level=level,
        pass_at=(pass_at,) if isinstance(pass_at, int) else tuple(pass_at),
        rng=rng,
    )


def _read_samples(source: Any, words: ReadingWords) -> Responses:
    """Read a table in which models may have answered a question several times."""
    # Whoever says which answer counts is not asked which one shall.
    stated: ReadingWords = {**words, "repeats": "first"}
    plan = plan_words(source, stated, is_inspected=True) or Reading()
    return open_memory(source, replace(plan, repeats="error", order_by=None, sums=True))


def _read_graded(source: Any, words: ReadingWords, pass_at: int | Sequence[int]) -> SampleCounts:
    """Read scores from 0 to 1."""
    if isinstance(source, Answers) or is_matrix(source) or pass_at != ():
        raise BadUsage(
            "graded=True takes a long table of scores, and pass@k right and wrong samples. Give a "
            "table with a row for each score, and leave pass_at= out"
        )
    return read_scores(source, state_reading({**words, "repeats": "first"}))


def _read_clusters(source: Any, column: str, words: ReadingWords) -> dict[str, str]:
    """Return the cluster of each question, from a column of the table of the answers."""
    has_columns = isinstance(source, str | PathLike) or hasattr(source, "columns")
    if isinstance(source, Answers) or is_matrix(source) or not has_columns:
        raise BadUsage(
            f"cluster='{column}' names a column, and {type(source).__name__} has none. Give a "
            "mapping from question to cluster, or a long table"
        )
    rules = state_reading({**words, "repeats": "first"})
    return read_testlets(source, column, name_long_columns(source, rules)[1])
