"""Requests as approvers read them: every field that is signed, in lines that mislead nobody.

In: a request. Out: the lines of each field, or a refusal where they cannot show all of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from discreet.choices import PlainMapping
from discreet.errors import BadUsage
from discreet.privacy.ledger.request import Request, list_request_fields

_PLAIN = re.compile(r"[\w.-]+")


def describe_request(request: Request) -> dict[str, list[str]]:
    """Return the lines of every field of a request, or refuse what they cannot show completely."""
    try:
        fields = {name: _show_field(name, request.body) for name in list_request_fields(request)}
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise BadUsage(
            f"This request cannot be shown completely ({error}), so nobody may sign it. Ask for a "
            "new one, written by 'discreet steward propose'."
        ) from None
    return {**{name: lines for name, lines in fields.items() if lines}, "sha256": [request.digest]}


def _count_steps(steps: object) -> str:
    if isinstance(steps, bool) or not isinstance(steps, int):
        raise TypeError(f"{steps!r} is no number of steps")
    return "" if steps == 1 else f" ({steps} steps)"


def _show_field(name: str, body: PlainMapping) -> list[str]:
    """Return a field of a request as lines; none where it is empty, or part of another."""
    value = body[name]
    if name in ("format", "steps"):
        return []
    if name == "items":  # with their steps, in one line
        pairs = zip(value, body["steps"], strict=True)
        names = [_quote(item) + _count_steps(steps) for item, steps in pairs]
        return [f"{', '.join(names)}; {len(names)} in all"]
    if name == "forms":
        return [", ".join(map(_quote, form)) for form in value]
    if name == "reading":
        return [f"{_quote(word)}: {_show_inside(one)}" for word, one in value.items()]
    if name == "about":
        audit = value.get("audit", {}).items()
        told = [f"audit {_quote(word)}: {_show_inside(one)}" for word, one in audit]
        return [*_list_texts(value.get("identity", {})), *told]
    return ["counted in the data" if value is None else str(value)]


def _list_texts(texts: PlainMapping) -> list[str]:
    """Return lines for what a release says about itself; those that continue a text have a bar."""
    lines = []
    for name, value in texts.items():
        text = value if isinstance(value, str) else _show_inside(value)
        first, *continuation = text.split("\n")
        lines += [f"{_quote(name)}: {first}", *(f"| {line}" for line in continuation)]
    return lines


def _show_inside(value: object) -> str:
    """Return any value in one line: a text in quotes, so that it is taken for nothing else."""
    if isinstance(value, Mapping):
        if value.keys() == {"decimal"}:
            return str(value["decimal"])
        held = [f"{_quote(name)}: {_show_inside(one)}" for name, one in value.items()]
        return f"{{{', '.join(held)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_show_inside, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _quote(name: object) -> str:
    """Return a name of a list; in quotes where it could be taken for more than one name.

    Examples
    --------
    >>> _quote("Item 1"), _quote("a, b"), _quote("a (4 steps)")
    ('Item 1', '"a, b"', '"a (4 steps)"')
    """
    if not isinstance(name, str):
        raise TypeError(f"{name!r} is no name")
    is_plain = all(_PLAIN.fullmatch(word) for word in name.split(" "))
    return name if is_plain else json.dumps(name, ensure_ascii=False)
