"""The owner of a table: answers the questions of an inspection by what expected.json knows.

The owner presses only what is offered, and types only where an answer asks for a value.
"""

import json
import warnings
from pathlib import Path

import numpy as np

from discreet import inspect_table, read_responses

TABLES = Path(__file__).parent.parent / "data" / "tables"
FOLDERS = {
    "": TABLES,
    "more": TABLES / "more",
    "exports": TABLES / "exports",
    "fresh": TABLES / "fresh",
}
KEPT = TABLES / "kept"
MOST_PRESSES = 5


def load_expectations(folder):
    return json.loads((folder / "expected.json").read_text(encoding="utf-8"))


def describe(answers):
    """Return answers as expected.json writes them."""
    cells = answers.to_array()
    return {
        "persons": answers.n_persons,
        "items": [str(item) for item in answers.items],
        "answers": (cells >= 0).sum(axis=0).tolist(),
        "scores": np.maximum(cells, 0).sum(axis=0).tolist(),
        "steps": list(answers.steps),
    }


def is_as_expected(answers, entry):
    groups = {key: sorted(set(map(str, values))) for key, values in answers.groups.items()}
    wanted = entry.get("groups", {})
    is_same = describe(answers) == {key: entry[key] for key in describe(answers)}
    return is_same and {key: groups.get(key) for key in wanted} == wanted


def _is_true(name, value, entry, *, is_marked):
    """Say whether its owner would set a field so; what the owner does not know may be marked."""
    labels = (
        {value}
        if isinstance(value, str)
        else {*map(str, value)}
        if isinstance(value, list)
        else set()
    )
    items, groups = {*entry["items"]}, {*entry.get("groups", {})}
    if name == "keep":
        return labels <= items
    if name == "group":
        return labels <= groups
    if name == "ignore":
        return not labels & (items | groups)
    truth = {**entry.get("supply", {}), **entry.get("truth", {})}
    if name in truth:
        return str(value).casefold() == str(truth[name]).casefold()
    return is_marked


def choose_answer(question, entry):
    """Return the number of the answer that is right, and what to type; None where none is."""
    truth = {**entry.get("supply", {}), **entry.get("truth", {})}
    known = {"keep", "group", "ignore", *truth}
    for number, answer in enumerate(question.answers):
        if answer.asks and answer.asks in truth:
            return number, truth[answer.asks]
        told = {k: v for k, v in answer.options.items() if k in known} or answer.options
        is_marked = number == question.marked
        rights = [_is_true(k, v, entry, is_marked=is_marked) for k, v in told.items()]
        if rights and all(rights) and not answer.asks:
            return number, None
    return None


def answer_all(path, entry):
    """Return the last look at a table, and how many answers were given."""
    seen, presses = inspect_table(path), 0
    while seen.questions and presses < 4 * MOST_PRESSES:
        chosen = [(one, choose_answer(one, entry)) for one in seen.questions]
        given = [(one, answer) for one, answer in chosen if answer is not None]
        if not given:
            return seen, presses
        question, (number, reply) = given[0]
        seen = inspect_table(path, **seen.answer(question, number, reply))
        presses += 1
    return seen, presses


def read_answered(path, entry):
    """Return the answers as they are read once every question is answered."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen, presses = answer_all(path, entry)
        if seen.questions:
            return seen, presses, None
        return seen, presses, read_responses(path, reading=seen.proposal)
