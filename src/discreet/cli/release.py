"""``discreet release``, ``verify`` and ``translate``: publish a release, check it, translate it.

What every release is asked for, of answers or of comparisons, stands in groups of options; they
and the file of ``--spec`` make one :class:`~discreet.publishing.spec.ReleaseSpec`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

import typer

from discreet.atomic import check_place
from discreet.choices import Design, Estimator, PlainDict, Relation
from discreet.cli.answers import (
    Columns,
    Limits,
    ReleaseLimits,
    ReleaseReading,
    TableOptions,
    check_engine,
    list_words,
    open_source,
)
from discreet.cli.options import Language
from discreet.cli.output import list_rows, note, print_columns, say, show_result
from discreet.errors import BadUsage
from discreet.text import name_some

if TYPE_CHECKING:
    from discreet.privacy.ledger import AnyLedger
    from discreet.privacy.ledger.request import Request
    from discreet.publishing.bundle import Published
    from discreet.publishing.spec import ReleaseSpec


Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class ReleaseTerms:
    """What is released, what it may cost, and who it is; None where nobody said."""

    PANEL: ClassVar[str] = "Guarantee and identity"

    items: Path | None = None
    epsilon: float | None = None
    ledger: Path | None = None
    delta: float | None = None
    neighbours: Relation | None = None
    mechanism: str | None = None
    population: str | None = None
    about: Path | None = None
    language: Language | None = None
    looked: bool = False
    spec: Path | None = None
    title: str | None = None
    edition: str | None = None
    supersedes: str | None = None
    because: str | None = None
    audit: Path | None = None

    def list_stated(self) -> PlainDict:
        """Return what was stated, by the keywords of :func:`discreet.release`."""
        words = _list_stated(self)
        texts = {own: words.pop(name) for name, own in TEXTS.items() if name in words}
        for name in ("ledger", "spec", "request"):
            words.pop(name, None)
        if not texts:
            return words
        from discreet.publishing.identity import make_identity

        return {**words, "about": make_identity(self.about).add(texts)}


#: Options for texts of the identity, and what these are called in its file.
TEXTS = {
    **{"title": "title", "edition": "version", "supersedes": "supersedes"},
    **{"because": "reason", "language": "language"},
}


def _list_stated(options: object) -> PlainDict:
    values = vars(options).items()
    return {name: value for name, value in values if value is not None and value is not False}


@dataclass(frozen=True, kw_only=True)
class RequestedTerms(ReleaseTerms):
    """The same, or an approved request that says it all."""

    request: Path | None = None


@dataclass(frozen=True, kw_only=True)
class ReleaseStudy:
    """What is public about who answered what; None where nobody said."""

    PANEL: ClassVar[str] = "Study"
    KIND: ClassVar[str] = "answers"

    max_answers: int | None = None
    persons: int | None = None
    forms: Path | None = None
    design: Design | None = None
    dif: str | None = None
    groups: str | None = None
    means: str | None = None
    calibration: Path | None = None
    least: int | None = None
    reference: str | None = None
    centre: Path | None = None
    estimator: Estimator | None = None
    rater: str | None = None
    weight: str | None = None


@dataclass(frozen=True, kw_only=True)
class ComparisonStudy:
    """What is public about who compared what."""

    KIND: ClassVar[str] = "comparisons"

    max_comparisons: int | None = None
    judges: int | None = None


@dataclass(frozen=True, kw_only=True)
class DeliveryOptions:
    """Where a release goes, and how it is shown."""

    PANEL: ClassVar[str] = "Output"

    out: Path
    force: bool = False
    as_json: bool = False

    @property
    def place(self) -> PlainDict:
        """What a release takes of it."""
        return {"out": self.out, "force": self.force}

    def release(
        self,
        file: str,
        limits: Limits,
        spec: ReleaseSpec,
        ledger: AnyLedger,
        request: Request | None,
    ) -> None:
        """Release what was stated, or approved, and show it."""
        from discreet.publishing.delivery import DeliveryTerms, release_spec

        terms = DeliveryTerms(ledger, request=request, **self.place)
        with self.showing() as show, open_source(file, limits) as source:
            show(release_spec(source, spec, terms))

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


def state_release(
    terms: ReleaseTerms, study: ReleaseStudy | ComparisonStudy, reading: ReleaseReading | Columns
) -> ReleaseSpec:
    """Return the specification that options and the file of ``--spec`` make."""
    from discreet.publishing.spec import read_spec

    if isinstance(study, ComparisonStudy) and terms.spec is None:
        need(study.max_comparisons, "--max-comparisons")
    is_listed = isinstance(study, ReleaseStudy) and study.calibration
    need(terms.items or terms.spec or is_listed, "--items")
    words = {**terms.list_stated(), **_list_stated(study), **state_reading(reading)}
    words |= _name_groups(words)
    refused = {name: words.pop(name) for name in ("rater", "weight") if name in words}
    if refused:
        words["reading"] = {**words.get("reading", {}), **refused}
    return read_spec(words, kind=study.KIND, file=terms.spec)


def _name_groups(words: PlainDict) -> PlainDict:
    """Return the groups of ``--dif`` or ``--means`` as Python has them."""
    names = ("dif", "groups", "means", "calibration", "least")
    dif, groups, means, calibration, least = (words.pop(name, None) for name in names)
    if dif is not None and means is not None:
        raise BadUsage("--dif and --means are two releases; make one after the other")
    if ((dif or means) is None) != (groups is None):
        raise BadUsage(
            "--groups A,B belongs to --dif COL or --means COL: the groups are stated in advance"
        )
    if (means is None) != (calibration is None) or (means is None and least is not None):
        raise BadUsage("--means COL needs --with BUNDLE, and --with and --least are for --means")
    if means is None:
        return {} if dif is None else {"groups": {dif: groups.split(",")}}
    from discreet.publishing.spec import word_means

    more = {} if least is None else {"least": least}
    return word_means(calibration, {means: groups.split(",")}, items=words.get("items"), **more)


#: What a release is told about its items, and does not find by reading.
TOLD = ("lowest", "model")


def state_reading(reading: TableOptions) -> PlainDict:
    """Return what the options state about reading, apart from what the item list is told."""
    words = list_words(reading) if isinstance(reading, ReleaseReading) else vars(reading)
    usual = vars(type(reading)())
    stated = {name: words[name] for name, value in vars(reading).items() if value != usual[name]}
    told = {name: stated.pop(name) for name in TOLD if name in stated}
    return {**told, **({"reading": stated} if stated else {})}


def need(option_value: Value | None, name: str) -> Value:
    """Return an option's value, or say that it is missing."""
    if option_value is None:
        raise BadUsage(f"Missing option '{name}'. Only a release with --request can do without.")
    return option_value


