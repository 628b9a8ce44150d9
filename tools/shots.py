"""Screenshots of every page of the studio: ``python -m tools.shots DIR [LANGUAGE ...]``.

Writes each page 1400 and 400 pixels wide, light and dark; then once more in other languages, such
as ``de es``. ``python -m tools.shots`` alone renews the pictures of ``docs/studio.md``.
"""

from __future__ import annotations

import base64
import os
import sys
import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from tools.browsing import await_words, begin, browsing, crawl, press, run_studio, see_as, send

__all__ = ["PICTURES", "main"]

PICTURES = Path(__file__).parents[1] / "docs" / "images"
TABLES = Path(__file__).parents[1] / "tests" / "data" / "tables"
SHOWN = {
    "test-1": 640,
    "test-2": 520,
    "test-3": 900,
    "survey-1": 900,
    "survey-2": 900,
    "ratings-1": 620,
    "ratings-2": 760,
    "release-1": 900,
    "release-2": 760,
    "release-3": 900,
    "plan": 760,
    "wellbeing": 660,
}
"""Pages that the documents show, and how much of them, in pixels from the top."""
NARROW = {"wellbeing"}
"""What the README shows: in a narrow window, so that it can be read on a phone too."""
READ = "cells missing|not clear|cannot be read"


def main() -> None:
    """Take the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        kept = dict(os.environ)
        with run_studio(place, kept) as address, browsing(place, kept) as driver:
            driver.get(address)
            addresses = {}
            for name in visit(driver, address, place):
                addresses[name] = driver.current_url
                if len(sys.argv) > 1:
                    _take_all(driver, name, Path(sys.argv[1]))
                else:
                    _take_shown(driver, name)
            for language in sys.argv[2:]:
                for name, page in addresses.items():
                    driver.get(f"{page}{'&' if '?' in page else '?'}lang={language}")
                    _take_all(driver, name, Path(sys.argv[1]) / language)


def _take_all(driver: webdriver.Chrome, name: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for width in (1400, 400):
        for scheme in ("light", "dark"):
            see_as(driver, width, scheme)
            _shoot(driver, width).save(folder / f"{name}-{width}-{scheme}.png")
    print(name, driver.current_url)


def _take_shown(driver: webdriver.Chrome, name: str) -> None:
    if name in SHOWN:
        width, scale = (600, 2) if name in NARROW else (1200, 1)
        see_as(driver, width)
        shot = _shoot(driver, width, scale).crop((0, 0, scale * width, scale * SHOWN[name]))
        framed = ImageOps.expand(shot, 2, "lightgrey") if name in NARROW else shot
        small = framed.convert("P", palette=Image.Palette.ADAPTIVE, colors=64)
        small.save(PICTURES / f"studio-{name}.png", optimize=True)


def _shoot(driver: webdriver.Chrome, width: int, scale: int = 1) -> Image.Image:
    height = driver.execute_script("return document.documentElement.scrollHeight")
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": scale}
    asked = {"captureBeyondViewport": True, "clip": clip}
    driver.execute_cdp_cmd("Page.captureScreenshot", asked)  # the first may miss what is unpainted
    taken = driver.execute_cdp_cmd("Page.captureScreenshot", asked)
    return Image.open(BytesIO(base64.b64decode(taken["data"]))).convert("RGB")


def visit(driver: webdriver.Chrome, address: str, place: Path) -> Iterator[str]:
    """Do what makes all pages, then open each of them; yield its name."""
    yield from _walk(driver, address, "quiz export.csv", "test", key="CABDDBACABDC")
    yield from _walk(driver, address, "Umfrage.csv", "survey")
    yield from _rate(driver, address)
    yield from _compare(driver, address)
    yield from _release(driver, address, place)
    names = {"/": "start", "/release": "release-choose"}
    for kind in crawl(driver, address):
        yield names.get(
            kind, kind.strip("/").replace("/work", "").replace("/job", "").replace("/", "-")
        )


def _walk(
    driver: webdriver.Chrome, address: str, file: str, name: str, **answers: str
) -> Iterator[str]:
    """Go from a file to its report."""
    begin(driver, address)
    send(driver, TABLES / file)
    await_words(driver, READ)
    _fill(driver, **answers)
    yield f"{name}-1"
    press(driver, "Apply")
    await_words(driver, "Calibrate these answers")
    if answers:
        yield f"{name}-2"
    press(driver, "Calibrate these answers")
    press(driver, "Start the calibration")
    await_words(driver, "reliability")
    yield f"{name}-3" if answers else f"{name}-2"
    report = driver.current_url
    for page in ("items/1", "persons", "persons/1"):
        driver.get(f"{report}/{page}" if "items" in page else report.replace("report", "persons"))
        if page == "persons/1":
            driver.get(f"{driver.current_url}/1")
        yield f"{name}-{page.replace('/', '-')}"


def _rate(driver: webdriver.Chrome, address: str) -> Iterator[str]:
    """Go from marks by two raters to the report of their severities."""
    begin(driver, address)
    send(driver, TABLES / "exports" / "speaking test marks.csv")
    await_words(driver, READ)
    label = "//label[contains(., 'These are raters')]"
    driver.find_element(By.XPATH, label).click()
    await_words(driver, "ratings by 2 raters")
    yield "ratings-1"
    press(driver, "Apply")
    await_words(driver, "Calibrate these answers")
    press(driver, "Calibrate these answers")
    press(driver, "Start the calibration")
    await_words(driver, "For equal work")
    yield "ratings-2"


def _compare(driver: webdriver.Chrome, address: str) -> Iterator[str]:
    begin(driver, address)
    press(driver, "Try it with wellbeing.csv")
    await_words(driver, READ)
    for model in ("", "rating-scale"):
        press(driver, "Calibrate")
        Select(driver.find_element(By.NAME, "model")).select_by_value(model)
        press(driver, "Start the calibration")
        await_words(driver, "reliability")
        if not model:
            yield "wellbeing"
    press(driver, "Calibrate")
    press(driver, "Compare")
    yield "compare"


def _release(driver: webdriver.Chrome, address: str, place: Path) -> Iterator[str]:
    """Release a national file without looking at it."""
    items = [f"M{number:02}" for number in range(1, 21)]
    rng = np.random.default_rng(1)
    away = rng.normal(size=(4000, 1)) - rng.normal(size=len(items))
    right = (rng.random(away.shape) < 1 / (1 + np.exp(-away))).astype(int).tolist()
    rows = [",".join([f"p{number}", *map(str, row)]) for number, row in enumerate(right)]
    (place / "national.csv").write_text("\n".join([",".join(["pupil", *items]), *rows]) + "\n")
    (place / "items.txt").write_text("\n".join(items) + "\n")
    driver.get(f"{address.partition('/enter')[0]}/releases")
    _fill(driver, path=str(place / "national.csv"))
    press(driver, "Release without looking")
    press(driver, "Make a ledger first")
    _fill(driver, name="Grade 8", epsilon="2")
    press(driver, "Make this ledger")
    press(driver, "Back to the release")
    driver.find_element(By.ID, "items-file").send_keys(str(place / "items.txt"))
    title = "Mathematics, grade 8"
    _fill(driver, person="pupil", epsilon="1", persons="4000", title=title, version="1")
    yield "release-1"
    press(driver, "See what it costs")
    await_words(driver, "What readers will see")
    yield "release-2"
    _fill(driver, epsilon="1")
    press(driver, "Make the release")
    await_words(driver, "Download everything")
    yield "release-3"


def _fill(driver: webdriver.Chrome, **said: str) -> None:
    for name, text in said.items():
        field = driver.find_element(By.NAME, name)
        field.clear()
        field.send_keys(text)


if __name__ == "__main__":
    main()
