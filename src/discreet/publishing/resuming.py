"""Resume a release that was paid for and did not arrive.

In: a ledger and one of its releases; the answers, where that release died before its values were
stored. Out: the same release, at no further charge. Stored values are always used: noise is drawn
once for one charge.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from os import PathLike
from typing import Any

from discreet.answers.opening import Contributions, open_persons
from discreet.errors import BadResponses, BadUsage, LedgerError
from discreet.models.compared import open_comparisons
from discreet.privacy.ledger.book import Ledger
from discreet.privacy.ledger.file import believe
from discreet.privacy.ledger.history import Entry
from discreet.privacy.ledger.vault import find_vault
from discreet.privacy.noise.backends import ExactNoise, Noise
from discreet.privacy.orders import Order
from discreet.privacy.wall import release_statistics, restore_release
from discreet.publishing.comparisons import PublishedRanking, make_ranking, release_wins
from discreet.publishing.delivery import Delivery, Make, open_delivery
from discreet.publishing.release import Published, draw_and_make, make_published


def resume_release(
    ledger: Ledger | str | PathLike[str],
    release: int | str,
    data: Any = None,
    *,
    out: str | PathLike[str] | None = None,
    force: bool = False,
    engine: str = "auto",
    noise: Noise | None = None,
) -> Published | PublishedRanking:
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
    """
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    entry = book.find(release)
    order = _read_order(book, entry)
    with open_delivery(
        order, book, out=out, force=force, reservation=entry.reservation
    ) as delivery:
        kept = None if delivery.vault is None else delivery.vault.read()
        if kept is not None:
            restored = restore_release(order, kept, ledger=book.id)
            return delivery.deliver(restored, MAKE[order.kind])
        # Read again: while this process waited for its turn, another may have finished.
        _check_undrawn(book, book.find(entry.reservation))
        if data is None:
            raise BadUsage(
                f"{book.path}: release {entry.number} stopped before its values were stored, so "
                "it needs the answers again (--answers FILE, in Python data=)."
            )
        with _open_data(data, order, engine) as source:
            if not entry.is_about(*book.recognise(source)):
                raise BadResponses(
                    f"{book.path}: these are not the answers that release {entry.number} was "
                    "charged for. Give those, or pay for another release."
                )
            return _draw(source, order, delivery, noise or ExactNoise())


MAKE: dict[str, Make[Published | PublishedRanking]] = {
    "answers": make_published,
    "comparisons": make_ranking,
}


def _open_data(data: Any, order: Order, engine: str) -> AbstractContextManager[Contributions]:
    if order.kind == "comparisons":
        return nullcontext(open_comparisons(data))
    return open_persons(data, engine)


def _draw(
    source: Contributions, order: Order, delivery: Delivery, noise: Noise
) -> Published | PublishedRanking:
    wall = release_wins if order.kind == "comparisons" else release_statistics
    return draw_and_make(source, order, delivery, noise, make=MAKE[order.kind], wall=wall)


def _read_order(book: Ledger, entry: Entry) -> Order:
    if entry.order is None:
        raise BadUsage(
            f"{book.path}: release {entry.number} was made by a version that did not record what "
            "was asked for, so it cannot be resumed."
        )
    with believe(book.path, f"release {entry.number}"):
        return Order.from_dict(entry.order, entry.spend)


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