def release(
    file: str,
    *,
    context: typer.Context,
    terms: RequestedTerms,
    study: ReleaseStudy,
    delivery: DeliveryOptions,
    reading: ReleaseReading,
    limits: ReleaseLimits,
) -> None:
    """Release item difficulties with a privacy guarantee. Charges the ledger first."""
    check_place(delivery.out, force=delivery.force)
    check_engine(limits)
    stated = _find_stated(context, terms, study, reading)
    delivery.release(file, limits, *stated)


def release_ranking(
    file: str,
    *,
    context: typer.Context,
    terms: RequestedTerms,
    study: ComparisonStudy,
    delivery: DeliveryOptions,
    reading: Columns,
) -> None:
    """Release strengths with a privacy guarantee for each judge. Charges the ledger first."""
    check_place(delivery.out, force=delivery.force)
    stated = _find_stated(context, terms, study, reading)
    delivery.release(file, Limits(), *stated)


def _find_stated(
    context: typer.Context,
    terms: RequestedTerms,
    study: ReleaseStudy | ComparisonStudy,
    reading: ReleaseReading | Columns,
) -> tuple[ReleaseSpec, AnyLedger, Request | None]:
    """Return what was stated or approved, its ledger and request; refuse another kind of data."""
    if (file := terms.request) is None:
        return state_release(terms, study, reading), need(terms.ledger, "--ledger"), None
    # Refuse options about what is released and how it is read: only what was approved is.
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        is_typed = source is not None and source.name == "COMMANDLINE"
        if is_typed and parameter.name not in FREE_BESIDE:
            name, *_ = (*parameter.opts, *parameter.secondary_opts)
            raise BadUsage(
                f"{name} cannot be given with --request, which says what is released. Leave it "
                "out, or propose another release."
            )
    from discreet.publishing.spec import read_request

    spec, ledger, request = read_request(file, terms.ledger)
    if spec.public.kind != study.KIND:
        right = "compare release" if spec.public.kind == "comparisons" else "release"
        raise BadUsage(f"{file} is a request for {spec.public.kind}: use 'discreet {right}'.")
    return spec, ledger, request


