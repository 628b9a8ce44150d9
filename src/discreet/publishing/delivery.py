"""Delivery: what was paid for arrives, whatever happens on the way.

In: an order, a ledger, the folder where the bundle shall appear. Out: the same steps for answers
and for comparisons, each of them safe to die after:

1. the place to write is held, with room for the bundle;
2. room for the noisy values is taken beside the ledger, and then the ledger is charged;
3. the values are drawn, stored in that room, and noted in the ledger as stored;
4. the bundle appears, the ledger notes that the release is finished, the stored values go.

Until step 3 the release can be made from the order in the ledger and the answers; after it, from
the stored values, and only from them: noise is drawn once.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from discreet.errors import DiscreetError
from discreet.models.released import estimate_release
from discreet.place import Place, hold_place
from discreet.privacy.ledger.book import Ledger
from discreet.privacy.ledger.history import Entry
from discreet.privacy.ledger.vault import Vault, find_vault, has_values, open_vault, remove_vault
from discreet.privacy.orders import Order
from discreet.privacy.wall import Release
from discreet.publishing.bundle import bundle_texts, describe_release, write_bundle
from discreet.results.estimate import Estimate

BUNDLE_BYTES, ITEM_BYTES = 40_000, 1_200
"""A bundle's size, generously: the page with its styles, and each item in every file. Measured:
19 kB with 5 items, 125 kB with 300, 507 kB with 1,500 of 27 letters each."""

Made = TypeVar("Made")
Make = Callable[[Estimate, dict[str, Any], Release, Path | None], Made]
"""Puts together what the caller gets: estimate, record, noisy values, and where they wait."""


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

    def prepare(self, size: int) -> None:
        """Take room for the values, then charge the ledger."""
        if self.book is None or self.vault is None:
            return
        self.vault.make_room(size)
        if self.charge is not None:
            self.book.reserve(**self.charge, reservation=self.reservation)

    def keep(self, parts: Sequence[bytes]) -> None:
        """Store the values, and note that they are stored."""
        if self.book is None or self.vault is None:
            return
        self.vault.keep(parts)
        self.book.note_stored(self.reservation)

    def deliver(self, released: Release, make: Make[Made]) -> Made:
        """Estimate, write the bundle where there is a place for it, and call it finished."""
        estimate = estimate_release(released)
        record = describe_release(released, estimate, self.order.choice, self.order.kind)
        if self.place is not None:
            self.place.fill(bundle_texts(estimate, record))
        if self.book is not None:
            self.book.complete(self.reservation)
        stored = None if self.vault is None else self.vault.path
        if self.place is not None and stored is not None:
            remove_vault(stored)
            stored = None
        return make(estimate, record, released, stored)


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
            room = BUNDLE_BYTES + ITEM_BYTES * len(order.public.items)
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
            charged = [one for one in book.releases() if one.reservation == reservation]
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


def explain_resuming(book: Ledger, entry: Entry) -> str:
    """Say how to get a release that was paid for."""
    answers = "" if has_values(find_vault(book.path, entry.reservation)) else " --answers FILE"
    ledger = shlex.quote(str(book.path))
    return (
        "Get it without paying again: "
        f"discreet ledger resume {ledger} {entry.number} --out DIR{answers}"
    )


def write_stored(
    folder: str | PathLike[str],
    estimate: Estimate,
    record: Mapping[str, Any],
    stored: Path | None,
    *,
    force: bool,
) -> None:
    """Write the bundle of a release, whose stored values are not needed any more then."""
    write_bundle(folder, estimate, record, force=force)
    if stored is not None:
        remove_vault(stored)
