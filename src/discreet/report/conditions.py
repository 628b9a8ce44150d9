"""On what conditions a release keeps its promise, and to whom it promises less.

In: the privacy record of a release. Out: sentences in the language of the record: what counts as a
person, what is promised to several, how the data was read, what had to be chosen without looking.
"""

from __future__ import annotations

from collections.abc import Mapping

from discreet.choices import PlainMapping
from discreet.privacy.accounting import bound_group
from discreet.text import show_chance
from discreet.words import mark_of, speak

#: What stands for a person, and whom a release protects less.
UNITS = {
    "id": mark_of("One id counts as one {person}; whoever has two ids counts as two."),
    "row": mark_of("One row counts as one {person}; whoever is in two rows counts as two."),
    "vote": mark_of(
        "No {persons} are known, so that one vote counts as one {person}: a person with v votes "
        "counts as v."
    ),
    None: mark_of(
        "One id, or one row where there are no ids, counts as one {person}; whoever has two counts "
        "as two."
    ),
}


def explain_unit(record: PlainMapping) -> list[str]:
    """Say what a person is, and what is promised to several; nothing where noise was for tests."""
    if not record["guarantee"]["is_private"]:
        return []
    tell = speak(record)
    epsilon, delta = bound_group(record["guarantee"]["epsilon"], record["guarantee"]["delta"], 2)
    together = tell.of(
        "For k {persons} together the promise is weaker: k·epsilon, and "
        "delta·(e^(k·epsilon) - 1)/(e^epsilon - 1). For two that is epsilon {epsilon} and delta "
        "{delta}.",
        epsilon=f"{epsilon:g}",
        delta=show_chance(delta) if delta else "0",
    )
    return [f"{tell.of(UNITS[record.get('person_is')])} {together}"]


def explain_reading(record: PlainMapping) -> str:
    """Say how the data was read, as it was stated; of a key only that there was one."""
    tell, reading = speak(record), record["reading"]
    if reading is None:
        return tell.of("The {answers} had been read before; how is not part of this record.")
    if not reading:
        return tell.of(
            "Nothing was stated about how to read the {answers}: fixed rules were followed."
        )
    stated = [
        tell("scored with a key") if name == "key" else f"{name} = {_show_stated(value)}"
        for name, value in reading.items()
    ]
    return tell.of("The {answers} were read as stated: {how}.", how="; ".join(stated))


def _show_stated(value: object) -> str:
    if isinstance(value, Mapping):  # of columns, "*" of all others
        parts = {name: _show_stated(one) for name, one in value.items()}
        return ", ".join(one if name == "*" else f"{name}: {one}" for name, one in parts.items())
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def explain_choices(record: PlainMapping) -> str:
    """Say what has to be chosen without looking, or that somebody looked before."""
    tell = speak(record)
    if record["looked"] and has_step_items(record):
        return tell(
            "The answers were looked at before the item list with its steps, the cap on answers, "
            "the way of reading them, epsilon, delta and the mechanism were set. If any of them "
            "was chosen because of what was seen, this promise is void."
        )
    if record["looked"]:
        return tell.of(
            "The {answers} were looked at before the {listed}, the cap on {answers}, the way of "
            "reading them, epsilon, delta and the mechanism were set. If any of them was chosen "
            "because of what was seen, this promise is void."
        )
    if has_step_items(record):
        return tell(
            "The item list with its steps, the cap on answers, the way of reading them, epsilon, "
            "delta, the mechanism and whatever else is stated here have to be chosen without "
            "looking at the data. Choosing any of them after looking voids this promise."
        )
    return tell.of(
        "The {listed}, the cap on {answers}, the way of reading them, epsilon, delta, the "
        "mechanism and whatever else is stated here have to be chosen without looking at the data. "
        "Choosing any of them after looking voids this promise."
    )


def has_step_items(record: PlainMapping) -> bool:
    """Say whether some item of a release has more than one step."""
    return any(step > 1 for step in record.get("steps", ()))
