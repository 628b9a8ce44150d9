"""Delivery of a release: charge, draw, store and write, also after an interruption.

In: an order, a ledger, the folder where the bundle shall appear. Out: the same steps for answers
and for comparisons, each of them safe to die after:

1. the place to write is held, with room for the bundle;
2. the ledger makes room for the noisy values, and then it is charged;
3. the values are drawn and committed in the ledger;
4. the ledger notes that it is delivered, and that note is read back;
5. the bundle appears, made from the committed values, which then go.

Until step 3 nobody can read a value, and the release can be made from the order in the ledger and
the answers. After it the committed values are the only ones: noise is drawn once.
:func:`resume_release` does both.

The data is read as the release was told, and only its listed part (:func:`open_listed`): what the
data looks like never decides how it is read, and what is not on the list is ignored.
"""

from __future__ import annotations

import json
import shlex
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from os import PathLike
from typing import Unpack, cast

from discreet.answers.comparisons import Comparisons
from discreet.answers.protocol import Answers, Contributions
from discreet.answers.responses import Responses
from discreet.answers.select import refuse_routing
from discreet.answers.survey import RAKED, refuse_weights
from discreet.atomic import StagedFolder, hold_place
from discreet.choices import Engine, PlainDict, PlainMapping
from discreet.coding.reading import ListedWords
from discreet.coding.remedies import refuse_detected
from discreet.counts import PairCounts
from discreet.errors import LOG, BadResponses, BadUsage, DiscreetError, NotAllowed
from discreet.models.noisy.released import check_estimator, estimate_release
from discreet.privacy.accounting import Neighbours
from discreet.privacy.accounting.spend import Spend
from discreet.privacy.ledger import AnyLedger, Ledger, LedgerSafe, as_ledger
from discreet.privacy.ledger.balance import History, LedgerEntry
from discreet.privacy.ledger.file import believe
from discreet.privacy.ledger.request import Asked, Request, make_request
from discreet.privacy.ledger.values import check_reservation
from discreet.privacy.mechanisms import MECHANISMS, choose_mechanism, make_order, remake_mechanism
from discreet.privacy.noise import ExactNoise, Noise
from discreet.privacy.protocol import Order, Public, settle_persons
from discreet.privacy.wall import (
    Release,
    check_answers,
    check_noise,
    release_statistics,
    restore_release,
)
from discreet.publishing.bundle import (
    COVARIANCE_ITEMS,
    PUBLISHED,
    Published,
    bundle_files,
    describe_release,
)
from discreet.publishing.spec import ReleaseSpec, Words, record_reading, restrict_reading
from discreet.readers.comparisons import open_comparisons
from discreet.readers.opening import opened, plan_words
from discreet.resources import secure_memory, take_buffers
from discreet.scales.ranks import PAIRED_ITEMS
from discreet.tables.columns import refuse_misspelt
from discreet.tables.resources import Progress, Resources
from discreet.words import KINDS

LARGE_EPSILON = 5.0
#: A bundle's size without the noisy values, generously: the page with its styles, and each step in
#: every file. Measured: 19 kB with 5 items, 125 kB with 300, 507 kB with 1,500 of 27 letters each.
BUNDLE_BYTES, ITEM_BYTES, PAIR_BYTES = 40_000, 1_200, 4
#: Memory for the square of the number of steps: 25 arrays. Measured with 1,200 items: 24 for
#: `margins`, 22 for `sparse-pairs`, 15 for `totals`.
SQUARE_BYTES = 200


@dataclass(frozen=True)
class DataSource:
    """Where the data of a release is.

    Attributes
    ----------
    data
        Answers or comparisons, or where they are.
    engine, resources, progress
        Where answers are counted, what that may use, and who is told how far it is.
    words
        How answers were read that were read already; None where nobody knows.
    """

    data: object
    engine: str = "auto"
    resources: Resources | None = None
    progress: Callable[[Progress], None] | None = None
    words: Words | None = None


