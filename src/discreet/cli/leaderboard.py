"""``discreet leaderboard``: models ranked by their answers to questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import discreet
from discreet.choices import CountMethod
from discreet.cli.answers import ReadingOptions, list_stated
from discreet.cli.options import ResultOptions
from discreet.cli.output import conclude, confidential, list_rows, print_columns, say, working
from discreet.errors import BadUsage

if TYPE_CHECKING:
    from discreet.scales.leaderboard import Leaderboard

PAGE_FILE, MARKDOWN_FILE = "leaderboard.confidential.html", "leaderboard.confidential.md"
TABLE_FILE, PAIRS_FILE = "leaderboard.confidential.csv", "comparisons.confidential.csv"
FILES = (PAGE_FILE, MARKDOWN_FILE, TABLE_FILE, PAIRS_FILE)


def leaderboard(
    file: str,
    *,
    cluster: str | None = None,
    pass_at: str = "",
    graded: bool = False,
    method: CountMethod = "refined",
    level: float = 0.95,
    title: str | None = None,
    output: ResultOptions,
    reading: ReadingOptions,
) -> None:
    """Rank models by their answers to questions: measures, rank ranges, tiers, pass@k."""
    output.check(*FILES)

    with working("Comparing models"):
        board = discreet.leaderboard(
            file,
            cluster=cluster,
            pass_at=_split_numbers(pass_at),
            graded=graded,
            method=method,
            level=level,
            **list_stated(reading),
        )
    if output.out is not None:
        _write(board, output, title or "Leaderboard")
    about = {"questions": board.questions, "clusters": board.clusters, "samples": board.samples}
    document = {
        **about,
        "method": board.estimate.method,
        "level": board.level,
        "models": list_rows(board.to_dict()),
        "families": [list(family) for family in board.families],
        "comparisons": list_rows(board.comparisons.to_dict()),
    }
    output.show(document, lambda: _print(board))
    conclude(board.warnings, [output.out / name for name in FILES] if output.out else ())


def _split_numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdigit() for part in parts):
        raise BadUsage(f"--pass-at takes whole numbers of samples, as in 1,5; found {text!r}")
    return [int(part) for part in parts]


def _write(board: Leaderboard, output: ResultOptions, title: str) -> None:
    from discreet.atomic import staged
    from discreet.report.formats import write_csv
    from discreet.report.leaderboard import write_board_page

    if output.out is None:
        return
    with staged(output.out, FILES) as stage:
        (stage / PAGE_FILE).write_text(write_board_page(board, title=title), "utf-8", newline="\n")
        (stage / MARKDOWN_FILE).write_text(board.to_markdown(), "utf-8", newline="\n")
        write_csv(stage / TABLE_FILE, confidential(board.to_dict()))
        write_csv(stage / PAIRS_FILE, confidential(board.comparisons.to_dict()))


def _print(board: Leaderboard) -> None:
    for sentence in board.describe():
        say(sentence)
    say()
    ranks = [board.show_rank(row).replace("\N{EN DASH}", "-") for row in range(len(board.models))]
    columns = {**board.to_dict(), "rank": ranks, "tier": [t or None for t in board.tier.tolist()]}
    passed = [f"pass@{k}" for k in board.pass_at]
    names = ["model", "rank", "tier", "accuracy", *passed, "measure", "se"]
    print_columns(columns, names + ["status"] * (set(board.status) != {"estimated"}))
