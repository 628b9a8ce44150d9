"""Delivery: what was paid for arrives, whatever happens on the way.

In: an order, a ledger, the folder where the bundle shall appear. Out: the same steps for answers
and for comparisons, each of them safe to die after:

1. the place to write is held, with room for the bundle;
2. room for the noisy values is taken beside the ledger, and then the ledger is charged;
3. the values are drawn, stored in that room, and noted in the ledger as stored;
4. the bundle appears, the ledger notes that the release is finished, the stored values go.

Until step 3 the release can be made from the order in the ledger and the answers; after it, from
the stored values, and only from them: noise is drawn once. :func:`resume_release` does so.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Unpack

from discreet.analysis.standing import PAIRED_ITEMS
from discreet.answers.opening import opened
from discreet.answers.protocol import Contributions
from discreet.answers.read_judges import open_comparisons
from discreet.atomic import Place, hold_place
from discreet.errors import BadResponses, BadUsage, DiscreetError, LedgerError
from discreet.log import LOG
from discreet.models.released import estimate_release
from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger.file import (
    Vault,
    believe,
    find_vault,
    has_values,
    open_vault,
    remove_vault,
)
from discreet.privacy.ledger.history import Entry, History
from discreet.privacy.mechanisms import remake_mechanism
from discreet.privacy.noise import ExactNoise, Noise
from discreet.privacy.protocol import Order
from discreet.privacy.wall import Release, release_statistics, restore_release
from discreet.publishing.bundle import PUBLISHED, Published, bundle_files, describe_release
from discreet.publishing.listing import Listing, list_public
from discreet.publishing.noisy import COVARIANCE_ITEMS
from discreet.tables.words import ListedWords
from discreet.types import Engine

BUNDLE_BYTES, ITEM_BYTES, PAIR_BYTES = 40_000, 1_200, 4
"""A bundle's size without the noisy values, generously: the page with its styles, and each step in
every file. Measured: 19 kB with 5 items, 125 kB with 300, 507 kB with 1,500 of 27 letters each."""

Words = ListedWords | None
Opener = Callable[[Any, str, Words, Listing], AbstractContextManager[Contributions]]
OPENERS: dict[str, Opener] = {
    "answers": lambda data, engine, words, listing: opened(data, engine, words, listing.read),
    "comparisons": lambda data, _, words, __: nullcontext(open_comparisons(data, words)),
}
"""Opens what whole persons contribute to a release of each kind."""


@dataclass(frozen=True)
class Delivery:
    """One release on its way; the wall keeps its values safe with it.

    Attributes
    ----------
    order
        What was asked for.
    book, vault
        The ledger, and where the values are kept; ``None`` where there is no ledger.
    place
        Where the bundle shall appear; ``None`` where the caller saves it.
    charge
        What the ledger is charged with; ``None`` where that was done before.
    """

    order: Order
    book: Ledger | None
    vault: Vault | None
    place: Place | None
    reservation: str
    charge: Mapping[str, Any] | None

    @property
    def ledger(self) -> str | None:
        """The id of the ledger, for the guarantee."""
        return None if self.book is None else self.book.id

    @property
    def account(self) -> dict[str, Any] | None:
        """What was spent on the population up to this release; None without a ledger.

        It counts releases as the steward declared them, and nothing that was found in answers.
        """
        if self.book is None:
            return None
        history = self.book.history()
        entry = next(one for one in history.entries if one.reservation == self.reservation)
        return describe_account(history, entry)

    def prepare(self, size: int) -> None:
        """Take room for the values, here and in the bundle, then charge the ledger."""
        if self.place is not None:
            steps = sum(self.order.public.steps)
            self.place.make_room(size + 16 * steps**2 * (steps <= COVARIANCE_ITEMS))
        if self.book is None or self.vault is None:
            return
        if self.charge is not None:
            self._check_uncharged()
        self.vault.make_room(size)
        if self.charge is not None:
            self.book.reserve(**self.charge, reservation=self.reservation)
            LOG.info("release: charged to the ledger")

    def _check_uncharged(self) -> None:
        """Refuse a second charge under one name, before the values of the first are touched."""
        if self.book is not None and find_charged(self.book, self.reservation):
            raise LedgerError(
                f"{self.book.path}: the reservation {self.reservation} was charged before. Nothing "
                "was charged now; resume that release, or take another reservation."
            )

    def keep(self, parts: Sequence[bytes]) -> None:
        """Store the values, and note that they are stored."""
        if self.book is None or self.vault is None:
            return
        self.vault.keep(parts)
        self.book.note_stored(self.reservation)

    def draw(self, data: Contributions, noise: Noise) -> Published:
        """Draw the noise of a release that is paid for, or will be just before, and deliver it."""
        order = self.order
        released = release_statistics(
            data,
            mechanism=order.require_mechanism(),
            public=order.public,
            calibration=order.calibration,
            guarantee=order.promise(ledger=self.ledger, is_private=noise.is_private),
            noise=noise,
            safe=self,
        )
        return self.deliver(released)

    def deliver(self, released: Release) -> Published:
        """Estimate, write the bundle where there is a place for it, and call it finished."""
        estimate = estimate_release(released, estimator=self.order.estimator)
        record = describe_release(released, estimate, self.order.choice, self.order.kind)
        record |= {**self.order.about, "account": self.account}
        if self.place is not None:
            self.place.fill(bundle_files(estimate, record, released))
        if self.book is not None:
            self.book.complete(self.reservation)
        stored = None if self.vault is None else self.vault.path
        if self.place is not None and stored is not None:
            remove_vault(stored)
            stored = None
        LOG.info("release: estimated and delivered")
        made = PUBLISHED[self.order.kind]
        return made(estimate, released.guarantee, record, noisy=released, stored=stored)


def describe_account(history: History, entry: Entry) -> dict[str, Any]:
    """Return what was spent on an entry's population up to and with it, and by how many."""
    before = tuple(one for one in history.entries if one.number <= entry.number)
    epsilon, delta = replace(history, entries=before).spent(entry.population)
    apart = history.populations.are_disjoint
    return {
        "population": entry.population,
        "epsilon": epsilon,
        "delta": delta,
        "limit": history.limit.epsilon,
        "releases": sum(not apart(one.population, entry.population) for one in before),
    }


