"""A preview: what a release will say, word for word, before anything is spent.

In: what shall be released, on whose account, and how many persons there will be. Out: the record
that the bundle would hold, as far as it follows from public parameters; or the refusal that the
release would meet. No answer is opened, and the ledger is not charged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from discreet.errors import BadUsage
from discreet.privacy.accounting import Neighbours
from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger.balance import History, LedgerEntry
from discreet.privacy.protocol import Order
from discreet.publishing.bundle import describe_choices, describe_public
from discreet.publishing.delivery import describe_account
from discreet.publishing.release import DeliveryTerms, make_order
from discreet.publishing.spec import ReleaseSpec, check_allowed
from discreet.results.kinds import KINDS

COUNTED = "as counted in the data"
"""Stands for a number of persons that is published and not known yet."""


@dataclass(frozen=True)
class Preview:
    """A release to come.

    Attributes
    ----------
    order
        What is asked for: public parameters, the mechanism, its noise.
    record
        What ``privacy.json`` will hold, but for what the noise decides.
    left
        The epsilon that is left for the population after it.
    """

    order: Order
    record: dict[str, Any]
    left: float


def preview_release(spec: ReleaseSpec, terms: DeliveryTerms, people: int) -> Preview:
    """Return what a release will say.

    Parameters
    ----------
    spec, terms
        As for the release.
    people
        How many persons (or judges) there will be, about; never counted in the data.
    """
    book = terms.book
    if book is None:
        raise BadUsage("a preview says what will be spent, so it needs the ledger")
    spec = check_allowed(book, spec, terms.population, terms.request)
    is_counted = spec.budget.neighbours is Neighbours.REPLACE_ONE
    order = make_order(spec, people if is_counted else None, terms)
    history = book.history()
    # The fingerprint of the answers is nobody's yet, so only the limit and the relation count.
    history.check(order.calibration.spend, "", None, terms.population)
    after = _charge(history, order, terms.population)
    return Preview(order, _describe(order, book, after), after.left(terms.population)[0])


def _charge(history: History, order: Order, population: str) -> History:
    """Return the history as it would be after the release."""
    entry = LedgerEntry(
        number=len(history.entries) + 1,
        reservation="",
        population=population,
        description="",
        spend=order.calibration.spend,
        reserved_at="",
        fingerprint="",
    )
    return replace(history, entries=(*history.entries, entry))


def _describe(order: Order, book: Ledger, after: History) -> dict[str, Any]:
    kind, public = order.kind, order.public
    counted = public.persons is not None and not public.is_fixed
    return {
        "kind": kind,
        "mechanism": order.name,
        **describe_choices(order),
        "guarantee": order.promise(ledger=book.id, is_private=True).to_dict(),
        **describe_public(kind, public, order.calibration.settings),
        **({KINDS[kind].persons: COUNTED} if counted else {}),
        **order.about,
        "account": describe_account(after, after.entries[-1]),
    }
