"""Screenshots of every page of the studio: ``python -m tools.shots DIR``.

Writes each page 1400 and 400 pixels wide, light and dark. ``python -m tools.shots`` alone renews
the pictures of ``docs/studio.md``.
"""

from __future__ import annotations

import base64
import os
import sys
import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from tools.browsing import await_words, begin, browsing, crawl, press, run_studio, see_as, send

__all__ = ["PICTURES", "main"]

PICTURES = Path(__file__).parents[1] / "docs" / "images"
SHOWN = {"data-problem": 1000, "report-lsat": 900, "plan": 1010}
"""Pages that the documents show, and how much of them, in pixels from the top."""

MESSY = "person,notes,q1,q2,q3\n" + "".join(
    f"{n},{'ill' if n == 7 else ''},{n % 2},{9 if n == 3 else n // 2 % 2},{n // 3 % 2}\n"
    for n in range(1, 41)
)


def main() -> None:
    """Take the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        kept = dict(os.environ)
        with run_studio(place, kept) as address, browsing(place, kept) as driver:
            driver.get(address)
            take = _take_all if len(sys.argv) > 1 else _take_shown
            for name in visit(driver, address, place):
                take(driver, name, Path(sys.argv[-1]))


def _take_all(driver: webdriver.Chrome, name: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for width in (1400, 400):
        for scheme in ("light", "dark"):
            see_as(driver, width, scheme)
            _shoot(driver, width).save(folder / f"{name}-{width}-{scheme}.png")
    print(name, driver.current_url)


def _take_shown(driver: webdriver.Chrome, name: str, _: Path) -> None:
    if name in SHOWN:
        see_as(driver, 1200)
        shot = _shoot(driver, 1200).crop((0, 0, 1200, SHOWN[name]))
        small = shot.convert("P", palette=Image.Palette.ADAPTIVE, colors=64)
        small.save(PICTURES / f"studio-{name}.png", optimize=True)


def _shoot(driver: webdriver.Chrome, width: int) -> Image.Image:
    height = driver.execute_script("return document.documentElement.scrollHeight")
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    asked = {"captureBeyondViewport": True, "clip": clip}
    taken = driver.execute_cdp_cmd("Page.captureScreenshot", asked)
    return Image.open(BytesIO(base64.b64decode(taken["data"]))).convert("RGB")


def visit(driver: webdriver.Chrome, address: str, place: Path) -> Iterator[str]:
    """Do what makes all pages, then open each of them; yield its name."""
    yield from _bring_messy(driver, address, place)
    yield from _calibrate(driver, address)
    _make_ledger(driver, address)
    yield from _release(driver, place)
    names = {"/": "start", "/release": "release-choose"}
    for kind in crawl(driver, address):
        yield names.get(
            kind, kind.strip("/").replace("/work", "").replace("/job", "").replace("/", "-")
        )


def _bring_messy(driver: webdriver.Chrome, address: str, place: Path) -> Iterator[str]:
    file = place / "messy.csv"
    file.write_text(MESSY)
    begin(driver, address)
    send(driver, file)
    await_words(driver, "cannot be read as they are")
    yield "data-problem"


def _calibrate(driver: webdriver.Chrome, address: str) -> Iterator[str]:
    for example, title in (("lsat.csv", "1,000 persons"), ("wellbeing.csv", "600 persons")):
        begin(driver, address)
        press(driver, f"Try it with {example}")
        await_words(driver, title)
        press(driver, "Calibrate these answers")
        press(driver, "Start the calibration")
        await_words(driver, "answered by")
        yield f"report-{example.partition('.')[0]}"
    press(driver, "Calibrate")
    Select(driver.find_element(By.NAME, "model")).select_by_value("rating-scale")
    press(driver, "Start the calibration")
    await_words(driver, "answered by")
    press(driver, "Calibrate")
    press(driver, "Compare")
    yield "compare"


def _make_ledger(driver: webdriver.Chrome, address: str) -> None:
    driver.get(f"{address.partition('/enter')[0]}/ledgers")
    _fill(driver, name="Grade 8", epsilon="2")
    press(driver, "Make this ledger")


def _release(driver: webdriver.Chrome, place: Path) -> Iterator[str]:
    (place / "items.txt").write_text("".join(f"Item{number}\n" for number in range(1, 6)))
    press(driver, "All releases")
    press(driver, "Release lsat.csv")
    driver.find_element(By.ID, "items-file").send_keys(str(place / "items.txt"))
    _fill(driver, epsilon="1", persons="1000", title="Law school admission test, section 6")
    yield "release-filled"
    press(driver, "See what it costs")
    await_words(driver, "What readers will see")
    yield "review"
    _fill(driver, epsilon="1")
    press(driver, "Make the release")
    await_words(driver, "Download everything")
    yield "released"


def _fill(driver: webdriver.Chrome, **said: str) -> None:
    for name, text in said.items():
        field = driver.find_element(By.NAME, name)
        field.clear()
        field.send_keys(text)


if __name__ == "__main__":
    main()
