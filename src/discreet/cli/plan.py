"""``discreet plan``: how many persons, what epsilon, what precision, before there is any data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.atomic import write_text
from discreet.cli.options import (
    MECHANISM_NAMES,
    AsJson,
    Delta,
    Force,
    Neighbouring,
    Relation,
    Shared,
    command,
    explain_mechanisms,
)
from discreet.cli.output import Column, note, print_json, print_table, say, working
from discreet.cli.writing import check_writable
from discreet.errors import BadUsage

if TYPE_CHECKING:
    from discreet.analysis.planning import Plan


Persons = Annotated[int | None, typer.Option(metavar="N", help="How many persons answer.")]
Items = Annotated[int | None, typer.Option(metavar="M", help="How many items are on the list.")]
AnswersEach = Annotated[
    int | None,
    typer.Option("--answers", metavar="A", help="Items that each person answers (default: all)."),
]
MaybeEpsilon = Annotated[
    float | None,
    typer.Option(
        "--epsilon", metavar="E", help="One person changes any probability e^E times at most."
    ),
]
Target = Annotated[
    float | None,
    typer.Option(metavar="R", help="The root mean square error wanted, in logits."),
]
Top = Annotated[
    int | None, typer.Option(metavar="K", help="Also say how many of the K hardest are found.")
]
Found = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE", help="Instead of --target-rmse: the share of the top K to be found."
    ),
]
ByMechanism = Annotated[str, typer.Option("--mechanism", metavar="NAME", help=MECHANISM_NAMES)]
DifficultySpread = Annotated[
    float, typer.Option(metavar="SD", help="Assumed standard deviation of the difficulties.")
]
AbilitySpread = Annotated[
    float, typer.Option(metavar="SD", help="Assumed standard deviation of the abilities.")
]
AbilityMean = Annotated[
    float, typer.Option(metavar="MEAN", help="Assumed mean ability above the mean difficulty.")
]
Compare = Annotated[bool, typer.Option("--compare", help="Also show every mechanism.")]
Runs = Annotated[
    int | None,
    typer.Option("--simulate", metavar="RUNS", min=2, help="Check the plan by so many releases."),
]
Page = Annotated[
    Path | None,
    typer.Option(
        "--page", metavar="FILE", help="Write a page with sliders; takes a minute to compute."
    ),
]


def plan(
    *,
    persons: Persons = None,
    items: Items = None,
    answers: AnswersEach = None,
    epsilon: MaybeEpsilon = None,
    delta: Delta = 1e-6,
    target_rmse: Target = None,
    top: Top = None,
    target_top: Found = None,
    mechanism: ByMechanism = "margins",
    neighbours: Neighbouring = Relation.REPLACE_ONE,
    difficulty_spread: DifficultySpread = 1.0,
    ability_spread: AbilitySpread = 1.0,
    ability_mean: AbilityMean = 0.0,
    compare: Compare = False,
    simulate: Runs = None,
    page: Page = None,
    force: Force = False,
    as_json: AsJson = False,
    shared: Shared,
) -> None:
    """Predict what privacy costs. Leave out one of persons, items, epsilon and the target."""
    from discreet.analysis.planning import plan as make

    if target_top is not None and top is None:
        raise BadUsage("--target-top needs --top K: the share of which items is meant?")
    if page is not None:
        check_writable(page.parent, [page.name], force=force)
    made = make(
        persons,
        items,
        answers,
        epsilon,
        delta,
        target_rmse=target_rmse,
        target_overlap=None if target_top is None or top is None else (top, target_top),
        mechanism=mechanism,
        neighbours=neighbours.value,
        difficulty_spread=difficulty_spread,
        ability_spread=ability_spread,
        ability_mean=ability_mean,
    )
    for warning in made.warnings:
        note(f"Warning: {warning}", quiet=shared.quiet)
    document = made.to_dict()
    if top is not None:
        document["top_overlap"] = made.top_overlap(top)
    if not as_json:
        _show(made, top)
    if compare:
        plans = made.compare()
        document["mechanisms"] = {name: one.rmse for name, one in plans.items()}
        if not as_json:
            _show_comparison(plans)
    if simulate is not None:
        rmse, uncertainty = _check(made, simulate, quiet=shared.quiet)
        document["simulated_rmse"] = rmse
        if not as_json:
            say(f"Simulated {simulate} times: {rmse:.3f}, give or take {uncertainty:.3f}")
    if page is not None:
        _write_page(made, page, quiet=shared.quiet)
        if not as_json:
            say(f"Wrote the page with sliders to {page}")
    if as_json:
        print_json(document)


def _show(made: Plan, top: int | None) -> None:
    solved = {"rmse": "", "target": ""}.get(made.solved, f" (solved for {made.solved})")
    say(
        f"{made.persons:,} persons, {made.items:,} items, {made.answers:,} answers each, "
        f"epsilon {made.epsilon:g}, delta {made.delta:g}{solved}"
    )
    say(f"{made.mechanism}, {made.neighbours}")
    say(f"Typical standard error          {made.rmse:.3f} logits")
    say(f"The same without privacy        {made.rmse_without_privacy:.3f} logits")
    say(
        f"Equal to losing                 {made.persons - made.equivalent_persons:,} of the "
        f"persons ({made.equivalent_persons:,} would do without privacy)"
    )
    say(f"Two items 0.5 logits apart      in the right order {100 * made.order_probability:.0f}%")
    if top is not None:
        say(f"Of the {top} hardest items        {100 * made.top_overlap(top):.0f}% are found")
    assumed = made.setting.assumptions
    say(
        f"Assumed: difficulties N(0, {assumed.difficulty_spread:g}), abilities "
        f"N({assumed.ability_mean:g}, {assumed.ability_spread:g}), items given out at random"
    )


def _show_comparison(plans: dict[str, Plan]) -> None:
    print_table(
        [
            Column("mechanism", list(plans)),
            Column("standard error", [one.rmse for one in plans.values()], 3),
            Column("worth in persons", [one.equivalent_persons for one in plans.values()]),
        ]
    )


def _check(made: Plan, runs: int, *, quiet: bool) -> tuple[float, float]:
    from discreet.analysis.setting import check_setting

    def progress(done: int) -> None:
        if runs >= 10 and done % max(1, runs // 10) == 0:
            note(f"Simulated {done} of {runs}", quiet=quiet)

    check = check_setting(made.setting, runs=runs, progress=progress)
    return check.rmse, check.uncertainty


def _write_page(made: Plan, page: Path, *, quiet: bool) -> None:
    from discreet.output.pages import make_page

    with working("Computing the table behind the page", quiet=quiet):
        text = make_page(made)
        write_text(page, text, private=False)


def add_to(app: typer.Typer) -> None:
    """Make ``plan`` a command of ``app``."""
    command(app, "plan", epilog=explain_mechanisms("answers"))(plan)