#: What a request does not say: where the data is, who pays, where the release goes.
FREE_BESIDE = {
    *("file", "request", "ledger", "out", "force", "as_json"),
    *("engine", "memory", "spill", "quiet", "threads", "version"),
}


def show_release(released: Published, delivery: DeliveryOptions) -> None:
    """Say where a release was written, and print it."""
    note(released.record["choice"])
    for warning in released.estimate.warnings:
        note(str(warning))
    note(f"Wrote {delivery.out} (may be published)")
    document, as_json = _release_document(released), delivery.as_json
    show_result(document, lambda: print_release(released), as_json=as_json)


def _say_delivered(released: Published, out: Path) -> str:
    """Say that a release is complete and paid for, whatever went wrong afterwards."""
    from discreet.publishing.delivery import DO_NOT_REPEAT

    charge = released.record["charge"]
    paid = "" if charge is None else f" and the ledger was charged for release {charge['release']}"
    return f"The release is complete: {out} holds the bundle{paid}. {DO_NOT_REPEAT}"


def _release_document(released: Published) -> PlainDict:
    from discreet.publishing.group_differences import PrivateDif
    from discreet.report.formats import list_thresholds

    guarantee, estimate, rows = released.guarantee, released.estimate, list_rows(released.to_dict())
    thresholds = list_thresholds(estimate) if estimate.has_steps else [{}] * len(rows)
    groups = released.about_groups
    name = "dif" if isinstance(groups, PrivateDif) else "means"
    return {
        **({} if groups is None else {name: list_rows(groups.to_dict())}),
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
        **({"model": estimate.model} if estimate.has_steps else {}),
        "items": [{**row, **more} for row, more in zip(rows, thresholds, strict=True)],
    }


def print_release(released: Published) -> None:
    """Print the guarantee and the item table."""
    from discreet.publishing.group_differences import PrivateDif

    say(released.summary)
    say()
    columns = released.to_dict()
    print_columns(columns, [*columns])
    if released.estimate.has_steps:
        say()
        steps = released.estimate.thresholds_to_dict()
        print_columns(steps, [name for name in steps if name != "status"])
    if (groups := released.about_groups) is not None:
        say()
        columns = groups.to_dict()
        print_columns(columns, [*columns])
        if isinstance(groups, PrivateDif):
            say(f"No item differs by more than {groups.largest:.2f} logits (95% confidence).")


def translate(bundle: Path, *, language: Language, out: Path, force: bool = False) -> None:
    """Write a release once more in another language: the same numbers, nothing is charged."""
    check_place(out, force=force)
    from discreet.publishing.verification import read_published

    read_published(bundle).save(out, force=force, language=language)
    note(f"Wrote {out} (may be published)")


def verify(bundle: Path) -> None:
    """Check that a release is complete and unmodified, and name what lies beside it."""
    from discreet.publishing import verification

    others = verification.verify(bundle)
    count = sum(1 for _ in bundle.iterdir()) - len(others)
    say(f"{bundle} is complete and unmodified: {count} files.")
    if others:
        say(f"No part of it, and not checked: {name_some(others)}.")
