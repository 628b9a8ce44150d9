"""Markdown files show what stewards and files say as text: no HTML, no images, no headings."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import discreet
from commandline import discreet as run
from discreet.datasets import lsat
from discreet.privacy.accounting import Budget
from discreet.privacy.ledger import Ledger

HTML = '<img src=x onerror="alert(1)"><script>x</script>'
IMAGE = "![x](http://host/x.png) [y](javascript:1) <http://host>"
HEADING = "# epsilon 0 {{ site.token }} $x$ | `code` \\"
ITEMS = [f"Item{number}" for number in range(1, 5)]
ABOUT = {
    "title": f"T {HTML}",
    "version": f"1 {IMAGE}",
    "body": f"B {HTML} {IMAGE}",
    "contact": f"C {HTML}",
    "note": f"{HEADING} {HTML} {IMAGE}",
}
POPULATION = f"north {HTML} {IMAGE} a|b"
FORBIDDEN = {"html_block", "html_inline", "image", "link_open", "code_inline", "fence", "hr"}


def read_markdown(text):
    """Return every kind of mark that a reader of Markdown with HTML finds, and the headings."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    kinds = {one.type for token in tokens for one in (token, *(token.children or ()))}
    heads = [after.content for one, after in pairwise(tokens)
             if one.type == "heading_open"]  # fmt: skip
    return kinds, heads


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Every Markdown file that there is, of releases whose every text is hostile."""
    folder = tmp_path_factory.mktemp("written")
    book = Ledger.create(folder / "spent.db", 3.0)
    book.declare(POPULATION)
    more = {"version": f"2 {HTML}", "supersedes": ABOUT["version"], "reason": f"R {HTML} {IMAGE}"}
    for name, about, items in (("one", ABOUT, [*ITEMS, "Item5"]), ("two", ABOUT | more, ITEMS)):
        discreet.release(
            lsat().select(items), Budget(0.5), items=items, ledger=book, population=POPULATION,
            about=about, out=folder / name,
        )  # fmt: skip
    renamed = {f"{item} {HTML}": item for item in ITEMS}
    odd = discreet.Responses.from_array(lsat().to_array()[:, :4], items=[*renamed])
    about = {"version": "3", "supersedes": ABOUT["version"], "reason": "R"}
    discreet.release(odd, Budget(0.5), items=[*renamed], about=about, out=folder / "three")
    for name, arguments in {
        "correction.md": ["steward", "correct", folder / "one", "--by", folder / "two"],
        "renamed.md": ["steward", "correct", folder / "one", "--by", folder / "three"],
        "withdrawal.md": [
            "steward",
            "withdraw",
            folder / "one",
            "--because",
            f"W {HTML}\n\n# {IMAGE}",
        ],
        "spent.md": ["ledger", "report", folder / "spent.db"],
        "spent.de.md": ["ledger", "report", folder / "spent.db", "--language", "de"],
    }.items():
        assert run(*arguments, "--out", folder / name).code == 0
    return folder


FILES = [
    "one/statement.md", "two/statement.md", "three/statement.md", "correction.md", "renamed.md",
    "withdrawal.md", "spent.md", "spent.de.md",
]  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_no_markdown_file_carries_html_images_links_or_headings_of_others(written, name):
    text = (written / name).read_text("utf-8")
    kinds, heads = read_markdown(text)
    assert not kinds & FORBIDDEN
    assert not any("epsilon 0" in head or "http" in head.partition("version")[0] for head in heads)
    assert "{{" not in text


def test_what_was_said_is_still_read(written):
    rendered = (
        MarkdownIt("commonmark")
        .enable("table")
        .render((written / "one" / "statement.md").read_text("utf-8"))
    )
    assert "&lt;img src=x onerror=&quot;alert(1)&quot;&gt;" in rendered
    assert "![x](http://host/x.png) [y](javascript:1)" in rendered
    assert "# epsilon 0 {{ site.token }} $x$ | `code` \\" in rendered


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.one_of(
        st.text(st.sampled_from("<>&[]()!*_`~#+-=|\\{}$1. )\tax:/\"'^\n")),
        st.text(st.characters(exclude_categories=["Cs"])),
    )
)
def test_any_text_is_one_paragraph_of_text_and_reads_as_it_was(text):
    from discreet.errors import escape_controls
    from discreet.text import markdown_table, markdown_text

    shown = escape_controls(text).strip()
    tokens = MarkdownIt("commonmark", {"html": True}).parse(markdown_text(text))
    kinds = {one.type for token in tokens for one in (token, *(token.children or ()))}
    assert kinds <= {"paragraph_open", "inline", "text", "text_special", "paragraph_close"}
    read = "".join(one.content for token in tokens for one in token.children or ())
    assert " ".join(read.split(" ")) == shown
    table = (
        MarkdownIt("commonmark").enable("table").parse(markdown_table(("a", "b"), [(text, "c")]))
    )
    assert sum(one.type == "td_open" for one in table) == 2
