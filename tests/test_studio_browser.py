"""The studio in a real browser: walks that a person takes, with mouse and with keyboard."""

import re
import shutil
import signal
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path

import pytest

from browser import CHROMIUM, SWITCHES
from commandline import discreet, environment
from discreet.privacy.ledger import Ledger

webdriver = pytest.importorskip("selenium.webdriver")
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select, WebDriverWait  # noqa: E402

DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="no Chromium or no chromedriver on this machine"
)
PATIENCE = 60
"""Seconds after which a page that does not come is taken for a failure, on a busy machine too."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("studio")


@pytest.fixture(scope="module")
def address(place):
    """Start the studio as a user does, and end it."""
    (place / "tmp").mkdir()
    kept = {"TMPDIR": str(place / "tmp"), "XDG_STATE_HOME": str(place / "state")}
    running = subprocess.Popen(
        [sys.executable, "-m", "discreet", "studio", "--no-browser", "--keep", place / "kept"],
        env=environment(**kept),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    yield running.stdout.readline().strip()
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=PATIENCE)
    assert not list((place / "tmp").iterdir())


@pytest.fixture(scope="module")
def driver(address, place):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for switch in (*SWITCHES, f"--user-data-dir={place / 'profile'}", "--window-size=1400,1000"):
        options.add_argument(switch)
    options.add_experimental_option("prefs", {"download.default_directory": str(place / "got")})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(DRIVER, env=environment(HOME=str(place), TMPDIR=str(place)))
    made = webdriver.Chrome(options, service)
    made.get(address)
    await_words(made, "What would you like to calibrate?")
    yield made
    made.quit()


def words_of(driver):
    return driver.find_element(By.TAG_NAME, "body").text


def await_words(driver, words):
    """Wait until a page shows these words; a page that is just being replaced has none."""

    def shown(_):
        try:
            return re.search(words, words_of(driver))
        except Exception:
            return False

    WebDriverWait(driver, PATIENCE).until(shown, words)


def await_new(driver, click):
    """Do what leads to another page, and wait until the old one is gone."""
    old = driver.find_element(By.TAG_NAME, "main")
    click()

    def gone(_):
        try:
            old.is_enabled()
        except Exception:
            return True
        return False

    WebDriverWait(driver, PATIENCE).until(gone)


def press(driver, label):
    button = driver.find_element(
        By.XPATH, f"//*[self::button or self::a][normalize-space()='{label}']"
    )
    await_new(driver, lambda: driver.execute_script("arguments[0].click()", button))


def start(driver, address):
    driver.get(address.partition("/enter")[0])
    await_words(driver, "What would you like to calibrate?")


def send(driver, path):
    driver.find_element(By.ID, "file").send_keys(str(path))
    press(driver, "Open this file")


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
    look(driver)
    link = driver.find_element(By.PARTIAL_LINK_TEXT, "Download everything")
    driver.execute_script("arguments[0].click()", link)
    packed = place / "got" / link.get_attribute("href").split("/")[-2]
    WebDriverWait(driver, PATIENCE).until(lambda _: Path(f"{packed}.zip").exists())
    shutil.unpack_archive(f"{packed}.zip", place / "unpacked")
    ended = discreet("verify", place / "unpacked" / packed.name)
    assert ended.code == 0, ended.err
    return place / "unpacked" / packed.name


def test_a_reload_and_a_second_tab_in_mid_release_spend_once(driver, address, place):
    rows = "".join(f"{n},{n % 2},{n // 2 % 2},{n // 4 % 2}\n" for n in range(300_000))
    (place / "many.csv").write_text("person,q1,q2,q3\n" + rows)
    (place / "three.txt").write_text("q1\nq2\nq3\n")
    make_ledger(driver, address, "Once")
    press(driver, "All releases")
    driver.find_element(By.ID, "path").send_keys(str(place / "many.csv"))
    press(driver, "Release without looking")
    await_words(driver, "Nobody has looked at these answers")
    ask(driver, place, "three.txt", epsilon="0.5", persons="300000")
    fill(driver, epsilon="0.5")
    ticket, first = driver.current_url, driver.current_window_handle
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
    start(driver, address)
    send(driver, write_messy(place / "messy.csv"))
    await_words(driver, "These answers cannot be read as they are")
    for column, role in (("Nr", "person"), ("Klasse", "group"), ("Remarks", "left out")):
        Select(driver.find_element(By.NAME, f"role:{column}")).select_by_value(role)
    press(driver, "Read the columns so")
    await_words(driver, "Choose the right answers")
    code = driver.find_element(By.CSS_SELECTOR, "button[name=code][value='9']")
    await_new(driver, lambda: driver.execute_script("arguments[0].click()", code))
    await_words(driver, "Choose the right answers")
    for j, letter in enumerate(LETTERS, start=1):
        choice = driver.find_element(By.CSS_SELECTOR, f"input[name='key:Q{j}'][value={letter}]")
        driver.execute_script("arguments[0].click()", choice)
    press(driver, "Use this key")
    await_words(driver, r"60 persons, 5 items, 295 answers \(98% of all cells\)")
    assert "--key BADCA" in driver.find_element(By.ID, "same-command").text
    press(driver, "Calibrate these answers")
    press(driver, "Start the calibration")
    await_words(driver, "5 items answered by 60 persons")
    head = driver.find_element(By.XPATH, "//table[@id='items']//button[.='difficulty']")
    driver.execute_script("arguments[0].click()", head)
    shown = [float(cell.get_attribute("data-value")) for cell in driver.find_elements(
        By.CSS_SELECTOR, "#items tbody td:nth-child(2)")]  # fmt: skip
    assert shown == sorted(shown)
    check_page(driver)
    press(driver, "Q3")
    await_words(driver, "What was chosen")
    assert re.search(r"D\s+right", words_of(driver))
    check_page(driver)
    press(driver, "Persons")
    await_words(driver, "Persons of messy.csv")
    check_page(driver)
    persons = driver.current_url
    make_ledger(driver, address, "Walk")
    check_page(driver)
    driver.get(persons)
    press(driver, "Release")
    await_words(driver, "calibrated them 1 time")
    check_page(driver)
    (place / "items.txt").write_text("".join(f"Q{number}\n" for number in range(1, 6)))
    said = {"epsilon": "2", "persons": "60", "title": "Messy"}
    folder = release(driver, place, "items.txt", check_page, **said)
    assert (folder / "difficulties.csv").read_text().count("\n") == 6
    assert "--key BADCA" in driver.find_element(By.ID, "same-command").text


WELLBEING = (
    (files("discreet") / "data" / "wellbeing.csv").read_text().splitlines()[0].split(",")[2:]
)


def test_a_rating_scale_has_its_pictures_and_its_release(driver, address, place):
    start(driver, address)
    press(driver, "Try it with wellbeing.csv")
    await_words(driver, "600 persons, 12 items")
    press(driver, "Calibrate these answers")
    press(driver, "Start the calibration")
    await_words(driver, "Threshold map")
    press(driver, "exercised")
    await_words(driver, "Differences between groups")
    drawn = driver.find_elements(By.CSS_SELECTOR, "figure svg .curve")
    assert len(drawn) == 5
    check_page(driver)
    make_ledger(driver, address, "Well-being")
    press(driver, "All releases")
    press(driver, "Release wellbeing.csv")
    (place / "steps.csv").write_text("item,steps\n" + "".join(f"{item},4\n" for item in WELLBEING))
    said = {"epsilon": "3", "persons": "600", "title": "How are you", "lowest": "0"}
    folder = release(driver, place, "steps.csv", **said)
    assert (folder / "thresholds.csv").read_text().count("\n") == 1 + 4 * len(WELLBEING)


def test_a_wrong_file_is_refused_and_the_studio_goes_on(driver, address, place):
    wrong = place / "photo.jpg"
    wrong.write_bytes(b"\xff\xd8\xff\xe0" + bytes(range(256)) * 9)
    start(driver, address)
    send(driver, wrong)
    await_words(driver, "cannot be read")
    start(driver, address)


def test_a_reading_can_be_cancelled(driver, address, place):
    large = place / "large.csv"
    rows = "".join(f"{n},{n % 2},{n // 2 % 2},{n // 4 % 2}\n" for n in range(400_000))
    large.write_text("person,q1,q2,q3\n" + rows)
    start(driver, address)
    driver.find_element(By.ID, "path").send_keys(str(large))
    press(driver, "Open this path")
    press(driver, "Cancel")
    await_words(driver, "Reading was cancelled")
    start(driver, address)
    assert str(large) in words_of(driver)
    press(driver, "Forget all of it")
    assert "Forget all of it" not in words_of(driver)


def test_a_second_browser_is_refused(address, place):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for switch in (*SWITCHES, f"--user-data-dir={place / 'other'}"):
        options.add_argument(switch)
    service = webdriver.ChromeService(DRIVER, env=environment(HOME=str(place), TMPDIR=str(place)))
    other = webdriver.Chrome(options, service)
    try:
        other.get(address.partition("/enter")[0])
        assert "has not been let in" in words_of(other)
    finally:
        other.quit()


def test_the_keyboard_alone_opens_an_example(driver, address):
    start(driver, address)
    for _ in range(40):
        focused = driver.switch_to.active_element
        if focused.text.startswith("Try it with wellbeing"):
            break
        ActionChains(driver).send_keys(Keys.TAB).perform()
    outline = driver.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
    await_new(driver, ActionChains(driver).send_keys(Keys.ENTER).perform)
    await_words(driver, "600 persons, 12 items, .* in steps up to 4")


CHECK = Path(__file__).with_name("accessibility.js").read_text()
"""Labels, names, contrast (WCAG AA) and width, looked at in the page as it is drawn."""


def check_page(driver):
    """Look at a page narrow and wide, light and dark."""
    for width in (400, 1800):
        for scheme in ("light", "dark"):
            media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            problems = driver.execute_script(CHECK)
            assert not problems, (driver.current_url, width, scheme, problems)
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_pages_are_labelled_legible_and_fit_any_window(driver, address):
    start(driver, address)
    check_page(driver)
    pages = [a.get_attribute("href") for a in driver.find_elements(By.CSS_SELECTOR, "ul.plain a")]
    assert len(pages) >= 3
    for page in pages:
        driver.get(page)
        time.sleep(0.1)
        check_page(driver)


def test_no_page_broke_its_content_policy_or_its_script(driver):
    bad = [one for one in driver.get_log("browser") if one["level"] == "SEVERE"]
    assert not [one for one in bad if "status of 400" not in one["message"]]
