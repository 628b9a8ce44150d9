"""The studio in a real browser: walks that a person takes, with mouse and with keyboard."""

import contextlib
import os
import re
import shutil
from importlib.resources import files
from pathlib import Path

import pytest

from commandline import discreet, environment
from discreet.planning.plan import plan
from discreet.privacy.ledger import Ledger
from plain_sentences import find_syntax

webdriver = pytest.importorskip("selenium.webdriver")
axe = pytest.importorskip("selenium_axe_python")
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select  # noqa: E402
from tools.browsing import (  # noqa: E402
    CHROMIUM,
    DRIVER,
    await_new,
    await_true,
    await_words,
    begin,
    browsing,
    crawl,
    press,
    run_studio,
    see_as,
    send,
    words_of,
)

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="no Chromium or no chromedriver on this machine"
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("studio")


HELD = """
import os, sys, time
while "--multiprocessing-fork" in sys.orig_argv and os.path.exists(os.environ["HOLD"]):
    time.sleep(0.02)
"""
"""What every Python process of the studio runs first: its workers wait while a file is there."""


@contextlib.contextmanager
def hold_workers(place):
    """Keep jobs at their beginning, so that they last as long as a test wants."""
    (place / "hold").touch()
    try:
        yield
    finally:
        (place / "hold").unlink()


@pytest.fixture(scope="module")
def address(place):
    (place / "first").mkdir()
    (place / "first" / "sitecustomize.py").write_text(HELD)
    paths = os.pathsep.join([str(place / "first"), os.environ.get("PYTHONPATH", "")])
    with run_studio(place, environment(PYTHONPATH=paths, HOLD=str(place / "hold"))) as address:
        yield address
    assert not list((place / "tmp").iterdir())


@pytest.fixture(scope="module")
def driver(address, place):
    with browsing(place, environment()) as made:
        made.get(address)
        await_words(made, "What would you like to calibrate?")
        yield made


def fill(driver, **said):
    for name, text in said.items():
        field = driver.find_element(By.NAME, name)
        field.clear()
        field.send_keys(text)


def make_ledger(driver, address, name):
    driver.get(f"{address.partition('/enter')[0]}/ledgers")
    fill(driver, name=name, epsilon="4")
    press(driver, "Make this ledger")
    await_words(driver, "0 releases so far")


def ask(driver, place, items, **said):
    """Fill in the form of a release, up to what it costs."""
    driver.find_element(By.ID, "items-file").send_keys(str(place / items))
    driver.execute_script("document.querySelectorAll('details').forEach(one => one.open = true)")
    fill(driver, **said)
    account = Select(driver.find_element(By.NAME, "account"))
    account.select_by_index(len(account.options) - 1)
    press(driver, "See what it costs")
    await_words(driver, "What readers will see")


def release(driver, place, items, look=lambda _: None, **said):
    """Walk from the form of a release to the bundle, unpacked; verify accepts it."""
    ask(driver, place, items, **said)
    look(driver)
    fill(driver, epsilon=said["epsilon"])
    press(driver, "Make the release")
    await_words(driver, "Download everything")
    link = driver.find_element(By.PARTIAL_LINK_TEXT, "Download everything")
    driver.execute_script("arguments[0].click()", link)
    packed = place / "got" / link.get_attribute("href").split("/")[-2]
    await_true(driver, lambda _: Path(f"{packed}.zip").exists())
    shutil.unpack_archive(f"{packed}.zip", place / "unpacked")
    ended = discreet("verify", place / "unpacked" / packed.name)
    assert ended.code == 0, ended.err
    return place / "unpacked" / packed.name


