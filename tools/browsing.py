"""The studio as a user starts it, and a browser that walks through it: for tests and pictures.

Whoever imports this needs Selenium, Chromium and its driver.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

__all__ = [
    "CHROMIUM",
    "DRIVER",
    "await_new",
    "await_true",
    "await_words",
    "begin",
    "browsing",
    "crawl",
    "press",
    "run_studio",
    "see_as",
    "send",
    "words_of",
]

Found = TypeVar("Found")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
SWITCHES = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--window-size=1400,1000"),
)
FILE = re.compile(r"\.\w+$|/(zip|page)$")
"""Addresses that are files to take away, or pages without the studio's frame."""

PATIENCE = 300
"""Seconds after which what does not come is taken for a failure, on a busy machine too."""


@contextmanager
def run_studio(place: Path, environment: dict[str, str]) -> Iterator[str]:
    """Start the studio as a user does; give its first address, and end it."""
    (place / "tmp").mkdir()
    kept = {"TMPDIR": str(place / "tmp"), "XDG_STATE_HOME": str(place / "state")}
    running = subprocess.Popen(  # noqa: S603
        [*(sys.executable, "-m", "discreet", "studio", "--no-browser"), "--keep", place / "kept"],
        env={**environment, **kept},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        # Whoever runs it in the background has told their processes to ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        yield running.stdout.readline().strip()
    finally:
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=PATIENCE)


@contextmanager
def browsing(place: Path, environment: dict[str, str]) -> Iterator[webdriver.Chrome]:
    """Start a browser that keeps its things in a folder, and end it."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for switch in (*SWITCHES, f"--user-data-dir={place / 'profile'}"):
        options.add_argument(switch)
    options.add_experimental_option("prefs", {"download.default_directory": str(place / "got")})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    own = {"HOME": str(place), "TMPDIR": str(place)}
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER, env={**environment, **own}))
    try:
        yield driver
    finally:
        driver.quit()


def words_of(driver: webdriver.Chrome) -> str:
    """Return what can be read on a page."""
    return driver.find_element(By.TAG_NAME, "body").text


def await_true(driver: webdriver.Chrome, holds: Callable[..., Found], words: str = "") -> Found:
    """Wait until something holds, looking twenty times a second."""
    return WebDriverWait(driver, PATIENCE, poll_frequency=0.05).until(holds, words)


def await_words(driver: webdriver.Chrome, words: str) -> None:
    """Wait until a page shows these words; a page that is just being replaced has none."""

    def shown(_: webdriver.Chrome) -> bool:
        try:
            return bool(re.search(words, words_of(driver)))
        except WebDriverException:
            return False

    await_true(driver, shown, words)


def await_new(driver: webdriver.Chrome, click: Callable[[], object]) -> None:
    """Do what leads to another page, and wait until the old one is gone."""
    old = driver.find_element(By.TAG_NAME, "main")
    click()

    def gone(_: webdriver.Chrome) -> bool:
        try:
            old.is_enabled()
        except WebDriverException:
            return True
        return False

    await_true(driver, gone)


def press(driver: webdriver.Chrome, label: str) -> None:
    """Press a button or follow a link by its words."""
    path = f"//*[self::button or self::a][normalize-space()='{label}']"
    button = driver.find_element(By.XPATH, path)
    await_new(driver, lambda: driver.execute_script("arguments[0].click()", button))


def begin(driver: webdriver.Chrome, address: str) -> None:
    """Go to the first page."""
    driver.get(address.partition("/enter")[0])
    await_words(driver, "What would you like to calibrate?")


def send(driver: webdriver.Chrome, path: Path) -> None:
    """Choose a file, which sends it."""
    choose = driver.find_element(By.ID, "file")
    await_new(driver, lambda: choose.send_keys(str(path)))


def see_as(driver: webdriver.Chrome, width: int, scheme: str = "light") -> None:
    """Look through a window of this width, light or dark."""
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def crawl(driver: webdriver.Chrome, address: str) -> Iterator[str]:
    """Open one page of every kind that links lead to, from the first page on; yield its kind.

    Addresses that differ in numbers alone are of one kind.
    """
    home = address.partition("/enter")[0]
    waiting, seen = [f"{home}/"], {"/"}
    while waiting:
        page = waiting.pop(0)
        driver.get(page)
        yield name_kind(page.removeprefix(home))
        for link in driver.execute_script("return [...document.links].map(one => one.href)"):
            found = link.partition("#")[0]
            path = found.removeprefix(home)
            kind = name_kind(path)
            if found.startswith(home) and kind not in seen and not FILE.search(path):
                seen.add(kind)
                waiting.append(found)


def name_kind(path: str) -> str:
    """Return what kind of page an address leads to.

    Examples
    --------
    >>> name_kind("/report/work-1/job-12/items/3"), name_kind("/plan?items=3")
    ('/report/work/job/items', '/plan')
    """
    named = re.sub(r"^/(bundles|releases)/[^/]+", r"/\1/one", path.partition("?")[0])
    return re.sub(r"/\d+|-\d+", "", named)
