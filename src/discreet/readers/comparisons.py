"""Comparisons of judges from tables.

In: a table with one row per comparison: judge, winner, loser; or judge, left, right, outcome. Out:
:class:`~discreet.Comparisons`. Ids are read as for answers ("007" stays "007").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.answers.comparisons import ERROR, Comparisons, pair_keys
from discreet.answers.pack import find_repeated
from discreet.choices import Kept, PlainMapping, PrivacyUnit, Ties, WinnerSide
from discreet.coding.ids import spell_ids
from discreet.coding.reading import Form, check_choice
from discreet.coding.remedies import Detected, join_detected, make_remedy
from discreet.errors import BadResponses, BadUsage
from discreet.tables.columns import check_column, choose_column, list_column_names, plain_name
from discreet.tables.ids import IdCodes, read_ids
from discreet.tables.opener import RowPlaces, Source, read_tables
from discreet.types import FloatArray, IndexArray, Int8Array, Int64Array

_ALIASES = {
    "judge": {"judge", "person", "user", "rater", "voter", "annotator", "evaluator", "subject"},
    "winner": {"winner", "preferred", "chosen", "better"},
    "loser": {"loser", "rejected", "worse"},
    "left": {"left", "first", "a", "item_a", "object_a", "model_a", "option_a"},
    "right": {"right", "second", "b", "item_b", "object_b", "model_b", "option_b"},
    "outcome": {"outcome", "result", "choice", "preference"},
}


_LEFT_WORDS = frozenset({"left", "first", "a"})


_RIGHT_WORDS = frozenset({"right", "second", "b"})


_ONE_WORDS, _ZERO_WORDS = frozenset({"1", "1.0", "true"}), frozenset({"0", "0.0", "false"})


_TIE_WORDS = frozenset({"tie", "draw", "equal", "both", "neither", "tie (bothbad)"})


_LEFT, _RIGHT, _TIE, _NONE, _UNKNOWN, _ASKED = 1, 0, -2, -1, -3, -4


class ComparisonWords(TypedDict, total=False):
    """The keywords of :func:`discreet.read_comparisons`."""

    judge: str | None
    winner: str | None
    loser: str | None
    left: str | None
    right: str | None
    outcome: str | None
    repeats: Kept
    ties: Ties
    one_means: WinnerSide | None
    covariates: str | Sequence[str] | None
    unit: PrivacyUnit
    sheet: str | None
    delimiter: str | None
    header: bool


def read_comparisons(
    path: object,
    *,
    judge: str | None = None,
    winner: str | None = None,
    loser: str | None = None,
    left: str | None = None,
    right: str | None = None,
    outcome: str | None = None,
    repeats: Kept = "error",
    ties: Ties = "error",
    one_means: WinnerSide | None = None,
    covariates: str | Sequence[str] | None = None,
    unit: PrivacyUnit = "judge",
    sheet: str | None = None,
    delimiter: str | None = None,
    header: bool = True,
) -> Comparisons:
    r"""Read comparisons from a text file, Parquet, a workbook, SPSS, Stata, SAS or a data frame.

    Parameters
    ----------
    path
        A file, a folder or a pattern; a judge may continue from one file to the next. Or a data
        frame: pandas, polars, pyarrow and others.
    judge, winner, loser
        Column names. By default they are recognised (``judge``, ``rater``, ``user``, ...;
        ``winner``, ``preferred``, ``chosen``; ``loser``, ``rejected``; with or without ``_id``).
        Without a column of judges every vote counts as a judge of its own, and results say so.
    left, right, outcome
        The other layout: two objects and which one was preferred. An outcome is ``left`` or
        ``right``, ``a`` or ``b``, 1 or 0, the name of a column or of the preferred object.
    repeats
        When a judge compared the same two objects more than once: "error", "first" or "last".
    ties
        What to do with a row whose outcome is a tie. "drop" leaves it out; "davidson" counts it by
        Davidson's model, which has the same strengths; "shrunk" counts it as half a win for each,
        as Elo's and arenas' scores do: another quantity, with smaller differences.
    one_means
        Which side won where a column of winners holds 1 (and the other one where it holds 0):
        "left" or "right". Such a column is not read without it.
    covariates
        Columns of numbers that say by how much the left object (or the winner) has more of
        something than the other: length, style. A column of ones is the advantage of the left.
    unit
        Of a release: "vote" says that no judges are known, and one vote is protected.
    sheet, delimiter, header
        As for :func:`discreet.read_responses`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "votes.csv")
    ...     _ = file.write_text("judge,winner,loser\nann,ash,elm\nbob,elm,ash\n")
    ...     read_comparisons(file)
    <Comparisons: 2 judges, 2 objects, 2 comparisons>
    """
    check_choice("repeats", repeats, get_args(Kept))
    check_choice("ties", ties, get_args(Ties))
    columns = dict(zip(_ALIASES, (judge, winner, loser, left, right, outcome), strict=True))
    form = Form(sheet, delimiter, header)
    listed = (covariates,) if isinstance(covariates, str) else tuple(covariates or ())
    rules = _Rules(columns, repeats, ties, one_means, listed)
    votes = read_tables(path, lambda s: _Table(rules).read(s), form=form)
    if unit == "vote" and votes.unit == "judge":
        raise BadUsage(
            "unit='vote' (--unit vote) is for votes without judges, and this table names them. "
            "Leave it out: then a judge's whole set of comparisons is protected"
        )
    return votes


def open_comparisons(data: object, words: PlainMapping | None = None) -> Comparisons:
    """Return comparisons, read if need be; refuse words about a table that was read already."""
    if not isinstance(data, Comparisons):
        return read_comparisons(data, **(words or {}))
    stated = sorted(words.keys() - {"unit"}) if words else []
    if stated:
        raise BadUsage(
            f"{stated[0]}= says how a table is read, and these comparisons were read already. Say "
            f"it where they are read, or votes.derive(ties=...) for ties"
        )
    return data


@dataclass(frozen=True)
class _Rules:
    """How a table is read: columns by their roles, and what happens to rows."""

    columns: Mapping[str, str | None]
    repeats: Kept
    ties: Ties
    one_means: WinnerSide | None
    covariates: tuple[str, ...]


class _Table:
    """Rows as they come in, and the comparisons that are made of them."""

    def __init__(self, rules: _Rules) -> None:
        self._rules = rules
        self._numbers: list[FloatArray] = []
        self._has_judges: bool | None = None
        self._rows = RowPlaces()
        self.judges, self.items = IdCodes(), IdCodes()
        self._outcomes: list[Int8Array] = []
        self._detected: tuple[Detected, ...] = ()

    def read(self, sources: Iterator[Source]) -> Comparisons:
        """Return the comparisons of all sources."""
        for source in sources:
            found = _find_columns(source.names, self._rules, source.name)
            columns = [number for number in found if number is not None]
            names = [source.names[number] for number in columns]
            self._note_judges(found[0] is not None, source.name)
            n_named = len(columns) - len(self._rules.covariates)
            roles = [(self.items, "object"), (self.items, "object")]
            if self._has_judges:
                roles.insert(0, (self.judges, "judge"))
            self._rows.begin(source)
            for batch in source.batches(columns):
                ids = []
                for column, name, (codes, role) in zip(batch, names, roles, strict=False):
                    ids.append(read_ids(column, name, role, self._rows))
                    codes.add(ids[-1], column.type)
                outcome = np.full(len(ids[0]), _LEFT, dtype=np.int8)
                if n_named > len(roles):
                    column, sides = batch[len(roles)], ids[-2:]
                    outcome = self._read_outcomes(column, sides, names[len(roles) - 2 :])
                self._outcomes.append(outcome)
                given = zip(batch[n_named:], names[n_named:], strict=True)
                numbers = [self._read_numbers(column, name) for column, name in given]
                self._numbers.append(np.stack([np.zeros(len(outcome)), *numbers], axis=1)[:, 1:])
                self._rows.n_rows += len(outcome)
            self._detected += source.detect(columns[:n_named], has_ids=True)
        return self.finish()

    def _note_judges(self, has_judges: bool, name: str) -> None:
        if self._has_judges not in (None, has_judges):
            raise BadResponses(
                f"{name}: the tables before it {'name no' if has_judges else 'name'} judges, and "
                f"this one {'does' if has_judges else 'does not'}. Read them on their own"
            )
        self._has_judges = has_judges

    def _read_numbers(self, column: pa.Array, name: str) -> FloatArray:
        """Return a covariate; stop at the first cell that is no number."""
        words = pc.cast(column, pa.string())
        is_number = pc.match_substring_regex(
            words, r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"
        )
        bad = np.flatnonzero(~pc.fill_null(is_number, False).to_numpy(zero_copy_only=False))
        if bad.size:
            row = int(bad[0])
            raise BadResponses(
                f"{self._rows.place(self._rows.n_rows + row)}, column '{name}': found "
                f"{words[row].as_py()!r}, which is no number, and a covariate needs one in every "
                "row. Fill it in, or remove the row"
            )
        numbers = pc.cast(pc.utf8_trim_whitespace(words), pa.float64())
        return np.asarray(numbers.to_numpy(zero_copy_only=False))

    def _read_outcomes(
        self, column: pa.Array, sides: Sequence[Any], names: Sequence[str]
    ) -> Int8Array:
        rules, words = self._rules, read_ids(column, names[-1], "group", self._rows)
        left_name, right_name, name = names[:3]
        one = {"left": _LEFT, "right": _RIGHT}.get(rules.one_means or "left", _LEFT)
        is_asked = rules.one_means is None and (
            rules.columns["winner"] == name or plain_name(name) in _ALIASES["winner"]
        )
        meaning = {plain_name(left_name): _LEFT, plain_name(right_name): _RIGHT}
        meaning |= dict.fromkeys(_LEFT_WORDS, _LEFT) | dict.fromkeys(_RIGHT_WORDS, _RIGHT)
        meaning |= dict.fromkeys(_ONE_WORDS, _ASKED if is_asked else one)
        meaning |= dict.fromkeys(_ZERO_WORDS, _ASKED if is_asked else _LEFT + _RIGHT - one)
        meaning |= dict.fromkeys(_TIE_WORDS, _TIE)
        values = words.dictionary.to_pylist()
        codes = [meaning.get(plain_name(value), _UNKNOWN) for value in values]
        index = pc.fill_null(words.indices, len(codes)).to_numpy(zero_copy_only=False)
        outcomes = np.array([*codes, _NONE], dtype=np.int8)[index]
        texts = words.cast(pa.string())
        # The object's own name first: an object may be called "a".
        for side, code in zip(reversed(sides), (_RIGHT, _LEFT), strict=True):
            same = pc.fill_null(pc.equal(texts, side.cast(pa.string())), False)
            outcomes[same.to_numpy(zero_copy_only=False)] = code
        refused = [_ASKED, _UNKNOWN, *([_TIE] if rules.ties == ERROR else [])]
        bad = np.flatnonzero(np.isin(outcomes, refused))
        if bad.size:
            place = self._rows.place(self._rows.n_rows + int(bad[0]))
            value, code = texts[int(bad[0])].as_py(), outcomes[bad[0]]
            raise _refuse_outcome(code, f"{place}, column '{name}': '{value}'", sides=names[:2])
        if rules.ties == "drop":
            outcomes[outcomes == _TIE] = _NONE
        return np.asarray(outcomes)

    def finish(self) -> Comparisons:
        """Return the comparisons."""
        if not self._rows.n_rows:
            raise BadResponses(
                "The table has column names but no rows, so there are no comparisons in it."
            )
        judges = self.judges.ids().cast("string").to_pylist() if self._has_judges else None
        items = spell_ids(self.items.ids())
        # Each batch added its left objects and then its right ones.
        is_left = np.concatenate([np.repeat((True, False), len(part)) for part in self._outcomes])
        codes = self.items.take_codes().astype(np.int64)
        left, right = codes[is_left], codes[~is_left]
        outcome, numbers = np.concatenate(self._outcomes), np.concatenate(self._numbers)
        rows = np.flatnonzero(outcome != _NONE)
        lost = outcome[rows] == _RIGHT
        winner = np.where(lost, right[rows], left[rows])
        loser = np.where(lost, left[rows], right[rows])
        # Of votes without judges every row is one, also where nobody won: a release counts them.
        judge, number = rows, len(outcome)
        if judges is not None:
            judge = self.judges.take_codes().astype(np.int64)[rows]
            self._refuse_repeated(pair_keys(judge, winner, loser, len(items)), rows, judges)
        numbers = np.where(lost[:, None], -numbers[rows], numbers[rows])
        data = Comparisons.from_codes(
            judge,
            winner,
            loser,
            items=items,
            judges=number if judges is None else judges,
            repeats=self._rules.repeats,
            tied=outcome[rows] == _TIE,
            ties=self._rules.ties,
            covariates=dict(zip(self._rules.covariates, numbers.T, strict=True)),
        )
        unit: PrivacyUnit = "vote" if judges is None else "judge"
        return data.derive(unit=unit, detected=join_detected([self._detected]))

    def _refuse_repeated(self, keys: Int64Array, rows: IndexArray, judges: Sequence[str]) -> None:
        """Refuse a judge who compared two objects twice, unless it is said which counts."""
        repeat = find_repeated(keys) if self._rules.repeats == ERROR else None
        if repeat is None:
            return
        items, m = spell_ids(self.items.ids()), len(self.items.ids())
        key = int(keys[repeat[0]])
        first, second = (self._rows.place(int(rows[one])) for one in repeat)
        raise BadResponses(
            f"Judge '{judges[key // m**2]}' compared '{items[key // m % m]}' and "
            f"'{items[key % m]}' more than once: {first} and {second}. Only one comparison of two "
            "objects can count for a judge. Remove one, or keep the first or the last with "
            "repeats='first' or repeats='last' (--repeats first, --repeats last)."
        )


def _refuse_outcome(code: int, where: str, sides: Sequence[str]) -> BadResponses:
    """Return the refusal of a value that is no outcome, or not a clear one."""
    if code == _ASKED:
        left, right = (
            make_remedy(f"If 1 means that '{one}' won, say", {"one_means": side})
            for side, one in zip(("left", "right"), sides, strict=True)
        )
        return BadResponses(
            f"{where} does not say who won: 1 may stand for the left or for the second object, and "
            f"a wrong guess turns the ranking round. {left.words}. {right.words}."
        ).offering(left, right)
    if code == _TIE:
        return BadResponses(
            f"{where} is a tie. Leave ties out with ties='drop' (--ties drop), which estimates the "
            "same strengths as Davidson's model of ties, ties='davidson'. ties='shrunk' counts a "
            "tie as half a win, which is another quantity. Say which where you publish."
        )
    return BadResponses(
        f"{where} is no outcome. It must be left or right, a or b, 1 (left) or 0 (right), or the "
        "name of the preferred object."
    )


def _find_columns(names: Sequence[str], rules: _Rules, location: str) -> list[int | None]:
    """Return the numbers of judge (None without one), winner, loser, or left, right, outcome.

    Those of the covariates stand after them.
    """
    plain = [plain_name(name) for name in names]
    candidates = {
        role: [number for number, name in enumerate(plain) if name in aliases]
        for role, aliases in _ALIASES.items()
    }
    judge, winner, loser, left, right, outcome = (
        find_role(names, role, rules.columns[role], candidates[role], location) for role in _ALIASES
    )
    if outcome is None and loser is None:
        outcome = winner  # "model_a, model_b, winner": which side won
    numbers = [winner, loser] if loser is not None else [left, right, outcome]
    chosen = [number for number in (judge, *numbers) if number is not None]
    if len(chosen) < len(numbers) + (judge is not None):
        raise BadResponses(
            f"{location}: comparisons need the columns winner and loser, or left, right and "
            f"outcome, and judge if it is known who judged; the columns are "
            f"{list_column_names(names)}. Name the ones that are called otherwise, for example "
            "winner='better_one' (--winner better_one)."
        )
    for name in rules.covariates:
        check_column(names, "covariates", name, location)
    chosen += [list(names).index(name) for name in rules.covariates]
    if len(set(chosen)) < len(chosen):
        raise BadUsage(f"{location}: one column cannot have two roles; name different columns.")
    return [judge, *chosen[judge is not None :]]


def name_roles(names: Sequence[str]) -> set[str]:
    """Return the roles that columns have by their names; single letters may be anything."""
    plain = {plain_name(name) for name in names if len(name) > 1}
    return {role for role, aliases in _ALIASES.items() if plain & aliases}


def find_role(
    names: Sequence[str], role: str, column: str | None, candidates: Sequence[int], location: str
) -> int | None:
    """Return the number of the column with a role: the stated one, or the only candidate."""
    if column is None:
        return choose_column(names, candidates, role, role, location)
    check_column(names, role, column, location)
    return list(names).index(column)