def test_a_reload_and_a_second_tab_in_mid_release_spend_once(driver, address, place):
    rows = "".join(f"{n},{n % 2},{n // 2 % 2},{n // 4 % 2}\n" for n in range(3000))
    (place / "many.csv").write_text("person,q1,q2,q3\n" + rows)
    (place / "three.txt").write_text("q1\nq2\nq3\n")
    make_ledger(driver, address, "Once")
    press(driver, "Releases")
    driver.find_element(By.ID, "path").send_keys(str(place / "many.csv"))
    press(driver, "Release without looking")
    await_words(driver, "Nobody has looked at these answers")
    ask(driver, place, "three.txt", epsilon="0.5", persons="3000")
    fill(driver, epsilon="0.5")
    ticket, first = driver.current_url, driver.current_window_handle
    with hold_workers(place):
        driver.execute_script(TWICE)
        driver.switch_to.new_window("tab")
        driver.get(ticket)
        for _ in range(3):
            driver.refresh()
    await_words(driver, "Download everything")
    driver.close()
    driver.switch_to.window(first)
    driver.get(ticket)
    await_words(driver, "Download everything")
    driver.back()
    assert len(Ledger.open(place / "kept" / "ledgers" / "Once.db").releases()) == 1
    (made,) = (place / "kept" / "releases").glob("release-*")
    driver.get(f"{address.partition('/enter')[0]}/bundles/{made.name}/page")
    await_words(driver, "Compare two items")
    await_words(driver, "less .* logits")  # its own script runs, in a sandbox
    assert driver.execute_script("return origin") == "null"


TWICE = """
const form = document.querySelector("main form");
const body = new URLSearchParams(new FormData(form));
for (const _ of "123") fetch(form.action, {method: "POST", body});
"""
"""Clicks that come before the page has changed."""

LETTERS = "BADCA"


