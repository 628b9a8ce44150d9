"""``discreet top``: the hardest or easiest items, and how sure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.answers import read_answers
from discreet.cli.calibrations import check_method, explain_calibration
from discreet.cli.fit import Method, Regularisation
from discreet.cli.options import AnswersFile, AsJson, Reading, Shared, command
from discreet.cli.output import Column, print_json, print_table, say, working

if TYPE_CHECKING:
    from discreet.results.estimate import Estimate
    from discreet.results.ranking import Ranking


Count = Annotated[int, typer.Option("-k", "--count", metavar="K", min=0, help="How many items.")]
Easiest = Annotated[bool, typer.Option("--easiest", help="The easiest instead of the hardest.")]
Level = Annotated[float, typer.Option(metavar="P", help="How sure 'surely' is.")]


def top(
    file: AnswersFile,
    *,
    k: Count,
    easiest: Easiest = False,
    level: Level = 0.95,
    method: Method = "refined",
    regularisation: Regularisation = 0.0,
    as_json: AsJson = False,
    reading: Reading,
    shared: Shared,
) -> None:
    """Name the K hardest (or easiest) items."""
    check_method(method)
    responses = read_answers(file, reading, quiet=shared.quiet)
    from discreet.models.calibrate import fit
    from discreet.results.ranking import rank

    with working("Estimating difficulties", quiet=shared.quiet):
        estimate = fit(responses, method=method, regularisation=regularisation)
        ranking = rank(estimate, k, easiest=easiest, level=level)
    if as_json:
        print_json(_document(ranking))
    else:
        _print_ranking(estimate, ranking, easiest=easiest, level=level)
    explain_calibration(estimate, quiet=shared.quiet)


def _document(ranking: Ranking) -> dict[str, object]:
    return {
        "top": list(ranking.top),
        "surely_in": list(ranking.surely_in),
        "possibly_in": list(ranking.possibly_in),
        "gap": ranking.gap,
    }


def _print_ranking(estimate: Estimate, ranking: Ranking, *, easiest: bool, level: float) -> None:
    surely, possibly = set(ranking.surely_in), set(ranking.possibly_in)
    best = set(ranking.top)
    rivals = [item for item in ranking.possibly_in if item not in best]
    names = [*ranking.top, *rivals]
    place = {item: index for index, item in enumerate(estimate.items)}
    rows = [place[name] for name in names]
    kind = "easiest" if easiest else "hardest"
    say(f"The {len(best):,} {kind} of {len(estimate.items):,} items, at {level:.0%} confidence")
    say()
    ranks = [str(number) for number in range(1, len(best) + 1)]
    print_table(
        [
            Column("rank", [*ranks, *["rival"] * len(rivals)]),
            Column("item", names),
            Column("difficulty", estimate.difficulty[rows].tolist(), digits=3),
            Column("se", estimate.se[rows].tolist(), digits=3),
            Column(f"among the {kind}", [_word(name, surely, possibly) for name in names]),
        ]
    )
    if ranking.gap == ranking.gap:  # not NaN: there is an item on either side of the line
        say()
        say(f"Gap between the last item in and the first one out: {ranking.gap:.3f} logits")


def _word(name: str, surely: set[str], possibly: set[str]) -> str:
    if name in surely:
        return "surely"
    return "possibly" if name in possibly else "no"


def add_to(app: typer.Typer) -> None:
    """Make ``top`` a command of ``app``."""
    command(app, "top")(top)
