"""Documents are read as declared types; a type that cannot be read is no fault of the document."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pytest
from typing_extensions import TypeAliasType

from discreet.saving import read_value
from discreet.schema import SchemaError, read_as

pytestmark = pytest.mark.everywhere
Number = TypeVar("Number")
Name = TypeVar("Name")
Matrix = TypeAliasType("Matrix", np.ndarray[Any, np.dtype[Number]], type_params=(Number,))
"""What NumPy's NDArray is since version 2.5, also on a Python that has no such aliases itself."""
Table = TypeAliasType("Table", Mapping[Name, Matrix[Number]], type_params=(Number, Name))
Bounds = TypeAliasType("Bounds", tuple[float, float] | None)


@pytest.mark.parametrize("kind", [Matrix[np.float64], Matrix[np.float64] | None])
def test_an_array_is_read_through_an_alias_of_its_type(kind):
    array = read_as(kind, [1.0, None, 3.0], "se")
    assert np.array_equal(array, [1.0, np.nan, 3.0], equal_nan=True)
    with pytest.raises(SchemaError, match=r"se\[0\] is 'x', not a number"):
        read_as(Matrix[np.float64], ["x"], "se")


def test_parameters_of_an_alias_go_where_it_names_them():
    table = read_as(Table[np.int64, str], {"a": [1, 2]}, "counts")
    assert table["a"].dtype == np.int64
    assert read_as(Bounds, [0.0, 1.0], "bounds") == (0.0, 1.0)
    assert read_as(Bounds, None, "bounds") is None


@dataclass(frozen=True)
class Strange:
    """A class whose field no document can hold."""

    part: Callable[[int], int]


@pytest.mark.parametrize("kind", [Callable[[int], int], set[int], Number, "Estimate"])
def test_a_type_that_cannot_be_read_is_a_defect_of_the_program(kind):
    with pytest.raises(NotImplementedError, match="part is declared as"):
        read_as(kind, [1], "part")


def test_a_saved_result_with_a_type_that_cannot_be_read_is_not_called_damaged(monkeypatch):
    monkeypatch.setattr("discreet.saving.find_saved_kind", lambda name: Strange)
    with pytest.raises(NotImplementedError, match=r"Strange\.part is declared as .*Callable"):
        read_value({"Strange": {"part": [1]}})
