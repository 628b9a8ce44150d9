"""``discreet audit``: attack a mechanism, report the epsilon that the attack could prove."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.cli.options import (
    MECHANISM_NAMES,
    AsJson,
    Delta,
    Epsilon,
    Relation,
    Shared,
    command,
)
from discreet.cli.output import print_json, say, working

__all__ = ["add_to"]

Attacked = Annotated[
    str,
    typer.Option(
        "--mechanism",
        metavar="NAME",
        help=MECHANISM_NAMES,
    ),
]
Neighbouring = Annotated[Relation, typer.Option(help="Between which data sets.")]
Runs = Annotated[
    int,
    typer.Option(metavar="R", min=100, help="Releases per attack and data set; more prove more."),
]


def audit(
    *,
    mechanism: Attacked,
    epsilon: Epsilon,
    delta: Delta = 1e-6,
    neighbours: Neighbouring = Relation.REPLACE_ONE,
    runs: Runs = 4000,
    as_json: AsJson = False,
    shared: Shared,
) -> None:
    """Attack a mechanism on made-up data. Exit code 1 says that its promise was refuted."""
    from discreet.privacy.accounting import Budget, Neighbours
    from discreet.privacy.audit import audit_mechanism
    from discreet.privacy.mechanisms import find_mechanism

    budget = Budget(epsilon, delta, Neighbours(neighbours))
    with working(f"Attacking {mechanism}", quiet=shared.quiet):
        report = audit_mechanism(find_mechanism(mechanism), budget, runs=runs)
    if as_json:
        print_json(
            {
                "claimed_epsilon": report.claimed_epsilon,
                "lower_bound": report.lower_bound,
                "passed": report.passed,
            }
        )
    else:
        verdict = "passed" if report.passed else "FAILED: the promise does not hold"
        say(f"{report.mechanism}, {budget.neighbours}: {verdict}")
        say(f"Claimed           epsilon {report.claimed_epsilon:g} at delta {report.delta:g}")
        say(f"Proved by attack  epsilon {report.lower_bound:.4g} with 99.9% confidence")
        say(f"Strongest attack  {report.attack} ({report.runs:,} releases of each data set)")
    if not report.passed:
        raise typer.Exit(1)


def add_to(app: typer.Typer) -> None:
    """Make ``audit`` a command of ``app``."""
    command(app, "audit")(audit)
