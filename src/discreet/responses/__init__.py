"""Answers in: the :class:`Responses` type, and readers of files and data frames.

The readers load on first use, because Arrow's CSV reader takes a while to import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.responses.table import Responses

if TYPE_CHECKING:
    from discreet.responses.files import read_responses

__all__ = ["Responses", "read_responses"]


def __getattr__(name: str) -> Any:
    if name != "read_responses":
        raise AttributeError(f"module 'discreet.responses' has no attribute {name!r}")
    from discreet.responses.files import read_responses

    return read_responses
