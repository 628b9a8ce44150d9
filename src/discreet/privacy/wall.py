"""THE WALL: exact statistics and a calibrated mechanism in, a :class:`Release` out.

On one side answers and exact counts, on the other noisy values. This is the only module that
makes a :class:`Release`, and a release holds nothing that did not get noise: no answers, no
exact counts, no number of persons unless the neighbouring relation makes it public.
Whatever is computed from a release is post-processing and needs no further care.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from discreet.engines import count_pairs
from discreet.engines.answers import Answers, Contributions
from discreet.errors import BadResponses, DiscreetError
from discreet.markup import brief_repr
from discreet.privacy.accounting import Guarantee
from discreet.privacy.mechanisms import RandomizedResponse
from discreet.privacy.mechanisms.protocol import Calibration, Mechanism, NoiseLaw, Public
from discreet.privacy.noise import Noise

__all__ = ["Release", "check_answers", "release_statistics"]

Int64Array = npt.NDArray[np.int64]

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
    settings: Mapping[str, Any]
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


def release_statistics(
    answers: Contributions,
    *,
    mechanism: Mechanism | RandomizedResponse,
    public: Public,
    calibration: Calibration,
    guarantee: Guarantee,
    noise: Noise,
    count: Callable[..., Any] = count_pairs,
) -> Release:
    """Count what the mechanism asks for, add its noise, and hand out nothing else.

    The answers may be in memory, on disk or in a cluster. The caller has reserved the spend in
    the ledger before this function draws any noise. All cells come from one count of the answers,
    so from one draw of the cap. Every listed item and every cell that the public parameters name
    gets noise, answered or not, zero or not.

    ``count`` counts whole persons with a mechanism's integer weights; comparisons of judges are
    counted by :func:`discreet.comparisons.counting.count_wins`.
    """
    check_answers(answers, public, mechanism)
    capped = answers.select(public.items).cap(public.max_answers, noise.source)
    if isinstance(mechanism, RandomizedResponse):
        values = mechanism.randomise(cast(Answers, capped), calibration, noise.source)
    else:
        counts = count(capped, weighting=mechanism.weighting(public, calibration))
        _check_persons(counts.persons, answers.n_persons)
        values = _noisy_cells(counts, mechanism, calibration, noise)
    return Release(
        mechanism=mechanism.name,
        public=public,
        values=values,
        laws=calibration.laws,
        settings=calibration.settings,
        guarantee=guarantee,
        seal=_SEAL,
    )


def check_answers(
    answers: Contributions, public: Public, mechanism: Mechanism | RandomizedResponse
) -> None:
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
    if public.persons is not None and answers.n_persons > public.persons:
        raise BadResponses(
            f"the data has {answers.n_persons:,} people, more than the {public.persons:,} that are "
            "their public number. It must cover everybody who may be in the data: raise it, or "
            "take out who does not belong there"
        )
    if isinstance(mechanism, RandomizedResponse):
        mechanism.check_answers(cast(Answers, answers.select(public.items)), public.persons)


def _check_persons(counted: int, expected: int) -> None:
    if counted != expected:
        raise DiscreetError(
            f"the release was prepared for {expected:,} persons, and {counted:,} were counted: the "
            "answers changed in between, and nothing was released"
        )


def _noisy_cells(
    counts: Any,
    mechanism: Mechanism,
    calibration: Calibration,
    noise: Noise,
) -> dict[str, Int64Array]:
    cells = mechanism.cells(counts, calibration)
    if set(cells) != set(calibration.laws):
        raise DiscreetError(
            f"the mechanism {mechanism.name} has cells without a noise law; this is a defect "
            "of discreet, and nothing was released"
        )
    return {
        name: _whole(exact, mechanism) + _draw(calibration.laws[name], exact.size, noise)
        for name, exact in cells.items()
    }


def _whole(exact: object, mechanism: Mechanism) -> Int64Array:
    """Return the exact cells, checked to be integers and to have every zero in its place.

    A sparse array would say with its size which cells are zero, and a float would carry bits of
    the exact value past the noise.
    """
    if isinstance(exact, np.ndarray) and exact.dtype == np.int64:
        return exact
    raise DiscreetError(
        f"the mechanism {mechanism.name} has cells of a kind that must not be released; this is a "
        "defect of discreet, and nothing was released"
    )


def _draw(law: NoiseLaw, size: int, noise: Noise) -> Int64Array:
    if law.family == "gaussian":
        return noise.gaussian(law.scale, size)
    return noise.laplace(law.scale, size)
