"""Count pairs on a graphics processor: a matrix product of zeros and ones in half precision.

In: a matrix of answers that is already there (a tensor of PyTorch, CuPy or JAX), or answers in
memory. Out: the exact integers of the memory engine. A product of zeros and ones is exact in half
precision, and so is its sum in single precision while it stays below 2^24; longer sums, and
weights, are taken apart and put together in 64-bit integers.

PyTorch is imported when a count is asked for, numba never. Where there is no PyTorch or no
processor for it, a warning says so and the answers are counted in memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from discreet.answers.matrices import check_shape, explain_cell
from discreet.answers.opening import is_tensor, open_memory
from discreet.answers.protocol import Answers
from discreet.answers.responses import Responses
from discreet.counts import PairCounts, name_weighting
from discreet.counts.folds import Tally
from discreet.counts.matrix import check_room
from discreet.counts.pairs import Weighting, check_weights
from discreet.counts.planes import BitPlanes
from discreet.errors import BadResponses, BadUsage, MissingExtra
from discreet.secure import RandomSource
from discreet.types import Int64Array

if TYPE_CHECKING:
    from discreet.tables.reading import Reading

#: Persons of one product: long enough for full speed, short enough for sums of 7-bit digits.
SLAB_PERSONS = 1 << 17

#: Bits of a weight that one product takes: 2^7 times 2^17 persons is 2^24.
DIGIT_BITS = 7

#: Cells of one product: a few gigabytes with both planes and what they are made from.
SLAB_CELLS = 1 << 28


class DeviceAnswers(Responses):
    """A tensor, or answers in memory, whose pairs are counted on a graphics processor.

    Everything else is done by a copy in memory, made when it is first asked for.
    """

    __slots__ = ("_source",)

    def __init__(self, source: Any) -> None:
        object.__setattr__(self, "_source", source)

    def __getattr__(self, name: str) -> Any:
        if name not in Responses.__slots__:
            return cast(Any, super()).__getattr__(name)
        memory = self._source
        if not isinstance(memory, Responses):
            memory = Responses.from_array(_as_tensor(memory).cpu().numpy())
        for slot in Responses.__slots__:
            object.__setattr__(self, slot, getattr(memory, slot))
        return getattr(self, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return DeviceAnswers, (self._source,)

    def select(self, items: Sequence[object]) -> DeviceAnswers:
        """Return exactly these items in this order; an unknown name is an unanswered column."""
        return DeviceAnswers(super().select(items))

    def cap(self, max_answers: int, source: RandomSource) -> DeviceAnswers:
        """Keep a uniformly random ``max_answers`` of the answers of each person with more."""
        return DeviceAnswers(super().cap(max_answers, source))

    def count(self, weighting: Weighting | None = None, tally: Tally | None = None) -> PairCounts:
        """Count pairs on the processor; in memory, with a warning, where there is none.

        Folds, and answers with steps, are counted in memory.
        """
        if tally is not None or self._has_steps:
            return super().count(weighting, tally)
        reason = _why_not()
        if reason is not None:
            warnings.warn(f"{reason}; the pairs are counted in memory instead", stacklevel=3)
            return super().count(weighting)
        check_room(self.steps, len(self.items) ** 2)
        return count_on_device(self._source, weighting, "cuda")

    @property
    def _has_steps(self) -> bool:
        """Whether there are more answers than right and wrong; found out where the tensor is."""
        if isinstance(self._source, Responses):
            return any(step > 1 for step in self._source.steps)
        return bool((_as_tensor(self._source) > 1).any())


def open_on_device(source: Any, reading: Reading | None = None) -> Answers:
    """Return answers whose pairs are counted on a graphics processor.

    Parameters
    ----------
    source
        A matrix ``[person, item]`` of 1, 0 and missing (-1, or NaN), on the processor or not, or
        :class:`~discreet.Responses`, or a path. Answers elsewhere stay where they are.
    reading
        How a file is read.
    """
    if isinstance(source, Answers) and type(source) is not Responses:
        return source
    if isinstance(source, Responses) or (is_tensor(source) and _is_plain(reading)):
        return DeviceAnswers(source)
    if is_tensor(source):
        source = _as_tensor(source).cpu().numpy()
    return DeviceAnswers(open_memory(source, reading))


def _is_plain(reading: Reading | None) -> bool:
    """Say whether a tensor is read as it is: no codes, no steps, no item list."""
    if reading is None:
        return True
    return not (reading.codes or reading.asked.is_said or reading.scale or reading.listed)


def count_on_device(source: Any, weighting: Weighting | None, device: str) -> PairCounts:
    """Count on one of PyTorch's devices; "cpu" is for trying things out, and slow."""
    if isinstance(source, Responses):
        slabs = _store_slabs(source.store, device)
        return _add_up(slabs, source.items, source.n_persons, weighting)
    if not is_tensor(source):
        raise BadUsage(
            "the gpu engine counts tensors [person, item], answers and paths, found "
            f"{type(source).__name__}"
        )
    cells = _as_tensor(source)
    names = tuple(map(str, range(cells.shape[1])))
    return _add_up(_tensor_slabs(cells, device), names, len(cells), weighting)


def _why_not() -> str | None:
    """Return why there is no graphics processor to count on."""
    try:
        torch = _load_torch()
    except MissingExtra as missing:
        return str(missing).removesuffix(".")
    return None if torch.cuda.is_available() else "PyTorch finds no graphics processor here"


def _load_torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("counting on a graphics processor", "gpu") from error
    return torch


def _as_tensor(source: Any) -> Any:
    torch = _load_torch()
    cells = source if isinstance(source, torch.Tensor) else torch.from_dlpack(source)
    return check_shape(cells, "a tensor")


