"""Item banks: difficulties from many calibrations on one scale, in one file.

In: a first calibration, then further ones that share items with the bank. Out: a CSV file
whose first line says what it is. Values in a bank never change: items that are already there
tie the next calibration to the scale, new ones are added. A bank is public only if everything
in it came from releases, and then it carries the guarantee of all of them together. Where items
have several steps, their thresholds stand in further columns, and the file is of version 2. Whoever
chooses items by their difficulty may have them drawn towards their mean (:func:`shrink`).
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, replace
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from discreet.atomic import write_text
from discreet.choices import PlainDict
from discreet.coding.agreement import join_readings
from discreet.coding.reading import Reading
from discreet.errors import BadUsage
from discreet.privacy.accounting import Guarantee
from discreet.results.calibrated import Calibration, as_estimate, find_source
from discreet.results.thresholds import Thresholds, join_ladders, make_one_step
from discreet.saving import write_value
from discreet.scales.linking import FLAG_AT, Link, link_calibrations
from discreet.tabular import Columns, Tabular, list_field_columns
from discreet.text import spreadsheet_cell
from discreet.types import FloatArray

FORMAT = "discreet-bank"
VERSION, WITH_STEPS = 1, 2
UNIT = "logit"
COLUMNS = ("item", "difficulty", "se", "n", "source", "status")
ACTIVE, DRIFTED = "active", "drifted"
CONFIDENTIAL, PUBLIC = "confidential", "public"


@dataclass(frozen=True, eq=False)
class Bank(Tabular):
    """Items with difficulties on one scale.

    Attributes
    ----------
    scale
        Its name, such as "mathematics grade 8".
    items, difficulty, se
        In logits on that scale.
    n
        Answers behind each difficulty; ``None`` where that is not public.
    source
        Which calibration each item came from.
    status
        ``active``, or ``drifted``: a later calibration disagreed with the value.
    guarantee
        Of all sources together, where every one was a release; otherwise ``None``.
    ladder
        The thresholds, where some item has more than one step; then ``difficulty`` is an item's
        location. Else None.
    reading
        How the answers behind the difficulties were read; None where that is not known.

    Examples
    --------
    >>> import discreet
    >>> answers = discreet.datasets.lsat()
    >>> estimate = discreet.fit(answers)
    >>> bank = discreet.create_bank(estimate, scale="reasoning", source="2024")
    >>> bank.access, bank.status[0]
    ('confidential', 'active')
    """

    scale: str
    items: tuple[str, ...]
    difficulty: FloatArray
    se: FloatArray
    n: tuple[int | None, ...]
    source: tuple[str, ...]
    status: tuple[str, ...]
    guarantee: Guarantee | None = None
    ladder: Thresholds | None = None
    reading: Reading | None = None

    def __post_init__(self) -> None:
        self.difficulty.setflags(write=False)
        self.se.setflags(write=False)

    @property
    def access(self) -> str:
        """``public`` where a guarantee says so, made with real noise; else ``confidential``."""
        may_leave = self.guarantee is not None and self.guarantee.is_private
        return PUBLIC if may_leave else CONFIDENTIAL

    def active(self) -> Bank:
        """Return the part of the bank whose values no later calibration disagreed with."""
        use = [i for i, status in enumerate(self.status) if status == ACTIVE]
        return replace(
            self,
            items=tuple(self.items[i] for i in use),
            difficulty=self.difficulty[use],
            se=self.se[use],
            n=tuple(self.n[i] for i in use),
            source=tuple(self.source[i] for i in use),
            status=(ACTIVE,) * len(use),
            ladder=None if self.ladder is None else self.ladder.select(use),
        )

    def to_dict(self) -> Columns:
        """One list per column: item, difficulty, se, n, source, status.

        With steps also the categories, and a threshold and its error for every step.
        """
        steps = {} if self.ladder is None else self.ladder.to_columns()
        return {"item": list(self.items), **list_field_columns(self, *COLUMNS[1:]), **steps}


def create_bank(calibration: Calibration, *, scale: str, source: str) -> Bank:
    """Start a bank with the items of a calibration that have a difficulty.

    Parameters
    ----------
    calibration
        An estimate, a release, or a data frame with the columns item, difficulty and se. Its
        scale becomes that of the bank.
    scale
        A name for the scale.
    source
        A name for the calibration.

    Examples
    --------
    >>> import discreet
    >>> answers = discreet.datasets.lsat()
    >>> estimate = discreet.fit(answers)
    >>> discreet.create_bank(estimate, scale="reasoning", source="2024").items[:2]
    ('Item1', 'Item2')
    """
    estimate = as_estimate(calibration, "a bank")
    _check_name("scale", scale)
    _check_name("source", source)
    use = [i for i, b in enumerate(estimate.difficulty) if isfinite(b)]
    if not use:
        raise BadUsage(f"no item of '{source}' has a difficulty, so there is nothing to bank")
    answers = estimate.answers
    return Bank(
        scale=scale,
        items=tuple(estimate.items[i] for i in use),
        difficulty=np.array([float(estimate.difficulty[i]) for i in use]),
        se=np.array([float(estimate.se[i]) for i in use]),
        n=tuple(None if answers is None else int(answers[i]) for i in use),
        source=(source,) * len(use),
        status=(ACTIVE,) * len(use),
        guarantee=estimate.guarantee,
        ladder=estimate.ladder.select(use) if estimate.has_steps else None,
        reading=estimate.reading,
    )


def grow_bank(
    bank: Bank, calibration: Calibration, *, source: str, flag_at: float = FLAG_AT
) -> tuple[Bank, Link]:
    """Link a calibration to the bank and add the items that are new.

    Items that the bank has keep their value. Those that drifted keep it too and are marked.
    The error of the link is part of the standard errors of the new items. What a public bank and
    a release promise adds up; a calibration of any other kind makes the bank confidential.

    Parameters
    ----------
    bank
        What there is.
    calibration
        An estimate or a release with at least two items of the bank.
    source
        A name for the calibration that the bank does not have yet.
    flag_at
        See :func:`~discreet.link_calibrations`.

    Returns
    -------
    tuple
        The larger bank, and the link to look at.

    Examples
    --------
    >>> import discreet
    >>> answers = discreet.datasets.lsat()
    >>> estimate = discreet.fit(answers)
    >>> bank = discreet.create_bank(estimate, scale="reasoning", source="2024")
    >>> bank, link = discreet.grow_bank(bank, estimate, source="2025")
    >>> len(bank.items), round(link.shift, 6)
    (5, 0.0)
    """
    if source in bank.source:
        raise BadUsage(
            f"the bank has items of a calibration called '{source}' already; adding it twice would "
            "count its answers twice. Give a later calibration another name"
        )
    link = link_calibrations(bank.active(), calibration, flag_at=flag_at)
    added = create_bank(link.move(link.linked), scale=bank.scale, source=source)
    drifted = set(link.flagged_items)
    bank_items = set(bank.items)
    new = [i for i, name in enumerate(added.items) if name not in bank_items]
    status = tuple(
        DRIFTED if name in drifted else was
        for name, was in zip(bank.items, bank.status, strict=True)
    )
    grown = Bank(
        scale=bank.scale,
        items=(*bank.items, *(added.items[i] for i in new)),
        difficulty=np.concatenate([bank.difficulty, added.difficulty[new]]),
        se=np.concatenate([bank.se, added.se[new]]),
        n=(*bank.n, *(added.n[i] for i in new)),
        source=(*bank.source, *(source for _ in new)),
        status=(*status, *(ACTIVE for _ in new)),
        guarantee=added.guarantee,
        ladder=_add_ladder(bank, added, new),
        reading=join_readings([bank.reading, added.reading]),
    )
    return grown, link


def _add_ladder(bank: Bank, added: Bank, new: list[int]) -> Thresholds | None:
    if bank.ladder is None and added.ladder is None:
        return None
    ladders = [part.ladder or make_one_step(part) for part in (bank, added)]
    return join_ladders([ladders[0], ladders[1].select(new)])


def _check_name(noun: str, name: str) -> None:
    if not name.strip() or not name.isprintable():
        raise BadUsage(f"the {noun} needs a name of printable characters, found {name!r}")


def write_bank(path: str | PathLike[str], bank: Bank) -> None:
    """Write a bank to a file; the file appears whole, or the old one stays.

    Examples
    --------
    >>> import tempfile, discreet
    >>> from pathlib import Path
    >>> estimate = discreet.fit(discreet.datasets.lsat())
    >>> bank = discreet.create_bank(estimate, scale="reasoning", source="2024")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     discreet.write_bank(Path(folder) / "bank.csv", bank)
    ...     discreet.read_bank(Path(folder) / "bank.csv").scale
    'reasoning'
    """
    version = VERSION if bank.ladder is None else WITH_STEPS
    head: PlainDict = {"format": FORMAT, "version": version, "unit": UNIT}
    head |= {"scale": bank.scale, "access": bank.access}
    if bank.guarantee is not None:
        head["guarantee"] = bank.guarantee.to_dict()
    if bank.reading is not None:
        head["reading"] = write_value(bank.reading)
    text = io.StringIO()
    text.write(f"# {json.dumps(head, ensure_ascii=False)}\n")
    # Names in quotes, so that any sign may be part of one.
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    columns = bank.to_dict()
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow([_cell(value) for value in row])
    write_text(Path(path), text.getvalue(), private=bank.access != PUBLIC)


def _cell(value: object) -> Any:
    missing = value is None or (isinstance(value, float) and not isfinite(value))
    return "" if missing else spreadsheet_cell(value)


def shrink(calibration: Calibration) -> dict[str, float]:
    """Draw difficulties towards their mean, each by as much as its standard error says.

    Who looks for items of a certain difficulty finds above all those whose estimate is there by
    chance, and whose true difficulty is nearer to the others. With few persons (a hundred or so)
    abilities from an adaptive session would be too far out; with these difficulties they are not.
    Normal difficulties are assumed, of the variance that the estimates have beyond their errors.

    Parameters
    ----------
    calibration
        An estimate, a release or a bank, with standard errors. Items without one are left out.

    Returns
    -------
    dict
        From item to difficulty, for :func:`discreet.adaptive.start`, :func:`discreet.next_item`
        and :func:`discreet.score`.

    Examples
    --------
    >>> import numpy as np, discreet
    >>> few = discreet.simulate(60, 200, rng=np.random.default_rng(1))
    >>> estimate = discreet.fit(few.responses, method="refined")
    >>> hardest = discreet.rank(estimate, top=1).top[0]
    >>> round(float(estimate.difficulty[estimate.items.index(hardest)]), 2)
    2.93
    >>> round(shrink(estimate)[hardest], 2)
    2.11
    """
    bank = calibration.active() if isinstance(calibration, Bank) else calibration
    source = find_source(bank)
    b, se = (np.asarray(getattr(source, name, ()), dtype=float) for name in ("difficulty", "se"))
    use = np.flatnonzero(np.isfinite(b) & np.isfinite(se)) if len(b) == len(se) else ()
    if not len(use):
        raise BadUsage(
            f"found no standard errors in the calibration (a {type(calibration).__name__}), and "
            "they say how far to shrink; give what fit returned with standard errors, a release or "
            "a bank"
        )
    shrunken = draw_to_mean(b[use], se[use])[0]
    return {source.items[i]: float(value) for i, value in zip(use, shrunken, strict=True)}


def draw_to_mean(b: FloatArray, se: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return shrunken difficulties, their reliabilities, and the variance of true difficulties."""
    variance = se**2
    spread = max(float(b.var() - variance.mean()), 0.0)
    reliability = np.where(variance > 0, spread / np.where(variance > 0, spread + variance, 1), 1.0)
    return b.mean() + reliability * (b - b.mean()), reliability, spread