def write_messy(path):
    """Letters, a 9, and two columns that are no items."""
    lines = ["Nr,Remarks,Klasse,Q1,Q2,Q3,Q4,Q5"]
    for n in range(60):
        row = [
            right if (n * 7 + j * 5) % 11 < 7 - j else "ABCD"[(n + j) % 4]
            for j, right in enumerate(LETTERS)
        ]
        row[2] = "9" if n % 12 == 3 else row[2]
        note = "arrived far too late" if n % 20 == 0 else "" if n % 20 else "ill"
        lines.append(f"{n + 1},{note},7{'ab'[n % 2]},{','.join(row)}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_messy_spreadsheet_becomes_answers_by_clicking(driver, address, place):
    begin(driver, address)
    send(driver, write_messy(place / "messy.csv"))
    await_words(driver, "This looks like a multiple-choice test")
    driver.execute_script("document.querySelectorAll('details').forEach(one => one.open = true)")
    Select(driver.find_element(By.NAME, "role:1")).select_by_visible_text("left out")
    driver.find_element(By.NAME, "key").send_keys(LETTERS)
    driver.find_element(By.NAME, "missing").send_keys("9")
    # The line above the form says what is read now, before anything is applied.
    await_words(driver, "60 persons, 5 items, 5 cells missing")
    assert driver.find_element(By.NAME, "key").get_attribute("value") == LETTERS
    await_new(driver, driver.find_element(By.NAME, "missing").submit)
    await_words(driver, "60 persons, 5 items, 5 cells missing")
    assert "--key BADCA" in driver.find_element(By.ID, "same-command").get_attribute("textContent")
    press(driver, "Calibrate these answers")
    press(driver, "Start the calibration")
    await_words(driver, "reliability")
    head = driver.find_element(By.XPATH, "//table[@id='items']//button[.='difficulty']")
    driver.execute_script("arguments[0].click()", head)
    shown = [float(cell.get_attribute("data-value")) for cell in driver.find_elements(
        By.CSS_SELECTOR, "#items tbody td:nth-child(2)")]  # fmt: skip
    assert shown == sorted(shown)
    press(driver, "Q3")
    await_words(driver, "Statistics for specialists")
    driver.execute_script("document.querySelector('details.experts').open = true")
    await_words(driver, "What was chosen")
    assert re.search(r"D\s+right", words_of(driver))
    press(driver, "Persons")
    await_words(driver, "Persons of messy.csv")
    persons = driver.current_url
    driver.get(f"{persons}/0")
    await_words(driver, "All persons")
    make_ledger(driver, address, "Walk")
    driver.get(persons)
    press(driver, "Release")
    await_words(driver, "calibrated them 1 time")
    (place / "items.txt").write_text("".join(f"Q{number}\n" for number in range(1, 6)))
    # How the file is written is typed from its code book: what was found is not taken over.
    said = {"epsilon": "2", "persons": "60", "title": "Messy"}
    said |= {"person": "Nr", "key": LETTERS, "missing": "9"}
    folder = release(driver, place, "items.txt", check_page, **said)
    assert (folder / "difficulties.csv").read_text().count("\n") == 6
    assert "--key BADCA" in driver.find_element(By.ID, "same-command").get_attribute("textContent")


WELLBEING = (
    (files("discreet") / "data" / "wellbeing.csv").read_text().splitlines()[0].split(",")[2:]
)


def test_a_rating_scale_has_its_pictures_and_its_release(driver, address, place):
    begin(driver, address)
    press(driver, "Try it with wellbeing.csv")
    await_words(driver, "600 persons, 12 items")
    press(driver, "Calibrate these answers")
    press(driver, "Start the calibration")
    await_words(driver, "Thresholds and categories")
    press(driver, "exercised")
    await_words(driver, "Differences between groups")
    drawn = driver.find_elements(By.CSS_SELECTOR, "figure svg .curve")
    assert len(drawn) == 5
    make_ledger(driver, address, "Well-being")
    press(driver, "Releases")
    press(driver, "Release wellbeing.csv")
    (place / "steps.csv").write_text("item,steps\n" + "".join(f"{item},4\n" for item in WELLBEING))
    steps = driver.find_element(By.CSS_SELECTOR, "[name=kind][value=steps]")
    driver.execute_script("arguments[0].click()", steps)
    said = {"epsilon": "3", "persons": "600", "title": "How are you", "lowest": "0"}
    folder = release(driver, place, "steps.csv", **said)
    assert (folder / "thresholds.csv").read_text().count("\n") == 1 + 4 * len(WELLBEING)


def test_a_wrong_file_is_refused_and_the_studio_goes_on(driver, address, place):
    wrong = place / "photo.jpg"
    wrong.write_bytes(b"\xff\xd8\xff\xe0" + bytes(range(256)) * 9)
    begin(driver, address)
    send(driver, wrong)
    await_words(driver, "photo.jpg is a picture")
    begin(driver, address)


def test_a_reading_can_be_cancelled(driver, address, place):
    large = place / "large.csv"
    large.write_text("person,q1,q2,q3\n1,0,1,0\n2,1,0,1\n")
    begin(driver, address)
    driver.find_element(By.ID, "path").send_keys(str(large))
    with hold_workers(place):
        press(driver, "Open this path")
        press(driver, "Cancel")
        await_words(driver, "Reading was cancelled")
    begin(driver, address)
    assert str(large) in words_of(driver)
    press(driver, "Forget all of it")
    assert "Forget all of it" not in words_of(driver)


def test_a_second_browser_is_refused(address, place):
    (place / "other").mkdir()
    with browsing(place / "other", environment()) as other:
        other.get(address.partition("/enter")[0])
        assert "has not been let in" in words_of(other)


def tab_to(driver, label):
    """Go to what has these words with the tabulator, and check that one sees where one is."""
    for _ in range(150):
        focused = driver.execute_script("return (document.activeElement.innerText ?? '').trim()")
        if focused == label:
            break
        ActionChains(driver).send_keys(Keys.TAB).perform()
    assert focused == label
    seen = (
        "const s = getComputedStyle(document.activeElement); return s.outlineStyle + s.outlineWidth"
    )
    assert driver.execute_script(seen) == "solid2px"


def test_the_keyboard_alone_calibrates_an_example(driver, address):
    begin(driver, address)
    ActionChains(driver).send_keys(Keys.TAB).perform()
    assert driver.switch_to.active_element.text == "Go to the content"
    for label, then in (
        ("Try it with lsat.csv", "1,000 persons, 5 items"),
        ("Calibrate these answers", "Calibrate lsat.csv"),
        ("Start the calibration", "Hardest: Item3"),
        ("Item3", "All questions"),
        ("Persons", "Persons of lsat.csv"),
        ("Plan", "What privacy will cost"),
    ):
        tab_to(driver, label)
        await_new(driver, ActionChains(driver).send_keys(Keys.ENTER).perform)
        await_words(driver, then)


def test_moving_a_slider_shows_what_the_library_predicts(driver, address):
    driver.get(f"{address.partition('/enter')[0]}/plan")
    before = driver.find_element(By.ID, "numbers").text
    slider = driver.find_element(By.CSS_SELECTOR, "#field-persons + input[type=range]")
    ActionChains(driver).click(slider).send_keys(Keys.HOME, Keys.ARROW_RIGHT).perform()
    typed = driver.find_element(By.ID, "field-persons").get_attribute("value")
    assert typed == slider.get_attribute("aria-valuetext") == "55"  # one percent of the way
    numbers = await_true(
        driver, lambda _: (now := driver.find_element(By.ID, "numbers").text) != before and now
    )
    made = plan(55, 30, epsilon=1.0)
    assert f"{made.rmse:.3f} logits" in numbers
    assert f"{made.equivalent_persons:,} of 55 persons" in numbers
    assert "persons=55&" in driver.current_url
    items = driver.find_element(By.ID, "field-items")
    few = driver.find_element(By.CSS_SELECTOR, "#field-items + input[type=range]")
    few.send_keys(Keys.HOME, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert items.get_attribute("value") == "7"  # a key moves by one at least
    items.clear()
    items.send_keys("none")
    await_words(driver, "'none' is no whole number")


DRAWN = ["color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size"]
"""Rules of axe that depend on width or colours."""
LOOKS = {(1400, "light"): {}, (400, "dark"): {"runOnly": DRAWN}}
"""How pages are looked at, and by which rules; the others see the same page each time."""
FEW_ROWS = {"exclude": [["tbody tr:nth-child(n+6)"]]}
"""Further rows of a table are like the first."""
SCROLLING = """return [...document.querySelectorAll(".scroll:not(.grid) > table")].filter(
    table => table.rows.length <= 16 && table.parentNode.scrollWidth > table.parentNode.clientWidth
).map(table => table.caption?.textContent)"""
"""Short tables that scroll inside the page."""


def check_page(driver, kind="the last look before a release"):
    """Look at a page wide and light, narrow and dark: axe, its sentences, what sticks out."""
    assert not find_syntax(driver.page_source), kind
    look = axe.Axe(driver)
    look.inject()
    for (width, scheme), rules in LOOKS.items():
        see_as(driver, width, scheme)
        found = look.run(FEW_ROWS, {"resultTypes": ["violations"], **rules})["violations"]
        told = [(one["id"], one["help"], one["nodes"][0]["html"][:200]) for one in found]
        assert not told, (kind, width, scheme, told)
        page = "document.documentElement"
        over = driver.execute_script(f"return {page}.scrollWidth - {page}.clientWidth")
        assert over <= 0, (kind, width, over)
    await_true(driver, lambda _: not driver.execute_script(SCROLLING), f"{kind}: a table scrolls")


def test_every_page_passes_axe_and_fits_its_window_light_and_dark(driver, address):
    kinds = set()
    for kind in crawl(driver, address):
        check_page(driver, kind)
        kinds.add(kind)
    assert kinds >= {"/", "/data/work", "/calibrate/work", "/report/work/job", "/plan", "/ledgers"}
    assert kinds >= {"/report/work/job/items", "/persons/work/job"}


@pytest.mark.parametrize("language", ["de", "es"])
def test_every_page_passes_axe_and_fits_in_other_languages(driver, address, language):
    home = address.partition("/enter")[0]
    driver.get(f"{home}/?lang={language}")
    try:
        for kind in crawl(driver, address):
            assert driver.find_element(By.TAG_NAME, "html").get_attribute("lang") == language
            check_page(driver, f"{kind} in {language}")
    finally:
        driver.get(f"{home}/?lang=en")


def test_no_page_broke_its_content_policy_or_its_script(driver):
    bad = [one for one in driver.get_log("browser") if one["level"] == "SEVERE"]
    assert not [one for one in bad if "status of 400" not in one["message"]]
