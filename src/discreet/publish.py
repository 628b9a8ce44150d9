"""Publish: data and a budget in, difficulties that may be published out.

The order is fixed: public parameters, then the ledger, then the wall, then the estimate. The
spend is reserved before any noise is drawn, so a crash can only leave budget unused, never
overspent. Nothing after the wall sees an answer or a count.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from os import PathLike
from typing import Any

import numpy.typing as npt

from discreet.bundle import describe_release, write_bundle
from discreet.engines import Answers, open_persons
from discreet.engines.answers import Contributions
from discreet.errors import BadUsage
from discreet.estimate import Estimate
from discreet.estimators.released import estimate_release
from discreet.markup import brief_repr
from discreet.privacy.accounting import Budget, Guarantee
from discreet.privacy.ledger import EVERYONE, Ledger
from discreet.privacy.mechanisms import (
    AUTO,
    AnyMechanism,
    Calibration,
    Public,
    check_mechanism,
    find_mechanism,
    pick_mechanism,
)
from discreet.privacy.mechanisms.people import number_people
from discreet.privacy.noise import ExactNoise, Noise
from discreet.privacy.wall import Release, check_answers, release_statistics
from discreet.verification import read_bundle

__all__ = ["Published", "Terms", "charge_and_release", "read_release", "release"]

LARGE_EPSILON = 5.0


@dataclass(frozen=True, eq=False)
class Published:
    """A private calibration: what may be shown to everyone.

    Attributes
    ----------
    estimate
        Difficulties, standard errors and intervals, the privacy noise included.
    guarantee
        What is promised to each person.
    record
        The public facts of the release, as ``privacy.json`` holds them.
    noisy
        The noisy values behind the estimate; ``None`` when read back from a bundle.
    """

    estimate: Estimate
    guarantee: Guarantee
    record: dict[str, Any]
    noisy: Release | None = None

    __repr__ = brief_repr

    def _repr_html_(self) -> str:
        """Show the promise and the first items in a notebook."""
        return f"<div><p>{escape(self.guarantee.summary)}</p>{self.estimate._repr_html_()}</div>"

    def save(self, folder: str | PathLike[str], *, force: bool = False) -> None:
        """Write the bundle: table, privacy record, statement, registry draft, page.

        The folder appears whole or not at all. An existing one is refused; with ``force`` an
        earlier release is replaced, if nothing else is in its folder.
        """
        write_bundle(folder, self.estimate, self.record, force=force)


def release(
    source: Answers | npt.NDArray[Any] | str | PathLike[str],
    budget: Budget,
    *,
    items: Sequence[str],
    max_answers: int | None = None,
    persons: int | Iterable[object] | None = None,
    mechanism: str | AnyMechanism = AUTO,
    ledger: Ledger | str | PathLike[str] | None = None,
    population: str = EVERYONE,
    engine: str = "auto",
    noise: Noise | None = None,
) -> Published:
    """Release item difficulties under differential privacy.

    Everything but ``source`` must be chosen without looking at the answers.

    Parameters
    ----------
    source
        Answers, or where they are: a file, folder or pattern, a DuckDB database
        (``"file.duckdb::table"``) or a query, of any size. Items that are not on the list are
        refused.
    budget
        Epsilon, delta and the neighbouring relation.
    items
        The public item list; the release keeps its order. Items that nobody answered are fine.
        Never the data's own list, which names an item that only one person answered.
    max_answers
        The public cap: a person with more answers keeps that many, chosen at random. By
        default every listed item.
    persons
        Under replace-one the public number of persons, fixed in advance, or a list of their ids;
        persons without any row are counted in, and more persons than that (or others) are refused.
        By default the number of persons in the data is published, which does not hide whether
        somebody is in the data at all.
    mechanism
        A name, or a mechanism with settings of its own. ``"auto"`` takes the one that is more
        accurate for these public parameters, and ``record["choice"]`` says which and why.
    ledger
        Where the spend is recorded and limited; ``None`` is allowed and said in the guarantee.
    population
        Name of this data's persons, who are in no other named population of the ledger.
        "everyone" counts against every population, and every population against it.
    engine
        Where answers are counted, as for :func:`discreet.count_pairs`: in memory if they fit, and
        otherwise where they are, with bounded memory. The guarantee is the same.
    noise
        Where noise comes from; by default the exact sampler on secure randomness.

    Examples
    --------
    >>> import discreet
    >>> answers = discreet.datasets.lsat()
    >>> budget = discreet.Budget(epsilon=1.0, delta=1e-6)
    >>> items = ["Item1", "Item2", "Item3", "Item4", "Item5"]
    >>> published = discreet.release(answers, budget, items=items)
    >>> published.guarantee.epsilon
    1.0
    """
    noise = noise or ExactNoise()
    if isinstance(mechanism, str):
        check_mechanism(mechanism)
    book = Ledger.open(ledger) if isinstance(ledger, (str, PathLike)) else ledger
    with open_persons(source, engine) as answers:
        public = _public_parameters(answers, budget, items, max_answers, persons)
        chosen, choice = _choose(mechanism, public)
        released, estimate = charge_and_release(
            answers, chosen, public, budget, Terms(book, population, noise)
        )
    return Published(
        estimate=estimate,
        guarantee=released.guarantee,
        record=describe_release(released, estimate, choice),
        noisy=released,
    )


@dataclass(frozen=True)
class Terms:
    """On whose account a release goes, and where its noise comes from.

    Attributes
    ----------
    book
        The ledger; ``None`` where the spend is not recorded.
    population
        Whom the data is about, in the ledger.
    noise
        Where noise comes from.
    unit
        What is protected; ``None`` for the accountant's word, one person's whole set of answers.
    """

    book: Ledger | None
    population: str
    noise: Noise
    unit: str | None = None


def charge_and_release(
    data: Contributions,
    mechanism: AnyMechanism,
    public: Public,
    budget: Budget,
    terms: Terms,
    *,
    wall: Callable[..., Release] = release_statistics,
) -> tuple[Release, Estimate]:
    """Do every step between public parameters and a result, in the only order that is safe.

    Mistakes are refused before the ledger is charged, the ledger is charged before any noise is
    drawn, and the estimate sees nothing but what came through the wall.
    ``wall`` is the wall with what it counts: answers, unless said otherwise.
    """
    calibration = mechanism.calibrate(public, budget, terms.noise.source)
    check_answers(data, public, mechanism)
    reservation = _reserve(terms, calibration, data)
    released = wall(
        data,
        mechanism=mechanism,
        public=public,
        calibration=calibration,
        guarantee=_promise(terms, calibration),
        noise=terms.noise,
    )
    estimate = estimate_release(released)
    if terms.book is not None and reservation is not None:
        terms.book.complete(reservation)
    _warn_if_weak(budget, public)
    return released, estimate


def read_release(folder: str | PathLike[str]) -> Published:
    """Read a bundle back: the estimate and its guarantee, as published."""
    estimate, record = read_bundle(folder)
    guarantee = Guarantee.from_dict(record["guarantee"])
    return Published(estimate=estimate, guarantee=guarantee, record=record)


def _choose(mechanism: str | AnyMechanism, public: Public) -> tuple[AnyMechanism, str]:
    """Return the mechanism, and who chose it."""
    if mechanism == AUTO:
        return pick_mechanism(public)
    chosen = find_mechanism(mechanism) if isinstance(mechanism, str) else mechanism
    return chosen, f"{chosen.name}: named by the steward"


def _public_parameters(
    answers: Answers,
    budget: Budget,
    items: Sequence[str],
    max_answers: int | None,
    persons: int | Iterable[object] | None,
) -> Public:
    if isinstance(items, str):
        raise BadUsage("items must be a list of item names, found one string")
    listed = tuple(str(item) for item in items)
    cap = len(listed) if max_answers is None else max_answers
    number = number_people(answers, budget, persons, "persons")
    return Public(listed, cap, budget.neighbours, number, is_fixed=persons is not None)


def _reserve(terms: Terms, calibration: Calibration, data: Contributions) -> str | None:
    """Charge the ledger before any noise is drawn."""
    if terms.book is None:
        return None
    spend = calibration.spend
    fingerprint, former = terms.book.recognise(data)
    return terms.book.reserve(
        spend,
        fingerprint=fingerprint,
        former=former,
        description=f"{spend.mechanism}, epsilon {spend.epsilon:g}, delta {spend.delta:g}",
        population=terms.population,
    )


def _promise(terms: Terms, calibration: Calibration) -> Guarantee:
    """Return what a release promises."""
    found = calibration.spend.guarantee(
        ledger=None if terms.book is None else terms.book.id,
        is_private=terms.noise.is_private,
        conditions=calibration.conditions,
    )
    return found if terms.unit is None else replace(found, unit=terms.unit)


def _warn_if_weak(budget: Budget, public: Public) -> None:
    """Warn about parameters that promise little; public values only."""
    if budget.epsilon > LARGE_EPSILON:
        warnings.warn(
            f"epsilon {budget.epsilon:g} is above {LARGE_EPSILON:g}: the guarantee permits a "
            "near-certain conclusion about a person; consider a smaller epsilon",
            stacklevel=4,
        )
    if public.persons is not None and budget.delta * public.persons > 1:
        warnings.warn(
            f"delta {budget.delta:g} is above 1 / {public.persons} persons: it would permit "
            "publishing somebody's answers outright; use a delta well below that",
            stacklevel=4,
        )
