"""Winsteps item and person files (IFILE= and PFILE=), in and out.

In: a file of Winsteps, or an estimate and abilities. Out: an estimate and abilities, or the
file. Measures are in logits unless the user says how they were rescaled (UMEAN=, USCALE=).

Status codes, from the manual's pages on IFILE= and PFILE=:

====  ======================================================  =======================
code  Winsteps                                                here
====  ======================================================  =======================
3     anchored, extreme raw score                             ``anchored``
2     anchored                                                ``anchored``
1     estimated                                               ``estimated``
0     extreme maximum measure: person all right, item all     ``always_wrong`` item,
      wrong                                                   ``all_right`` person
-1    extreme minimum measure: person all wrong, item all     ``always_right`` item,
      right                                                   ``all_wrong`` person
-2    no responses                                            ``no_answers``
-3    deleted by the user                                     ``not_connected``
-4    inestimable, high                                       by raw score
-5    inestimable, low                                        by raw score
-6    deselected                                              ``not_connected``
====  ======================================================  =======================

Older manuals give 0 and -1 the other way round. Where the file has COUNT and SCORE these
decide, not the code. An item without a measure and with a COUNT of 0 is ``no_answers``; a person
without one (-2, -3, -6) always is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.analysis.persons import PersonScores, PersonStatus
from discreet.atomic import write_text
from discreet.errors import BadResponses, BadUsage
from discreet.output.formats.winsteps_table import FIT_LABELS, Row, format_table, read_table
from discreet.results.estimate import Estimate, Solution, Status
from discreet.types import FloatArray

NO_MEASURE = 9999.0
"""What Winsteps shows where there is no measure (NOMEASURE=)."""
LARGEST_LOGIT = 30.0
"""No item is this hard: the measures were rescaled."""

ITEM_CODES = {
    Status.ESTIMATED: 1,
    Status.ANCHORED: 2,
    Status.ALWAYS_WRONG: 0,
    Status.ALWAYS_RIGHT: -1,
    Status.NO_ANSWERS: -2,
    Status.NOT_CONNECTED: -6,
}
PERSON_CODES = {
    PersonStatus.MEASURED: 1,
    PersonStatus.ALL_RIGHT: 0,
    PersonStatus.ALL_WRONG: -1,
    PersonStatus.NO_ANSWERS: -2,
}
MEASURED, ANCHORED, NO_RESPONSES = (1,), (2, 3), (-2,)
EXTREME_CODES = (0, -1, -4, -5)


def read_item_file(
    path: str | PathLike[str], *, user_mean: float = 0.0, user_scale: float = 1.0
) -> Estimate:
    """Read an IFILE= as an estimate.

    Parameters
    ----------
    path
        The file: columns by position, CSV=Y or CSV=T; with or without a heading.
    user_mean, user_scale
        UMEAN= and USCALE= of the run: difficulties are ``(measure - user_mean) / user_scale``.

    Returns
    -------
    Estimate
        Extreme items have no difficulty: Winsteps' number for them comes from a correction
        (EXTRSC=), not from the answers.

    Raises
    ------
    BadResponses
        If the file is no item file, or names an item twice.
    BadUsage
        If the measures cannot be logits.
    """
    rows = _read(path, user_mean, user_scale)
    names = _names(path, rows)
    code, count, right, measure, error = _numbers(path, rows)
    status = tuple(map(_item_status, code, count, right))
    known = np.array([one in (Status.ESTIMATED, Status.ANCHORED) for one in status])
    difficulty = np.where(known, (measure - user_mean) / user_scale, np.nan)
    _check_unit(path, difficulty)
    return Estimate(
        items=names,
        difficulty=difficulty,
        se=np.where(known, error / abs(user_scale), np.nan),
        status=status,
        method="winsteps",
        solution=Solution("read from a Winsteps item file", 0, 0.0),
        answers=_counts(count),
        right=_counts(right),
    )


def write_item_file(
    path: str | PathLike[str],
    estimate: Estimate,
    *,
    extra: Mapping[str, Sequence[float] | FloatArray] | None = None,
    decimals: int = 4,
) -> None:
    """Write an estimate as an IFILE=.

    Parameters
    ----------
    path
        ``.csv`` writes commas, ``.tsv`` tabs, anything else columns by position.
    estimate
        The difficulties.
    extra
        Further columns by label, one number per item: ``IN.MSQ``, ``IN.ZSTD``, ``OUT.MSQ``,
        ``OUT.ZSTD``, ``DISPL``, ``PTMA``, ``WEIGHT``.
    decimals
        As UDECIM=.
    """
    m = len(estimate.items)
    columns = _columns(
        measure=estimate.difficulty,
        codes=[ITEM_CODES[one] for one in estimate.status],
        count=np.full(m, np.nan) if estimate.answers is None else estimate.answers,
        score=np.full(m, np.nan) if estimate.right is None else estimate.right,
        error=estimate.se,
        extra=extra or {},
        names=estimate.items,
    )
    _write(path, "ITEM  written by discreet", columns, decimals)


def read_person_file(
    path: str | PathLike[str], *, user_mean: float = 0.0, user_scale: float = 1.0
) -> PersonScores:
    """Read a PFILE= as abilities; confidential, as these are about single persons."""
    rows = _read(path, user_mean, user_scale)
    code, count, right, measure, error = _numbers(path, rows)
    status = np.array([*map(_person_status, code, count, right)], dtype=object)
    known = (status != PersonStatus.NO_ANSWERS) & (measure != NO_MEASURE)
    return PersonScores(
        persons=np.array([row.get("NAME") or row["ENTRY"] for row in rows], dtype=object),
        ability=np.where(known, (measure - user_mean) / user_scale, np.nan),
        se=np.where(known, error / abs(user_scale), np.nan),
        score=np.nan_to_num(right).astype(np.int64),
        answered=np.nan_to_num(count).astype(np.int64),
        status=status,
        method="winsteps",
        items=(),
    )


def write_person_file(
    path: str | PathLike[str],
    scores: PersonScores,
    *,
    extra: Mapping[str, Sequence[float] | FloatArray] | None = None,
    decimals: int = 4,
) -> None:
    """Write abilities as a PFILE=; see :func:`write_item_file`. Confidential."""
    columns = _columns(
        measure=scores.ability,
        codes=[PERSON_CODES[one] for one in scores.status],
        count=scores.answered,
        score=scores.score,
        error=scores.se,
        extra=extra or {},
        names=[str(name) for name in scores.persons],
    )
    _write(path, "PERSON  written by discreet; confidential", columns, decimals)


# --- reading ----------------------------------------------------------------------------------


def _read(path: str | PathLike[str], user_mean: float, user_scale: float) -> list[Row]:
    if not (isfinite(user_scale) and user_scale != 0 and isfinite(user_mean)):
        raise BadUsage(f"user_scale must be a number other than 0, found {user_scale}")
    return read_table(path)


def _names(path: str | PathLike[str], rows: list[Row]) -> tuple[str, ...]:
    names = tuple(row.get("NAME") or row["ENTRY"] for row in rows)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadResponses(
            f"{path}: two items are called '{twice}'; items are told apart by NAME here, so "
            "names must differ"
        )
    return names


def _field(path: str | PathLike[str], row: Row, label: str, default: float) -> float:
    text = row.get(label, "")
    if text in ("", "."):
        return default
    try:
        return float(text)
    except ValueError as error:
        raise BadResponses(
            f"{path}, entry {row['ENTRY']}: {label} is '{text}', which is no number; is a name "
            "with blanks in a column before NAME?"
        ) from error


def _numbers(path: str | PathLike[str], rows: list[Row]) -> Iterator[FloatArray]:
    """Return status codes, counts, scores, measures and errors; what is not there is NaN."""
    for label in ("STATUS", "COUNT", "SCORE", "MEASURE", "ERROR"):
        default = 1 if label == "STATUS" else np.nan
        yield np.array([_field(path, row, label, default) for row in rows])


def _counts(values: FloatArray) -> npt.NDArray[np.int64] | None:
    return values.astype(np.int64) if np.isfinite(values).all() else None


def _item_status(code: float, count: float, right: float) -> Status:
    if code in MEASURED:
        return Status.ESTIMATED
    if code in ANCHORED:
        return Status.ANCHORED
    if code in NO_RESPONSES or count == 0:
        return Status.NO_ANSWERS
    if code in EXTREME_CODES:
        # The highest measure belongs to the item that nobody had right.
        high = _is_high(code, count, right, high_codes=(-1, -5))
        return Status.ALWAYS_RIGHT if high else Status.ALWAYS_WRONG
    return Status.NOT_CONNECTED


def _person_status(code: float, count: float, right: float) -> PersonStatus:
    if code in EXTREME_CODES:
        high = _is_high(code, count, right, high_codes=(0, -4))
        return PersonStatus.ALL_RIGHT if high else PersonStatus.ALL_WRONG
    known = code in MEASURED or code in ANCHORED
    return PersonStatus.MEASURED if known else PersonStatus.NO_ANSWERS


def _is_high(code: float, count: float, right: float, *, high_codes: tuple[int, ...]) -> bool:
    """Whether an extreme raw score is the highest: by the score, without one by the code."""
    return right != 0 if isfinite(count) and isfinite(right) else code in high_codes


def _check_unit(path: str | PathLike[str], difficulty: FloatArray) -> None:
    known = difficulty[np.isfinite(difficulty)]
    if len(known) and float(np.abs(known).max()) > LARGEST_LOGIT:
        raise BadUsage(
            f"{path}: a measure of {known[np.abs(known).argmax()]:g} cannot be in logits; say how "
            "the run was rescaled with user_mean (UMEAN=) and user_scale (USCALE=)"
        )


# --- writing ----------------------------------------------------------------------------------


def _columns(
    *,
    measure: FloatArray,
    codes: list[int],
    count: npt.NDArray[Any],
    score: npt.NDArray[Any],
    error: FloatArray,
    extra: Mapping[str, Sequence[float] | FloatArray],
    names: Sequence[str],
) -> dict[str, list[Any]]:
    m = len(names)
    unknown = [label for label in extra if label not in FIT_LABELS]
    wrong = [label for label, values in extra.items() if len(values) != m]
    if unknown or wrong:
        raise BadUsage(
            f"extra column {(unknown or wrong)[0]!r}: use the labels {', '.join(FIT_LABELS)}, each "
            f"with one number for each of the {m} lines"
        )
    columns: dict[str, list[Any]] = {
        "ENTRY": list(range(1, m + 1)),
        "MEASURE": np.where(np.isfinite(measure), measure, NO_MEASURE).tolist(),
        "STATUS": codes,
        "COUNT": np.asarray(count, dtype=float).tolist(),
        "SCORE": np.asarray(score, dtype=float).tolist(),
        "ERROR": np.asarray(error, dtype=float).tolist(),
    }
    for label in FIT_LABELS:
        if label in extra:
            columns[label] = np.asarray(extra[label], dtype=float).tolist()
    columns["NAME"] = list(names)
    return columns


def _write(
    path: str | PathLike[str], title: str, columns: Mapping[str, list[Any]], decimals: int
) -> None:
    if not 0 <= decimals <= 12:
        raise BadUsage(f"decimals must lie between 0 and 12, found {decimals}")
    place = Path(path)
    separator = {".csv": ",", ".tsv": "\t"}.get(place.suffix.lower())
    text = format_table(title, columns, decimals=decimals, separator=separator)
    write_text(place, text)