@contextmanager
def open_listed(
    source: DataSource, words: ListedWords | None, public: Public
) -> Iterator[Contributions]:
    """Give the answers of a release: read as it was told, and only what is listed.

    The part is taken person by person: nobody else's answers change it, and whoever has no listed
    answer stays a person.
    """
    data, reading = source.data, plan_words(source.data, words)
    if not isinstance(data, Answers | PairCounts):
        reading = restrict_reading(public, reading)
    with opened(
        data, source.engine, reading, resources=source.resources, progress=source.progress
    ) as answers:
        if isinstance(answers, Responses):
            refuse_weights(answers.sample, "a release", RAKED)
            refuse_routing(answers.routing, "a release")
        refuse_detected(answers.detected, is_counted=public.persons is not None)
        check_lowest(public, answers)
        _check_item_names(public, answers.items)
        yield answers.select(public.items)


@contextmanager
def open_listed_comparisons(
    source: DataSource, words: ListedWords | None, public: Public
) -> Iterator[Comparisons]:
    """Give the comparisons of a release: of listed objects."""
    comparisons = open_comparisons(source.data, words)
    refuse_detected(comparisons.detected)
    _check_votes(comparisons, str((words or {}).get("unit", "judge")), public.max_answers)
    yield comparisons.drop_ties().keep(public.items)


def _check_votes(votes: Comparisons, unit: str, cap: int) -> None:
    """Refuse votes without judges unless that is stated, and what mechanisms do not count."""
    if unit != votes.unit:
        raise BadUsage(
            "these comparisons name their judges: leave unit='vote' (--unit vote) out, and a "
            "judge's whole set of comparisons is protected"
            if unit == "vote"
            else "these votes name no judges, so that a release could protect one vote only: a "
            "person with v votes has v times epsilon. Name the column of judges (judge=, --judge), "
            "or state unit='vote' (--unit vote)"
        )
    if unit == "vote" and cap != 1:
        raise BadUsage(
            f"with unit='vote' (--unit vote) one vote is one comparison: say max_comparisons=1 "
            f"(--max-comparisons 1), found {cap}"
        )
    if votes.covariates or votes.ties not in ("error", "drop"):  # also where nothing is tied
        raise BadUsage(
            "a release counts who won, and its sensitivity is proved for that: not for ties that "
            "count, nor for covariates. Drop ties (ties='drop', --ties drop), which estimates the "
            "same strengths as Davidson's model of ties, and leave covariates out"
        )


ListedOpener = Callable[
    [DataSource, ListedWords | None, Public], AbstractContextManager[Contributions]
]
#: Opens what whole persons contribute to a release of each kind.
OPENERS: dict[str, ListedOpener] = {"answers": open_listed, "comparisons": open_listed_comparisons}


def check_lowest(public: Public, answers: Contributions) -> None:
    """Refuse answers that were read with another lowest category than the release was told.

    Where nobody says which it is, readers take 0, or 1 if no 0 occurs: then one person's 0 decides
    how everybody else's answers are read, and no noise would hide that.
    """
    if answers.lowest != public.lowest:
        raise BadResponses(
            f"these answers were read with {answers.lowest} as the lowest category, and the "
            f"release was told {public.lowest}. It must not be looked up in the data: say what "
            "the questionnaire has with lowest= (--lowest)"
        )


def _check_item_names(public: Public, names: Sequence[str]) -> None:
    listed = frozenset(public.items)
    if listed.isdisjoint(names):
        raise BadResponses(
            f"none of the listed items is in the data: the list begins with {public.items[0]!r}, "
            f"the data with {names[0]!r}. Write items as the data does"
            if names
            else "there is no item in the data"
        )
    refuse_misspelt(listed, names, "these answers")


@dataclass(frozen=True)
class DeliveryTerms:
    """Who pays for a release, where its noise comes from, and where it shall arrive.

    Attributes
    ----------
    ledger
        The ledger, or its file; ``None`` where the spend is not recorded.
    noise
        Where noise comes from.
    out, force
        The folder of the bundle, and whether it may replace an earlier one; ``None`` where the
        caller saves it.
    request
        What approvers signed; ``None`` where nobody was asked.
    reservation
        The name of the charge; ``None`` for a new one.
    """

    ledger: AnyLedger | None
    noise: Noise = field(default_factory=ExactNoise)
    out: str | PathLike[str] | None = None
    force: bool = False
    request: Request | None = None
    reservation: str | None = None


