"""Drift between periods, of anything that holds answers, counts or a calibration.

In: sources in the order of time. Out: a :class:`~discreet.Drift`.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Unpack

from discreet.answers.matrices import is_matrix
from discreet.answers.protocol import Answers
from discreet.coding.reading import ReadingWords
from discreet.counts import PairCounts, holds_counts
from discreet.errors import BadUsage
from discreet.models.calibrate import calibrate
from discreet.models.noisy.released import remove_prior
from discreet.readers.calibrations import read_calibration
from discreet.readers.opening import load_answers
from discreet.scales.drift import Drift, detect_drift
from discreet.tables.sources import as_arrow, is_data_frame


def find_drift(
    *sources: object,
    periods: Sequence[str] | None = None,
    level: float = 0.05,
    **reading: Unpack[ReadingWords],
) -> Drift:
    """Find the items that drift between periods, given in the order of time.

    Parameters
    ----------
    sources
        Two or more periods with different persons, one after the other or as one list: the
        answers (:class:`Responses`, data frames, arrays, paths), or calibrations (estimates,
        counts with folds, releases, banks). Answers give the better test. Items are matched by
        name.
    periods
        Their names; by default "1", "2", ...
    level
        Largest rate of false alarms when no item drifts.
    reading
        ``person=``, ``item=``, ``response=`` and the other keywords of
        :func:`discreet.read_responses`, for answers that have columns.

    Raises
    ------
    DisconnectedItems
        If a period has fewer than two items in common with the others.

    Examples
    --------
    >>> import numpy as np, discreet
    >>> rng = np.random.default_rng(0)
    >>> monday, tuesday = (discreet.simulate(persons=500, items=8, rng=rng, difficulty=np.arange(8))
    ...                    for _ in range(2))
    >>> find_drift(monday.responses, tuesday.responses).moved_items
    ()
    >>> find_drift([discreet.fit(monday.responses), discreet.fit(tuesday.responses)]).moved_items
    ()
    """
    parts = sources[0] if len(sources) == 1 and isinstance(sources[0], list | tuple) else sources
    if _hold_answers(parts, periods):
        opened = [load_answers(part, reading) for part in parts]
        return detect_drift(opened, periods=periods, level=level)
    calibrations = [_read_period(part) for part in parts]
    return detect_drift(calibrations, periods=periods, level=level)


def _hold_answers(sources: Sequence[object], periods: Sequence[str] | None) -> bool:
    """Say whether these are answers; refuse answers beside calibrations."""
    answers = [_is_answers(source) for source in sources]
    names = periods or range(1, len(answers) + 1)
    if any(answers) and not all(answers):
        lacking = answers.index(False)
        raise BadUsage(
            f"period {names[answers.index(True)]} holds answers, but period {names[lacking]} "
            f"does not ({type(sources[lacking]).__name__}). Compare answers with answers or "
            "calibrations with calibrations: fit(answers) makes one"
        )
    return all(answers)


def _is_answers(source: object) -> bool:
    if isinstance(source, str | PathLike):
        return not holds_counts(source)
    if is_data_frame(source) and hasattr(source, "columns"):
        columns = {name.strip().lower() for name in as_arrow(source).column_names}
        return not columns & {"difficulty", "threshold"}
    return isinstance(source, Answers) or is_matrix(source)


def _read_period(source: Any) -> Any:
    """Return a calibration; counts are fitted, and what priors did to releases is undone."""
    if isinstance(source, PairCounts) or holds_counts(source):
        return calibrate(source if isinstance(source, PairCounts) else PairCounts.load(source))
    noisy = getattr(source, "noisy", None)
    return read_calibration(source) if noisy is None else remove_prior(noisy, source.estimate)
