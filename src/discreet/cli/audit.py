"""``discreet audit``: attack a mechanism, report the epsilon that the attack could prove."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.options import (
    AsJson,
    Delta,
    Epsilon,
    Neighbouring,
    Relation,
    Shared,
    command,
    explain_mechanisms,
    name_mechanisms,
)
from discreet.cli.output import print_json, say, working

if TYPE_CHECKING:
    from discreet.privacy.accounting.budget import Budget
    from discreet.privacy.audit import AuditReport


Attacked = Annotated[
    str,
    typer.Option(
        "--mechanism",
        metavar="NAME",
        help=f"{name_mechanisms('answers')}; for comparisons {name_mechanisms('comparisons')}.",
    ),
]
Items = Annotated[int, typer.Option(metavar="M", min=2, help="Items of the release you plan.")]
MaxAnswers = Annotated[
    int | None,
    typer.Option(
        metavar="Q", min=1, help="Its cap on answers per person (default: half of the items)."
    ),
]
Runs = Annotated[
    int | None,
    typer.Option(
        metavar="R",
        min=100,
        help="Releases per attack and data set (default: enough for the wanted power).",
    ),
]
Power = Annotated[
    float,
    typer.Option(
        metavar="P", min=0.5, max=0.999, help="The chance with which a fault must be found out."
    ),
]


def audit(
    *,
    mechanism: Attacked,
    epsilon: Epsilon,
    delta: Delta = 1e-6,
    neighbours: Neighbouring = Relation.REPLACE_ONE,
    items: Items = 20,
    max_answers: MaxAnswers = None,
    runs: Runs = None,
    power: Power = 0.9,
    as_json: AsJson = False,
    shared: Shared,
) -> None:
    """Attack a mechanism on made-up data. Exit code 1 says that its promise was refuted."""
    from discreet.privacy.accounting.budget import Budget, Neighbours
    from discreet.privacy.audit import Verdict, audit_mechanism, find_audited
    from discreet.privacy.audit.attacks import Size

    budget = Budget(epsilon, delta, Neighbours(neighbours))
    size = Size(items, max_answers)
    with working(f"Attacking {mechanism}", quiet=shared.quiet):
        report = audit_mechanism(find_audited(mechanism), budget, size=size, runs=runs, power=power)
    if as_json:
        names = ("claimed_epsilon", "lower_bound", "passed", "verdict", "detectable_factor")
        more = ("detectable_epsilon", "power", "runs", "items", "max_answers", "attack")
        print_json({name: getattr(report, name) for name in (*names, *more)})
    else:
        _say_report(report, budget)
    if report.verdict is Verdict.REFUTED:
        raise typer.Exit(1)


def _say_report(report: AuditReport, budget: Budget) -> None:
    cap = f"{report.items} items, at most {report.max_answers} answers each"
    say(f"{report.mechanism}, {budget.neighbours}, {cap}: {report.verdict}")
    say(f"Claimed           epsilon {report.claimed_epsilon:g} at delta {report.delta:g}")
    say(f"Proved by attack  epsilon {report.lower_bound:.4g} with 99.9% confidence")
    say(f"Strongest attack  {report.attack} ({report.runs:,} releases of each data set)")
    if report.detectable_factor == inf:
        say("Could have shown  no fault in the noise, whatever its size")
    else:
        seen = f"noise too small by {report.detectable_factor:.3g}"
        seen += f" (epsilon {report.detectable_epsilon:.3g})"
        say(f"Could have shown  {seen}, with probability {report.power:g}")
    say(report.meaning)


def add_to(app: typer.Typer) -> None:
    """Make ``audit`` a command of ``app``."""
    command(app, "audit", epilog=explain_mechanisms("answers", "comparisons"))(audit)
