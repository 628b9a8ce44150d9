"""THE WALL: exact statistics and a calibrated mechanism in, a :class:`Release` out.

On one side answers and exact counts, on the other noisy values. This is the only module that
makes a :class:`Release`, and a release holds nothing that did not get noise: no answers, no
exact counts, no number of persons unless the neighbouring relation makes it public.
Whatever is computed from a release is post-processing and needs no further care.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from types import MappingProxyType
from typing import Protocol

import numpy as np

from discreet.answers.protocol import Contributions
from discreet.choices import PlainMapping
from discreet.errors import BadResponses, DiscreetError
from discreet.privacy.accounting import Guarantee
from discreet.privacy.noise import Noise, check_scale
from discreet.privacy.protocol import (
    Mechanism,
    NoiseCalibration,
    NoiseLaw,
    NoiselessValues,
    Order,
    Public,
)
from discreet.tabular import brief_repr
from discreet.types import Int64Array

_SEAL = object()


@dataclass(frozen=True, eq=False)
class Release:
    """Noisy values, the laws of their noise, the guarantee, and public parameters.

    Attributes
    ----------
    mechanism
        Its name.
    public
        Item list, cap, relation; the number of persons only under replace-one.
    values
        Noisy integers by name, as the mechanism describes them.
    laws
        The noise law of each array in ``values``.
    settings
        Public values of the mechanism (graph, grid, flip probability).
    guarantee
        What is promised to each person.
    """

    mechanism: str
    public: Public
    values: Mapping[str, Int64Array]
    laws: Mapping[str, NoiseLaw]
    settings: PlainMapping
    guarantee: Guarantee
    seal: object

    __repr__ = brief_repr

    def __post_init__(self) -> None:
        if self.seal is not _SEAL:
            raise DiscreetError(
                "a Release is made only by discreet.privacy.wall, which adds the noise; "
                "call discreet.release"
            )
        object.__setattr__(self, "seal", None)
        for name in ("values", "laws", "settings"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
        for array in self.values.values():
            array.setflags(write=False)


class Safe(Protocol):
    """Where noisy values are kept before anything else sees them."""

    def prepare(self, size: int) -> None:
        """Make sure of room for so many bytes, then charge the ledger; noise is drawn after it."""

    def keep(self, parts: Sequence[bytes]) -> bytes | None:
        """Keep the values, and return those that count: the first that were kept for the charge.

        None where nothing is charged and nothing kept: then the draw counts.
        """


def release_statistics(
    answers: Contributions,
    *,
    mechanism: Mechanism,
    public: Public,
    calibration: NoiseCalibration,
    guarantee: Guarantee,
    noise: Noise,
    safe: Safe | None = None,
) -> Release:
    """Count what the mechanism asks for, add its noise, and hand out nothing else.

    The answers may be in memory, on disk or in a cluster, or be comparisons of judges. Whatever
    can go wrong with counting them does so before the ledger is charged (by ``safe``), which is
    before any noise is drawn; and the release is made from what ``safe`` hands back, never from
    the draw itself: if another process was faster, its draw counts and this one is dropped.
    All cells come from one count of the answers, so from one draw of the cap. Every listed item
    and every cell that the public parameters name gets noise, answered or not, zero or not.
    """
    check_answers(answers, public, mechanism)
    capped = answers.select(public.items).cap(public.max_answers, noise.source)
    prepared = mechanism.prepare(capped, public, calibration)
    check_person_count(prepared.persons, answers.n_persons)
    if safe is not None:
        head = _describe_values(prepared.shapes, is_private=noise.is_private)
        safe.prepare(len(head) + 8 * sum(map(prod, prepared.shapes.values())))
    values = prepared.draw(noise)
    _check_values(values, prepared.shapes, mechanism)
    if safe is not None:
        stored_values = safe.keep(_pack_values(values, is_private=noise.is_private))
        if stored_values is not None:
            values, is_private = _unpack_values(stored_values)
            guarantee = replace(guarantee, is_private=is_private)
    return _seal(mechanism.name, public, calibration, values, guarantee)


def _seal(
    name: str,
    public: Public,
    calibration: NoiseCalibration,
    values: Mapping[str, Int64Array],
    guarantee: Guarantee,
) -> Release:
    laws, settings = calibration.laws, calibration.settings
    return Release(name, public, values, laws, settings, guarantee, seal=_SEAL)


def _describe_values(shapes: Mapping[str, tuple[int, ...]], *, is_private: bool) -> bytes:
    header = {"is_private": is_private, "shapes": {name: shapes[name] for name in sorted(shapes)}}
    return json.dumps(header).encode() + b"\n"


def _pack_values(values: Mapping[str, Int64Array], *, is_private: bool) -> list[bytes]:
    """Return values as a safe keeps them: the same values are the same bytes."""
    head = _describe_values({name: values[name].shape for name in values}, is_private=is_private)
    return [head, *(values[name].astype("<i8").tobytes() for name in sorted(values))]


def pack_release(release: Release) -> list[bytes]:
    """Return the values of a release as they were kept, to compare with the ledger's digest."""
    return _pack_values(release.values, is_private=release.guarantee.is_private)


def _unpack_values(content: bytes) -> tuple[dict[str, Int64Array], bool]:
    """Return the values that a safe kept, and whether their noise was private."""
    head, _, body = content.partition(b"\n")
    facts = json.loads(head)
    values, start = {}, 0
    for name, shape in facts["shapes"].items():
        numbers = np.frombuffer(body, dtype="<i8", count=prod(shape), offset=start)
        values[name] = numbers.astype(np.int64).reshape(shape)
        start += 8 * prod(shape)
    return values, bool(facts["is_private"])


