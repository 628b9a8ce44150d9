"""Options of reading, with their help texts, which stand in ``options.txt``.

It imports nothing heavy, so that commands can show their options at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, cast

Origin = Literal["fixed", "names", "data"]


class Declared(NamedTuple):
    """What is said about one field of a reading.

    Attributes
    ----------
    unstated
        Where its value comes from if nobody states it. ``"fixed"``: the default, for every table.
        ``"names"``: the names of the columns, which are public. ``"data"``: values or labels of
        the file; if they ask for something else than the default, a release needs the field stated.
    metavar
        What the command line calls its value; empty for a choice or a switch.
    about
        The help text of the command line.
    release
        Whether a release takes it.
    """

    unstated: Origin
    metavar: str
    about: str
    release: bool = True


def _read_fields() -> Iterator[tuple[str, Declared]]:
    for line in Path(__file__).with_name("options.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            words, _, about = line.partition(" | ")
            name, unstated, *others = words.split()
            metavar = "".join(word for word in others if word != "fit")
            yield name, Declared(cast("Origin", unstated), metavar, about, "fit" not in others)


#: The fields that a user states, in order, with what is said about each.
READING_FIELDS: Mapping[str, Declared] = dict(_read_fields())
