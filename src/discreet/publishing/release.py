"""Publish: data and a budget in, what may be published out.

The order is fixed: public parameters, the place to write, the exact counts, the ledger, the noise,
the safe, the estimate, the bundle. Whatever can be refused is refused before the ledger is
charged; noise is drawn after it, once; and what was paid for can be delivered whatever happens
in between. Nothing after the wall sees an answer, a comparison or a count. Answers of persons and
comparisons of judges take the same way.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Unpack, cast

from discreet.answers.judges import Comparisons
from discreet.answers.protocol import Contributions
from discreet.errors import BadResponses
from discreet.log import LOG
from discreet.models.noisy.released import check_estimator
from discreet.privacy.accounting import Budget
from discreet.privacy.ledger import EVERYONE, Ledger
from discreet.privacy.ledger.request import Request
from discreet.privacy.ledger.values import check_reservation
from discreet.privacy.mechanisms import choose_mechanism, describe_choice
from discreet.privacy.mechanisms.base import CompleteMechanism
from discreet.privacy.noise import ExactNoise, Noise
from discreet.privacy.protocol import Order, number_people
from discreet.privacy.wall import check_answers, check_noise
from discreet.publishing.bundle import Published, PublishedRanking
from discreet.publishing.delivery import OPENERS, open_delivery
from discreet.publishing.identity import About, check_audit, describe_itself
from discreet.publishing.spec import Forms, Items, ReleaseSpec, check_allowed, make_listing
from discreet.results.kinds import KINDS
from discreet.tables.reading import ListedWords
from discreet.types import (
    AnswerMechanism,
    ComparisonMechanism,
    Design,
    Engine,
    Estimator,
    Model,
)

LARGE_EPSILON = 5.0


def release(
    source: Any,
    budget: Budget,
    *,
    items: Items,
    lowest: int = 0,
    forms: Forms | None = None,
    design: Design = "unknown",
    model: Model = "auto",
    max_answers: int | None = None,
    persons: int | Iterable[object] | None = None,
    mechanism: AnswerMechanism | CompleteMechanism = "auto",
    estimator: Estimator = "noise-aware",
    ledger: Ledger | str | PathLike[str] | None = None,
    population: str = EVERYONE,
    about: About = None,
    audit: str | PathLike[str] | None = None,
    looked: bool = False,
    engine: Engine = "auto",
    noise: Noise | None = None,
    out: str | PathLike[str] | None = None,
    force: bool = False,
    reservation: str | None = None,
    **reading: Unpack[ListedWords],
) -> Published:
    """Release item difficulties under differential privacy.

    Everything but ``source`` must be chosen without looking at the answers.

    Parameters
    ----------
    source
        Answers, a data frame or an array of them, or where they are: a file, folder or pattern, a
        DuckDB database (``"file.duckdb::table"``) or a query, of any size; see
        :func:`discreet.count_pairs`. Columns and rows of other items than the listed ones are
        ignored; a person who answered none of the listed items still counts.
    budget
        Epsilon, delta and the neighbouring relation.
    items
        The public item list; the release keeps its order. Items that nobody answered are fine.
        Never the data's own list, which names an item that only one person answered. With steps
        (rating scales, points) each item with its number of steps: ``{"Q1": 4, "Q2": 4}``.
    lowest
        The lowest category as the data has it, 0 or 1 mostly. A release never looks for it.
    forms
        The sets of items of which every person was given one, where there are several.
    design
        Who answered what: ``"complete"``, everybody all items of a form; ``"random"``, a part that
        does not depend on ability; ``"unknown"``. Only the mechanism ``"totals"`` uses it.
    model
        With steps: ``"partial-credit"`` (also ``"auto"``), or ``"rating-scale"``, whose items have
        their steps at the same distances.
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
    estimator
        How the released values become difficulties. ``"noise-aware"``: a fit that knows its noise.
        ``"spectral"``: the paper's Algorithm 2, for ``pairs``, ``sparse-pairs`` and
        ``laplace-pairs``; its error is larger, and where its floor raises more than 2% of the
        counts it has no standard errors (docs/paper.md). It is no privacy parameter: the noisy
        values and the charge are the same, and :func:`discreet.refit` changes it later.
    ledger
        Where the spend is recorded and limited; ``None`` is allowed and said in the guarantee.
    population
        Whom this data is about, as declared in the ledger (``ledger.declare``); "everyone", the
        default, contains every population.
    about
        Who the release is: a mapping with ``title``, ``version``, ``date``, ``body``, ``contact``,
        ``supersedes`` and ``reason``, ``note``, ``introduction``, ``footer``, ``logo`` and
        ``words`` (files), ``language`` (of page and statement: ``"en"``, ``"de"`` or ``"es"``), or
        the path of a TOML file with them.
    audit
        A file with what ``discreet audit --json`` found of this mechanism, to be published.
    looked
        Whether somebody looked at the answers, or at results of them, before the list, the cap,
        the budget and the mechanism were set. The statement then says so.
    engine
        Where answers are counted, as for :func:`discreet.count_pairs`: in memory if they fit, and
        otherwise where they are, with bounded memory. The guarantee is the same.
    noise
        Where noise comes from; by default the exact sampler on secure randomness.
    out, force
        Where to write the bundle at once, as :meth:`Published.save` does. The place is tried and
        held, with room for the bundle, before the ledger is charged.
    reservation
        A name for the charge, from ``Ledger.name_reservation()``: whatever happens, a ledger is
        charged once under one name. By default a new one.
    reading
        ``person=``, ``item=``, ``response=`` and the other keywords of
        :func:`discreet.read_responses`, for sources that have columns.

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
    listing = make_listing(items, forms, design, lowest, model)
    spec = ReleaseSpec(
        "answers", budget, listing, max_answers, persons, mechanism, estimator=estimator
    )
    description = describe_itself(about, audit)
    noise_source = noise or ExactNoise()
    terms = DeliveryTerms(
        ledger, population, noise_source, out, force, description, None, reservation, looked
    )
    return charge_and_release(source, spec, terms, engine=engine, words=reading)


