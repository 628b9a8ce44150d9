"""What tests ask of errors: their class, code and facts, never their words."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from discreet.errors import DiscreetError


@contextmanager
def refused(kind: type[DiscreetError], code: str, **facts: Any) -> Iterator[Any]:
    """Expect an error with this code, and these among its facts.

    `code` is in src/discreet/messages.txt, where the names of facts are too.
    """
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert error.code == code, f"{error.code} {error.facts}: {error}"
    assert {name: error.facts.get(name) for name in facts} == facts
