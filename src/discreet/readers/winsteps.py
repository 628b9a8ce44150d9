"""Winsteps item, person and structure files (IFILE=, PFILE=, SFILE=, SAFILE=).

In: a file of Winsteps. Out: an estimate or abilities. Measures are in logits unless the user says
how they were rescaled (UMEAN=, USCALE=).

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

A table is a heading and one line per item or person, in columns, commas or tabs (HLINES=Y or N).
The manual's pages (winsteps.com/winman/ifile.htm, pfile.htm) name the fields and their order;
labels differ between versions, hence the other names.

A line of a structure file is an item's entry number, a category and the Rasch-Andrich threshold of
the step into it, counted from the item's measure (ISGROUPS=0, partial credit). Where all items
share one scale (no ISGROUPS=) the entry number is left out. No step leads into the lowest category:
its line has a 0.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt

from discreet.errors import BadResponses, BadUsage
from discreet.persons.scoring import PersonScores, PersonStatus
from discreet.results.estimate import Estimate, Solution, Status
from discreet.results.thresholds import Thresholds
from discreet.tables.paths import read_text
from discreet.types import FloatArray

COMMENT = ";"


def read_structure_file(
    path: str | PathLike[str], estimate: Estimate, *, user_scale: float = 1.0
) -> Estimate:
    """Return an estimate with the steps of an SFILE=.

    Parameters
    ----------
    path
        The file, with or without entry numbers.
    estimate
        What :func:`~discreet.readers.winsteps.read_item_file` made of the item file of that run.
        Items that the structure file does not have are right and wrong.
    user_scale
        USCALE= of the run.

    Returns
    -------
    Estimate
        Standard errors of thresholds are NaN: the file does not have them.
    """
    if not (isfinite(user_scale) and user_scale != 0):
        raise BadUsage(f"user_scale must be a number other than 0, found {user_scale}")
    listed, shared = _read_lines(Path(path), len(estimate.items))
    item_categories, rows = [], []
    for entry in range(1, len(estimate.items) + 1):
        lines = listed.get(0 if shared else entry, [])
        categories, offsets = _split_lowest(lines)
        item_categories.append(categories)
        rows.append([value / user_scale for value in offsets])
    return _add_steps(estimate, item_categories, rows, shared)


def _read_lines(path: Path, items: int) -> tuple[dict[int, list[tuple[int, float]]], bool]:
    """Return categories and values by entry number, 0 where the file has none."""
    by_entry: dict[int, list[tuple[int, float]]] = {}
    widths = set()
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        fields = line.partition(COMMENT)[0].replace(",", " ").split()
        if not fields or fields == ["*"]:
            continue
        try:
            *entry, category, value = fields
            entry_number = int(entry[0]) if entry else 0
            by_entry.setdefault(entry_number, []).append((int(category), float(value)))
        except (ValueError, IndexError) as error:
            raise BadResponses(
                f"{path}, line {number}: '{line.strip()[:40]}' is not a line of a structure file "
                "(SFILE=), which has an entry number, a category and a threshold, or the last two"
            ) from error
        widths.add(len(fields))
        if len(fields) > 3 or entry_number > items:
            raise BadResponses(
                f"{path}, line {number}: there are {items} items, and a line has an entry number, "
                f"a category and a threshold; found '{line.strip()[:40]}'"
            )
    if len(widths) != 1:
        listed_widths = " and ".join(map(str, sorted(widths))) or "no lines"
        raise BadResponses(
            f"{path}: all lines of a structure file have two fields (one scale for all items) or "
            f"three (ISGROUPS=), found {listed_widths}"
        )
    return by_entry, widths == {2}


def _split_lowest(lines: list[tuple[int, float]]) -> tuple[tuple[int, ...], list[float]]:
    """Return the categories, and the thresholds of the steps between them."""
    if not lines:
        return (0, 1), [0.0]
    listed = sorted(lines)
    categories, values = [category for category, _ in listed], [value for _, value in listed]
    if categories[0] == 0 or values[0] == 0:
        return tuple(categories), values[1:]
    return (categories[0] - 1, *categories), values


def _add_steps(
    estimate: Estimate, categories: list[tuple[int, ...]], rows: list[list[float]], shared: bool
) -> Estimate:
    steps = tuple(map(len, rows))
    value = np.full((len(rows), max(steps)), np.nan)
    for item, taus in enumerate(rows):
        # Thresholds are counted from the item's measure, which is their mean.
        value[item, : len(taus)] = estimate.difficulty[item] + np.array(taus) - np.mean(taus)
    status = tuple((one,) * count for one, count in zip(estimate.status, steps, strict=True))
    ladder = Thresholds(value, np.full_like(value, np.nan), status, kept=tuple(categories))
    model = "rating-scale" if shared else "partial-credit"
    return replace(estimate, steps=steps, model=model, ladder=ladder)


Row = dict[str, str]

#: Labels that mean the same in other versions of Winsteps.
SYNONYMS = {
    "STATUS": "ST STTS",
    "ERROR": "MODLSE REALSE SE S.E.",
    "IN.MSQ": "INMSQ IN.MS",
    "IN.ZSTD": "INZSTD IN.ZST INZST",
    "OUT.MSQ": "OUTMSQ OUT.MS",
    "OUT.ZSTD": "OUTZST OUTZSTD OUT.ZST",
    "DISPL": "DISPLACE",
    "PTMA": "PTME PTMEA",
    "PTBSE": "PTBS",
}
OTHER_NAMES = {other: label for label, others in SYNONYMS.items() for other in others.split()}

#: The standard field selection in its order, for files without a heading.
STANDARD = (
    *("ENTRY", "MEASURE", "STATUS", "COUNT", "SCORE", "ERROR", "IN.MSQ", "IN.ZSTD"),
    *("OUT.MSQ", "OUT.ZSTD", "DISPL", "PTMA", "WEIGHT", "OBSMA", "EXPMA", "NAME"),
)


#: What Winsteps shows where there is no measure (NOMEASURE=).
NO_MEASURE = 9999.0
#: No item is this hard: the measures were rescaled.
LARGEST_LOGIT = 30.0

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
    measured = np.array([word in (Status.ESTIMATED, Status.ANCHORED) for word in status])
    difficulty = np.where(measured, (measure - user_mean) / user_scale, np.nan)
    logits = difficulty[np.isfinite(difficulty)]
    if len(logits) and float(np.abs(logits).max()) > LARGEST_LOGIT:
        raise BadUsage(
            f"{path}: a measure of {logits[np.abs(logits).argmax()]:g} cannot be in logits; say "
            "how the run was rescaled with user_mean (UMEAN=) and user_scale (USCALE=)"
        )
    return Estimate(
        items=names,
        difficulty=difficulty,
        se=np.where(measured, error / abs(user_scale), np.nan),
        status=status,
        method="winsteps",
        solution=Solution("read from a Winsteps item file", 0, 0.0),
        answers=_counts(count),
        right=_counts(right),
    )


def read_person_file(
    path: str | PathLike[str], *, user_mean: float = 0.0, user_scale: float = 1.0
) -> PersonScores:
    """Read a PFILE= as abilities; confidential, as these are about single persons."""
    rows = _read(path, user_mean, user_scale)
    code, count, right, measure, error = _numbers(path, rows)
    status = np.array([*map(_person_status, code, count, right)], dtype=object)
    measured = (status != PersonStatus.NO_ANSWERS) & (measure != NO_MEASURE)
    return PersonScores(
        persons=np.array([row.get("NAME") or row["ENTRY"] for row in rows], dtype=object),
        ability=np.where(measured, (measure - user_mean) / user_scale, np.nan),
        se=np.where(measured, error / abs(user_scale), np.nan),
        score=np.nan_to_num(right).astype(np.int64),
        answered=np.nan_to_num(count).astype(np.int64),
        status=status,
        method="winsteps",
        items=(),
    )


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
    is_measured = code in MEASURED or code in ANCHORED
    return PersonStatus.MEASURED if is_measured else PersonStatus.NO_ANSWERS


def _is_high(code: float, count: float, right: float, *, high_codes: tuple[int, ...]) -> bool:
    """Whether an extreme raw score is the highest: by the score, without one by the code."""
    return right != 0 if isfinite(count) and isfinite(right) else code in high_codes


def read_table(path: str | PathLike[str]) -> list[Row]:
    """Read the lines of an item or person file; lines that are commented out count too.

    Winsteps puts a semicolon before items and persons without an ordinary measure (extreme,
    deleted, no responses), so that it skips them when the file comes back as anchors.
    """
    source = Path(path)
    lines = [line for line in read_text(source).splitlines() if line.strip(" ;\t")]
    labels: Sequence[str] = STANDARD
    heads = [line for line in lines if line.strip(' ;"\t').upper().startswith("ENTRY")] or lines
    separator = next((sign for sign in "\t," if heads and sign in heads[0]), None)
    rows = []
    for number, line in enumerate(lines, start=1):
        fields = _split(line, separator, len(labels))
        if fields and fields[0].lstrip("-").isdigit():
            rows.append(_row(source, number, fields, labels))
        elif fields and fields[0].upper() == "ENTRY":
            found = [field.strip('"').upper() for field in _split(line, separator, None)]
            labels = [OTHER_NAMES.get(name, name) for name in found]
        elif rows and (not line.startswith(COMMENT) or fields[0][:1].isdigit()):
            raise BadResponses(
                f"{source}, line {number} (blank lines not counted) does not begin with an entry "
                f"number: '{line.strip()[:40]}'; do two columns run into each other?"
            )
    if not rows:
        raise BadResponses(
            f"{source}: no line begins with an entry number, so this is no IFILE= or PFILE= of "
            "Winsteps; write one with its Output Files menu"
        )
    return rows


def _split(line: str, separator: str | None, fields: int | None) -> list[str]:
    text = line.lstrip(" ").removeprefix(COMMENT)
    if separator is not None:
        return [field.strip() for field in next(csv.reader([text], delimiter=separator))]
    # The name comes last and may hold blanks.
    return [field.strip() for field in text.split(None, -1 if fields is None else fields - 1)]


def _row(path: Path, number: int, fields: list[str], labels: Sequence[str]) -> Row:
    if len(fields) < len(labels) - 1:
        raise BadResponses(
            f"{path}, line {number} (blank lines not counted) has {len(fields)} fields, and the "
            f"heading has {len(labels)}: {' '.join(labels)}"
        )
    return dict(zip(labels, [*fields, ""], strict=False))
