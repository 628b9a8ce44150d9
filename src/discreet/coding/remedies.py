"""Options of reading, and the remedies, decisions and questions of an inspection.

In: keywords of :func:`discreet.read_responses`, which :data:`READING_FIELDS` lists with their help
texts (it imports nothing heavy, so that commands can show their options at once). Out: values that
a message, a page or a program can show, and how somebody types them in Python and on the command
line. A message and a program that offers the remedy thus never say two things; every answer to a
question is a change of the reading.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.errors import BadResponses, Remedy

# fmt: on

#: Delimiters that are hard to type, as options name them.
DELIMITER_WORDS = {"\t": "tab", " ": "space"}
#: What joins a change with the keywords that state it.
JOINTS = (", say so with", ", say", " with", ":")
#: Options that are given once for every value; others join their values with commas.
REPEATED = ("ignore", "group", "keep", "sheet")


def make_remedy(
    before: str, options: Mapping[str, Any], after: str = "", *, asks: str = ""
) -> Remedy:
    """Return a remedy whose sentence names what it sets.

    Parameters
    ----------
    before, after
        What stands around the keywords.
    options
        The keywords.
    asks
        One more keyword, whose value only the user knows.

    Examples
    --------
    >>> remedy = make_remedy("if 9 is missing, say", {"missing": [9]})
    >>> remedy.words, remedy.label
    ('if 9 is missing, say missing=[9] (--missing 9)', '9 is missing')
    """
    python, command = spell_python(options), spell_command(options)
    if asks:
        python, command = [*python, f"{asks}=SCORE"], [*command, _flag(asks), "SCORE"]
    words = f"{before} {', '.join(python)} ({' '.join(command)}){after}"
    joint = next((one for one in JOINTS if before.endswith(one)), "")
    return Remedy(words, dict(options), asks, before.removesuffix(joint))


def spell_python(options: Mapping[str, Any]) -> list[str]:
    """Return keywords as they are typed in Python."""
    return [f"{name}={_python_value(name, value)}" for name, value in options.items()]


def _python_value(name: str, value: Any) -> str:
    if isinstance(value, list):
        return f"[{','.join(_python_value(name, element) for element in value)}]"
    # Columns are shown as messages show them.
    return f"'{value}'" if isinstance(value, str) and name != "missing" else repr(value)


def spell_command(options: Mapping[str, Any]) -> list[str]:
    """Return keywords as words of a command line.

    Examples
    --------
    >>> spell_command({"ignore": ["my notes"], "missing": [98, 99], "header": False})
    ['--ignore', "'my notes'", '--missing', '98,99', '--no-header']
    """
    return [word for name, value in options.items() for word in _command_words(name, value)]


def _command_words(name: str, value: Any) -> list[str]:
    if isinstance(value, bool) or value is None:
        return [] if value in (True, None) else [f"--no-{name}"]
    if isinstance(value, Mapping):
        pairs = [shlex.quote(f"{item}:{each}") for item, each in value.items()]
        if name == "merge":
            return [word for pair in pairs for word in ("--merge", pair)]
        return [_flag(name), ",".join(pairs)]
    if name == "delimiter":
        value = DELIMITER_WORDS.get(value, value)
    if name == "categories":
        joined = [
            ("|" if any("," in text for text in texts) else ",").join(texts) for texts in value
        ]
        return [word for texts in joined for word in ("--categories", shlex.quote(texts))]
    elements = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if name in REPEATED:
        return [word for element in elements for word in (_flag(name), shlex.quote(str(element)))]
    words = [f"{one:g}" if isinstance(one, float) else str(one) for one in elements]
    return [_flag(name), shlex.quote(",".join(words))]


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


@dataclass(frozen=True)
class Detected:
    """One parameter that was detected in the data.

    Attributes
    ----------
    option
        The keyword that states it, or what it is called where no keyword does.
    sentence
        What was detected, and where.
    remedy
        What to state or do instead.
    """

    option: str
    sentence: str
    remedy: Remedy


def join_detected(parts: Iterable[Sequence[Detected]]) -> tuple[Detected, ...]:
    """Return what was detected in any of several tables, each once."""
    joined: list[Detected] = []
    for detection in (detection for part in parts for detection in part):
        if detection not in joined:
            joined.append(detection)
    return tuple(joined)


def refuse_detected(detected: Sequence[Detected], *, is_counted: bool = False) -> None:
    """Refuse to release answers whose reading was detected in the data.

    ``is_counted`` says that rows need not tell how many persons there are.
    """
    unstated = [entry for entry in detected if not (is_counted and entry.option == "persons")]
    if unstated:
        advice = " ".join(f"{entry.sentence} {join_remedies([entry.remedy])}" for entry in unstated)
        raise BadResponses(
            "A release reads answers by stated rules, and here the data decided how they were "
            "read. One person's rows could change that, and with it everybody's answers. "
            f"{advice}"
        ).offering(*(entry.remedy for entry in unstated))


def join_remedies(remedies: Iterable[Remedy]) -> str:
    """Return the sentences of remedies."""
    return " ".join(f"{capitalise(remedy.words)}." for remedy in remedies)


def capitalise(words: str) -> str:
    """Return a sentence with a capital at its beginning."""
    return f"{words[0].upper()}{words[1:]}"


# -- what an inspection says -------------------------------------------------------------------
