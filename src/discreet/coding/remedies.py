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
from typing import Any, Literal, NamedTuple

from discreet.errors import BadResponses, Remedy

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


# fmt: off
#: The fields that a user states, in order, with what is said about each.
READING_FIELDS: Mapping[str, Declared] = {
    "layout": Declared("names", "", "long: one answer per row. wide: one column per item. "
                       "transposed: one row per item. Default: detected from the column names."),
    "person": Declared("names", "COL", "Column with the person ids."),
    "item": Declared("names", "COL", "Long tables: column with the item ids."),
    "response": Declared("names", "COL", "Long tables: column with the answers."),
    "ignore": Declared("fixed", "COL", "Wide tables: a column that is not an item (may be "
                       "repeated)."),
    "group": Declared("fixed", "COL", "A column that groups persons (may be repeated)."),
    "repeats": Declared("fixed", "", "If a person answered an item, or a judge compared a pair, "
                        "more than once: stop, or which one counts."),
    "one_means": Declared("fixed", "", "What a 1 stands for."),
    "at_least": Declared("fixed", "SCORE", "Scores of at least SCORE are right, others wrong."),
    "missing": Declared("data", "CODES", "Codes for a missing answer, such as 9,99; of one column: "
                        "Q1:9."),
    "key": Declared("data", "KEY", "The right answers: a table with item and answer, or letters: "
                    "ABDC."),
    "sheet": Declared("fixed", "NAME", "Workbooks: the sheet. Default: the only one with data. "
                      "Several sheets are joined (may be repeated)."),
    "delimiter": Declared("data", "SIGN", "Text files: field separator, also tab or space. "
                          "Default: detected."),
    "header": Declared("data", "", "The file has no row of names: columns are called 1, 2, ..."),
    "skip_rows": Declared("data", "N", "Rows above the row of names that are left out."),
    "drop_rows": Declared("data", "ROWS", "Rows to leave out: their label (Total), their number "
                          "below the names, or the words blank and short: Total,3,blank.",
                          release=False),
    "key_row": Declared("data", "ROW", "The row that holds the right answers: its label or its "
                        "number below the names.", release=False),
    "keep": Declared("fixed", "COL", "Wide tables: a column that is an item although it does not "
                     "look like one (may be repeated).", release=False),
    "order_by": Declared("fixed", "COL", "With --repeats: the column that says which answer is "
                         "first or last."),
    "model": Declared("fixed", "", "rasch: right and wrong. partial-credit, rating-scale: answers "
                      "with steps. Default: detected from the answers.", release=False),
    "steps": Declared("data", "N", "Steps of all items, where more than occur: 4; of one item: "
                      "Q1:4.", release=False),
    "lowest": Declared("data", "N", "The lowest category. Default: 0, or 1 where no 0 occurs.",
                       release=False),
    "reverse": Declared("fixed", "ITEMS", "Items with a reversed scale: Q2,Q5."),
    "categories": Declared("data", "TEXTS", "Texts that are categories, from the lowest to the "
                           "highest: 'never,sometimes,always' (may be repeated).", release=False),
    "invalid": Declared("fixed", "", "Values that are not answers: stop, or read them as missing."),
    "filter": Declared("fixed", "NAME", "Logs of the Evaluation Harness: the filter that counts."),
    "merge": Declared("fixed", "ITEM:A+B", "Categories that count as one, of one item or of all, "
                      "*:2+3 (may be repeated).", release=False),
}
# fmt: on

#: Delimiters that are hard to type, as options name them.
DELIMITER_WORDS = {"\t": "tab", " ": "space"}
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
    >>> make_remedy("if 9 is missing, say", {"missing": [9]}).words
    'if 9 is missing, say missing=[9] (--missing 9)'
    """
    python, command = spell_python(options), spell_command(options)
    if asks:
        python, command = [*python, f"{asks}=SCORE"], [*command, _flag(asks), "SCORE"]
    words = f"{before} {', '.join(python)} ({' '.join(command)}){after}"
    return Remedy(words, dict(options), asks)


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
