"""Whether two sets of answers were read alike, so that one number means one answer.

In: readings that travel with answers and with numbers from them. Out: what they say together, or a
refusal where the two contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from discreet.coding.keys import Key
from discreet.coding.reading import Reading
from discreet.coding.values import EVERYWHERE
from discreet.errors import BadUsage

#: What must be alike in answers that were read. The number of the lowest category, and what counts
#: as right, is a matter of each file.
CODED = ("reverse", "merge", "categories", "steps")


def find_reading(calibration: object) -> Reading | None:
    """Return how the answers of a calibration were read; None where that is not known."""
    return getattr(getattr(calibration, "estimate", calibration), "reading", None)


def list_items(calibration: Any) -> tuple[str, ...]:
    """Return the items of a calibration, or of difficulties by name; none where there is none."""
    if isinstance(calibration, Mapping):
        return tuple(calibration)
    return tuple(getattr(getattr(calibration, "estimate", calibration), "items", None) or ())


def check_alike(known: Reading | None, other: Reading | None, items: Iterable[str]) -> None:
    """Refuse two sets of answers, or numbers from them, whose values were read differently."""
    if known is None or other is None:
        return
    shared = [name for name in items if name in known.asked.steps and name in other.asked.steps]
    turned = [name for name in shared if name in known.reverse]
    found = find_difference(known, other, CODED[:-1], shared)
    found = found or find_difference(known, other, CODED[-1:], turned)
    if found:
        name, item, ours, theirs = found
        raise BadUsage(
            f"the answers to item {item!r} were read with {name}={ours} for one of the two and "
            f"with {name}={theirs} for the other, so that one number means two answers. Read both "
            "alike; a file or a data frame that is given unread is read as the calibration was. If "
            "the answers are in the categories of the calibration, give its table "
            "(estimate.thresholds_to_dataframe()) instead of it"
        )


def find_difference(
    known: Reading, other: Reading, names: Sequence[str], items: Iterable[str]
) -> tuple[str, str, Any, Any] | None:
    """Return the first field and item in which two readings differ, with both values."""
    for item in items:
        for name in names:
            ours, theirs = (_find_rule(reading, name, item) for reading in (known, other))
            if ours != theirs:
                return name, item, ours, theirs
    return None


def _find_rule(reading: Reading, name: str, item: str) -> Any:
    """Return what a reading says about the values of an item, as a message shows it."""
    asked = reading.asked
    if name == "reverse":
        return "turned round" if item in asked.reverse else "not turned round"
    if name == "merge":
        merged = [*asked.merge.get(EVERYWHERE, ()), *asked.merge.get(item, ())]
        return ",".join("+".join(map(str, own)) for own in merged) or "nothing"
    if name == "steps":
        return asked.steps.get(item, asked.steps.get(EVERYWHERE))
    return reading.right.get(item) if name == "key" else getattr(reading, name)


def join_readings(readings: Sequence[Reading | None]) -> Reading | None:
    """Return what readings say together; where they differ for all items, nothing is said."""
    listed = [reading for reading in readings if reading is not None]
    if not listed or len(listed) < len(readings):
        return None
    first = listed[0].stated
    joined = {
        name: value
        for name, value in first.items()
        if all(one.stated.get(name) == value for one in listed)
    }
    asked = [one.asked for one in listed]
    steps = {name: most for one in asked[::-1] for name, most in one.steps.items()}
    merge = {name: sets for one in asked[::-1] for name, sets in one.merge.items()}
    key = {name: words for one in listed[::-1] for name, words in one.right.items()}
    turned = dict.fromkeys(name for one in asked for name in one.reverse)
    by_item = {"steps": steps, "merge": merge, "reverse": (*turned,), "key": Key(key)}
    return Reading(**{**joined, **{n: v for n, v in by_item.items() if v not in ({}, (), Key())}})
