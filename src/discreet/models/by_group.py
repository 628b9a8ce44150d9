"""Fits of groups: one calibration for each value of a column.

In: a table of answers with a column such as the month, and how to fit. Out: the calibrations by
that column's values, with one table of all of them. Rows are divided, not persons: somebody who
answers in two months takes part in both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from os import PathLike
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, cast, overload

import pyarrow as pa
import pyarrow.compute as pc

from discreet.errors import BadUsage
from discreet.results.estimate import Estimate
from discreet.tables.opener import open_table_file
from discreet.tables.paths import find_files
from discreet.tables.sources import as_arrow
from discreet.tabular import Tabular
from discreet.text import count_of

if TYPE_CHECKING:
    _Fits = Mapping[str, Estimate]
else:
    _Fits = Mapping

Options = ParamSpec("Options")


@dataclass(frozen=True, eq=False)
class FitsByGroup(Tabular, _Fits):
    """Calibrations of groups: a mapping from a group's name to its :class:`discreet.Estimate`.

    Attributes
    ----------
    by
        The column that divides the rows.
    groups
        Its values as text, in the order in which they first occur.
    estimates
        One for each group.

    Examples
    --------
    >>> import discreet
    >>> frame = discreet.datasets.lsat().to_dataframe()
    >>> frame["half"] = ["first" if int(row) % 2 else "second" for row in frame["person"]]
    >>> fits = discreet.fit(frame, by="half")
    >>> sorted(fits)
    ['first', 'second']
    """

    by: str
    groups: tuple[str, ...]
    estimates: tuple[Estimate, ...]

    def __getitem__(self, key: Any) -> Estimate:
        if str(key) not in self.groups:
            raise KeyError(f"there is no group {key!r}; there are {', '.join(self.groups)}")
        return self.estimates[self.groups.index(str(key))]

    def __iter__(self) -> Iterator[str]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def __contains__(self, key: object) -> bool:
        return str(key) in self.groups

    def __repr__(self) -> str:
        return f"<FitsByGroup: {count_of(len(self), 'group')} by {self.by}: {', '.join(self)}>"

    def describe(self) -> list[str]:
        """Return what this is, and each group's own first sentence."""
        facts = [f"{name}: {fitted!r}" for name, fitted in self.items()]
        return [f"{count_of(len(self), 'calibration')} by {self.by}", *facts]

    def to_arrow(self) -> pa.Table:
        """Return one table of all groups: the group, then the columns of an estimate."""
        tables = [
            fitted.to_arrow().add_column(0, self.by, pa.array([name] * len(fitted.items)))
            for name, fitted in self.items()
        ]
        return pa.concat_tables(tables, promote_options="permissive")

    def to_dict(self) -> dict[str, list[Any]]:
        """One list per column: the group, then those of an estimate."""
        columns: dict[str, list[Any]] = self.to_arrow().to_pydict()
        return columns


class GroupedFit(Protocol[Options]):
    """A function that fits all rows, or with ``by=`` those of each group."""

    @overload
    def __call__(self, *data: Options.args, **options: Options.kwargs) -> Estimate: ...

    @overload
    def __call__(self, data: Any, *, by: str, **options: Any) -> FitsByGroup: ...


def fits_groups(fit: Callable[Options, Estimate]) -> GroupedFit[Options]:
    """Give a function that fits answers the keyword ``by=``."""

    @wraps(fit)
    def fit_or_divide(data: Any, *, by: str | None = None, **options: Any) -> Any:
        fit_rows = partial(cast(Callable[..., Estimate], fit), **options)
        return fit_rows(data) if by is None else fit_by_group(data, by, fit_rows)

    data, *others = signature(fit).parameters.values()
    by = Parameter("by", Parameter.KEYWORD_ONLY, default=None, annotation="str | None")
    fit_or_divide.__signature__ = Signature([data, by, *others])  # type: ignore[attr-defined]
    return cast(GroupedFit[Options], fit_or_divide)


def fit_by_group(data: Any, by: str, fit: Callable[[pa.Table], Estimate]) -> FitsByGroup:
    """Fit the rows of each value of a column, which takes no further part; no value, no group."""
    table = _load_table(data)
    if by not in table.column_names:
        raise BadUsage(
            f"by= takes one column; no column {by!r} is among {', '.join(table.column_names)}"
        )
    column = pc.cast(table[by].combine_chunks(), pa.string())
    names = [name for name in column.unique().to_pylist() if name is not None]
    if not names:
        raise BadUsage(f"the column {by!r} is empty, so that there is no group to fit")
    rest = table.drop_columns([by])
    fits = [fit(rest.filter(pc.equal(column, name))) for name in names]
    return FitsByGroup(by, tuple(names), tuple(fits))


def _load_table(data: Any) -> pa.Table:
    """Return a data frame, or the files of a path, as one table in memory."""
    if not isinstance(data, str | PathLike):
        return as_arrow(data)
    parts = []
    for path in find_files(data):
        source = open_table_file(path)
        batches = source.batches(tuple(range(len(source.names))))
        parts += [pa.table(dict(zip(source.names, batch, strict=True))) for batch in batches]
    return pa.concat_tables(parts, promote_options="permissive")
