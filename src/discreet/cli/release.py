"""``discreet release`` and ``verify``: what is published, and whether it is whole.

What every release is asked for, of answers or of comparisons, stands in two groups of options.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.atomic import check_place
from discreet.cli.answers import (
    AnswersFile,
    Columns,
    Limits,
    ReleaseReading,
    check_engine,
    open_answers,
)
from discreet.cli.documents import list_thresholds
from discreet.cli.options import (
    EPSILON,
    AsJson,
    Delta,
    Design,
    Estimator,
    Force,
    Language,
    Neighbouring,
    argument,
    flag,
    option,
)
from discreet.cli.output import list_rows, note, print_columns, print_json, say
from discreet.errors import BadUsage
from discreet.results.kinds import find_kind

if TYPE_CHECKING:
    from discreet.privacy.ledger import Ledger
    from discreet.privacy.ledger.request import Request
    from discreet.publishing.bundle import Published
    from discreet.publishing.identity import Identity
    from discreet.publishing.spec import Listing
    from discreet.tables.reading import Reading as ReadingPlan


@dataclass(frozen=True, kw_only=True)
class ReleaseTerms:
    """What is released, and what it may cost."""

    items: Annotated[
        Path | None,
        option(
            "LIST",
            "A file with one item per line, or a table with the columns item and steps, fixed "
            "without looking at the data.",
        ),
    ] = None
    epsilon: Annotated[float | None, EPSILON] = None
    delta: Delta = 1e-6
    ledger: Annotated[
        Path | None, option("FILE", "The ledger to charge (see `discreet ledger create`).")
    ] = None
    mechanism: Annotated[
        str, option("NAME", "auto (from the list and the cap), or one of those below.")
    ] = "auto"
    neighbours: Neighbouring = "replace-one"
    population: Annotated[
        str,
        option(
            "NAME",
            "Whom the data is about, as declared with `discreet ledger population`; 'everyone' "
            "contains every population.",
        ),
    ] = "everyone"
    about: Annotated[
        Path | None,
        option("TOML", "A file that says who the release is: title, version, body, contact, note."),
    ] = None
    title: Annotated[str | None, option("TEXT", "What the release is called.")] = None
    edition: Annotated[str | None, option("TEXT", "Its version, such as 2.")] = None
    supersedes: Annotated[
        str | None, option("VERSION", "The version of the same release that it takes the place of.")
    ] = None
    because: Annotated[str | None, option("TEXT", "Why it does so.")] = None
    language: Annotated[Language | None, flag("Of page and statement. Default: en.")] = None
    audit: Annotated[
        Path | None, option("FILE", "What `discreet audit --json` printed, to be published.")
    ] = None
    looked: Annotated[
        bool,
        flag(
            "The data, or a result of it, was looked at before these parameters were set. The "
            "statement then says so.",
            "--looked",
        ),
    ] = False

    @property
    def identity(self) -> Identity:
        """Who the release is: the file, and what the options say beside it."""
        from discreet.publishing.identity import make_identity

        words = {
            "title": self.title,
            "version": self.edition,
            "supersedes": self.supersedes,
            "reason": self.because,
            "language": self.language,
        }
        return make_identity(self.about).add(words)


@dataclass(frozen=True, kw_only=True)
class ReleaseStudy:
    """What is public about who answered what."""

    max_answers: Annotated[
        int | None,
        option("Q", "Use at most Q answers of each person. Default: as many as there are items."),
    ] = None
    persons: Annotated[
        int | None,
        option(
            "N", "The public number of persons, fixed in advance. Default: counted in the data."
        ),
    ] = None
    forms: Annotated[
        Path | None,
        option("FILE", "A table with the columns form and item: each person was given one form."),
    ] = None
    design: Annotated[
        Design,
        flag("Who answered what. complete: everybody all items of a form. random: a part that "
             "does not depend on ability."),
    ] = "unknown"  # fmt: skip
    estimator: Annotated[
        Estimator,
        flag("How noisy values become difficulties. spectral: the paper's Algorithm 2, for the "
             "mechanisms pairs, sparse-pairs and laplace-pairs. The noise and the charge are the "
             "same; its error is 1.1 to 1.6 times as large."),
    ] = "noise-aware"  # fmt: skip

    def tell(self, lowest: int | None, model: str) -> dict[str, Any]:
        """Return what a release is told about its items besides their list."""
        from discreet.tables.lists import read_form_list

        forms = None if self.forms is None else read_form_list(self.forms)
        return {"forms": forms, "design": self.design, "lowest": lowest or 0, "model": model}


RequestFile = Annotated[
    Path | None,
    option(
        "FILE",
        "What was proposed and approved; it is released exactly so, and no other option about what "
        "is released goes with it.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class DeliveryOptions:
    """Where a release goes, and how it is shown."""

    out: Annotated[Path, option("DIR", "The new folder to publish.")]
    force: Force = False
    as_json: AsJson = False

    @property
    def place(self) -> dict[str, Any]:
        """What a release takes of it."""
        return {"out": self.out, "force": self.force}

    @contextmanager
    def showing(self) -> Iterator[Callable[[Published], None]]:
        """Show the release that the block makes, once the block has ended.

        Whatever goes wrong after the release was made (the data is closed, the result is printed)
        says that the bundle is there and what was charged for it.
        """
        delivered: list[Published] = []
        try:
            yield delivered.append
            for released in delivered:
                show_release(released, self)
                sys.stdout.flush()
        except BaseException as error:
            for released in delivered:
                error.add_note(_say_delivered(released, self.out))
            raise


def tell_apart(reading: ReleaseReading) -> ReleaseReading:
    """Return how a file is read, without what the list of items says."""
    return replace(reading, lowest=None, model="auto")


def need(option_value: Any, name: str) -> Any:
    """Return an option's value, or say that it is missing."""
    if option_value is None:
        raise BadUsage(f"Missing option '{name}'. Only a release with --request can do without.")
    return option_value