@dataclass(frozen=True)
class Delivery:
    """One release on its way: what was asked for, and the safe that keeps its values."""

    order: Order
    safe: LedgerSafe

    def draw(self, data: Contributions, noise: Noise) -> Published:
        """Draw the noise of a release that is paid for, or will be just before, and deliver it."""
        order, book = self.order, self.safe.book
        ledger = None if book is None else book.id
        released = release_statistics(
            data,
            mechanism=order.require_mechanism(),
            public=order.public,
            calibration=order.calibration,
            guarantee=order.promise(ledger=ledger, is_private=noise.is_private),
            noise=noise,
            safe=self.safe,
        )
        return self.deliver(released)

    def deliver(self, released: Release) -> Published:
        """Estimate, write the bundle where there is a place for it, and call it finished."""
        safe, public = self.safe, self.order.public
        estimate = estimate_release(released, estimator=public.estimator)
        record = describe_release(released, estimate, self.order)
        record |= {**self.order.about, "account": None, "charge": None}
        if safe.book is not None:
            safe.book.complete(safe.reservation)
            record |= safe.book.describe_charge(safe.reservation)
        stored = None if safe.book is None else (safe.book, safe.reservation)
        if safe.folder is not None:
            safe.folder.fill(bundle_files(estimate, record, released))
            if safe.book is not None:
                safe.book.remove_values(safe.reservation)
            stored = None
        LOG.info("release: estimated and delivered")
        return PUBLISHED[public.kind](estimate, released.guarantee, record, released, stored)


def release_spec(source: DataSource, spec: ReleaseSpec, terms: DeliveryTerms) -> Published:
    """Do every step between what was asked for and a result, in the only order that is safe."""
    if terms.reservation is not None:
        check_reservation(terms.reservation)
    book = None if terms.ledger is None else as_ledger(terms.ledger)
    about = {**spec.identity.describe(), **check_allowed(spec, book, terms.request)}
    take_buffers()
    words, looked = cast(ListedWords, spec.reading), spec.identity.looked
    with OPENERS[spec.public.kind](source, words, spec.public) as data:
        about |= _describe_data(source, spec, data)
        public = settle_persons(data, spec.public)
        order = make_order(public, spec.budget, terms.noise.source, about, looked=looked)
        spec.identity.check_audit(order.name)
        if public.persons == 0:
            raise BadResponses("there is nobody in the data, so there is nothing to release")
        check_estimator(order.name, public.estimator)
        check_noise(order.calibration)
        check_answers(data, order.public, order.require_mechanism())
        spend = order.calibration.spend
        _warn_if_weak(spend, public.persons)
        # Public values only, the same whatever the answers are.
        facts = order.name, spend.epsilon, spend.delta, len(public.items)
        LOG.info("release: %s, epsilon %g, delta %g, %d listed items", *facts)
        charge = None if book is None else _describe_charge(data, order, book, terms, spec)
        with open_delivery(order, book, terms, charge) as delivery:
            return delivery.draw(data, terms.noise)


def _describe_data(source: DataSource, spec: ReleaseSpec, data: Contributions) -> PlainDict:
    """Return what a release says of its data: how it was read, and what stands for a person."""
    is_read = isinstance(source.data, Answers | Comparisons)
    words = source.words if is_read else spec.reading
    reading = None if words is None else record_reading(spec.public, words)
    is_vote = isinstance(data, Comparisons) and data.unit == "vote"
    person_is = "vote" if is_vote else "id" if data.has_ids else "row"
    return {"reading": reading, "person_is": person_is}


def check_allowed(
    spec: ReleaseSpec, book: Ledger | None, request: Request | None = None
) -> PlainDict:
    """Refuse what the ledger does not allow, or not without approvals, whatever the answers are.

    Returns what the release says about its approval.
    """
    approvers = [] if book is None else book.check_release(request)
    check_spec(spec, book)
    if request is None:
        return {}
    names = [approver.describe() for approver in approvers]
    approval = {"request": request.body["nonce"], "sha256": request.digest, "approvers": names}
    return {"approval": approval}


