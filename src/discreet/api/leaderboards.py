"""Leaderboards, of whatever holds answers of models to questions.

In: a path, a frame, an array, answers. Out: a :class:`~discreet.Leaderboard`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from discreet.choices import CountMethod
from discreet.coding.reading import ReadingWords
from discreet.coding.values import as_number
from discreet.errors import BadResponses
from discreet.readers.repeated import read_clusters, read_counts, refuse_turned
from discreet.scales.leaderboard import Leaderboard, make_leaderboard


def leaderboard(
    answers: Any,
    *,
    cluster: str | Mapping[Any, Any] | None = None,
    pass_at: int | Sequence[int] = (),
    graded: bool = False,
    method: CountMethod = "refined",
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
        Answers are scores from 0 to 1, such as those of a judge; several of a model on a question,
        in a long table, are averaged. Measures hold if mean scores follow the logistic curve of
        right answers, whatever the spread around it; errors assume nothing about it.
    method
        ``"refined"``, ``"spectral"`` or ``"conditional"``, see :func:`discreet.fit`; the last needs
        right and wrong answers. All have errors over questions.
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
    refuse_turned(answers, reading)
    try:
        counts = read_counts(answers, reading, graded=graded).turn(("question", "model"))
    except BadResponses as error:
        score = as_number(error.facts.get("value"))
        if score is None or not 0 < score < 1:
            raise
        raise BadResponses(
            f"found {score} among the answers. If they are scores from 0 to 1, such as those of a "
            f"judge, say graded=True (--graded). {error}"
        ) from error
    if isinstance(cluster, str):
        cluster = read_clusters(answers, cluster, reading, "item")
    return make_leaderboard(
        counts,
        cluster=cluster,
        method=method,
        level=level,
        pass_at=(pass_at,) if isinstance(pass_at, int) else tuple(pass_at),
        rng=rng,
    )