def settle(terms: ReleaseTerms, kind: str = "answers") -> dict[str, Any]:
    """Refuse what can be refused before the data is read; return what a release takes."""
    items, epsilon, ledger = (
        need(getattr(terms, name), f"--{name}") for name in ("items", "epsilon", "ledger")
    )
    from discreet.privacy.accounting import Budget
    from discreet.privacy.ledger import Ledger
    from discreet.privacy.mechanisms import check_mechanism
    from discreet.tables.lists import read_items, read_list

    listed = read_items(items) if kind == "answers" else read_list(items)
    budget = Budget(epsilon, terms.delta, terms.neighbours)
    check_mechanism(terms.mechanism, kind)
    return {
        "items": listed,
        "budget": budget,
        "mechanism": terms.mechanism,
        "ledger": Ledger.open(ledger),
        "population": terms.population,
        "about": terms.identity,
        "audit": terms.audit,
        "looked": terms.looked,
    }


def check_allowed(
    kind: str, settled: dict[str, Any], listing: Listing, cap: int | None, people: int | None
) -> None:
    """Refuse what the ledger does not allow, before the data is opened."""
    from discreet.publishing.spec import ReleaseSpec
    from discreet.publishing.spec import check_allowed as check

    spec_fields = settled["budget"], listing, cap, people, settled["mechanism"]
    spec = ReleaseSpec(kind, *spec_fields, estimator=settled.get("estimator", "noise-aware"))
    check(settled["ledger"], spec, settled["population"], None)


def release(
    file: AnswersFile,
    *,
    context: typer.Context,
    request: RequestFile = None,
    study: ReleaseStudy,
    terms: ReleaseTerms,
    delivery: DeliveryOptions,
    limits: Limits,
    reading: ReleaseReading,
) -> None:
    """Release item difficulties with a privacy guarantee. Charges the ledger first."""
    check_place(delivery.out, force=delivery.force)
    check_engine(limits)
    if request is not None:
        approved = open_request(context, request, terms, "answers")
        opened = open_answers(file, reading, limits, "Releasing", approved.plan)
        with delivery.showing() as show, opened as answers:
            show(approved.release(answers, delivery))
        return
    release_reading = tell_apart(reading)
    from discreet.publishing.release import release as publish
    from discreet.publishing.spec import make_listing

    settled = {**settle(terms), **study.tell(reading.lowest, reading.model)}
    settled["estimator"] = study.estimator
    listing_names = ("items", "forms", "design", "lowest", "model")
    listing = make_listing(**{name: settled[name] for name in listing_names})
    check_allowed("answers", settled, listing, study.max_answers, study.persons)
    settled |= {"max_answers": study.max_answers, "persons": study.persons}
    opened = open_answers(file, release_reading, limits, "Releasing", listing.read)
    with delivery.showing() as show, opened as answers:
        show(publish(answers, **settled, **delivery.place))


@dataclass(frozen=True)
class Approved:
    """A request that may be carried out, with its ledger."""

    request: Request
    ledger: Ledger
    listing: Listing
    words: dict[str, Any]

    def plan(self, _said: ReadingPlan) -> ReadingPlan:
        """Return how answers are read: as approved, whatever else was said."""
        from discreet.tables.reading import Reading

        return self.listing.read(Reading(**self.words))

    def release(self, data: Any, delivery: DeliveryOptions) -> Published:
        """Release what was approved."""
        from discreet.publishing.requests import release_request

        return release_request(data, self.request, ledger=self.ledger, **delivery.place)


