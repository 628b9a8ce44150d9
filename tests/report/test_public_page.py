"""The public page of a release, in a real browser."""

import numpy as np
import pytest

import discreet
from browser import needs_browser, visit
from discreet.privacy.noise import ExactNoise
from discreet.secure import SeededSource
from discreet.text import show_probability

pytestmark = needs_browser

NAMES = "[...document.querySelectorAll('#items tbody tr')].filter(r => !r.hidden)"
FIRST_CELLS = f"return {NAMES}.map(r => r.cells[0].textContent).join('|');"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    answers = discreet.datasets.lsat()
    made = discreet.release(
        answers,
        discreet.Budget(1.0, 1e-6),
        items=answers.items,
        mechanism="pairs",
        noise=ExactNoise(SeededSource(7)),
    )
    made.save(folder / "out")
    return folder / "out" / "report.html", made.estimate


def test_the_page_opens_without_errors_and_without_a_network(page, tmp_path):
    path, _ = page
    _, dom, console = visit(path, tmp_path)
    assert console == ""
    assert "src=" not in path.read_text()
    assert dom[dom.index('id="items"') :].split("</table>")[0].count("<tr>") == 6


def test_a_click_on_a_heading_sorts_the_table(page, tmp_path):
    path, estimate = page
    click = "document.querySelectorAll('#items th button')[1].click();"
    ascending, _, _ = visit(path, tmp_path, click + FIRST_CELLS)
    wanted = [estimate.items[i] for i in np.argsort(estimate.difficulty)]
    assert ascending.split("|") == wanted
    descending, _, _ = visit(path, tmp_path, click + click + FIRST_CELLS)
    assert descending.split("|") == wanted[::-1]


def test_the_filter_hides_what_does_not_match(page, tmp_path):
    path, _ = page
    script = (
        "const box = document.getElementById('filter'); box.value = 'item3';"
        "box.dispatchEvent(new Event('input'));" + FIRST_CELLS
    )
    shown, _, _ = visit(path, tmp_path, script)
    assert shown == "Item3"


@pytest.mark.parametrize("width", [400, 1000])
def test_nothing_overflows_a_phone_or_a_desk(page, tmp_path, width):
    path, _ = page
    script = "return document.documentElement.scrollWidth - document.documentElement.clientWidth;"
    overflow, _, _ = visit(path, tmp_path, script, width=width)
    assert int(overflow) <= 0


def test_every_picture_and_control_has_a_name_for_a_screen_reader(page, tmp_path):
    path, _ = page
    script = (
        "const bare = [...document.querySelectorAll('svg')].filter(s => !s.ariaLabel)"
        ".concat([...document.querySelectorAll('input')].filter(i => !i.labels.length));"
        "return bare.length;"
    )
    bare, _, _ = visit(path, tmp_path, script)
    assert bare == "0"


CHOOSE = (
    "const choose = (id, name) => { const box = document.getElementById('compare-' + id);"
    "box.value = [...box.options].find(o => o.text === name).value;"
    "box.dispatchEvent(new Event('input', {bubbles: true})); };"
    "const said = () => document.getElementById('compared').textContent"
    ".replace(/[\u2068\u2069]/g, '');"
)


def test_any_two_items_are_compared_as_the_library_does(page, tmp_path):
    path, _ = page
    script = CHOOSE + "choose('first', 'Item4'); choose('second', 'Item2'); return said();"
    said, _, console = visit(path, tmp_path, script)
    estimate = discreet.read_release(path.parent).estimate
    own = discreet.compare_items(estimate, "Item4", "Item2")
    every = discreet.compare_items(estimate, "Item4", "Item2", simultaneous=True)

    def shown(value):
        return f"{value:.3f}".replace("-", "\N{MINUS SIGN}")

    assert console == ""
    assert f"Item4 less Item2: {shown(own.difference)} logits" in said
    assert f"of this pair alone: {shown(own.lower)} to {shown(own.upper)};" in said
    assert f"of all pairs at once: {shown(every.lower)} to {shown(every.upper)}." in said
    assert f"for this pair alone: {show_probability(own.probability)}." in said
    sure = abs(own.difference) > discreet.rank_ranges(estimate).bar * own.se
    assert f"the two {'can' if sure else 'cannot'} be told apart at 95%" in said


def test_an_item_is_not_compared_with_itself(page, tmp_path):
    path, _ = page
    script = CHOOSE + "choose('first', 'Item4'); choose('second', 'Item4'); return said();"
    said, _, _ = visit(path, tmp_path, script)
    assert said == "Choose two different items."


def test_without_its_script_the_page_still_says_all_there_is_to_say(page):
    path, _ = page
    text = path.read_text()
    html = text[: text.index("<script")]
    ranges = discreet.rank_ranges(discreet.read_release(path.parent))
    for first, last in zip(ranges.first.tolist(), ranges.last.tolist(), strict=True):
        rank = f"{first}" if first == last else f"{first}\N{EN DASH}{last}"
        assert f'<td class="words">{rank}</td>' in html
    assert html.count('<td class="words">yes</td>') + html.count('">no</td>') == 4
    assert '<form id="compare" class="tools" hidden>' in html


def test_the_hardest_item_is_named_as_far_as_it_is_sure(page):
    path, _ = page
    ranges = discreet.rank_ranges(discreet.read_release(path.parent))
    text = path.read_text()
    if (ranges.first == 1).sum() == 1:
        assert f"Hardest: {ranges.items[0]}." in text
    assert "by estimate:" not in text


INJECTED = (
    "<p id='first'>x</p><script>document.getElementById('first').textContent = 'ran';</script>"
    "<svg onload=\"document.getElementById('first').textContent = 'ran'\"></svg>"
    "<p id='second' style='color: red'>y</p></main>"
)


def test_a_script_that_slipped_into_the_page_does_not_run(page, tmp_path):
    path, _ = page
    assert "unsafe-inline" not in path.read_text()
    attacked = tmp_path / "attacked.html"
    attacked.write_text(path.read_text().replace("</main>", INJECTED))
    script = (
        "return document.getElementById('first').textContent + "
        "getComputedStyle(document.getElementById('second')).color;"
    )
    found, _, console = visit(attacked, tmp_path, script)
    assert found.startswith("x")
    assert "255, 0, 0" not in found
    assert "Content Security Policy" in console


def test_the_page_keeps_its_own_style_and_script(page, tmp_path):
    path, _ = page
    script = (
        "return getComputedStyle(document.body).maxWidth + "
        "document.querySelectorAll('[style]').length;"
    )
    found, _, console = visit(path, tmp_path, script)
    assert found == "1088px0"
    assert console == ""


def test_a_german_page_compares_in_german(tmp_path):
    answers = discreet.datasets.lsat()
    about = {"language": "de"}
    made = discreet.release(
        answers, discreet.Budget(1.0), items=answers.items, mechanism="pairs", about=about
    )
    made.save(tmp_path / "out")
    script = CHOOSE + (
        "choose('first', 'Item4'); choose('second', 'Item2'); const pair = said();"
        "document.getElementById('filter').value = 'item3';"
        "document.getElementById('filter').dispatchEvent(new Event('input'));"
        "return [document.documentElement.lang, pair,"
        "document.getElementById('shown').textContent].join('|');"
    )
    found, _, console = visit(tmp_path / "out" / "report.html", tmp_path, script)
    language, pair, shown = found.split("|")
    assert (console, language) == ("", "de")
    assert pair.startswith("Item4 minus Item2: ")
    assert "unterscheiden" in pair
    assert shown == "Items: 1 von 5"
