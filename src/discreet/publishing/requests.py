"""Two pairs of eyes: a release is proposed without data, approved by others, and run as approved.

In: public parameters; then signatures; then data. Out: a request, and the release that it asks for
and no other. What a request must be is checked before the data is opened, and once more, with the
charge, in one transaction of the ledger.
"""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import Any

from discreet.answers.judges import Comparisons
from discreet.answers.protocol import Answers
from discreet.counts import PairCounts
from discreet.errors import BadUsage
from discreet.privacy.accounting import Budget
from discreet.privacy.ledger import EVERYONE, Ledger
from discreet.privacy.ledger.request import Request, as_request, make_request
from discreet.privacy.noise import ExactNoise, Noise
from discreet.publishing.bundle import Published
from discreet.publishing.identity import About
from discreet.publishing.listed import DataSource
from discreet.publishing.release import DeliveryTerms, release_spec
from discreet.publishing.spec import (
    Forms,
    Items,
    ReleaseSpec,
    Words,
    check_spec,
    make_budget,
    make_spec,
)
from discreet.types import (
    AnswerMechanism,
    ComparisonMechanism,
    Design,
    Engine,
    Estimator,
    Model,
    Relation,
)

AnyLedger = Ledger | str | PathLike[str]


def propose(
    budget: Budget | None = None,
    *,
    items: Items,
    ledger: AnyLedger,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Relation | None = None,
    lowest: int = 0,
    forms: Forms | None = None,
    design: Design = "unknown",
    model: Model = "auto",
    max_answers: int | None = None,
    persons: int | None = None,
    mechanism: AnswerMechanism | ComparisonMechanism = "auto",
    estimator: Estimator = "noise-aware",
    population: str = EVERYONE,
    about: About = None,
    audit: str | PathLike[str] | None = None,
    looked: bool = False,
    kind: str = "answers",
    reading: Words | None = None,
) -> Request:
    """Write down a release that others shall approve; no data is touched.

    Parameters
    ----------
    budget, items, epsilon, delta, neighbours, lowest, forms, design, model, max_answers, persons
    population, about, audit, looked
        As for :func:`discreet.release`; of comparisons, ``max_answers`` is the cap on comparisons
        and ``persons`` the number of judges.
    ledger
        The ledger that shall be charged; the request is good for no other.
    mechanism
        A name; ``"auto"`` is settled here, so that approvers see which it is.
    estimator
        As for :func:`discreet.release`.
    kind
        ``"answers"``, or ``"comparisons"`` for :func:`discreet.release_comparisons`.
    reading
        How the file will be read: keywords of :func:`discreet.read_responses` (but for those about
        steps, which stand in the list of items) or of :func:`discreet.read_comparisons`, such as
        ``{"at_least": 3, "missing": 9}``. The release reads it so and not otherwise.

    Returns
    -------
    Request
        With ``save``, ``load`` and ``sign``; see :func:`discreet.approve`.

    Examples
    --------
    >>> import tempfile
    >>> import discreet
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = discreet.Ledger.create(folder.name + "/spent.db", epsilon=1.0)
    >>> request = discreet.propose(discreet.Budget(0.5), items=["a", "b", "c"], ledger=ledger)
    >>> request.body["epsilon"], request.body["mechanism"]
    ('0.5', 'pairs')
    >>> folder.cleanup()
    """
    spec = make_spec(
        make_budget(budget, epsilon, delta, neighbours),
        kind=kind,
        items=items,
        lowest=lowest,
        forms=forms,
        design=design,
        model=model,
        max_answers=max_answers,
        persons=persons,
        mechanism=mechanism,
        estimator=estimator,
        population=population,
        about=about,
        audit=audit,
        looked=looked,
        reading=reading,
    )
    return propose_spec(spec, ledger)


def propose_spec(spec: ReleaseSpec, ledger: AnyLedger) -> Request:
    """Return the request for a specification, unless the ledger does not allow it."""
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    check_spec(spec, book)
    return make_request("release", book.id, {**spec.to_dict(), "ledger_file": str(book.path)})


def approve(
    request: Request | str | PathLike[str],
    signing_key: str | PathLike[str],
    *,
    passphrase: str | None = None,
) -> Request:
    """Return a request with one more signature; a file that was given holds it then.

    Read the request before: ``request.body`` is what is signed.

    Parameters
    ----------
    request
        A request, or the file that holds one.
    signing_key
        The file with a signing key, from ``discreet steward key``.
    passphrase
        Of the key, where it has one.
    """
    signed = as_request(request).sign(signing_key, passphrase)
    if not isinstance(request, Request):
        signed.save(request)
    return signed


def release_request(
    source: Any,
    request: Request | str | PathLike[str],
    *,
    ledger: AnyLedger | None = None,
    engine: Engine = "auto",
    noise: Noise | None = None,
    out: str | PathLike[str] | None = None,
    force: bool = False,
) -> Published:
    """Release what was proposed and approved, exactly that.

    Parameters
    ----------
    source
        Answers or comparisons, as for :func:`discreet.release`. A table is read as the request
        says; what was read already is taken as it is.
    request
        What was approved, or the file that holds it.
    ledger
        The ledger that it is for; by default the file that was named when it was proposed.
    engine, noise, out, force
        As for :func:`discreet.release`; none of them is a public parameter of the release.

    Raises
    ------
    NotAllowed
        Where the request is for another ledger, was used before, was changed after it was signed,
        or is not signed by as many approvers of the ledger as it asks for.
    """
    spec, book, proposal = read_request(request, ledger)
    if isinstance(source, Answers | PairCounts | Comparisons):
        spec = replace(spec, reading={})
    terms = DeliveryTerms(book, noise or ExactNoise(), out, force, request=proposal)
    return release_spec(DataSource(source, engine), spec, terms)


def read_request(
    request: Request | str | PathLike[str], ledger: AnyLedger | None = None
) -> tuple[ReleaseSpec, Ledger, Request]:
    """Return what a request asks for, the ledger that it is for, and the request itself.

    Whether it is the right ledger is checked with the signatures, before the data is opened.
    """
    proposal = as_request(request)
    if proposal.body["purpose"] != "release":
        raise BadUsage(
            "this request is about an approver: enter it with 'discreet ledger approver LEDGER "
            "--request FILE'"
        )
    source = proposal.body["ledger_file"] if ledger is None else ledger
    book = source if isinstance(source, Ledger) else Ledger.open(source)
    return ReleaseSpec.from_dict(proposal.body), book, proposal