def check_spec(spec: ReleaseSpec, book: Ledger | None) -> None:
    """Refuse what the ledger does not allow, whatever the answers are."""
    policy, public, budget = None if book is None else book.policy, spec.public, spec.budget
    is_needed = policy is not None and policy.needs_persons
    is_hidden = budget.neighbours is Neighbours.ADD_REMOVE
    if is_hidden and public.persons is not None and not is_needed:
        word = KINDS[public.kind].persons
        raise BadUsage(
            f"{word} are named for replace-one only: under add-remove their number is not "
            f"published. Leave {word} out"
        )
    if book is None:
        return
    chosen, _ = choose_mechanism(public)
    entry = None if policy is None or policy.mechanisms is None else MECHANISMS.get(chosen.name)
    if entry is not None and type(entry()) is not type(chosen):
        raise NotAllowed(
            f"the ledger's policy allows the library's own mechanisms, and this {chosen.name!r} "
            f"is another, {type(chosen).__name__}"
        )
    asked = budget.epsilon, budget.delta, str(budget.neighbours), chosen.name, public.persons
    book.check_asked(Asked(*asked), spec.identity.population)


def propose_spec(spec: ReleaseSpec, ledger: AnyLedger) -> Request:
    """Return the request for a specification, unless the ledger does not allow it."""
    book = as_ledger(ledger)
    check_spec(spec, book)
    return make_request("release", book.id, {**spec.to_dict(), "ledger_file": str(book.path)})


def _describe_charge(
    data: Contributions, order: Order, book: Ledger, terms: DeliveryTerms, spec: ReleaseSpec
) -> PlainDict:
    """Return what the ledger is charged with."""
    spend = order.calibration.spend
    return {
        "spend": spend,
        "fingerprint": book.recognise(data),
        "description": f"{spend.mechanism}, epsilon {spend.epsilon:g}, delta {spend.delta:g}",
        "population": spec.identity.population,
        "persons": spec.public.persons,
        "request": terms.request,
        "order": order.to_dict(),
        "ids": book.remember(data),
    }


def _warn_if_weak(spend: Spend, persons: int | None) -> None:
    """Warn about parameters that promise little; public values only."""
    if spend.epsilon > LARGE_EPSILON:
        warnings.warn(
            f"epsilon {spend.epsilon:g} is above {LARGE_EPSILON:g}: the guarantee permits a "
            "near-certain conclusion about a person; consider a smaller epsilon",
            stacklevel=4,
        )
    if persons is not None and spend.delta * persons > 1:
        warnings.warn(
            f"delta {spend.delta:g} is above 1 / {persons} persons: it would permit publishing "
            "somebody's answers outright; use a delta well below that",
            stacklevel=4,
        )


@contextmanager
def open_delivery(
    order: Order, book: Ledger | None, terms: DeliveryTerms, charge: PlainMapping | None = None
) -> Iterator[Delivery]:
    """Hold everything that a release needs, and explain whatever stops it once it is paid for."""
    name, steps = terms.reservation or Ledger.name_reservation(), sum(order.public.steps)
    secure_memory(SQUARE_BYTES * steps**2)
    with ExitStack() as stack:
        folders: list[StagedFolder] = []
        if book is not None:
            stack.enter_context(_explaining(book, name, folders))
        if terms.out is not None:
            room = BUNDLE_BYTES + ITEM_BYTES * steps + 4 * len(json.dumps(order.to_dict()))
            room += PAIR_BYTES * min(len(order.public.items), PAIRED_ITEMS) ** 2
            folders.append(stack.enter_context(hold_place(terms.out, force=terms.force, room=room)))
        covariance = 16 * steps**2 * (steps <= COVARIANCE_ITEMS)
        safe = LedgerSafe(book, folders[0] if folders else None, covariance, name, charge)
        yield Delivery(order, safe)


@contextmanager
def _explaining(book: Ledger, reservation: str, folders: Sequence[StagedFolder]) -> Iterator[None]:
    """Add to whatever stops a release what was charged for it, and how to get it."""
    try:
        yield
    except BaseException as error:
        try:
            charged = find_charged(book, reservation)
        except DiscreetError:
            error.add_note(f"The budget may be spent: look at 'discreet ledger show {book.path}'.")
            raise error from None
        is_filled = any(folder.is_filled for folder in folders)
        for entry in charged:
            if is_filled:
                error.add_note(f"{explain_spent(book, entry)}, once. {DO_NOT_REPEAT}")
            elif entry.is_waiting:
                advice = explain_resuming(book, entry)
                error.add_note(f"{explain_spent(book, entry)}, which did not arrive. {advice}")
        raise


