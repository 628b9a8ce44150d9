"""The parts that all reports share: the page around them, the item table, boxes of facts.

In: strings and columns. Out: HTML that needs no network; its content policy forbids one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template

from discreet import __version__
from discreet.markup import HtmlColumn, content_policy, html_table

GENERATOR = '<meta name="generator" content="discreet'
"""By this a report of ours is recognised: it may be replaced by a newer one."""


def wrap_page(title: str, body: str) -> str:
    """Return a whole page with the common style and script around ``body``."""
    style, script = _part("style.css"), _part("table.js")
    return fill(
        "page.html",
        {
            "version": __version__,
            "policy": content_policy(style, script),
            "title": escape(title),
            "style": style,
            "body": body,
            "script": script,
        },
    )


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return a template of this folder with its names replaced; the values are HTML already."""
    return Template(_part(template)).substitute(values)


def _part(name: str) -> str:
    return files("discreet.output.pages").joinpath(name).read_text(encoding="utf-8")


def fact_boxes(facts: Mapping[str, str]) -> str:
    """Return the inside of a list of facts: a name and a value each."""
    return "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in facts.items()
    )


def item_table(
    columns: Sequence[HtmlColumn],
    *,
    kinds: Mapping[str, str] | None = None,
    tags: Sequence[str] | None = None,
    items: str = "items",
) -> str:
    """Return the table of items with its filters.

    Parameters
    ----------
    columns
        What it shows; items come first.
    kinds
        Tag to description: a choice that shows only the rows with that tag.
    tags
        The tags of each row, separated by spaces.
    items
        What the rows are called.
    """
    choice = ""
    if kinds:
        options = "".join(
            f'<option value="{k}">{escape(text)}</option>' for k, text in kinds.items()
        )
        everything = f'<option value="">all {items}</option>'
        choice = f'<label>Show <select id="kind">{everything}{options}</select></label>'
    table = html_table(columns, caption=items.capitalize(), sortable=True, tags=tags)
    return (
        f'<p class="tools"><label>Filter {items} by name '
        f'<input id="filter" type="search" autocomplete="off"></label>{choice}'
        '<span id="shown" role="status" class="note"></span></p>\n'
        '<div class="scroll tall" tabindex="0" role="region" aria-label="Item table">\n'
        f"{table}\n</div>"
    )
