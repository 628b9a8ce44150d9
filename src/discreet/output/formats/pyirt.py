"""py-irt: its JSON lines of answers, and the parameters it saves.

In: answers, or the ``parameters.json`` or ``best_parameters.json`` of ``py-irt train``. Out: a
file that py-irt trains on, or difficulties. A line is ``{"subject_id": ..., "responses": {item:
answer}}`` (py_irt/dataset.py); parameters hold ``diff`` in the order of ``item_ids``
(py_irt/training.py). Answers are confidential.
"""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

from discreet.answers.reading import read_responses
from discreet.answers.responses import Responses
from discreet.atomic import staged
from discreet.errors import BadResponses, BadUsage

CHUNK_PERSONS = 4096


def read_jsonl(path: str | PathLike[str]) -> Responses:
    """Read py-irt's JSON lines; the same as :func:`discreet.read_responses`."""
    return read_responses(path)


def write_jsonl(path: str | PathLike[str], responses: Responses) -> None:
    """Write answers as py-irt's JSON lines; missing answers are left out."""
    items, persons = responses.items, responses.persons
    place = Path(path)
    with (
        staged(place.parent, [place.name]) as stage,
        (stage / place.name).open("w", encoding="utf-8", newline="\n") as file,
    ):
        for start in range(0, responses.n_persons, CHUNK_PERSONS):
            rows = responses.rows(start, min(start + CHUNK_PERSONS, responses.n_persons))
            for number, row in enumerate(rows.tolist()):
                given = {
                    name: answer for name, answer in zip(items, row, strict=True) if answer >= 0
                }
                line = {"subject_id": str(persons[start + number]), "responses": given}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")


def read_parameters(path: str | PathLike[str]) -> dict[str, float]:
    """Read the difficulties that py-irt saved: a mapping that ``score`` and anchors take.

    Only the one-parameter model is on the scale of the Rasch model; others are refused.
    """
    try:
        saved: Any = json.loads(Path(path).read_text(encoding="utf-8"))
        model, difficulty, names = saved["irt_model"], saved["diff"], saved["item_ids"]
        values = {str(names[str(i)]): float(value) for i, value in enumerate(difficulty)}
    except (ValueError, KeyError, TypeError) as error:
        raise BadResponses(
            f"{path} is not a parameter file of py-irt: it must have 'irt_model', 'diff' and "
            f"'item_ids' ({type(error).__name__}: {error})"
        ) from error
    if "1pl" not in str(model).lower():
        raise BadUsage(
            f"{path} holds a {model} model; only the one-parameter model (1pl) has difficulties on "
            "the scale of the Rasch model"
        )
    return values
