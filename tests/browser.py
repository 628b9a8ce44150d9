"""A real browser for tests: open a page, run a script in it, read what became of it."""

import atexit
import base64
import hashlib
import re
import shutil
import tempfile
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from commandline import environment

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="no Chromium or no chromedriver on this machine"
)


@cache
def open_browser():
    """Start one browser for all pages that this process looks at."""
    from tools.browsing import browsing

    held = ExitStack()
    place = held.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
    driver = held.enter_context(browsing(Path(place), environment()))
    atexit.register(held.close)
    return driver


def add_script(page: str, script: str) -> str:
    """Return a page with one more script, which its policy is made to run."""
    name = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = page.replace("script-src ", f"script-src 'sha256-{name}' ", 1)
    return page.replace("</body>", f"<script>{script}</script></body>")


def visit(page: Path, folder: Path, script: str = "", width: int = 1000) -> tuple[str, str, str]:
    """Return (what ``script`` returned, the page's DOM, the browser's console)."""
    from tools.browsing import see_as

    probe = f"document.title = String((() => {{ {script} }})());"
    copy = folder / "visited.html"
    copy.write_text(add_script(page.read_text(), probe))
    driver = open_browser()
    see_as(driver, width)
    driver.get_log("browser")
    driver.get(copy.as_uri())
    console = "\n".join(entry["message"] for entry in driver.get_log("browser"))
    return driver.title, driver.page_source, console


def count_printed(page: Path) -> int:
    """Return how many pages the browser prints of a page."""
    driver = open_browser()
    driver.get(page.as_uri())
    printed = driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    return len(re.findall(rb"/Type\s*/Page[^s]", base64.b64decode(printed["data"])))
