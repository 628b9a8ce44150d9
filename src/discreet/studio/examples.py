"""Bundled answers as files, as if somebody had brought them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from discreet.datasets import lsat


@dataclass(frozen=True)
class Example:
    """Answers to try things with: a name, what they are, how they are read and written."""

    name: str
    title: str
    about: str
    write: Callable[[Path], None]
    options: Mapping[str, Any] = field(default_factory=dict)


def _write_lsat(path: Path) -> None:
    answers = lsat()
    rows = answers.store.rows(0, answers.n_persons).tolist()
    lines = [",".join(answers.items), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", "utf-8")


def _write_wellbeing(path: Path) -> None:
    with (files("discreet") / "data" / "wellbeing.csv").open("rb") as bundled:
        path.write_bytes(bundled.read())


EXAMPLES = {
    one.name: one
    for one in (
        Example(
            "lsat.csv",
            "A test: right and wrong answers",
            "Section 6 of the Law School Admission Test: 1,000 persons, 5 items.",
            _write_lsat,
        ),
        Example(
            "wellbeing.csv",
            "A questionnaire: answers from never to always",
            "Twelve questions on well-being, 600 persons, five categories. Simulated.",
            _write_wellbeing,
            {"group": ["age"]},
        ),
    )
}
"""By the names of their files."""


def write_example(example: Example, folder: Path) -> Path:
    """Write an example into the private folder, once; return where it is."""
    place = folder / "examples"
    place.mkdir(mode=0o700, exist_ok=True)
    path = place / example.name
    if not path.exists():
        example.write(path)
    return path
