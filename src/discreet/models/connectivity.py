"""From pair counts to the Markov chain: which items it links, and why the others are left out.

In: pair counts (exact or released; dense or sparse). Out: a status for every item and the
counts among the largest strongly connected set. Nothing here sees a person.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from discreet.counts.matrix import PairMatrix
from discreet.errors import BadUsage, DisconnectedItems, FitWarning, WarningKind
from discreet.results.estimate import Status, explain_left_out
from discreet.text import name_some
from discreet.types import FloatArray, IndexArray, Int64Array


class PairTable(Protocol):
    """What the chain needs of :class:`discreet.counts.PairCounts`, or of anything like it."""

    @property
    def items(self) -> tuple[str, ...]: ...
    @property
    def right_wrong(self) -> PairMatrix:
        """``right_wrong[i, j]``: item i right and item j wrong.

        An array or, with many items, a ``scipy.sparse.csr_array``.
        """
        ...

    @property
    def answers(self) -> Int64Array: ...
    @property
    def right(self) -> Int64Array | FloatArray: ...
    @property
    def persons(self) -> int: ...


@dataclass(frozen=True, eq=False)
class ItemFacts:
    """What an estimate says about the counts behind it; without their pairs, which are large."""

    items: tuple[str, ...]
    answers: Int64Array
    right: Int64Array
    persons: int


@dataclass(frozen=True, eq=False)
class Chain:
    """The items that the answers link, and the rates between them.

    Attributes
    ----------
    items
        All item names, in the order of the input.
    linked
        Positions of the linked items, increasing.
    rates
        Counts among the kept items, ``rates[i, j]`` from i to j: the off-diagonal part of the
        chain of the paper (its equation for M), times d. Array or CSR array of float64.
    status
        One status per item of the input.
    warnings
        One sentence for each reason why items were left out.
    """

    items: tuple[str, ...]
    linked: IndexArray
    rates: PairMatrix
    status: tuple[Status, ...]
    warnings: tuple[FitWarning, ...]

    def spread(self, values: FloatArray) -> FloatArray:
        """Put values of the kept items at their places among all items, NaN elsewhere."""
        out = np.full(len(self.items), np.nan)
        out[self.linked] = values
        return out


def build_chain(counts: PairTable, *, regularisation: float = 0.0) -> Chain:
    """Restrict the counts to the largest set of items that the answers link.

    Parameters
    ----------
    counts
        Pair counts; dense or CSR.
    regularisation
        Added to both directions of every pair that was compared at least once. Zero by
        default: a positive value pulls all difficulties together, and gives a number to items
        that everybody had right or wrong.

    Raises
    ------
    DisconnectedItems
        If no two items are linked in both directions, so that no difficulty is determined.
    """
    table = regularise(counts.right_wrong, regularisation)
    status, linked, warnings = _classify(table, counts, regularised=regularisation > 0)
    if len(linked) < 2:
        raise _refuse_disconnected(counts, status)
    rates = table if len(linked) == len(counts.items) else _restrict(table, linked)
    return Chain(counts.items, linked, _as_floats(rates), status, warnings)


def count_among(counts: PairTable, nodes: IndexArray) -> Chain:
    """Return the counts among some items, whether or not the answers link these."""
    return Chain(counts.items, nodes, _restrict(counts.right_wrong, nodes), (), ())


def classify(counts: PairTable) -> tuple[tuple[Status, ...], IndexArray, tuple[FitWarning, ...]]:
    """Return a status per item, the positions of the largest linked set, and warnings.

    Two items are linked when a path of "right where the other was wrong" leads from each to
    the other. Equally large sets are told apart by their answers, then by their order.
    """
    return _classify(counts.right_wrong, counts, regularised=False)


def is_strongly_connected(right_wrong: PairMatrix) -> bool:
    """Say whether every item can be reached from every other."""
    if right_wrong.shape[0] < 2 or _all_pairs_seen(right_wrong):
        return True
    if isinstance(right_wrong, np.ndarray):
        return bool(_linked_to(right_wrong, 0).all())
    return int(_components(right_wrong)[0]) == 1


def regularise(right_wrong: PairMatrix, amount: float) -> PairMatrix:
    """Add ``amount`` to both directions of every pair with a count in either direction."""
    if not (np.isfinite(amount) and amount >= 0):
        raise BadUsage(f"regularisation must be zero or positive, found {amount}")
    if amount == 0:
        return right_wrong
    compared = (right_wrong + right_wrong.T) > 0
    return right_wrong + compared * float(amount)


def _classify(
    right_wrong: PairMatrix, counts: PairTable, *, regularised: bool
) -> tuple[tuple[Status, ...], IndexArray, tuple[FitWarning, ...]]:
    m = len(counts.items)
    if m > 1 and _all_pairs_seen(right_wrong):
        return (Status.ESTIMATED,) * m, np.arange(m), ()
    linked, rivals = _largest_component(right_wrong, counts.answers)
    codes = find_statuses(counts, regularised=regularised)
    if len(linked) > 1:
        codes[linked] = Status.ESTIMATED
    warnings = [*explain_left_out(("difficulty", "item"), counts.items, codes, REASONS)]
    if rivals:
        warnings.append(
            FitWarning(
                WarningKind.SEVERAL_SETS,
                f"{rivals + 1} unconnected sets of items are equally large ({len(linked)} items "
                "each); the one with the most answers (then the first in item order) was "
                "estimated. Fit the others on their own, or link the sets by common items",
            )
        )
    return tuple(codes), linked if len(linked) > 1 else linked[:0], tuple(warnings)


def find_statuses(counts: PairTable, *, regularised: bool = False) -> npt.NDArray[np.object_]:
    """Say of every item why it has no number, before it is known which ones are linked."""
    codes = np.full(len(counts.items), Status.NOT_CONNECTED, dtype=object)
    if not regularised:
        codes[counts.right == counts.answers] = Status.ALWAYS_RIGHT
        codes[counts.right == 0] = Status.ALWAYS_WRONG
    codes[counts.answers == 0] = Status.NO_ANSWERS
    return codes


def find_tied(links: npt.NDArray[np.bool_], held: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Say which nodes paths lead to from the held ones, and back.

    All held nodes count as one place, because they are tied to each other.
    """
    m = len(held)
    joined = np.zeros((m + 1, m + 1), dtype=np.bool_)
    joined[:m, :m] = links
    joined[m, :m] = joined[:m, m] = held
    return np.asarray(_linked_to(joined, m)[:m])