# --- slabs: the ones of "right" and of "wrong" for some persons, both [item, person] -------------

Slabs = Iterator[tuple[Any, Any]]


def _slab_persons(items: int) -> int:
    """Return how many persons one product takes: a whole number of 64-bit words."""
    return max(64, min(SLAB_PERSONS, SLAB_CELLS // items // 64 * 64))


def _tensor_slabs(cells: Any, device: str) -> Slabs:
    step = _slab_persons(cells.shape[1])
    for start in range(0, len(cells), step):
        part = cells[start : start + step].to(device)
        right, wrong = _mark(part, 1), _mark(part, 0)
        is_known = False
        if not part.dtype.is_floating_point and part.dtype.is_signed:
            low, high = part.aminmax()  # a look that costs little
            is_known = bool((low >= -1) & (high <= 1))
        if not is_known:
            _check_rest(part, right + wrong, start)
        yield right.T, wrong.T


def _mark(part: Any, value: int) -> Any:
    """Return ones where cells have a value, in the type of the product's factors."""
    import torch

    ones = torch.empty(part.shape, dtype=_number(part.device.type), device=part.device)
    return torch.eq(part, value, out=ones)


def _check_rest(part: Any, answered: Any, start: int) -> None:
    """Refuse cells that are neither right, wrong nor missing."""
    is_bad = answered == 0
    if part.dtype.is_signed:
        is_bad &= part != -1
    if part.dtype.is_floating_point:
        is_bad &= ~part.isnan()
    if is_bad.any():
        row, column = (int(index) for index in is_bad.nonzero()[0])
        value = part[row, column].item()
        raise BadResponses(explain_cell(start + row, column, value, None))


def _store_slabs(store: Any, device: str) -> Slabs:
    if isinstance(store, BitPlanes):
        blocks = max(1, _slab_persons(store.n_items) // store.block_persons)
        for first in range(0, len(store.right), blocks):
            part = slice(first, first + blocks)
            yield _spread(store.right[part], device), _spread(store.wrong[part], device)
        return
    step = _slab_persons(store.n_items)
    for start in range(0, store.n_persons, step):
        yield from _tensor_slabs(_as_tensor(store.rows(start, start + step)), device)


def _spread(words: Any, device: str) -> Any:
    """Turn bits [block, item, word] into numbers [item, person]."""
    import torch

    bits = (np.arange(256)[:, None] >> np.arange(8)) & 1
    table = torch.from_numpy(bits).to(device, _number(device))
    if device != "cpu":
        # Eight halves as one complex number: looking that up is 70 times faster.
        table = table.view(torch.complex128)
    with warnings.catch_warnings():
        # Planes are read-only, PyTorch has no such thing, and nothing here writes to them.
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
        # Little-endian words: byte b of a word holds its persons 8 b to 8 b + 7.
        packed = torch.from_numpy(words.astype("<u8", copy=False).view(np.uint8)).to(device)
    by_item = packed.permute(1, 0, 2).reshape(words.shape[1], -1)
    bits_by_item = table.index_select(0, by_item.flatten().int())
    return bits_by_item.view(_number(device)).reshape(words.shape[1], -1)


def _number(device: str) -> Any:
    """Return the type of a product's factors; PyTorch has no such product on the main processor."""
    import torch

    return torch.float32 if device == "cpu" else torch.float16


# --- sums ----------------------------------------------------------------------------------------


def _add_up(
    slabs: Slabs, items: tuple[str, ...], persons: int, weighting: Weighting | None
) -> PairCounts:
    """Add up the products of all slabs, in integers; only sums leave the processor."""
    m = len(items)
    sums: list[Any] = [np.zeros((m, m)), np.zeros(m), np.zeros(m)]
    done = 0
    for right, wrong in slabs:
        size = min(persons - done, right.shape[1])
        fresh = (_multiply(right, wrong, size, weighting), _sum(right, 1), _sum(wrong, 1))
        sums = list(fresh) if done == 0 else [a.add_(b) for a, b in zip(sums, fresh, strict=True)]
        done += size
    pairs, right, wrong = (_to_numpy(part) for part in sums)
    return PairCounts(items, pairs, right + wrong, right, persons, name_weighting(weighting))


def _multiply(right: Any, wrong: Any, size: int, weighting: Weighting | None) -> Any:
    """Multiply; with a weight per person, seven bits of the weights at a time."""
    import torch

    if weighting is None:
        return _multiply_exactly(right, wrong)
    right_total, wrong_total = (_to_numpy(_sum(part, 0))[:size] for part in (right, wrong))
    weights = check_weights(weighting(right_total + wrong_total, right_total), size)
    total = torch.zeros((len(right), len(right)), dtype=torch.int64, device=right.device)
    for shift in range(0, int(weights.max(initial=0)).bit_length(), DIGIT_BITS):
        digit = np.zeros(right.shape[1], dtype=np.int64)
        digit[:size] = (weights >> shift) & ((1 << DIGIT_BITS) - 1)
        scaled = right * torch.from_numpy(digit).to(right.device, right.dtype)
        total += _multiply_exactly(scaled, wrong) << shift
    return total


def _multiply_exactly(left: Any, right: Any) -> Any:
    """Return ``left @ right.T`` in single precision, which is exact here, as integers."""
    import torch

    if left.dtype == torch.float32:
        return (left @ right.T).long()
    return torch.mm(left, right.T, out_dtype=torch.float32).long()


def _sum(ones: Any, axis: int) -> Any:
    import torch

    return ones.sum(axis, dtype=torch.float32).long()


def _to_numpy(sums: Any) -> Int64Array:
    return np.asarray(sums if isinstance(sums, np.ndarray) else sums.cpu(), dtype=np.int64)
