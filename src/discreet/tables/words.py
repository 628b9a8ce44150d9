"""Keywords about reading, which whatever takes answers has: for programs that check types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from discreet.tables.key import KeyLike
from discreet.tables.values import Codes
from discreet.types import Layout, Model, OneMeans, Repeats


class StepWords(TypedDict, total=False):
    """The keywords about answers with steps."""

    model: Model | None
    steps: int | Mapping[str, int] | None
    lowest: int | None
    reverse: str | Sequence[str]
    merge: Mapping[str, Any] | None


class ListedWords(TypedDict, total=False):
    """The keywords of answers whose steps are told elsewhere."""

    layout: Layout | None
    person: str | None
    item: str | None
    response: str | None
    ignore: str | Sequence[str]
    group: str | Sequence[str] | None
    repeats: Repeats
    one_means: OneMeans
    at_least: float | None
    missing: Codes
    key: KeyLike
    sheet: str | None
    delimiter: str | None
    header: bool
    order_by: str | None
    reverse: str | Sequence[str]


class FitWords(ListedWords, total=False):
    """The keywords of :func:`discreet.read_responses` but for the model, which a fit has itself."""

    steps: int | Mapping[str, int] | None
    lowest: int | None
    merge: Mapping[str, Any] | None


class ReadingWords(FitWords, total=False):
    """The keywords of :func:`discreet.read_responses`, which whatever takes answers has too."""

    model: Model
