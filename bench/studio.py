"""How long the studio makes people wait: ``python -m bench.studio [--megabytes 200]``.

A studio runs as users start it, and pages are asked for over its socket. For LSAT (5 items) and for
500 items: the processor seconds of the server when a page is shown first and again, which a busy
machine does not lengthen, and how long its visitor waited. Then a large CSV file is sent and read
while another visitor keeps asking for pages: how long the longest of them took, and how often
progress was told. ``--megabytes 0`` leaves that out.
"""

from __future__ import annotations

import argparse
import http.client
import os
import re
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import numpy as np
from tools.browsing import run_studio

REPEATS = 5
GOALS = {"lsat": 0.3, "500 items": 1.0}
"""Seconds within which a page shall be there."""
TICKS = os.sysconf("SC_CLK_TCK")
EDGE = "----discreet"


class Visitor:
    """A browser's part: a cookie, forms, and addresses that lead on."""

    def __init__(self, address):
        first = urlsplit(address)
        self.host, self.cookie = first.netloc, ""
        _, headers, _ = self.ask("GET", f"{first.path}?{first.query}")
        self.cookie = headers["set-cookie"].partition(";")[0]

    def ask(self, method, path, body=None, **headers):
        """Return (status, headers, text) of one answer."""
        line = http.client.HTTPConnection(self.host, timeout=600)
        own = {"Cookie": self.cookie, "Origin": f"http://{self.host}"}
        line.request(method, path, body, {**own, **headers})
        answer = line.getresponse()
        text = answer.read().decode("utf-8", "replace")
        line.close()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, text

    def post(self, page, /, **form):
        """Send a form; return where it leads."""
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        status, headers, text = self.ask("POST", page, urlencode(form), **kind)
        if status != 303:
            raise SystemExit(f"{page}: {status}\n{text[:2000]}")
        return headers["location"]

    def wait(self, page):
        """Wait for the work that a page shows; return the labels of its progress."""
        told = []
        while found := re.search(r'data-job="([\w-]+)"', self.ask("GET", page)[2]):
            _, _, said = self.ask("GET", f"/jobs/{found[1]}")
            told.append(said)
            time.sleep(0.1)
        return told

    def send(self, file):
        """Send a file as a browser does, a piece at a time."""
        head = (
            f'--{EDGE}\r\nContent-Disposition: form-data; name="file"; filename="{file.name}"\r\n'
            "Content-Type: text/csv\r\n\r\n"
        ).encode()
        foot = f"\r\n--{EDGE}--\r\n".encode()

        def pieces():
            yield head
            with file.open("rb") as opened:
                yield from iter(lambda: opened.read(1 << 18), b"")
            yield foot

        size = str(len(head) + file.stat().st_size + len(foot))
        kind = f"multipart/form-data; boundary={EDGE}"
        said = {"Content-Type": kind, "Content-Length": size}
        return self.ask("POST", "/upload", pieces(), **said)[1]["location"]


def processor_seconds(address):
    """Return what the process that listens there has used."""
    port = f":{urlsplit(address).port:04X} "
    sockets = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    inode = next(one[9] for one in sockets if f"{one[1]} ".endswith(port) and one[3] == "0A")
    for process in Path("/proc").glob("[0-9]*"):
        try:
            held = [str(one.readlink()) for one in (process / "fd").iterdir()]
        except OSError:
            continue
        if f"socket:[{inode}]" in held:
            used = (process / "stat").read_text().rpartition(")")[2].split()
            return (int(used[11]) + int(used[12])) / TICKS
    raise SystemExit("nobody listens")


def measure(visitor, address, pages, goal):
    """Print how long each page takes, first and again."""
    for page in pages:
        taken, used = [], [processor_seconds(address)]
        for _ in range(1 + REPEATS):
            start = time.perf_counter()
            status, _, text = visitor.ask("GET", page)
            taken.append(time.perf_counter() - start)
            used.append(processor_seconds(address))
            assert status == 200, (page, status)
        first, again = used[1] - used[0], (used[-1] - used[1]) / REPEATS
        good = "ok" if first <= goal else "TOO LONG"
        kind = re.sub(r"/\d+|-\d+", "", page.partition("?")[0])
        print(
            f"  {kind:24} first {first:5.2f} s ({taken[0]:.2f} waited), again {again:6.3f} s "
            f"({min(taken[1:]):.3f} waited), {len(text) / 1e6:.2f} MB  {good}",
            flush=True,
        )