def restore_release(order: Order, content: bytes, *, ledger: str) -> Release:
    """Make a release again from the values that a safe kept."""
    values, is_private = _unpack_values(content)
    guarantee = order.promise(ledger=ledger, is_private=is_private)
    return _seal(order.name, order.public, order.calibration, values, guarantee)


def reread_release(
    mechanism: str,
    public: Public,
    *,
    laws: Mapping[str, NoiseLaw],
    settings: PlainMapping,
    values: Mapping[str, Int64Array],
    guarantee: Guarantee,
) -> Release:
    """Make a release again from what was published of it: it came through the wall before."""
    return Release(mechanism, public, values, laws, settings, guarantee, seal=_SEAL)


def check_noise(calibration: NoiseCalibration) -> None:
    """Refuse noise that no sampler can draw exactly."""
    for name, law in calibration.laws.items():
        check_scale(law.scale, f"the scale of the noise on {name}")


def check_answers(answers: Contributions, public: Public, mechanism: Mechanism) -> None:
    """Refuse answers that cannot be released as asked; for the steward's eyes.

    Called before the ledger is charged, so that a mistake costs nothing, and again here.
    """
    listed = set(public.items)
    unlisted = [item for item in answers.items if item not in listed]
    if unlisted:
        raise BadResponses(
            f"the data has {len(unlisted)} items that are not on the item list, for example "
            f"{unlisted[0]!r}. A release names its items in advance, without looking at the "
            "data: add them to the list, or take their columns or rows out of the data first"
        )
    _check_categories(answers, public)
    if public.persons is not None and answers.n_persons > public.persons:
        raise BadResponses(
            f"the data has {answers.n_persons:,} people, more than the {public.persons:,} that are "
            "their public number. It must cover everybody who may be in the data: raise it, or "
            "take out who does not belong there"
        )
    mechanism.check_answers(answers.select(public.items), public.persons)


def _check_categories(answers: Contributions, public: Public) -> None:
    """Refuse answers with higher categories than the list allows; fewer may occur than are listed.

    The message says how many steps were found: it is for the steward's eyes.
    """
    listed = dict(zip(public.items, public.steps, strict=True))
    for item, steps in zip(answers.items, answers.steps, strict=True):
        if steps > listed[item]:
            raise BadResponses(
                f"item {item!r} was read with {steps} steps, and the list has {listed[item]}. A "
                "release is told how many steps its items have: name them with the list (in "
                f"Python items={{{item!r}: {steps}}}, in a file the columns item and steps), or "
                "say from which score on answers count as right with at_least= (--at-least)"
            )


def add_noise(
    cells: Mapping[str, object],
    calibration: NoiseCalibration,
    mechanism: Mechanism,
    *,
    persons: int,
) -> NoiselessValues:
    """Let exact cells wait for the noise of their laws; for mechanisms that add noise to counts."""
    laws = calibration.laws
    if set(cells) != set(laws):
        raise _defect(mechanism, "has cells without a noise law")
    integers = {name: _whole(exact, mechanism) for name, exact in cells.items()}

    def draw(noise: Noise) -> dict[str, Int64Array]:
        return {
            name: exact + _draw(laws[name], exact.size, noise) for name, exact in integers.items()
        }

    return NoiselessValues(persons, {name: exact.shape for name, exact in integers.items()}, draw)


def add_round(
    first: NoiselessValues,
    shapes: Mapping[str, tuple[int, ...]],
    then: Callable[[Mapping[str, Int64Array]], NoiselessValues],
) -> NoiselessValues:
    """Let a round of values follow a first one, whose noisy values say what is counted.

    ``then`` sees values that got their noise, and nothing else of the first round. Both rounds
    are one release: the ledger was charged for both before the first was drawn.
    """

    def draw(noise: Noise) -> dict[str, Int64Array]:
        values = first.draw(noise)
        second = then(MappingProxyType(values))
        check_person_count(second.persons, first.persons)
        return {**values, **second.draw(noise)}

    return NoiselessValues(first.persons, {**first.shapes, **shapes}, draw)


def _whole(exact: object, mechanism: Mechanism) -> Int64Array:
    """Return the exact cells, checked to be integers and to have every zero in its place.

    A sparse array would say with its size which cells are zero, and a float would carry bits of
    the exact value past the noise.
    """
    if isinstance(exact, np.ndarray) and exact.dtype == np.int64:
        return exact
    raise _defect(mechanism, "has cells of a kind that must not be released")


def _defect(mechanism: Mechanism, fault: str) -> DiscreetError:
    return DiscreetError(
        f"the mechanism {mechanism.name} {fault}; this is a defect of discreet, and nothing was "
        "released"
    )


def _draw(law: NoiseLaw, size: int, noise: Noise) -> Int64Array:
    if law.family == "gaussian":
        return noise.gaussian(law.scale, size)
    return noise.laplace(law.scale, size)


def check_person_count(counted: int, expected: int) -> None:
    """Refuse to release data in which there are not as many persons as there were before."""
    if counted != expected:
        raise DiscreetError(
            f"the release was prepared for {expected:,} persons, and {counted:,} were counted: the "
            "answers changed in between, and nothing was released"
        )


def _check_values(
    values: Mapping[str, object], shapes: Mapping[str, tuple[int, ...]], mechanism: Mechanism
) -> None:
    """Refuse values other than the integers that were announced: floats carry bits past noise."""
    released_shapes = {
        name: array.shape
        for name, array in values.items()
        if isinstance(array, np.ndarray) and array.dtype == np.int64
    }
    if released_shapes != dict(shapes):
        raise _defect(mechanism, "drew values of a kind that must not be released")