def release_comparisons(
    data: Comparisons | str | PathLike[str] | Any,
    budget: Budget,
    *,
    items: Sequence[str],
    max_comparisons: int,
    judges: int | Iterable[object] | None = None,
    mechanism: ComparisonMechanism | CompleteMechanism = "auto",
    ledger: Ledger | str | PathLike[str] | None = None,
    population: str = EVERYONE,
    about: About = None,
    audit: str | PathLike[str] | None = None,
    looked: bool = False,
    noise: Noise | None = None,
    out: str | PathLike[str] | None = None,
    force: bool = False,
) -> PublishedRanking:
    """Release the strengths of objects under differential privacy for each judge.

    Everything but ``data`` must be chosen without looking at the comparisons.

    Parameters
    ----------
    data
        Comparisons, or a file or data frame with them. Comparisons of objects that are not on the
        list are ignored; a judge with no others still counts.
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
        Whom this data is about, as declared in the ledger (``ledger.declare``); "everyone", the
        default, contains every population.
    about, audit, looked
        Who the release is, what attacks on its mechanism found, and whether somebody looked at the
        comparisons before; as for `discreet.release`.
    noise
        Where noise comes from; by default the exact sampler on secure randomness.
    out, force
        Where to write the bundle at once, as :meth:`PublishedRanking.save` does. The place is
        tried and held, with room for the bundle, before the ledger is charged.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import Budget, simulate_comparisons
    >>> votes = simulate_comparisons(500, 10, 5, rng=np.random.default_rng(1)).comparisons
    >>> objects = [f"object {number}" for number in range(10)]
    >>> released = release_comparisons(
    ...     votes, Budget(epsilon=1.0), items=objects, max_comparisons=5
    ... )
    >>> released.guarantee.unit
    "one judge's whole set of comparisons"
    """
    listing = make_listing(items)
    spec = ReleaseSpec("comparisons", budget, listing, max_comparisons, judges, mechanism)
    description = describe_itself(about, audit)
    noise_source = noise or ExactNoise()
    terms = DeliveryTerms(
        ledger, population, noise_source, out, force=force, about=description, looked=looked
    )
    return cast(PublishedRanking, charge_and_release(data, spec, terms))