def refuse_unlinked(items: Sequence[str], anchored: IndexArray) -> DisconnectedItems:
    """Return the refusal of items that nothing links to the anchors: it says what would."""
    names = [items[position] for position in anchored]
    return DisconnectedItems(
        f"the answers link none of the {len(items) - len(names)} other items to the "
        f"{len(names)} anchors ({name_some(names)}), so their difficulties on the scale of the "
        "anchors are not determined. An item is linked when some persons have it right and an "
        "anchor wrong and others the reverse, directly or through further items; anchor items "
        "that the same persons answered"
    )


def _largest_component(right_wrong: PairMatrix, answers: Int64Array) -> tuple[IndexArray, int]:
    """Positions of the largest strongly connected set, and how many others are as large."""
    if isinstance(right_wrong, np.ndarray) and right_wrong.size:
        # Most often one set has more than half of the items, so no other can be as large, and
        # the item with the most answers is in it: seen in a few steps, without scipy.
        linked = _linked_to(right_wrong, int(np.argmax(answers)))
        if 2 * np.count_nonzero(linked) > len(linked):
            return np.flatnonzero(linked), 0
    number, label = _components(right_wrong)
    if number == 0:
        return np.zeros(0, dtype=np.intp), 0
    size = np.bincount(label, minlength=number)
    total = np.bincount(label, weights=answers, minlength=number)
    first = np.full(number, len(label))
    np.minimum.at(first, label, np.arange(len(label)))
    best = np.lexsort((first, -total, -size))[0]
    rivals = int((size == size[best]).sum()) - 1 if size[best] > 1 else 0
    return np.flatnonzero(label == best), rivals


def _linked_to(right_wrong: npt.NDArray[Any], item: int) -> npt.NDArray[np.bool_]:
    """Which items lead to an item and can be reached from it, itself included."""
    return find_reached(right_wrong, item) & find_reached(right_wrong.T, item)


