"""The public page of a release, in a real browser."""

import numpy as np
import pytest

import discreet
from browser import needs_browser, visit
from discreet.privacy.noise import ExactNoise
from discreet.secure import SeededSource

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
    assert dom.count("<tr>") == 6


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
