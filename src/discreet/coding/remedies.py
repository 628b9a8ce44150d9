"""Remedies, and the questions of an inspection whose answers they are.

In: keywords of :func:`discreet.read_responses`. Out: values that
a message, a page or a program can show, and how somebody types them in Python and on the command
line. A message and a program that offers the remedy thus never say two things; every answer to a
question is a change of the reading.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.choices import PlainMapping
from discreet.errors import BadResponses, Remedy, escape_controls

#: Delimiters that are hard to type, as options name them.
DELIMITER_WORDS = {"\t": "tab", " ": "space"}
#: What joins a change with the keywords that state it.
JOINTS = (", say so with", ", say", " with", ":")
#: Options that are given once for every value; others join their values with commas.
REPEATED = ("ignore", "group", "keep", "sheet")


def make_remedy(before: str, options: PlainMapping, after: str = "", *, asks: str = "") -> Remedy:
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


def spell_python(options: PlainMapping) -> list[str]:
    """Return keywords as they are typed in Python."""
    return [f"{name}={_python_value(name, value)}" for name, value in options.items()]


def _python_value(name: str, value: object) -> str:
    if isinstance(value, list):
        return f"[{','.join(_python_value(name, element) for element in value)}]"
    # Columns are shown as messages show them.
    return f"'{value}'" if isinstance(value, str) and name != "missing" else repr(value)


def spell_command(options: PlainMapping) -> list[str]:
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

#: Fields that say what a column is.
ROLE_FIELDS = {"ignore", "group", "keep"}
#: Fields that hold several values: an answer adds to them.
LISTS = ("ignore", "group", "missing", "drop_rows", "keep", "reverse")


@dataclass(frozen=True)
class TableFinding:
    """Something that is unclear or looks wrong, and what may be done about it.

    Attributes
    ----------
    field
        The field of the reading that it is about.
    question
        In plain words.
    answers
        What may be answered. ``options`` of each is the change of the reading; ``asks`` names a
        field whose value only the user knows.
    cells
        Where: columns, rows or cells, as a person would look for them.
    is_open
        Whether the user has to answer. Otherwise the proposed answer is taken and can be undone.
    marked
        The number of the answer that the evidence is for, which is proposed; None where nothing
        speaks for one of them, and reading stops there.
    """

    field: str
    question: str
    answers: tuple[Remedy, ...] = ()
    cells: tuple[str, ...] = ()
    is_open: bool = True
    marked: int | None = 0

    @property
    def proposed(self) -> PlainMapping:
        """What is proposed: the change of the reading of the marked answer, if there is one."""
        return self.answers[self.marked].options if self.answers and self.marked is not None else {}

    @property
    def asks(self) -> str:
        """The field that only the user knows, where the first answer asks for one."""
        return self.answers[0].asks if self.answers else ""

    def is_settled(self, options: PlainMapping) -> bool:
        """Say whether what is stated answers the question."""
        columns = {one for name in ROLE_FIELDS for one in list_values(options.get(name))}
        is_about_columns = self.field in ROLE_FIELDS and {*self.cells} <= columns
        return is_about_columns or (self.field in options and self.field not in LISTS)


def list_values(value: Any) -> list[Any]:
    """Return one value or several as a list."""
    return [] if value is None else [value] if isinstance(value, str | int) else list(value)


def refuse_questions(
    name: str, questions: Sequence[TableFinding], command: str = ""
) -> BadResponses:
    """Return an error with all questions about a table, and the one command that answers them."""
    listed = [f"({n}) {one.question}" for n, one in enumerate(questions, start=1)]
    count = "one thing is" if len(listed) == 1 else f"{len(listed)} things are"
    error = BadResponses(f"{name}: {count} not clear. {' '.join(listed)}")
    for number, finding in enumerate(questions, start=1):
        answers = "; ".join(remedy.words for remedy in finding.answers)
        error.add_note(escape_controls(f"({number}) {answers}."))
    if command:
        error.add_note(escape_controls(f"To take the proposed answers: {command}"))
    return error.offering(*(remedy for one in questions for remedy in one.answers))
