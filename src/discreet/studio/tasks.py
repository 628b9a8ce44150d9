"""What workers do: read answers. Each task is told how to say where it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.answers.reading import read_responses
from discreet.answers.responses import Responses
from discreet.studio.worker import Progress
from discreet.tables.paths import find_files


@dataclass(frozen=True)
class Look:
    """What a file holds, as it was understood."""

    responses: Responses


def look(progress: Progress, source: Path, options: Mapping[str, Any]) -> Look:
    """Read a file of answers."""
    progress.begin("Reading the answers")
    total = sum(path.stat().st_size for path in find_files(source))
    found = read_responses(source, **options, progress=lambda done: progress.count(done, total))
    return Look(found)
