"""Publish: data and a budget in, difficulties that may be published out.

The order is fixed: public parameters, the place to write, the exact counts, the ledger, the noise,
the safe, the estimate, the bundle. Whatever can be refused is refused before the ledger is
charged; noise is drawn after it, once; and what was paid for can be delivered whatever happens
in between. Nothing after the wall sees an answer or a count.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

import numpy.typing as npt

from discreet.answers.opening import Answers, Contributions, open_persons
from discreet.errors import BadResponses, BadUsage
from discreet.markup import brief_repr
from discreet.models.released import check_estimator
from discreet.privacy.accounting.budget import Budget, Guarantee
from discreet.privacy.ledger.book import Ledger
from discreet.privacy.ledger.history import EVERYONE
from discreet.privacy.mechanisms import (
    AUTO,
    AnyMechanism,
    check_mechanism,
    find_mechanism,
    pick_mechanism,
)
from discreet.privacy.noise.backends import ExactNoise, Noise
from discreet.privacy.orders import Order
from discreet.privacy.protocol import Public, number_people
from discreet.privacy.wall import Release, check_answers, check_noise, release_statistics
from discreet.publishing.delivery import Delivery, Made, Make, open_delivery, write_stored
from discreet.publishing.verification import read_bundle
from discreet.results.estimate import Estimate

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
    stored
        Where they wait on disk until the bundle is written; ``None`` without a ledger.
    """

    estimate: Estimate
    guarantee: Guarantee
    record: dict[str, Any]
    noisy: Release | None = None
    stored: Path | None = None

    __repr__ = brief_repr

    def _repr_html_(self) -> str:
        """Show the promise and the first items in a notebook."""
        return f"<div><p>{escape(self.guarantee.summary)}</p>{self.estimate._repr_html_()}</div>"

    def save(self, folder: str | PathLike[str], *, force: bool = False) -> None:
        """Write the bundle: table, privacy record, statement, registry draft, page.

        The folder appears whole or not at all. An existing one is refused; with ``force`` an
        earlier release is replaced, if nothing else is in its folder.
        """
        write_stored(folder, self.estimate, self.record, self.stored, force=force)


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
    out: str | PathLike[str] | None = None,
    force: bool = False,
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
    out, force
        Where to write the bundle at once, as :meth:`Published.save` does. The place is tried and
        held, with room for the bundle, before the ledger is charged.

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
        calibration = chosen.calibrate(public, budget, noise.source)
        order = Order("answers", chosen.name, chosen, public, calibration, choice)
        terms = Terms(book, population, noise, out, force=force)
        return charge_and_release(answers, order, terms, make=make_published)


def make_published(
    estimate: Estimate, record: dict[str, Any], released: Release, stored: Path | None
) -> Published:
    """Put a release of answers together."""
    return Published(estimate, released.guarantee, record, noisy=released, stored=stored)


@dataclass(frozen=True)
class Terms:
    """On whose account a release goes, where its noise comes from, and where it shall arrive.

    Attributes
    ----------
    book
        The ledger; ``None`` where the spend is not recorded.
    population
        Whom the data is about, in the ledger.
    noise
        Where noise comes from.
    out, force
        The folder of the bundle, and whether it may replace an earlier one; ``None`` where the
        caller saves it.
    """

    book: Ledger | None
    population: str
    noise: Noise
    out: str | PathLike[str] | None = None
    force: bool = False


def charge_and_release(
    data: Contributions,
    order: Order,
    terms: Terms,
    *,
    make: Make[Made],
    wall: Callable[..., Release] = release_statistics,
) -> Made:
    """Do every step between public parameters and a result, in the only order that is safe.

    ``make`` turns what came through the wall into the result; ``wall`` is the wall with what it
    counts: answers, unless said otherwise.
    """
    if order.public.persons == 0:
        raise BadResponses("there is nobody in the data, so there is nothing to release")
    check_estimator(order.name)
    check_noise(order.calibration)
    check_answers(data, order.public, order.require_mechanism())
    _warn_if_weak(order)
    charge = _describe_charge(data, order, terms)
    with open_delivery(
        order, terms.book, out=terms.out, force=terms.force, charge=charge
    ) as delivery:
        return draw_and_make(data, order, delivery, terms.noise, make=make, wall=wall)


def draw_and_make(
    data: Contributions,
    order: Order,
    delivery: Delivery,
    noise: Noise,
    *,
    make: Make[Made],
    wall: Callable[..., Release] = release_statistics,
) -> Made:
    """Draw the noise of a release that is paid for, or will be just before, and deliver it."""
    released = wall(
        data,
        mechanism=order.require_mechanism(),
        public=order.public,
        calibration=order.calibration,
        guarantee=order.promise(ledger=delivery.ledger, is_private=noise.is_private),
        noise=noise,
        safe=delivery,
    )
    return delivery.deliver(released, make)


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


def _describe_charge(data: Contributions, order: Order, terms: Terms) -> dict[str, Any] | None:
    """Return what the ledger is charged with."""
    if terms.book is None:
        return None
    spend, (fingerprint, former) = order.calibration.spend, terms.book.recognise(data)
    return {
        "spend": spend,
        "fingerprint": fingerprint,
        "former": former,
        "description": f"{spend.mechanism}, epsilon {spend.epsilon:g}, delta {spend.delta:g}",
        "population": terms.population,
        "order": order.to_dict(),
    }


def _warn_if_weak(order: Order) -> None:
    """Warn about parameters that promise little; public values only."""
    budget, public = order.calibration.spend, order.public
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
