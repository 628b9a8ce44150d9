"""Release a ranking: comparisons and a budget in, strengths that may be published out.

The order is that of :mod:`discreet.publish`: public parameters, then the ledger, then the wall,
then the estimate. The spend is reserved before any noise is drawn. Nothing after the wall sees a
comparison or a count. The guarantee is for each judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Any

from discreet.bundle import describe_release, write_bundle
from discreet.comparisons.counting import count_wins
from discreet.comparisons.ranking import open_comparisons
from discreet.comparisons.strengths import Strengths
from discreet.comparisons.table import Comparisons
from discreet.errors import BadUsage
from discreet.markup import brief_repr
from discreet.privacy.accounting import Budget, Guarantee
from discreet.privacy.ledger import EVERYONE, Ledger
from discreet.privacy.mechanisms.comparisons import (
    UNIT,
    ComparedPublic,
    NetWins,
    WinPairs,
    pick_comparison_mechanism,
)
from discreet.privacy.mechanisms.people import number_people
from discreet.privacy.noise import ExactNoise, Noise
from discreet.privacy.wall import Release, release_statistics
from discreet.publish import Terms, charge_and_release
from discreet.verification import read_bundle

__all__ = [
    "MECHANISMS",
    "PublishedRanking",
    "read_released_ranking",
    "release_comparisons",
    "release_wins",
]

AUTO = "auto"
MECHANISMS: dict[str, Callable[[], NetWins | WinPairs]] = {
    "net-wins": NetWins,
    "win-pairs": WinPairs,
}
KIND = "comparisons"

release_wins = partial(release_statistics, count=count_wins)
"""The wall for comparisons: it counts wins, and is otherwise the one wall."""


@dataclass(frozen=True, eq=False)
class PublishedRanking:
    """A private ranking: what may be shown to everyone.

    Attributes
    ----------
    strengths
        Strengths, standard errors and intervals, the privacy noise included.
    guarantee
        What is promised to each judge.
    record
        The public facts of the release, as ``privacy.json`` holds them.
    noisy
        The noisy values behind the strengths; ``None`` when read back from a folder.
    """

    strengths: Strengths
    guarantee: Guarantee
    record: dict[str, Any]
    noisy: Release | None = None

    __repr__ = brief_repr

    def save(self, folder: str | PathLike[str], *, force: bool = False) -> None:
        """Write the table, the privacy record, the statement and the registry draft.

        The folder appears whole or not at all. An existing one is refused; with ``force`` an
        earlier release is replaced, if nothing else is in its folder.
        """
        write_bundle(folder, self.strengths.estimate, self.record, force=force)


def release_comparisons(
    data: Comparisons | str | PathLike[str],
    budget: Budget,
    *,
    items: Sequence[str],
    max_comparisons: int,
    judges: int | Iterable[object] | None = None,
    mechanism: str | NetWins | WinPairs = AUTO,
    ledger: Ledger | str | PathLike[str] | None = None,
    population: str = EVERYONE,
    noise: Noise | None = None,
) -> PublishedRanking:
    """Release the strengths of objects under differential privacy for each judge.

    Everything but ``data`` must be chosen without looking at the comparisons.

    Parameters
    ----------
    data
        Comparisons, or the path of a file with them. Objects that are not on the list are
        refused.
    budget
        Epsilon, delta and the neighbouring relation.
    items
        The public list of objects; the release keeps its order. Objects that nobody compared
        are fine. Never the data's own list, which names an object that only one judge saw.
    max_comparisons
        The public cap: a judge with more comparisons keeps that many, chosen at random.
    judges
        Under replace-one the public number of judges, fixed in advance, or a list of their ids; as
        ``persons`` of :func:`discreet.release`.
    mechanism
        ``"net-wins"``, ``"win-pairs"``, or one of them with settings of its own. ``"auto"`` takes
        the one with less noise for these public parameters, and ``record["choice"]`` says which.
    ledger
        Where the spend is recorded and limited; ``None`` is allowed and said in the guarantee.
    population
        Name of this data's judges, who are in no other named population of the ledger.
        "everyone" counts against every population, and every population against it.
    noise
        Where noise comes from; by default the exact sampler on secure randomness.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import Budget
    >>> from discreet.comparisons import simulate_comparisons
    >>> votes = simulate_comparisons(500, 10, 5, rng=np.random.default_rng(1)).comparisons
    >>> objects = [f"object {number}" for number in range(10)]
    >>> released = release_comparisons(
    ...     votes, Budget(epsilon=1.0), items=objects, max_comparisons=5
    ... )
    >>> released.guarantee.unit
    "one judge's whole set of comparisons"
    """
    noise = noise or ExactNoise()
    book = Ledger.open(ledger) if isinstance(ledger, (str, PathLike)) else ledger
    source = open_comparisons(data)
    public = _public_parameters(source, budget, items, max_comparisons, judges)
    chosen, choice = _choose(mechanism, public)
    terms = Terms(book, population, noise, unit=UNIT)
    released, estimate = charge_and_release(
        source, chosen, public, budget, terms, wall=release_wins
    )
    return PublishedRanking(
        strengths=Strengths(estimate),
        guarantee=released.guarantee,
        record=describe_release(released, estimate, choice, KIND),
        noisy=released,
    )


def read_released_ranking(folder: str | PathLike[str]) -> PublishedRanking:
    """Read back what :meth:`PublishedRanking.save` wrote."""
    estimate, record = read_bundle(folder, KIND)
    return PublishedRanking(Strengths(estimate), Guarantee.from_dict(record["guarantee"]), record)


def _public_parameters(
    data: Comparisons,
    budget: Budget,
    items: Sequence[str],
    max_comparisons: int,
    judges: int | Iterable[object] | None,
) -> ComparedPublic:
    if isinstance(items, str):
        raise BadUsage("items must be a list of names, found one string")
    number = number_people(data, budget, judges, "judges")
    listed = tuple(str(item) for item in items)
    return ComparedPublic(
        listed, max_comparisons, budget.neighbours, number, is_fixed=judges is not None
    )


def _choose(
    mechanism: str | NetWins | WinPairs, public: ComparedPublic
) -> tuple[NetWins | WinPairs, str]:
    """Return the mechanism, and who chose it."""
    if not isinstance(mechanism, str):
        return mechanism, f"{mechanism.name}: named by the steward"
    if mechanism == AUTO:
        return pick_comparison_mechanism(public)
    if mechanism not in MECHANISMS:
        known = ", ".join([AUTO, *MECHANISMS])
        raise BadUsage(
            f"there is no mechanism for comparisons called {mechanism!r}; choose one of: {known}"
        )
    return MECHANISMS[mechanism](), f"{mechanism}: named by the steward"