ROWS_AT_ONCE = 64


def find_reached(right_wrong: npt.NDArray[Any], item: int) -> npt.NDArray[np.bool_]:
    """Which items a path of positive counts leads to. Each item's row is read at most once."""
    reached = np.zeros(len(right_wrong), dtype=np.bool_)
    reached[item] = True
    waiting = np.array([item])
    while len(waiting) and not reached.all():
        rows, waiting = waiting[:ROWS_AT_ONCE], waiting[ROWS_AT_ONCE:]
        new = np.flatnonzero((right_wrong[rows] > 0).any(axis=0) & ~reached)
        reached[new] = True
        waiting = np.concatenate([waiting, new])
    return reached


def _components(right_wrong: PairMatrix) -> tuple[int, IndexArray]:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    if right_wrong.shape[0] == 0:
        return 0, np.zeros(0, dtype=np.intp)
    links = csr_array(right_wrong > 0)
    number, label = connected_components(links, directed=True, connection="strong")
    return int(number), label


def _all_pairs_seen(right_wrong: PairMatrix) -> bool:
    """Whether every off-diagonal count is positive; the common case, and cheap to see."""
    if not isinstance(right_wrong, np.ndarray):
        return False
    m = right_wrong.shape[0]
    positive_pairs = np.count_nonzero(right_wrong) - np.count_nonzero(right_wrong.diagonal())
    return bool(positive_pairs == m * (m - 1))


def _restrict(right_wrong: PairMatrix, linked: IndexArray) -> PairMatrix:
    if isinstance(right_wrong, np.ndarray):
        return right_wrong[np.ix_(linked, linked)]
    return right_wrong[linked][:, linked]


def _as_floats(rates: PairMatrix) -> PairMatrix:
    """Return the rates as float64; sparse ones share the positions of the counts."""
    if isinstance(rates, np.ndarray):
        return rates.astype(np.float64)
    data = rates.data.astype(np.float64)
    return type(rates)((data, rates.indices, rates.indptr), shape=rates.shape)


REASONS: dict[str, str] = {
    Status.NO_ANSWERS: "nobody answered",
    Status.ALWAYS_RIGHT: "everybody who answered had right",
    Status.ALWAYS_WRONG: "everybody who answered had wrong",
    Status.NOT_CONNECTED: "the answers do not link to the largest set of items",
}


def _refuse_disconnected(counts: PairTable, status: tuple[Status, ...]) -> DisconnectedItems:
    m = len(counts.items)
    if m < 2:
        return DisconnectedItems(
            f"found {m} item{'s' * (m != 1)}: a difficulty is relative to other items, "
            "so at least two items answered by the same persons are needed"
        )
    tally = ", ".join(
        f"{status.count(code)} {code}" for code in Status if status.count(code) and code in REASONS
    )
    return DisconnectedItems(
        f"none of the {m} items is linked to another in both directions ({tally}; "
        f"{counts.persons} persons), so no difficulty is determined. Two items are linked when "
        "some persons have the first right and the second wrong and others the reverse; "
        f"{doubt_shape(m, counts.persons)}collect more answers, or ask for regularisation"
    )


#: From so many items, and so many for each person, on a table may lie on its side. Roll calls of
#: 100 members with 520 votes do not.
MANY_ITEMS, ITEMS_PER_PERSON = 100, 10


def doubt_shape(items: int, persons: int) -> str:
    """Ask whether a table lies on its side; say nothing where it looks as tables do."""
    if items < MANY_ITEMS or items < ITEMS_PER_PERSON * persons:
        return ""
    return (
        f"{persons:,} persons and {items:,} items: is the table transposed? It must have a row for "
        "each person and a column for each item; if yours has a column for each person, read it "
        "with layout='transposed' (--layout transposed), or exchange rows and columns; "
    )


def warn_of_shape(items: tuple[str, ...], persons: int) -> tuple[FitWarning, ...]:
    """Warn where persons and items seem to have changed places."""
    doubt = doubt_shape(len(items), persons)
    return (FitWarning(WarningKind.TRANSPOSED, doubt.rstrip("; ")),) if doubt else ()
