"""HTML of tables and pages, from the templates here, which escape everything.

In: columns of values, or what a page shows. Out: a table for a notebook, or a whole page that needs
no network. Numbers that do not exist are shown as a dash.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import __version__
from discreet.choices import PlainMapping
from discreet.text import PREVIEW_ROWS, markdown_table, markdown_text, minus
from discreet.words import ENGLISH

if TYPE_CHECKING:
    from jinja2 import Environment


#: Pages, their parts, styles and scripts.
TEMPLATES = Path(__file__).with_name("templates")
#: By this a report of ours is recognised: it may be replaced by a newer one.
GENERATOR = '<meta name="generator" content="discreet'


@dataclass(frozen=True)
class HtmlColumn:
    """One column: its title, its values, how many digits, and what it means (a tooltip)."""

    title: str
    values: Sequence[Any]
    digits: int = 3
    meaning: str = ""

    @property
    def has_words(self) -> bool:
        """Whether it is set to the left, as words are."""
        return any(isinstance(value, str) for value in self.values)

    def show(self, row: int) -> str:
        """Return what one of its cells shows."""
        return _show(self.values[row], self.digits)[1]


@cache
def _templates() -> Environment:
    """Everything that HTML is made from; loaded when the first table or page is asked for."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=select_autoescape(disabled_extensions=["yaml", "md"], default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {"cells": _cells, "tell": ENGLISH}
    environment.filters |= {"fill": fill, "yaml": write_yaml, "markdown": markdown_text}
    environment.filters["markdown_columns"] = write_columns
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return environment


def preview_table(columns: Sequence[HtmlColumn], *, caption: str) -> str:
    """Return the first rows of a table, and how many more there are, for a notebook."""
    first = [HtmlColumn(c.title, c.values[:PREVIEW_ROWS], c.digits) for c in columns]
    macros: Any = _templates().get_template("parts.html").module
    return str(macros.preview(first, caption, len(columns[0].values) - PREVIEW_ROWS))


def fill(pattern: str, rows: Iterable[tuple[str, ...]]) -> str:
    """Write a pattern of a template, %s for values, once for every row; values are escaped.

    A template would escape each value by itself, and that takes longer than all the rest of a
    long page.
    """
    from markupsafe import Markup

    text = str(pattern)
    return Markup("".join(text % tuple(map(escape, row)) for row in rows))  # noqa: S704 - escaped


def write_columns(columns: Sequence[HtmlColumn]) -> str:
    """Return columns as a table in Markdown."""
    cells = [
        [f"{one:.{column.digits}f}" if isinstance(one, float) else str(one)
         for one in column.values] for column in columns
    ]  # fmt: skip
    return markdown_table([column.title for column in columns], zip(*cells, strict=True))


def write_yaml(value: object) -> str:
    """Write a number of YAML exactly, and a text as Markdown, which no reader takes for marks."""
    if isinstance(value, str):
        return "'" + markdown_text(value).replace("'", "''") + "'"
    # Without a point YAML 1.1 reads 1e-06 as a text.
    return re.sub(r"^(-?\d+)e", r"\1.0e", repr(value))


def _cells(
    columns: Sequence[HtmlColumn],
    tags: Sequence[str] | None = None,
    links: Sequence[str] | None = None,
) -> Iterator[tuple[str, ...]]:
    """Return each row's tags, its link, its heading, and what its cells sort by and show."""
    heads, *others = columns
    parts: list[Sequence[str]] = [[str(head) for head in heads.values]]
    for column in others:
        cells = [_show(value, column.digits) for value in column.values]
        if not column.has_words:
            parts.append([sorts for sorts, _ in cells])
        parts.append([words for _, words in cells])
    row_marks = [marks for marks in (tags, links) if marks is not None]
    return zip(*row_marks, *parts, strict=True)


def _show(value: object, digits: int) -> tuple[str, str]:
    """Return what a cell sorts by, if it holds a number, and what it shows."""
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return "", "–"
    if isinstance(value, float):
        # Adding zero turns a rounded "-0.00" into "0.00".
        return f"{value:.6g}", minus(f"{round(value, digits) + 0.0:.{digits}f}")
    if isinstance(value, int):
        return str(value), f"{value:,}"
    return "", str(value)


def write_page(
    template: str,
    values: PlainMapping,
    *,
    styles: Sequence[str] = ("style.css",),
    scripts: Sequence[str] = ("table.js", "picture.js"),
) -> str:
    """Return a whole page that needs no network: its content policy forbids one.

    Parameters
    ----------
    template
        Extends ``page.html``. Every value is escaped where it is shown.
    values
        What it shows: text, numbers, columns, pictures; ``tell``, where it is not in English.
    styles, scripts
        Files beside the template; the page runs these and no others.
    """
    from markupsafe import Markup

    look, run = (
        "".join((TEMPLATES / name).read_text("utf-8") for name in names)
        for names in (styles, scripts)
    )
    parts = {"style": look, "script": run, "policy": content_policy(look, run)}
    ours = {name: Markup(text) for name, text in parts.items()}  # noqa: S704 - no data in them
    return render(template, {**values, **ours})


def render(template: str, values: PlainMapping) -> str:
    """Return a template filled in; every value is escaped where it is shown."""
    return _templates().get_template(template).render({**values, "version": __version__})


def content_policy(style: str, script: str) -> str:
    """Return the policy of a page that holds this style and this script and runs no other.

    Names and numbers come from data: should one ever be written unescaped, it still cannot run.
    """

    def name(text: str) -> str:
        return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"

    rules = f"style-src {name(style)}; script-src {name(script)}"
    return f"default-src 'none'; {rules}; base-uri 'none'; form-action 'none'"
