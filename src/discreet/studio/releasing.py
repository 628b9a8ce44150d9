"""Making a release: once for one ticket, whatever happens on the way. Runs in a worker.

In: the answers, how they are read, the terms, and the ticket. Out: the folder of the release, which
lies where it stays. The ledger is charged under the ticket's own name, so that a task that is begun
again finds what the first one paid for, and delivers that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from discreet.answers.opening import open_answers, plan_words
from discreet.answers.protocol import Answers
from discreet.answers.reading import read_planned
from discreet.atomic import PRIVACY_FILE
from discreet.privacy.ledger import Ledger
from discreet.publishing.delivery import find_charged, read_order, resume_release
from discreet.publishing.release import release
from discreet.publishing.spec import Listing, read_public_listing
from discreet.studio.look import counting
from discreet.studio.session import StudioSession, Ticket
from discreet.studio.terms import ReleaseFields
from discreet.studio.worker import TaskProgress
from discreet.tables.dataset import is_too_large
from discreet.tables.reading import Reading

TOLD = ("model", "lowest")
"""Words about answers that a release is told by its terms."""


def list_words(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return how the answers are read for a release."""
    return {name: value for name, value in options.items() if name not in TOLD}


def start_release(session: StudioSession, ticket: Ticket) -> Any:
    """Begin the job of a ticket."""
    arguments = {"reservation": ticket.name, "ledger": ticket.ledger, "out": ticket.place}
    work, terms = ticket.work, ticket.terms
    arguments |= {"source": work and work.source, "options": dict(work.options) if work else {}}
    if terms is None:
        return session.jobs.start("Fetching a release that was paid for", finish, **arguments)
    return session.jobs.start("Making the release", make, **arguments, terms=terms)


def make(
    progress: TaskProgress,
    reservation: str,
    ledger: Path,
    out: Path,
    source: Path,
    options: Mapping[str, Any],
    terms: ReleaseFields,
) -> str:
    """Make a release, or deliver the one that this reservation paid for; return its folder."""
    if find_charged(Ledger.open(ledger), reservation):
        return finish(progress, reservation, ledger, out, source, options)
    progress.begin("Reading the answers")
    with _open(progress, source, options, terms.listing) as answers:
        progress.commit()
        progress.begin("Charging the ledger, drawing the noise, writing the release")
        release(
            answers,
            terms.budget,
            **terms.keywords,
            ledger=ledger,
            out=out,
            reservation=reservation,
            looked=terms.looked,
        )
    return out.name


def finish(
    progress: TaskProgress,
    reservation: str,
    ledger: Path,
    out: Path,
    source: Path | None,
    options: Mapping[str, Any],
) -> str:
    """Deliver a release that was paid for; return its folder."""
    if (out / PRIVACY_FILE).exists():
        return out.name
    book = Ledger.open(ledger)
    entry = book.find(reservation)
    order = read_order(book, entry)
    progress.begin("Fetching what was paid for")
    if source is None or entry.has_values:
        progress.commit()
        resume_release(book, reservation, out=out)
        return out.name
    with _open(progress, source, options, read_public_listing(order.public)) as answers:
        progress.commit()
        resume_release(book, reservation, answers, out=out)
    return out.name


@contextmanager
def _open(
    progress: TaskProgress, source: Path, options: Mapping[str, Any], listing: Listing
) -> Iterator[Answers]:
    """Give the answers as the terms say they are to be read, large ones where they are."""
    words: Any = list_words(options)
    reading = listing.read(plan_words(source, words) or Reading())
    if is_too_large(source, reading):
        with open_answers(source, "disk", reading=reading) as streamed:
            yield streamed
    else:
        yield read_planned(source, reading, counting(progress, source))
