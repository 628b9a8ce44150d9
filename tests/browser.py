"""A real browser for tests: open a page, run a script in it, read what became of it."""

import base64
import hashlib
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

SWITCHES = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
]


def add_script(page: str, script: str) -> str:
    """Return a page with one more script, which its policy is made to run."""
    name = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = page.replace("script-src ", f"script-src 'sha256-{name}' ", 1)
    return page.replace("</body>", f"<script>{script}</script></body>")


def visit(page: Path, folder: Path, script: str = "", width: int = 1000) -> tuple[str, str, str]:
    """Return (what ``script`` returned, the page's DOM, the browser's console)."""
    probe = f"document.title = String((() => {{ {script} }})());"
    copy = folder / "visited.html"
    copy.write_text(add_script(page.read_text(), probe))
    done = subprocess.run(
        [
            CHROMIUM,
            *SWITCHES,
            f"--user-data-dir={folder / 'profile'}",
            f"--window-size={width},900",
            "--dump-dom",
            copy.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=600,
    )
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.S)
    assert title, done.stderr
    console = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    return unescape(title[1]), done.stdout, console
