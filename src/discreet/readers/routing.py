"""Tables of the modules and the routing rules of a multistage test.

In: one table with a row for each module of each path, and one with a row for each item of a module.
Out: a :class:`~discreet.RoutingDesign`.
"""

from __future__ import annotations

from typing import Any

from discreet.answers.routed import RoutingDesign, Stage
from discreet.checking import checked
from discreet.choices import Skipped
from discreet.errors import BadUsage
from discreet.tables.opener import read_columns

#: Columns of the lowest and the highest score: of the module, and of all modules so far.
OF_MODULE, SO_FAR = ("from", "to"), ("total_from", "total_to")


@checked
def read_routing(rules: object, modules: object, *, skipped: Skipped = "refuse") -> RoutingDesign:
    """Read the modules and the routing rules of a multistage test from two tables.

    Parameters
    ----------
    rules
        A row for each module of each path, in the order of the test: path, module, from, to. These
        are the lowest and the highest score on the module of who took this path; with the columns
        total_from and total_to instead, on all modules so far.
    modules
        A row for each item of a module: module, item.
    skipped
        What a missing answer in a module that decided the path was: ``"wrong"`` or ``"refuse"``.

    Examples
    --------
    >>> import pyarrow as pa
    >>> path, module = ["low", "low", "high", "high"], ["first", "easy", "first", "hard"]
    >>> rules = {"path": path, "module": module, "from": [0, 0, 1, 0], "to": [0, 2, 2, 2]}
    >>> items = {"module": ["first"] * 2 + ["easy"] * 2 + ["hard"] * 2, "item": list("abcdef")}
    >>> design = read_routing(pa.table(rules), pa.table(items))
    >>> design.paths["high"]
    [('first', 1, 2), ('hard', 0, 2)]
    """
    items: dict[str, list[str]] = {}
    for module, item in zip(*read_columns(modules, ("module", "item"), "modules"), strict=True):
        items.setdefault(str(module), []).append(str(item))
    columns, cumulated = _read_rules(rules)
    paths: dict[str, list[Stage]] = {}
    for path, module, *ends in zip(*columns, strict=True):
        low, high = (_read_score(end, str(path)) for end in ends)
        paths.setdefault(str(path), []).append((str(module), low, high))
    return RoutingDesign(items, paths, cumulated, skipped)


def _read_rules(rules: object) -> tuple[list[list[Any]], bool]:
    """Return the columns of the rules, and whether their scores are those of all modules so far."""
    names = "path", "module"
    try:
        return read_columns(rules, (*names, *OF_MODULE), "routing rules"), False
    except BadUsage as refusal:
        try:
            return read_columns(rules, (*names, *SO_FAR), "routing rules"), True
        except BadUsage:
            raise refusal from None


def _read_score(cell: object, path: str) -> int:
    try:
        return int(str(cell))
    except ValueError:
        raise BadUsage(
            f"path {path!r} has {cell!r} as lowest or highest score; scores are whole numbers"
        ) from None