def open_request(context: typer.Context, file: Path, terms: ReleaseTerms, kind: str) -> Approved:
    """Return what was approved, or refuse it before the data is opened."""
    _refuse_beside(context)
    from discreet.privacy.ledger.request import Request
    from discreet.publishing.requests import open_ledger, read_wanted
    from discreet.publishing.spec import check_allowed as check
    from discreet.publishing.spec import unpack_reading

    request = Request.load(file)
    ledger = open_ledger(request, terms.ledger)
    spec = read_wanted(request)
    if spec.kind != kind:
        right = "compare release" if spec.kind == "comparisons" else "release"
        raise BadUsage(f"{file} is a request for {spec.kind}: use 'discreet {right}'.")
    check(ledger, spec, request.body["population"], request)
    return Approved(request, ledger, spec.listing, unpack_reading(request.body))


def _refuse_beside(context: typer.Context) -> None:
    """Refuse options about what is released and how it is read: only what was approved is."""
    groups = (ReleaseTerms, ReleaseStudy, ReleaseReading, Columns)
    option_names = {part.name for group in groups for part in fields(group)} - {"ledger"}
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        is_typed = source is not None and source.name == "COMMANDLINE"
        if is_typed and parameter.name in option_names | {"max_comparisons", "judges"}:
            name, *_ = (*parameter.opts, *parameter.secondary_opts)
            raise BadUsage(
                f"{name} stands beside --request, and what was approved is released exactly so. "
                "Leave it out, or propose another release."
            )


def show_release(released: Published, delivery: DeliveryOptions) -> None:
    """Say where a release was written, and print it."""
    note(released.record["choice"])
    for warning in released.estimate.warnings:
        note(str(warning))
    note(f"Wrote {delivery.out} (may be published)")
    if delivery.as_json:
        print_json(_release_document(released))
    else:
        print_release(released)


def _say_delivered(released: Published, out: Path) -> str:
    """Say that a release is complete and paid for, whatever went wrong afterwards."""
    from discreet.publishing.delivery import DO_NOT_REPEAT

    charge = released.record["charge"]
    paid = "" if charge is None else f" and the ledger was charged for release {charge['release']}"
    return f"The release is complete: {out} holds the bundle{paid}. {DO_NOT_REPEAT}"


def _release_document(released: Published) -> dict[str, Any]:
    guarantee, estimate, rows = released.guarantee, released.estimate, list_rows(_columns(released))
    thresholds = [{}] * len(rows) if estimate.ladder is None else list_thresholds(estimate)
    return {
        "mechanism": guarantee.mechanism,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "rho": guarantee.rho,
        "neighbours": str(guarantee.neighbours),
        **{
            name: released.record[name]
            for name in ("estimator", "floor")
            if "floor" in released.record
        },
        **({"model": estimate.model} if estimate.ladder is not None else {}),
        "items": [{**row, **more} for row, more in zip(rows, thresholds, strict=True)],
    }


def print_release(released: Published) -> None:
    """Print the guarantee and the item table."""
    say(f"{released.guarantee.mechanism}: {released.guarantee.summary}")
    say()
    columns = _columns(released)
    print_columns(columns, [*columns])
    if released.estimate.ladder is not None:
        say()
        steps = released.estimate.thresholds_to_dict()
        print_columns(steps, [name for name in steps if name != "status"])


def _columns(released: Published) -> dict[str, list[Any]]:
    """Return the numbers of each item, but for its status, which is the same for all."""
    columns = released.result.to_dict()
    return {name: columns[name] for name in find_kind(released.record).columns[:-1]}


def translate(
    bundle: Annotated[Path, argument("DIR", "What `release` wrote.")],
    *,
    language: Annotated[Language, flag("Of page and statement.")],
    out: Annotated[Path, option("DIR", "The new folder to publish.")],
    force: Force = False,
) -> None:
    """Write a release once more in another language: the same numbers, nothing is charged."""
    check_place(out, force=force)
    from discreet.publishing.verification import read_published

    read_published(bundle).save(out, force=force, language=language)
    note(f"Wrote {out} (may be published)")


def verify(bundle: Annotated[Path, argument("DIR", "What `release` wrote.")]) -> None:
    """Say whether a release is whole: nothing missing, nothing changed."""
    from discreet.publishing.verification import NO_CHECKSUMS, check_bundle

    files = check_bundle(bundle).get("files")
    if files is None:
        say(f"{bundle}: {NO_CHECKSUMS}.")
    else:
        say(f"{bundle} is whole: {len(files) + 1} files are as they were written.")
