"""Counting on a graphics processor: the same integers, and how much faster.

    python -m bench.gpu [--persons N] [--items M] [--repeats R] [--check]

One run compares, on the same answers: the tensor that is already on the processor, the same
answers packed in main memory, and the memory engine on two threads (skipped where numba is not
installed). ``--check`` compares many small and awkward inputs with plain NumPy instead. Needs
PyTorch and a graphics processor; without one it says so.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from discreet.answers.device import open_on_device
from discreet.answers.pack import pack_rows
from discreet.answers.responses import Responses
from discreet.counts.pairs import count_store
from discreet.jit import set_threads


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--persons", type=int, default=1_000_000)
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        print("PyTorch is not installed: nothing measured")
        return 0
    import torch

    if not torch.cuda.is_available():
        print("PyTorch finds no graphics processor: nothing measured")
        return 0
    print(f"{torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}")
    if options.check:
        return check(torch)
    for missing in (0.0, 0.2):
        compare(torch, options.persons, options.items, missing, options.repeats)
    return 0


def compare(torch: Any, n: int, m: int, missing: float, repeats: int) -> None:
    print(f"\n{n} persons x {m} items, {missing:.0%} missing")
    generator = torch.Generator("cuda").manual_seed(0)
    cells = torch.randint(0, 2, (n, m), dtype=torch.int8, device="cuda", generator=generator)
    for row in range(0, n, 1 << 17):  # in parts: random numbers are four times as large
        part = cells[row : row + (1 << 17)]
        part[torch.rand(part.shape, device="cuda", generator=generator) < missing] = -1
    seconds, found = fastest(lambda: open_on_device(cells).count(), repeats)
    print(f"  tensor on the processor to counts   {1e3 * seconds:8.1f} ms")
    if importlib.util.find_spec("numba") is None:
        print("  numba is not installed: no comparison with the memory engine")
        return
    rows = cells.cpu().numpy()
    set_threads(2)
    packing, planes = fastest(lambda: pack_rows(rows), repeats)
    counting, expected = fastest(lambda: count_store(planes), repeats)
    responses = Responses.from_array(rows)
    uploading, again = fastest(lambda: open_on_device(responses).count(), repeats)
    same = (found.right_wrong == expected).all() and (again.right_wrong == expected).all()
    print(f"  answers packed in main memory       {1e3 * uploading:8.1f} ms")
    print(f"  memory engine, 2 threads: packing   {1e3 * packing:8.1f} ms")
    print(f"  memory engine, 2 threads: counting  {1e3 * counting:8.1f} ms")
    print(f"  int8 matrix to counts, where it is: {(packing + counting) / seconds:.0f} times")
    print(f"  counting alone against the tensor:  {counting / seconds:.0f} times")
    print(f"  packed answers, counting alone:     {counting / uploading:.1f} times")
    print(f"  same counts: {bool(same)}")


def fastest(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the smallest wall time, after one call that is not timed, and the result."""
    import torch

    best, result = np.inf, call()
    for _ in range(repeats):
        torch.cuda.synchronize()
        started = time.perf_counter()
        result = call()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - started)
    return best, result


def check(torch: Any) -> int:
    """Compare with NumPy: shapes that fill no tile, full sums, weights up to 2^30."""
    rng = np.random.default_rng(0)
    wrong = 0
    for trial in range(200):
        n, m = int(rng.integers(1, 3000)), int(rng.integers(1, 200))
        cells = rng.integers(-1, 2, (n, m)).astype(np.int8)
        weighting = (None, _reciprocal, _large)[trial % 3]
        expected = _reference(cells, weighting)
        for source in (Responses.from_array(cells), torch.from_numpy(cells).cuda()):
            wrong += int((open_on_device(source).count(weighting).right_wrong != expected).any())
    print(f"200 random matrices, two ways each: {wrong} wrong")
    wrong += check_long_sums(torch)
    return int(wrong > 0)


def check_long_sums(torch: Any) -> int:
    """Let every product reach its largest sum: everybody has one item right and one wrong."""
    n = 5_000_000
    cells = torch.zeros((n, 3), dtype=torch.int8, device="cuda")
    cells[:, 0] = 1
    plain = open_on_device(cells).count().right_wrong
    weighted = open_on_device(cells).count(_full).right_wrong
    exact = plain[0, 1] == n and weighted[0, 2] == n * ((1 << 30) - 1)
    print(f"{n} persons, all alike, weights of 30 set bits: {'exact' if exact else 'WRONG'}")
    return int(not exact)


def _reciprocal(answered: Any, right: Any) -> Any:
    return (5040 * right + 1) // np.maximum(answered, 1)


def _large(answered: Any, right: Any) -> Any:
    return (1 << 30) - 5 * answered - right


def _full(answered: Any, right: Any) -> Any:
    return np.full_like(answered + right, (1 << 30) - 1)


def _reference(cells: Any, weighting: Any) -> Any:
    right, wrong = (cells == 1).astype(np.int64), (cells == 0).astype(np.int64)
    if weighting is not None:
        answered = right.sum(1) + wrong.sum(1)
        right = right * weighting(answered, right.sum(1))[:, None]
    return right.T @ wrong


if __name__ == "__main__":
    sys.exit(main())