@contextmanager
def open_delivery(
    order: Order,
    book: Ledger | None,
    *,
    out: str | PathLike[str] | None,
    force: bool,
    reservation: str | None = None,
    charge: Mapping[str, Any] | None = None,
) -> Iterator[Delivery]:
    """Hold everything that a release needs, and explain whatever stops it once it is paid for."""
    name = reservation or Ledger.name_reservation()
    with ExitStack() as stack:
        place = vault = None
        if out is not None:
            room = BUNDLE_BYTES + ITEM_BYTES * sum(order.public.steps)
            room += PAIR_BYTES * min(len(order.public.items), PAIRED_ITEMS) ** 2
            room += 4 * len(json.dumps(order.to_dict()))
            place = stack.enter_context(hold_place(out, force=force, room=room))
        if book is not None:
            vault = stack.enter_context(open_vault(book.path, name))
            stack.enter_context(_explaining(book, vault, name))
        yield Delivery(order, book, vault, place, name, charge)


@contextmanager
def _explaining(book: Ledger, vault: Vault, reservation: str) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        try:
            charged = find_charged(book, reservation)
        except DiscreetError:
            error.add_note(f"The budget may be spent: look at 'discreet ledger show {book.path}'.")
            raise error from None
        if not charged:
            remove_vault(vault.path)
        for entry in charged:
            if entry.completed_at is None:
                error.add_note(
                    f"The budget is spent: {book.path} was charged for release {entry.number} "
                    f"({entry.description}), which did not arrive. {explain_resuming(book, entry)}"
                )
        raise


def find_charged(book: Ledger, reservation: str) -> list[Entry]:
    """Return the entry under this name; none where the ledger was not charged."""
    return [one for one in book.releases() if one.reservation == reservation]


def list_waiting(book: Ledger, history: History) -> list[Entry]:
    """Return the releases that were paid for and have no bundle, and that can be resumed."""
    return [
        entry
        for entry in history.entries
        if entry.order is not None
        and (entry.completed_at is None or find_vault(book.path, entry.reservation).exists())
    ]


def explain_resuming(book: Ledger, entry: Entry) -> str:
    """Say how to get a release that was paid for."""
    answers = "" if has_values(find_vault(book.path, entry.reservation)) else " --answers FILE"
    ledger = shlex.quote(str(book.path))
    return (
        "Get it without paying again: "
        f"discreet ledger resume {ledger} {entry.number} --out DIR{answers}"
    )


def resume_release(
    ledger: Ledger | str | PathLike[str],
    release: int | str,
    data: Any = None,
    *,
    out: str | PathLike[str] | None = None,
    force: bool = False,
    engine: Engine = "auto",
    noise: Noise | None = None,
    **reading: Unpack[ListedWords],
) -> Published:
    """Return a release that was paid for, and write its bundle; nothing is charged.

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
    """
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    entry = book.find(release)
    order = read_order(book, entry)
    with open_delivery(
        order, book, out=out, force=force, reservation=entry.reservation
    ) as delivery:
        kept = None if delivery.vault is None else delivery.vault.read()
        if kept is not None:
            return delivery.deliver(restore_release(order, kept, ledger=book.id))
        # Read again: while this process waited for its turn, another may have finished.
        _check_undrawn(book, book.find(entry.reservation))
        if data is None:
            raise BadUsage(
                f"{book.path}: release {entry.number} stopped before its values were stored, so "
                "it needs the answers again (--answers FILE, in Python data=)."
            )
        with OPENERS[order.kind](data, engine, reading, list_public(order.public)) as source:
            if not entry.is_about(*book.recognise(source)):
                raise BadResponses(
                    f"{book.path}: these are not the answers that release {entry.number} was "
                    "charged for. Give those, or pay for another release."
                )
            return delivery.draw(source, noise or ExactNoise())


def read_order(book: Ledger, entry: Entry) -> Order:
    """Return what was asked for in a release that the ledger knows."""
    if entry.order is None:
        raise BadUsage(
            f"{book.path}: release {entry.number} was made by a version that did not record what "
            "was asked for, so it cannot be resumed."
        )
    with believe(book.path, f"release {entry.number}"):
        return Order.from_dict(entry.order, entry.spend, remake_mechanism)


def _check_undrawn(book: Ledger, entry: Entry) -> None:
    """Refuse to draw noise a second time for one charge."""
    if entry.completed_at is not None:
        raise BadUsage(f"{book.path}: release {entry.number} has arrived; nothing is left to do.")
    if entry.stored_at is not None:
        raise LedgerError(
            f"{book.path}: the values of release {entry.number} were stored beside the ledger and "
            "are gone. Noise is drawn once for one charge, so only they will do: bring "
            f"{find_vault(book.path, entry.reservation)} back from a backup."
        )
