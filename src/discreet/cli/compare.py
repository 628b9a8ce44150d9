"""``discreet compare``: rank objects from pairwise comparisons, or release the ranking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from discreet.atomic import check_place
from discreet.cli.answers import Columns, Limits, open_source, read_votes
from discreet.cli.approvals import NewRequest, write_request
from discreet.cli.options import AsJson, argument, flag, option
from discreet.cli.output import list_rows, note, print_columns, print_json, say, working
from discreet.cli.release import (
    DeliveryOptions,
    ReleaseTerms,
    RequestFile,
    need,
    open_request,
    state_release,
)

if TYPE_CHECKING:
    from discreet.publishing.spec import ReleaseSpec

ComparisonsFile = Annotated[
    str, argument("FILE", "The comparisons: CSV, TSV or Parquet, also .gz.")
]


def rank(
    file: ComparisonsFile,
    *,
    k: Annotated[int, option("K", "Say who is in the top K.", "-k", "--count", min=0)] = 1,
    method: Annotated[
        Literal["refined", "spectral"],
        flag("refined: Bradley-Terry likelihood. spectral: rank centrality."),
    ] = "refined",
    as_json: AsJson = False,
    reading: Columns,
) -> None:
    """Estimate strengths, without privacy, and name the strongest objects. Confidential."""
    data = read_votes(file, reading)
    from discreet.models.compared import rank_comparisons

    with working("Estimating strengths"):
        strengths = rank_comparisons(data, method=method)
        ranking = strengths.rank(min(k, int(strengths.estimate.estimated.sum())))
    columns = strengths.to_dict()
    for sentence in strengths.warnings:
        note(sentence)
    if as_json:
        top = {name: list(getattr(ranking, name)) for name in ("top", "surely_in", "possibly_in")}
        about = {"judges": strengths.judges, "method": strengths.method}
        print_json({**about, **top, "items": list_rows(columns)})
        return
    say(f"{strengths.judges:,} judges, {data.n_comparisons:,} comparisons, {strengths.method}")
    say()
    names = ["item", "strength", "se", "lower", "upper", "compared", "won"]
    print_columns(columns, names + ["status"] * (set(columns["status"]) != {"estimated"}))
    say()
    say(f"Top {len(ranking.top)}: {', '.join(ranking.top)}")
    say(f"Surely in (95%): {', '.join(ranking.surely_in) or 'none'}")
    say(f"Possibly in:     {', '.join(ranking.possibly_in)}")


@dataclass(frozen=True, kw_only=True)
class ComparisonStudy:
    """What is public about who compared what."""

    max_comparisons: Annotated[
        int | None, option("C", "Use at most C comparisons of each judge.", min=1)
    ] = None
    judges: Annotated[
        int | None,
        option("N", "The public number of judges, fixed in advance. Default: counted in the data."),
    ] = None


def release(
    file: ComparisonsFile,
    *,
    context: typer.Context,
    terms: ReleaseTerms,
    study: ComparisonStudy,
    delivery: DeliveryOptions,
    request: RequestFile = None,
    reading: Columns,
) -> None:
    """Release strengths with a privacy guarantee for each judge. Charges the ledger first."""
    check_place(delivery.out, force=delivery.force)
    ledger, signed = terms.ledger, None
    if request is None:
        spec = state_ranking(terms, study, reading)
        need(ledger, "--ledger")
    else:
        spec, ledger, signed = open_request(context, request, terms, kind="comparisons")
    with delivery.showing() as show, open_source(file, Limits()) as source:
        show(delivery.release(source, spec, ledger, signed))


def propose(
    *, terms: ReleaseTerms, study: ComparisonStudy, out: NewRequest, reading: Columns
) -> None:
    """Write down a release of comparisons for others to approve. No data is touched."""
    write_request(state_ranking(terms, study, reading), terms.ledger, out)


def state_ranking(terms: ReleaseTerms, study: ComparisonStudy, reading: Columns) -> ReleaseSpec:
    """Return the specification that options and the file of ``--spec`` make."""
    if terms.spec is None:
        need(study.max_comparisons, "--max-comparisons")
    return state_release(terms, study, reading, kind="comparisons")
