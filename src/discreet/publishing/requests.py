"""Two pairs of eyes: a release is proposed without data, approved by others, and run as approved.

In: public parameters; then signatures; then data. Out: a request, and the release that it asks for
and no other. What a request must be is checked before the data is opened, and once more, with the
charge, in one transaction of the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, cast

from discreet.answers.judges import Comparisons
from discreet.answers.protocol import AnswerSource
from discreet.counts import PairCounts
from discreet.errors import BadUsage
from discreet.privacy.accounting import Budget
from discreet.privacy.ledger import EVERYONE, Ledger
from discreet.privacy.ledger.request import (
    Request,
    as_request,
    make_request,
    pack,
    unpack,
    write_decimal,
)
from discreet.privacy.mechanisms import choose_mechanism
from discreet.privacy.noise import ExactNoise, Noise
from discreet.privacy.protocol import NOISE_AWARE
from discreet.publishing.bundle import Published
from discreet.publishing.identity import About, describe_itself, make_identity
from discreet.publishing.release import DeliveryTerms, charge_and_release
from discreet.publishing.spec import (
    Forms,
    Items,
    ReleaseSpec,
    check_wanted,
    make_listing,
    pack_reading,
    unpack_reading,
)
from discreet.tables.reading import ListedWords
from discreet.types import (
    AnswerMechanism,
    ComparisonMechanism,
    Design,
    Engine,
    Estimator,
    Model,
)

AnyLedger = Ledger | str | PathLike[str]


def propose(
    budget: Budget,
    *,
    items: Items,
    ledger: AnyLedger,
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
    reading: Mapping[str, Any] | None = None,
) -> Request:
    """Write down a release that others shall approve; no data is touched.

    Parameters
    ----------
    budget, items, lowest, forms, design, model, max_answers, persons
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
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    if not isinstance(mechanism, str):
        raise BadUsage(
            "a request names its mechanism; one with settings of its own cannot be asked"
        )
    if persons is not None and (isinstance(persons, bool) or not isinstance(persons, int)):
        raise BadUsage(f"a request names the number of persons, found {persons!r}")
    listing = make_listing(items, forms, design, lowest, model)
    spec = ReleaseSpec(kind, budget, listing, max_answers, persons, mechanism, estimator=estimator)
    check_wanted(book, spec, population)
    public = spec.make_public(spec.declared)
    chosen, _ = choose_mechanism(mechanism, public, kind)
    description = {**describe_itself(None, audit), "identity": make_identity(about).to_dict()}
    return make_request(
        "release",
        book.id,
        {
            "kind": kind,
            "items": list(public.items),
            "steps": list(public.steps),
            "lowest": public.lowest,
            "forms": [list(form) for form in public.forms],
            "design": public.design,
            "model": public.model if public.has_steps else "rasch",
            "reading": pack_reading(kind, reading or {}, listing),
            "max_answers": public.max_answers,
            "persons": persons,
            "epsilon": write_decimal(budget.epsilon),
            "delta": write_decimal(budget.delta),
            "neighbours": str(budget.neighbours),
            "mechanism": chosen.name,
            "population": population,
            "ledger_file": str(book.path),
            "about": pack({name: one for name, one in description.items() if one}),
            "estimator": estimator,
            "chosen_by": spec.chooser,
            "looked": bool(looked),
        },
    )


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
        The file with a signing key, from ``discreet key``.
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
    proposal = as_request(request)
    book = open_ledger(proposal, ledger)
    approved = book.board().check_signed(proposal, "release")
    about = {
        **_tell_about(proposal),
        "approval": {
            "request": proposal.body["nonce"],
            "sha256": proposal.digest,
            "approvers": [approver.describe() for approver in approved],
        },
    }
    spec = read_wanted(proposal)
    was_read = isinstance(source, AnswerSource | PairCounts | Comparisons)
    words = None if was_read else cast(ListedWords, unpack_reading(proposal.body))
    terms = DeliveryTerms(
        book,
        proposal.body["population"],
        noise or ExactNoise(),
        out,
        force,
        about,
        request=proposal,
        looked=proposal.body.get("looked", False),
    )
    return charge_and_release(source, spec, terms, engine=engine, words=words)


def open_ledger(request: Request, ledger: AnyLedger | None) -> Ledger:
    """Return the ledger that a request is for; which one it must be is checked with the request."""
    if request.body["purpose"] != "release":
        raise BadUsage(
            "this request is about an approver: enter it with 'discreet ledger approver LEDGER "
            "--request FILE'"
        )
    source = request.body["ledger_file"] if ledger is None else ledger
    return source if isinstance(source, Ledger) else Ledger.open(source)


def read_wanted(request: Request) -> ReleaseSpec:
    """Return what a request asks for."""
    body = request.body
    if len(set(body["items"])) < len(body["items"]) or len(body["steps"]) != len(body["items"]):
        raise BadUsage("the request names an item twice, or not as many steps as items")
    steps = dict(zip(body["items"], body["steps"], strict=True))
    listing = make_listing(steps, body["forms"], body["design"], body["lowest"], body["model"])
    budget = Budget(float(body["epsilon"]), float(body["delta"]), body["neighbours"])
    people = body["max_answers"], body["persons"]
    return ReleaseSpec(
        body["kind"],
        budget,
        listing,
        *people,
        body["mechanism"],
        # Requests of the first format do not say who chose the mechanism.
        chosen_by=body.get("chosen_by", "unknown"),
        estimator=body.get("estimator", NOISE_AWARE),
    )


def _tell_about(request: Request) -> dict[str, Any]:
    """Return what the release says about itself; its date is today's unless one was asked for."""
    description: Mapping[str, Any] = unpack(request.body["about"])
    return {**description, **describe_itself(description.get("identity"), None)}
