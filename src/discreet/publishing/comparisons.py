"""Release a ranking: comparisons and a budget in, strengths that may be published out.

The order is that of :mod:`discreet.publishing.release`: public parameters, ledger, wall,
estimate. The spend is reserved before any noise is drawn. Nothing after the wall sees a
comparison or a count. The guarantee is for each judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from discreet.answers.judges import Comparisons
from discreet.answers.wins import count_wins
from discreet.errors import BadUsage
from discreet.markup import brief_repr
from discreet.models.compared import open_comparisons
from discreet.privacy.accounting.budget import Budget, Guarantee
from discreet.privacy.ledger.book import Ledger
from discreet.privacy.ledger.history import EVERYONE
from discreet.privacy.mechanisms.comparisons import (
    UNIT,
    ComparedPublic,
    NetWins,
    WinPairs,
    pick_comparison_mechanism,
)
from discreet.privacy.noise.backends import ExactNoise, Noise
from discreet.privacy.orders import Order
from discreet.privacy.protocol import number_people
from discreet.privacy.wall import Release, release_statistics
from discreet.publishing.delivery import write_stored
from discreet.publishing.release import Terms, charge_and_release
from discreet.publishing.verification import read_bundle
from discreet.results.estimate import Estimate
from discreet.results.strengths import Strengths

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
    stored
        Where they wait on disk until the bundle is written; ``None`` without a ledger.
    """

    strengths: Strengths
    guarantee: Guarantee
    record: dict[str, Any]
    noisy: Release | None = None
    stored: Path | None = None

    __repr__ = brief_repr

    def save(self, folder: str | PathLike[str], *, force: bool = False) -> None:
        """Write the table, the privacy record, the statement and the registry draft.

        The folder appears whole or not at all. An existing one is refused; with ``force`` an
        earlier release is replaced, if nothing else is in its folder.
        """
        estimate = self.strengths.estimate
        write_stored(folder, estimate, self.record, self.stored, force=force)


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
    out: str | PathLike[str] | None = None,
    force: bool = False,
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
    out, force
        Where to write the bundle at once, as :meth:`PublishedRanking.save` does. The place is
        tried and held, with room for the bundle, before the ledger is charged.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import Budget
    >>> from discreet.answers.judges import simulate_comparisons
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
    calibration = chosen.calibrate(public, budget, noise.source)
    order = Order(KIND, chosen.name, chosen, public, calibration, choice, unit=UNIT)
    terms = Terms(book, population, noise, out, force=force)
    return charge_and_release(source, order, terms, make=make_ranking, wall=release_wins)


def make_ranking(
    estimate: Estimate, record: dict[str, Any], released: Release, stored: Path | None
) -> PublishedRanking:
    """Put a release of comparisons together."""
    return PublishedRanking(
        Strengths(estimate), released.guarantee, record, noisy=released, stored=stored
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
