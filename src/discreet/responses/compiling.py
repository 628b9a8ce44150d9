"""When to wait for the compiled loops.

Loading numba and its loops takes about half a second (some seconds the very first time, when
nothing is in the disk cache), so small jobs run on NumPy alone. The rule is the one for
renting or buying skis: use NumPy until this process has spent about as long in it as loading
costs, then load. Nobody waits more than twice as long as the best choice in hindsight.
"""

from __future__ import annotations

__all__ = ["load_kernels", "worth_compiling"]

LOADING_SECONDS = 1.0
"""Price of loading, so that counting goes to NumPy up to about persons x items^2 = 1e10."""

CALL_SECONDS = 5e-5
"""Below this a compiled call is not faster, even when loaded."""


class _State:
    loaded = False
    spent = 0.0


def worth_compiling(plain_seconds: float) -> bool:
    """Say whether a job that NumPy does in ``plain_seconds`` should use compiled loops."""
    if _State.loaded:
        return plain_seconds > CALL_SECONDS
    _State.spent += plain_seconds
    _State.loaded = _State.spent > LOADING_SECONDS
    return _State.loaded


def load_kernels() -> None:
    """Use compiled loops from now on, for example in a service that will count often."""
    _State.loaded = True
