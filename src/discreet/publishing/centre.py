"""The public centre of a release: difficulties that everybody may know before it.

In: an earlier release, or its folder; a bank or an estimate that carries a guarantee; or a mapping
that somebody states. Out: whole numbers and the words in which the statement says what they are.
A calibration of the same answers would let them through to the release without any noise, so
whatever has no guarantee is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from os import PathLike
from typing import Any

from discreet.answers.residual_sums import CENTRE_BITS
from discreet.choices import PlainMapping
from discreet.errors import BadUsage
from discreet.publishing.verification import read_release
from discreet.results.calibrated import find_source
from discreet.words import mark

STATED = mark("difficulties that the steward states as public")
RELEASED = mark("difficulties of an earlier release, which has a guarantee of its own")

#: Farther from the middle no difficulty is taken for one.
FARTHEST = 20.0


def read_centre(centre: object, items: Sequence[str]) -> tuple[tuple[int, ...], str]:
    """Return the centre of every listed item in 1 / 1024 logits, and what it is; none for None."""
    if centre is None:
        return (), ""
    opened = open_centre(centre)
    if isinstance(opened, Mapping):
        return _round({str(item): value for item, value in opened.items()}, items), STATED
    known = find_source(opened)
    guarantee = getattr(known, "guarantee", None)
    if guarantee is None or not guarantee.is_private:
        found = "has no guarantee" if guarantee is None else "was made with noise for tests"
        raise BadUsage(
            f"centre must be public, and this {type(opened).__name__} {found}: a confidential "
            "calibration would carry the answers past the noise, and void the promise. Give a "
            "release, a bank that carries a guarantee, or a mapping of items to values that are "
            "public for another reason"
        )
    return _round(dict(zip(known.items, known.difficulty.tolist(), strict=True)), items), RELEASED


def open_centre(centre: object) -> Any:
    """Return the release in a folder; whatever else it is as it is."""
    return read_release(centre) if isinstance(centre, str | PathLike) else centre


def list_centred(centre: object) -> list[str]:
    """Return the items that a centre has difficulties of."""
    if isinstance(centre, Mapping):
        return [str(item) for item in centre]
    return [*getattr(getattr(centre, "estimate", centre), "items", ())]


def _round(values: PlainMapping, items: Sequence[str]) -> tuple[int, ...]:
    missing = [item for item in items if item not in values]
    if missing:
        raise BadUsage(
            f"the centre has no value for {len(missing)} of the listed items, for example "
            f"{missing[0]!r}. It must have one for each: give 0 to an item of which nothing is "
            "known"
        )
    for item in items:
        value = values[item]
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not is_number or not abs(value) <= FARTHEST:  # nor where it is not a number
            raise BadUsage(
                f"the centre of item {item!r} must be a number of logits from -{FARTHEST:g} to "
                f"{FARTHEST:g}, found {value!r}"
            )
    return tuple(round(float(values[item]) * 2**CENTRE_BITS) for item in items)
