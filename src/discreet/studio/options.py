"""How a file is to be read: changed by a remedy, by a column's role, by a click or by a form.

In: keywords of :func:`discreet.read_responses` and a change. Out: new keywords. Nothing is said
that the reader finds out by itself, so that the command line which does the same stays short.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.errors import Remedy
from discreet.studio.forms import Field, read_list, read_number, write_list, write_number
from discreet.studio.look import ANSWER, GROUP, ITEM, ITEMS, LEFT_OUT, PERSON, Look

LISTS = ("ignore", "group", "missing")
"""Keywords that hold several values."""

ROLES = {
    False: (ITEM, PERSON, GROUP, LEFT_OUT),
    True: (PERSON, ITEMS, ANSWER, GROUP, LEFT_OUT),
}
"""What a column may be, of wide and of long tables."""

_NAMED = {PERSON: "person", ITEMS: "item", ANSWER: "response"}

FIELDS = (
    Field(
        "missing",
        "Codes for a missing answer",
        "What was entered where somebody did not answer, such as 9 or 98,99. Blank cells, NA and "
        "a point count as missing anyway.",
        read=read_list,
        write=write_list,
    ),
    Field(
        "key",
        "Answer key",
        "Where the table holds what was ticked: the right answers in the order of the columns, "
        "such as BADC. Or choose them one by one in the list of columns.",
    ),
    Field(
        "at_least",
        "Right from this score on",
        "Where the table holds points and you want right and wrong: the lowest score that counts "
        "as right.",
        read=read_number,
        write=write_number,
    ),
    Field(
        "reverse",
        "Items that are turned round",
        "Items of a questionnaire in which a high number means the opposite, parted by commas: "
        "Q2,Q5.",
        read=read_list,
        write=write_list,
    ),
    Field(
        "model",
        "What the answers are",
        "Right or wrong, or steps: points, or a scale from never to always. Say it only if the "
        "program takes them for something else.",
        {
            "": "find out",
            "rasch": "right and wrong",
            "partial-credit": "steps, each item with its own (partial credit)",
            "rating-scale": "steps, the same for all items (rating scale)",
        },
    ),
    Field(
        "one_means",
        "What a 1 stands for",
        "Some tables mark mistakes with a 1.",
        {"": "a right answer", "wrong": "a mistake"},
    ),
    Field(
        "layout",
        "How the table is laid out",
        "Wide: one row for each person, one column for each item. Long: one row for each answer.",
        {"": "find out", "wide": "wide", "long": "long"},
    ),
    Field(
        "repeats",
        "If somebody answered an item twice",
        "Only one answer can count.",
        {"": "stop and say so", "first": "the first counts", "last": "the last counts"},
    ),
    Field("sheet", "Sheet of the workbook", "Its name, where several sheets hold data."),
    Field(
        "delimiter",
        "What parts the fields",
        "Text files: the sign between two cells, also tab or space. Blank: find out.",
    ),
    Field(
        "header",
        "First row",
        "Whether the first row holds the names of the columns.",
        {"": "holds names", "no": "holds answers already"},
        read=lambda text: text != "no",
        write=lambda value: "" if value else "no",
    ),
)
"""What can be said about a table beyond the roles of its columns."""


def apply_remedy(options: Mapping[str, Any], remedy: Remedy, reply: str = "") -> dict[str, Any]:
    """Return the options with what a remedy sets, and with what the user said to it."""
    changed = dict(options)
    for name, value in remedy.options.items():
        if name in LISTS:
            changed[name] = _extend(changed.get(name), value)
        elif isinstance(value, Mapping):
            changed[name] = {**changed.get(name, {}), **value}
        else:
            changed[name] = value
    if remedy.asks == "at_least" and reply.strip():
        changed["at_least"] = read_number(reply.strip())
    return _tidy(changed)


def _extend(setting: Any, more: Any) -> list[Any]:
    before = setting if isinstance(setting, list) else [] if setting is None else [setting]
    new = more if isinstance(more, list) else [more]
    texts = {str(entry) for entry in before}
    return [*before, *(entry for entry in new if str(entry) not in texts)]


def toggle_missing(options: Mapping[str, Any], code: str) -> dict[str, Any]:
    """Name a value missing, or no longer."""
    before = [str(one) for one in options.get("missing", [])]
    left = [one for one in before if one != code]
    return _tidy({**options, "missing": left if code in before else [*before, code]})


def change_roles(
    options: Mapping[str, Any], look: Look, roles: Mapping[str, str]
) -> dict[str, Any]:
    """Return the options with the columns that were given another role than was understood."""
    changed = dict(options)
    for column in look.columns:
        role = roles.get(column.name, column.role)
        if role != column.role and role in ROLES[look.is_long]:
            changed = _give_role(changed, column.name, role)
    return _tidy(changed)


def _give_role(options: Mapping[str, Any], name: str, role: str) -> dict[str, Any]:
    """Take a column out of every list, and put it where it belongs."""
    changed = dict(options)
    for option in ("ignore", "group"):
        changed[option] = [column for column in changed.get(option, []) if column != name]
    for option in _NAMED.values():
        if changed.get(option) == name:
            del changed[option]
    if role in _NAMED:
        changed[_NAMED[role]] = name
    elif role == GROUP:
        changed["group"] = [*changed["group"], name]
    elif role == LEFT_OUT:
        changed["ignore"] = [*changed["ignore"], name]
    return changed


def choose_key(options: Mapping[str, Any], look: Look, words: Mapping[str, str]) -> dict[str, Any]:
    """Return the options with the right answers that were chosen, in the order of the columns."""
    before = options.get("key")
    earlier_key = before if isinstance(before, Mapping) else {}
    items = [column.name for column in look.columns if column.role == ITEM]
    chosen = {name: words.get(name) or earlier_key.get(name) for name in items}
    return _tidy({**options, "key": {name: word for name, word in chosen.items() if word}})


def _tidy(options: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what says nothing; a column that is the person is no group and not left out."""
    role_columns = {options.get(one) for one in _NAMED.values()}
    tidy = {}
    for name, value in options.items():
        if name in ("ignore", "group"):
            value = [one for one in _extend(None, value) if one not in role_columns]
        if value not in ([], {}, "", None):
            tidy[name] = value
    return tidy