@dataclass(frozen=True)
class DeliveryTerms:
    """On whose account a release goes, where its noise comes from, and where it shall arrive.

    Attributes
    ----------
    ledger
        The ledger, or its file; ``None`` where the spend is not recorded.
    population
        Whom the data is about, in the ledger.
    noise
        Where noise comes from.
    out, force
        The folder of the bundle, and whether it may replace an earlier one; ``None`` where the
        caller saves it.
    about
        What the release says about itself.
    request
        What approvers signed; ``None`` where nobody was asked.
    reservation
        The name of the charge; ``None`` for a new one.
    looked
        Whether somebody looked at the data before the public parameters were set.
    """

    ledger: Ledger | str | PathLike[str] | None
    population: str
    noise: Noise
    out: str | PathLike[str] | None = None
    force: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)
    request: Request | None = None
    reservation: str | None = None
    looked: bool = False

    def __post_init__(self) -> None:
        if self.reservation is not None:
            check_reservation(self.reservation)

    @property
    def book(self) -> Ledger | None:
        """The ledger, opened."""
        return Ledger.open(self.ledger) if isinstance(self.ledger, str | PathLike) else self.ledger


def charge_and_release(
    source: Any,
    spec: ReleaseSpec,
    terms: DeliveryTerms,
    *,
    engine: str = "auto",
    words: ListedWords | None = None,
) -> Published:
    """Do every step between what was asked for and a result, in the only order that is safe."""
    book = terms.book
    spec = check_allowed(book, spec, terms.population, terms.request)
    with OPENERS[spec.kind](source, engine, words, spec.listing) as data:
        people = number_people(data, spec.budget, spec.people, KINDS[spec.kind].persons)
        order = make_order(spec, people, terms)
        check_audit(terms.about, order.name)
        if order.public.persons == 0:
            raise BadResponses("there is nobody in the data, so there is nothing to release")
        check_estimator(order.name, order.estimator)
        check_noise(order.calibration)
        check_answers(data, order.public, order.require_mechanism())
        _warn_if_weak(order)
        _log_order(order)
        charge = None if book is None else _describe_charge(data, order, book, terms, spec)
        with open_delivery(
            order,
            book,
            out=terms.out,
            force=terms.force,
            reservation=terms.reservation,
            charge=charge,
        ) as delivery:
            return delivery.draw(data, terms.noise)


def _log_order(order: Order) -> None:
    """Say what is released; public values only, the same whatever the answers are."""
    spend, items = order.calibration.spend, len(order.public.items)
    public_values = order.name, spend.epsilon, spend.delta, items
    LOG.info("release: %s, epsilon %g, delta %g, %d listed items", *public_values)


def make_order(spec: ReleaseSpec, people: int | None, terms: DeliveryTerms) -> Order:
    """Settle everything that is public: parameters, mechanism, noise."""
    kind, public = spec.kind, spec.make_public(people)
    chosen, choice = choose_mechanism(spec.mechanism, public, kind)
    if spec.chosen_by is not None:
        choice = describe_choice(chosen.name, public, kind, spec.chosen_by)
    return Order(
        kind=kind,
        name=chosen.name,
        mechanism=chosen,
        public=public,
        calibration=chosen.calibrate(public, spec.budget, terms.noise.source),
        choice=choice,
        unit=KINDS[kind].unit,
        about=terms.about,
        chosen_by=spec.chooser,
        looked=terms.looked,
        estimator=spec.estimator,
    )


def _describe_charge(
    data: Contributions, order: Order, book: Ledger, terms: DeliveryTerms, spec: ReleaseSpec
) -> dict[str, Any]:
    """Return what the ledger is charged with."""
    spend, (fingerprint, former) = order.calibration.spend, book.recognise(data)
    return {
        "spend": spend,
        "fingerprint": fingerprint,
        "former": former,
        "description": f"{spend.mechanism}, epsilon {spend.epsilon:g}, delta {spend.delta:g}",
        "population": terms.population,
        "persons": spec.declared,
        "request": terms.request,
        "order": order.to_dict(),
        "ids": book.remember(data),
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