def explain_spent(book: Ledger, entry: LedgerEntry) -> str:
    """Say which charge a release has cost."""
    return (
        f"The budget is spent: {book.path} was charged for release {entry.number} "
        f"({entry.description})"
    )


DO_NOT_REPEAT = "Do not run the release again: that would be another charge."


def find_charged(book: Ledger, reservation: str) -> list[LedgerEntry]:
    """Return the entry under this name; none where the ledger was not charged."""
    return [one for one in book.releases() if one.reservation == reservation]


def list_waiting(history: History) -> list[LedgerEntry]:
    """Return the releases that were paid for and have no bundle, and that can be resumed."""
    return [entry for entry in history.entries if entry.is_waiting]


def explain_resuming(book: Ledger, entry: LedgerEntry) -> str:
    """Say how to get a release that was paid for."""
    answers = "" if entry.has_values else " --answers FILE"
    ledger = shlex.quote(str(book.path))
    return (
        "Get it without paying again: "
        f"discreet ledger resume {ledger} {entry.number} --out DIR{answers}"
    )


def resume_release(
    ledger: AnyLedger,
    release: int | str,
    data: object = None,
    *,
    out: str | PathLike[str] | None = None,
    force: bool = False,
    engine: Engine = "auto",
    noise: Noise | None = None,
    **reading: Unpack[ListedWords],
) -> Published:
    """Finish a release that was charged but not written, and return it; nothing is charged.

    Parameters
    ----------
    ledger
        The ledger that was charged.
    release
        The number of the release in the ledger, or the beginning of its reservation.
    data
        The same answers (or comparisons) again, where the release died before its values were
        stored; they are recognised by their fingerprint. Not needed, and not looked at, where
        values are stored.
    out, force
        Where to write the bundle, as for :func:`discreet.release`.
    engine, noise
        As for :func:`discreet.release`.

    Returns
    -------
    Published
        Of comparisons, a :class:`discreet.PublishedRanking`.

    Examples
    --------
    >>> import tempfile
    >>> import discreet
    >>> answers, items = discreet.datasets.lsat(), ["Item1", "Item2", "Item3"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = discreet.Ledger.create(folder + "/spent.db", epsilon=1.0)
    ...     released = discreet.release(answers, epsilon=0.5, items=items, ledger=ledger)
    ...     again = discreet.resume_release(ledger, 1, out=folder + "/out")
    >>> bool((again.difficulty == released.difficulty).all())
    True
    """
    take_buffers()
    book, order = find_paid(ledger, release)
    entry = book.find(release)
    terms = DeliveryTerms(book, noise or ExactNoise(), out, force, reservation=entry.reservation)
    with open_delivery(order, book, terms) as delivery:
        stored_values = book.fetch(entry.reservation)
        if stored_values is not None:
            return delivery.deliver(restore_release(order, stored_values, ledger=book.id))
        if book.find(entry.reservation).completed_at is not None:
            raise BadUsage(
                f"{book.path}: release {entry.number} has arrived, or its values were removed "
                "before it could. Nothing is left to do."
            )
        if data is None:
            raise BadUsage(
                f"{book.path}: release {entry.number} stopped before its values were stored, so "
                "it needs the answers again (--answers FILE, in Python data=)."
            )
        source = data if isinstance(data, DataSource) else DataSource(data, engine)
        with OPENERS[order.public.kind](source, reading, order.public) as contributions:
            if book.recognise(contributions) != entry.fingerprint:
                raise BadResponses(
                    f"{book.path}: these are not the answers that release {entry.number} was "
                    "charged for. Give those, or pay for another release."
                )
            return delivery.draw(contributions, terms.noise)


def find_paid(ledger: AnyLedger, release: int | str) -> tuple[Ledger, Order]:
    """Return a ledger, and what was asked for in one of its releases."""
    book = as_ledger(ledger)
    return book, read_order(book, book.find(release))


def read_order(book: Ledger, entry: LedgerEntry) -> Order:
    """Return what was asked for in a release that the ledger knows."""
    if entry.order is None:
        raise BadUsage(
            f"{book.path}: release {entry.number} was charged without what was asked for, so it "
            "cannot be resumed."
        )
    with believe(book.path, f"release {entry.number}"):
        return Order.from_dict(entry.order, entry.spend, remake_mechanism)
