"""What tests ask of errors: their class, code and facts, never their words."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from discreet.errors import DiscreetError

#: The folders before the name of a file, which are others on every machine.
FOLDERS = re.compile(r"(?<![\w:/.])(?:[A-Za-z]:)?[/\\](?:[^/\\\s'\"]+[/\\])+")


@contextmanager
def refused(kind: type[Exception], code: str, /, **facts: Any) -> Iterator[Any]:
    """Expect an error with this code, and these among its facts; files without their folders.

    `code` is in src/discreet/messages.txt, where the names of facts are too.
    """
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert isinstance(error, DiscreetError)
    assert error.code == code, f"{error.code} {error.facts}: {error}"
    found = {name: _cut(error.facts.get(name)) for name in facts}
    assert found == {name: _cut(fact) for name, fact in facts.items()}, f"{error.facts}"


@contextmanager
def disk_full() -> Iterator[Any]:
    """Expect the system's error of a disk without room."""
    with pytest.raises(OSError) as caught:
        yield caught
    assert caught.value.errno == errno.ENOSPC


def _cut(fact: object) -> object:
    return FOLDERS.sub("", fact) if isinstance(fact, str) else fact
