"""The page of a leaderboard: models, ranges of ranks, tiers, neighbours.

In: a :class:`~discreet.Leaderboard`. Out: one page that needs no network.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.html import HtmlColumn, write_page
from discreet.report.drawings import draw_rows
from discreet.report.pictures import difficulty_rows
from discreet.report.sheet import Sheet
from discreet.scales.leaderboard import Leaderboard
from discreet.scales.ranks import find_standing

#: Room for names of models, which are often long and begin alike.
MODELS_LEFT = 240

MEANINGS = {
    "measure": "in logits, mean zero; higher is better",
    "± se": "standard error of the number before it",
    "rank": "ranks that the model may have; all ranges hold together",
    "tier": "models of one tier cannot be told apart",
}


def write_board_page(board: Leaderboard, *, title: str = "Leaderboard", note: str = "") -> str:
    """Return the page.

    Parameters
    ----------
    board
        The leaderboard.
    title
        Its headline.
    note
        A sentence below it: where the answers are from.
    """
    values = {
        "title": title,
        "note": note,
        "summary": board.describe()[0],
        "facts": {
            "models": f"{len(board.models):,}",
            "questions": f"{board.questions:,}",
            "clusters": f"{board.clusters:,}" if board.clusters < board.questions else "–",
            "samples": f"{board.samples:,}",
            "tiers": f"{board.tier.max(initial=0):,}",
            "told apart": _show_share(board),
        },
        "notes": [str(warning) for warning in board.warnings],
        "columns": _list_columns(board),
        "picture": draw_board(board),
        "pairs": _list_neighbours(board),
    }
    return write_page("leaderboard.html", values, styles=["style.css", "confidential.css"])


def draw_board(board: Leaderboard) -> Sheet:
    """Draw all measures with their own 95% intervals, the best on top."""
    rows = difficulty_rows(board.estimate)
    return draw_rows(
        rows,
        "Measures of models with 95% intervals; the table has the numbers",
        "measure in logits, better to the right",
        "",
        left=MODELS_LEFT,
    )


def _show_share(board: Leaderboard) -> str:
    told_apart = board.comparisons.columns["told_apart"]
    return f"{np.mean(told_apart):.0%} of pairs" if told_apart else "–"


def _list_columns(board: Leaderboard) -> list[HtmlColumn]:
    ranks = [board.show_rank(row) for row in range(len(board.models))]
    tiers = [tier or None for tier in board.tier.tolist()]
    shown: dict[str, list[Any]] = {"model": list(board.models), "rank": ranks, "tier": tiers}
    columns = [
        HtmlColumn(name, cells, meaning=MEANINGS.get(name, "")) for name, cells in shown.items()
    ]
    for name, values, errors, digits in board.list_numbers():
        for head, cells in ((name, values), ("± se", errors)):
            columns.append(HtmlColumn(head, cells.tolist(), digits, MEANINGS.get(head, "")))
    if set(board.status) != {"estimated"}:
        columns.append(HtmlColumn("status", [one.replace("_", " ") for one in board.status]))
    return columns


def _list_neighbours(board: Leaderboard) -> list[HtmlColumn]:
    """Return the pairs that follow each other in the order of measures."""
    columns = find_standing(board.estimate).neighbours
    told_apart = ["yes" if sure else "no" for sure in columns["told_apart"]]
    return [
        HtmlColumn("better", columns["above"]),
        HtmlColumn("next", columns["below"]),
        HtmlColumn("difference", columns["difference"], 2),
        HtmlColumn("95% from", columns["lower"], 2),
        HtmlColumn("to", columns["upper"], 2),
        HtmlColumn("told apart", told_apart, meaning="with all other pairs in mind"),
    ]
