"""Release a ranking: comparisons and a budget in, strengths that may be published out.

The order is that of :mod:`discreet.publish`: public parameters, then the ledger, then the wall,
then the estimate. The spend is reserved before any noise is drawn. Nothing after the wall sees a
comparison or a count. The guarantee is for each judge.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from discreet.bundle import describe_release, table_text, write_folder
from discreet.chain import Status
from discreet.comparisons.counting import count_wins
from discreet.comparisons.ranking import open_comparisons
from discreet.comparisons.strengths import Strengths
from discreet.comparisons.table import Comparisons
from discreet.errors import BadUsage
from discreet.estimate import Estimate, Solution
from discreet.formats.registry import write_registry_entry
from discreet.privacy.accounting import Budget, Guarantee, Neighbours
from discreet.privacy.ledger import EVERYONE, Ledger
from discreet.privacy.mechanisms.comparisons import (
    UNIT,
    ComparedPublic,
    NetWins,
    WinPairs,
    pick_comparison_mechanism,
)
from discreet.privacy.noise import ExactNoise, Noise
from discreet.privacy.wall import Release, release_statistics
from discreet.publish import Terms, charge_and_release
from discreet.report.statement import write_statement

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
COLUMNS = ("item", "strength", "se", "lower", "upper", "status")

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

    def save(self, folder: str | PathLike[str], *, force: bool = False) -> None:
        """Write the table, the privacy record, the statement and the registry draft.

        The folder appears whole or not at all. An existing one is refused, or with ``force``
        replaced.
        """
        texts = {
            "strengths.csv": table_text(self.strengths.to_dict(), COLUMNS),
            "privacy.json": json.dumps(self.record, indent=2, ensure_ascii=False) + "\n",
            "statement.md": write_statement(self.record),
            "registry.yaml": write_registry_entry(self.record),
        }
        write_folder(folder, texts, force=force)


def release_comparisons(
    data: Comparisons | str | PathLike[str],
    budget: Budget,
    *,
    items: Sequence[str],
    max_comparisons: int,
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
        are fine.
    max_comparisons
        The public cap: a judge with more comparisons keeps that many, chosen at random.
    mechanism
        ``"net-wins"``, ``"win-pairs"``, or one of them with settings of its own. ``"auto"`` takes
        the one with less noise for these public parameters, and ``record["choice"]`` says which.
    ledger
        Where the spend is recorded and limited; ``None`` is allowed and said in the guarantee.
    population
        Name of this data's judges, who are in no other population of the ledger.
    noise
        Where noise comes from; by default the exact sampler on secure randomness.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import Budget
    >>> from discreet.comparisons import simulate_comparisons
    >>> votes = simulate_comparisons(500, 10, 5, rng=np.random.default_rng(1)).comparisons
    >>> released = release_comparisons(
    ...     votes, Budget(epsilon=1.0), items=votes.items, max_comparisons=5
    ... )
    >>> released.guarantee.unit
    "one judge's whole set of comparisons"
    """
    noise = noise or ExactNoise()
    book = Ledger.open(ledger) if isinstance(ledger, (str, PathLike)) else ledger
    source = open_comparisons(data)
    public = _public_parameters(source, budget, items, max_comparisons)
    chosen, choice = _choose(mechanism, public)
    terms = Terms(book, population, noise, unit=UNIT)
    released, estimate = charge_and_release(
        source, chosen, public, budget, terms, wall=release_wins
    )
    return PublishedRanking(
        strengths=Strengths(estimate),
        guarantee=released.guarantee,
        record=_describe(released, estimate, choice),
        noisy=released,
    )


def read_released_ranking(folder: str | PathLike[str]) -> PublishedRanking:
    """Read back what :meth:`PublishedRanking.save` wrote."""
    place = Path(folder)
    try:
        record = json.loads((place / "privacy.json").read_text(encoding="utf-8"))
        with (place / "strengths.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, ValueError) as error:
        raise BadUsage(f"{place} cannot be read as a released ranking: {error}") from error
    guarantee = Guarantee.from_dict(record["guarantee"])
    estimate = Estimate(
        items=tuple(row["item"] for row in rows),
        difficulty=np.array([float(row["strength"]) for row in rows]),
        se=np.array([float(row["se"]) for row in rows]),
        status=(Status.ESTIMATED,) * len(rows),
        method=record["estimator"],
        solution=Solution("read from a release folder", 0, 0.0),
        persons=record["judges"],
        guarantee=guarantee,
    )
    return PublishedRanking(Strengths(estimate), guarantee, record)


def _public_parameters(
    data: Comparisons, budget: Budget, items: Sequence[str], max_comparisons: int
) -> ComparedPublic:
    if isinstance(items, str):
        raise BadUsage("items must be a list of names, found one string")
    judges = data.n_judges if budget.neighbours is Neighbours.REPLACE_ONE else None
    listed = tuple(str(item) for item in items)
    return ComparedPublic(listed, max_comparisons, budget.neighbours, judges)


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


def _describe(released: Release, estimate: Estimate, choice: str) -> dict[str, Any]:
    """Collect the public facts, in the words of comparisons."""
    record = describe_release(released, estimate, choice)
    record["kind"] = "comparisons"
    record["max_comparisons"] = record.pop("max_answers")
    record["judges"] = record.pop("persons")
    return record
