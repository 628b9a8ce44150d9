"""How a request says that its file will be read: part of what approvers sign.

In: keywords of readers, of answers or of comparisons. Out: the same as plain values, checked, those
that change nothing left out. A key goes in as right answers and not as the name of a file, whose
content could be another by the time of the release.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from discreet.answers.read_judges import read_comparisons
from discreet.errors import BadUsage
from discreet.privacy.ledger.request import pack, unpack
from discreet.publishing.listing import Listing
from discreet.tables.key import Key, make_key
from discreet.tables.roles import make_reading

Words = Mapping[str, Any]

_DEFAULTS = {
    kind: {
        name: one.default
        for name, one in inspect.signature(reader).parameters.items()
        if one.default is not inspect.Parameter.empty
    }
    for kind, reader in (("answers", make_reading), ("comparisons", read_comparisons))
}
"""What every keyword is where nobody says it."""


def pack_reading(kind: str, words: Words, listing: Listing) -> dict[str, Any]:
    """Return the keywords as they stand in a request."""
    _check_names(kind, words)
    told = {name: one for name, one in words.items() if not _is_default(kind, name, one)}
    if kind == "answers":
        plan = listing.read(make_reading(**told))
        told |= {"missing": plan.codes} if "missing" in told else {}
        told |= {"key": vars(make_key(told["key"]))} if "key" in told else {}
    return dict(pack(told))


def unpack_reading(body: Words) -> dict[str, Any]:
    """Return the keywords of a request, for the reader of its kind."""
    kind, words = body["kind"], unpack(body["reading"])
    _check_names(kind, words)
    if "key" in words:
        words["key"] = _read_key(words["key"])
    return dict(words)


def _check_names(kind: str, words: Words) -> None:
    for name in words:
        if name not in _DEFAULTS[kind]:
            raise BadUsage(f"a request for {kind} does not say how they are read with {name!r}")


def _is_default(kind: str, name: str, value: Any) -> bool:
    return value is None or value == _DEFAULTS[kind][name] or (value in ("", [], {}, ()))


def _read_key(given: Any) -> Key:
    """Return a key that a request holds; words come back as the tuples that they were."""
    try:
        by_item = {str(item): tuple(map(str, words)) for item, words in given["by_item"].items()}
        return Key(by_item, tuple(tuple(map(str, words)) for words in given["in_order"]))
    except (AttributeError, KeyError, TypeError):
        raise BadUsage("the request holds no key of right answers") from None
