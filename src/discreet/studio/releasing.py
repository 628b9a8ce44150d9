"""Making a release: once for one ticket, whatever happens on the way. Runs in a worker.

In: the answers, how they are read, the terms, and the ticket. Out: the folder of the release, which
lies where it stays. The ledger is charged under the ticket's own name, so that a task that is begun
again finds what the first one paid for, and delivers that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet.answers.opening import open_answers
from discreet.answers.protocol import Answers
from discreet.answers.reading import read_planned
from discreet.atomic import PRIVACY_FILE
from discreet.privacy.ledger import Ledger
from discreet.privacy.protocol import Public
from discreet.publishing.delivery import (
    DataSource,
    DeliveryTerms,
    find_charged,
    read_order,
    resume_release,
)
from discreet.publishing.release import release_spec
from discreet.publishing.spec import restrict_reading
from discreet.studio.look import counting
from discreet.studio.session import StudioSession, Ticket
from discreet.studio.terms import ReleaseForm
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
    terms: ReleaseForm,
) -> str:
    """Make a release, or deliver the one that this reservation paid for; return its folder."""
    if find_charged(Ledger.open(ledger), reservation):
        return finish(progress, reservation, ledger, out, source, options)
    progress.begin("Reading the answers")
    spec = terms.spec
    with _open(progress, source, spec.reading, spec.public) as answers:
        progress.commit()
        progress.begin("Charging the ledger, drawing the noise, writing the release")
        delivery = DeliveryTerms(ledger, out=out, reservation=reservation)
        release_spec(DataSource(answers), replace(spec, reading={}), delivery)
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
    with _open(progress, source, list_words(options), order.public) as answers:
        progress.commit()
        resume_release(book, reservation, answers, out=out)
    return out.name


@contextmanager
def _open(
    progress: TaskProgress, source: Path, words: Mapping[str, Any], public: Public
) -> Iterator[Answers]:
    """Give the answers as the terms say they are to be read, large ones where they are."""
    reading = restrict_reading(public, Reading(**words))
    if is_too_large(source, reading):
        with open_answers(source, "disk", reading=reading) as streamed:
            yield streamed
    else:
        yield read_planned(source, reading, counting(progress, source))
