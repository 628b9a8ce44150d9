"""``noisy.npz``: the values that came through the wall, for whoever fits a model of their own.

In: a release and its estimate. Out: the bytes of an archive of NumPy arrays, the same for the same
release wherever they are written: ``covariance`` of the estimate (with steps also
``threshold_covariance``), ``value/NAME`` for every array of noisy integers, and as JSON texts the
``laws`` of their noise, ``public`` parameters and ``settings`` of the mechanism. And back. All of
it is public by construction: nothing is behind it but noisy values and what was public before.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np

from discreet.privacy.accounting import Guarantee
from discreet.privacy.mechanisms import find_mechanism
from discreet.privacy.protocol import PUBLIC, NoiseLaw, pack_value, unpack_value
from discreet.privacy.wall import Release, reread_release
from discreet.results.estimate import Estimate
from discreet.types import FloatArray

NOISY_FILE = "noisy.npz"
COVARIANCE_ITEMS = 2_000
"""Items, or steps of items, up to which the covariance is published: 32 MB."""
VALUE = "value/"
EPOCH = (1980, 1, 1, 0, 0, 0)
"""A date for all files in the archive: two archives of one release are equal byte for byte."""


def may_show_values(release: Release) -> bool:
    """Say whether the values may be published beside what was estimated from them.

    Counts of randomised answers show exactly who answered how many of which items, and that is not
    covered by the promise: they are kept back unless it was declared public, or is known because
    everybody answered everything.
    """
    settings = release.settings
    is_public = settings.get("public_pattern") or settings.get("shuffler") == "trusted"
    return find_mechanism(release.mechanism).hides_pattern or bool(is_public)


def noisy_bytes(release: Release, estimate: Estimate) -> bytes:
    """Return the archive as it is written."""
    texts = {
        "laws": {name: [law.family, str(law.scale)] for name, law in release.laws.items()},
        "public": release.public.to_dict(),
        "settings": {name: pack_value(value) for name, value in release.settings.items()},
    }
    arrays: dict[str, np.ndarray[Any, Any]] = {
        name: np.array(json.dumps(values).encode()) for name, values in texts.items()
    }
    arrays |= {
        VALUE + name: array.astype("<i8", order="C") for name, array in release.values.items()
    }
    if estimate.covariance is not None:
        arrays["covariance"] = estimate.covariance.astype("<f8", order="C")
    if estimate.ladder is not None and estimate.ladder.covariance is not None:
        arrays["threshold_covariance"] = estimate.ladder.covariance.astype("<f8", order="C")
    file = io.BytesIO()
    with ZipFile(file, "w", ZIP_STORED) as archive:
        for name in sorted(arrays):
            archive.writestr(_entry(name), _array_bytes(arrays[name]))
    return file.getvalue()


def _entry(name: str) -> ZipInfo:
    entry = ZipInfo(f"{name}.npy", EPOCH)
    entry.create_system, entry.external_attr = 3, 0o644 << 16  # as on Unix, wherever this runs
    return entry


def _array_bytes(array: np.ndarray[Any, Any]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=(1, 0), allow_pickle=False)
    return file.getvalue()


def read_noisy(
    content: bytes, record: Mapping[str, Any], estimate: Estimate
) -> tuple[Release, Estimate]:
    """Return the release, and its estimate with the covariance.

    Raises ``ValueError`` where the archive is damaged, or does not belong to the record.
    """
    try:
        arrays = _read_arrays(content)
        return _restore(arrays, record), _add_covariance(arrays, estimate)
    except (BadZipFile, KeyError, TypeError, MemoryError, OverflowError, ValueError) as error:
        raise ValueError(f"{NOISY_FILE} cannot be read ({type(error).__name__}: {error})") from None


def _read_arrays(content: bytes) -> dict[str, Any]:
    arrays = {}
    with ZipFile(io.BytesIO(content)) as archive:
        for entry in archive.infolist():
            if entry.compress_type != ZIP_STORED:
                raise ValueError("it is compressed, and we do not compress it")
            file = io.BytesIO(archive.read(entry))
            array = np.lib.format.read_array(file, allow_pickle=False)
            arrays[entry.filename.removesuffix(".npy")] = array
    return arrays


def _add_covariance(arrays: Mapping[str, Any], estimate: Estimate) -> Estimate:
    covariance, of_steps = arrays.get("covariance"), arrays.get("threshold_covariance")
    _check_covariance(covariance, estimate.se[estimate.estimated])
    ladder = estimate.ladder
    if ladder is not None:
        _check_covariance(of_steps, ladder.se[ladder.known])
        ladder = replace(ladder, covariance=of_steps)
    return replace(estimate, covariance=covariance, ladder=ladder)


def _check_covariance(covariance: FloatArray | None, se: FloatArray) -> None:
    if covariance is None:
        return
    if covariance.dtype != np.float64 or covariance.shape != (len(se), len(se)):
        raise ValueError(f"its covariance is not one of {len(se)} numbers")
    spread = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    if not np.allclose(spread, se, rtol=1e-5, atol=1e-6):
        raise ValueError("its covariance does not fit the standard errors of the table")


def _restore(arrays: Mapping[str, Any], record: Mapping[str, Any]) -> Release:
    laws, public, settings = (
        json.loads(arrays[name].item()) for name in ("laws", "public", "settings")
    )
    if public["items"] != record["items"]:
        raise ValueError("it is about other items than the record")
    return reread_release(
        record["mechanism"],
        PUBLIC[record.get("kind", "answers")].from_dict(
            public, mechanism=record["mechanism"], estimator=record["estimator"]
        ),
        laws={name: NoiseLaw(family, Fraction(scale)) for name, (family, scale) in laws.items()},
        settings={name: unpack_value(value) for name, value in settings.items()},
        values={
            name.removeprefix(VALUE): array.astype(np.int64)
            for name, array in arrays.items()
            if name.startswith(VALUE) and array.dtype == np.dtype("<i8")
        },
        guarantee=Guarantee.from_dict(record["guarantee"]),
    )