def calibrate(visitor, data):
    """Calibrate the answers of a work; return the pages that it then has."""
    visitor.wait(data)
    work = data.rpartition("/")[2]
    report = visitor.post(f"/calibrate/{work}", method="", model="", scale="")
    visitor.wait(report)
    persons = report.replace("/report/", "/persons/")
    return [data, f"/calibrate/{work}", report, f"{report}/items/0", persons, f"{persons}/0"]


def write_answers(path, persons, items):
    """Write made-up answers, a block of persons at a time."""
    rng = np.random.default_rng(1)
    difficulty = rng.normal(size=items)
    with path.open("w") as file:
        file.write("person," + ",".join(f"item{j}" for j in range(items)) + "\n")
        for start in range(0, persons, 2000):
            count = min(2000, persons - start)
            away = difficulty - rng.normal(size=(count, 1))
            right = (rng.random((count, items)) < 1 / (1 + np.exp(away))).astype(np.uint8) + 48
            cells = np.full((count, 2 * items - 1), ord(","), np.uint8)
            cells[:, ::2] = right
            rows = [bytes(row).decode() for row in cells]
            file.write("".join(f"{start + n},{row}\n" for n, row in enumerate(rows)))


@contextmanager
def somebody_else(visitor):
    """Ask for other pages all the time, in a second tab; give the list of how long each took."""
    taken, stop = [], threading.Event()

    def keep_asking():
        while not stop.is_set():
            for page in ("/", "/plan"):
                start = time.perf_counter()
                visitor.ask("GET", page)
                taken.append(time.perf_counter() - start)
            stop.wait(0.05)

    thread = threading.Thread(target=keep_asking)
    thread.start()
    try:
        yield taken
    finally:
        stop.set()
        thread.join()


def read_large(visitor, file):
    """Send a large file and have it read, while somebody else looks at pages."""
    start = time.perf_counter()
    with somebody_else(visitor) as taken:
        data = visitor.send(file)
    print(f"  sent in {time.perf_counter() - start:.1f} s")
    print_waits(taken)
    start = time.perf_counter()
    with somebody_else(visitor) as taken:
        told = visitor.wait(data)
    parts = len(set(told))
    print(f"  read in {time.perf_counter() - start:.1f} s, {parts} different notes of progress")
    print_waits(taken)
    text = visitor.ask("GET", data)[2]
    print("  ", re.search(r"[\d,]+ persons, [\d,]+ items", text)[0])


def print_waits(taken):
    """Print how long somebody else waited for pages meanwhile."""
    middle, longest = sorted(taken)[len(taken) // 2], max(taken)
    print(f"    {len(taken)} other pages meanwhile: {middle:.3f} s usual, {longest:.3f} s longest")


def main():
    """Measure everything."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--megabytes", type=int, default=200)
    size = asked.parse_args().megabytes
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with run_studio(place, dict(os.environ)) as address:
            visitor = Visitor(address)
            print("LSAT, 1,000 persons, 5 items (goal: 0.3 s)")
            pages = calibrate(visitor, visitor.post("/example", name="lsat.csv"))
            plan = "/plan?" + urlencode({"persons": 1000, "items": 5, "epsilon": 1})
            measure(visitor, address, ["/", *pages, plan, "/ledgers"], GOALS["lsat"])
            print("2,000 persons, 500 items (goal: 1 s)")
            write_answers(place / "wide.csv", 2000, 500)
            pages = calibrate(visitor, visitor.post("/open", path=place / "wide.csv"))
            plan = "/plan?" + urlencode({"persons": 2000, "items": 500, "epsilon": 1})
            measure(visitor, address, [*pages, plan], GOALS["500 items"])
            if size:
                large = place / "large.csv"
                write_answers(large, size * 5000, 100)
                print(f"A CSV file of {large.stat().st_size / 1e6:.0f} MB")
                read_large(visitor, large)


if __name__ == "__main__":
    main()
