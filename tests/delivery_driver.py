"""Run by test_delivery.py as its own program: releases that are killed, compete, or lack room.

Each release runs in a child of its own, as the command line runs it. Prints one JSON document. An
empty list of troubles means: no charge without its bundle, none lost, none overspent.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import discreet
import discreet.publishing.delivery
from discreet.cli import main
from discreet.privacy.ledger.file import find_vault, has_values

ITEMS = [f"q{number}" for number in range(4)]
ROWS = ["1,0,1,0", "0,0,1,1", "1,1,1,0", "0,1,0,0", "1,0,0,1"] * 8


def make_desk(folder: Path, ledger: Path | None = None, limit: float = 1.0) -> Path:
    """Write answers, an item list and a ledger."""
    folder.mkdir(parents=True)
    (folder / "answers.csv").write_text("\n".join([",".join(ITEMS), *ROWS]))
    (folder / "items.txt").write_text("\n".join(ITEMS))
    discreet.Ledger.create(ledger or folder / "spent.db", limit, 1e-6)
    return folder


def release(desk: Path, out: Path, ledger: Path | None = None, epsilon: float = 0.1) -> int:
    book = ledger or desk / "spent.db"
    options = ["--items", desk / "items.txt", "--epsilon", epsilon, "--ledger", book, "--out", out]
    return main(["release", str(desk / "answers.csv"), *map(str, options), "--quiet"])


def child(action: Callable[[], int]) -> int:
    """Start an action in a process of its own, silent."""
    process = os.fork()
    if process:
        return process
    code = 99
    try:
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        code = action()
    finally:
        os._exit(code)


def wait(process: int) -> int:
    status = os.waitpid(process, 0)[1]
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def is_whole(bundle: Path) -> bool:
    try:
        discreet.verify(bundle)
    except (discreet.errors.DiscreetError, OSError):
        return False
    return True


def fetch_all(desk: Path, ledger: Path, outs: list[Path]) -> list[str]:
    """Resume whatever is unfinished as a steward would, and list what is wrong in the end."""
    troubles = []
    book = discreet.Ledger.open(ledger)
    for entry in book.releases():
        values = has_values(find_vault(ledger, entry.reservation))
        if entry.completed_at is not None and not values:
            continue
        fetched = desk / f"fetched-{entry.number}"
        again = [] if values else ["--answers", str(desk / "answers.csv")]
        typed = ["ledger", "resume", str(ledger), str(entry.number), "--out", str(fetched)]
        code = wait(child(lambda typed=typed, again=again: main([*typed, "--quiet", *again])))
        if code or not is_whole(fetched):
            troubles.append(f"release {entry.number} cannot be resumed: exit code {code}")
        if entry.stored_at is not None and not values:
            troubles.append(f"release {entry.number} lost its stored values")
    book = discreet.Ledger.open(ledger)
    arrived = [one for one in outs if is_whole(one)]
    fetched = list(desk.glob("fetched-*"))
    if any(entry.completed_at is None for entry in book.releases()):
        troubles.append("a release is unfinished after resuming")
    if len(arrived) + len(fetched) < len(book.releases()):
        troubles.append("a charge has no bundle")
    if len(arrived) > len(book.releases()):
        troubles.append("a bundle has no charge")
    if [one for one in outs if one.exists() and one not in arrived]:
        troubles.append("half a bundle")
    if book.spent()[0] > book.limit.epsilon:
        troubles.append("overspent")
    if find_vault(ledger, "").exists() and any(map(has_values, find_vault(ledger, "").iterdir())):
        troubles.append("stored values stay behind")
    return troubles


STEPS = [
    (os, "fsync"),
    (os, "open"),
    (os, "write"),
    (Path, "rename"),
    (Path, "unlink"),
    (Path, "chmod"),
    (Path, "mkdir"),
    (Path, "rmdir"),
    (shutil, "rmtree"),
    (discreet.Ledger, "reserve"),
    (discreet.Ledger, "note_stored"),
    (discreet.Ledger, "complete"),
]


def die_at(step: int) -> None:
    """Let this process kill itself at a step: before or after what changes a file."""
    left = [step]

    def count_down() -> None:
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1

    def wrap(real: Callable[..., object]) -> Callable[..., object]:
        def wrapped(*given: object, **named: object) -> object:
            count_down()
            result = real(*given, **named)
            count_down()
            return result

        return wrapped

    for home, name in STEPS:
        setattr(home, name, wrap(getattr(home, name)))


def kill_at_every_step(folder: str, stride: str) -> dict[str, object]:
    """Kill a release at its first step, its second, and so on, until one survives."""
    troubles, charged, step = [], 0, 0
    while True:
        desk = make_desk(Path(folder) / str(step))

        def dying(desk: Path = desk, step: int = step) -> int:
            die_at(step)
            return release(desk, desk / "out")

        code = wait(child(dying))
        charged += len(discreet.Ledger.open(desk / "spent.db").releases())
        found = fetch_all(desk, desk / "spent.db", [desk / "out"])
        troubles += [f"step {step}: {trouble}" for trouble in found]
        if code == 0:
            return {"troubles": troubles, "steps": step, "charged": charged}
        if code != -signal.SIGKILL:
            troubles.append(f"step {step}: exit code {code}")
        step += int(stride)


def kill_at_random(folder: str, kills: str) -> dict[str, object]:
    """Kill a process at random moments of its releases."""
    rng, troubles, charged = random.Random(11), [], 0
    desk = make_desk(Path(folder) / "first")
    start = time.monotonic()
    wait(child(lambda: release(desk, desk / "out")))
    usual = time.monotonic() - start  # so that kills fall everywhere, on a slow machine too
    for number in range(int(kills)):
        desk = make_desk(Path(folder) / str(number), limit=50.0)
        outs = [desk / f"out-{turn}" for turn in range(50)]

        def release_on_and_on(desk: Path = desk, outs: list[Path] = outs) -> int:
            return max(release(desk, out) for out in outs)

        process = child(release_on_and_on)
        time.sleep(rng.uniform(0, 1.2 * usual))
        os.kill(process, signal.SIGKILL)
        wait(process)
        charged += len(discreet.Ledger.open(desk / "spent.db").releases())
        found = fetch_all(desk, desk / "spent.db", outs)
        troubles += [f"kill {number}: {trouble}" for trouble in found]
        shutil.rmtree(desk)
    return {"troubles": troubles, "charged": charged}


def compete(folder: str, processes: str, places: str) -> dict[str, object]:
    """Release all at once, into so many folders, with budget for a few."""
    desk, number = make_desk(Path(folder) / "desk"), int(processes)
    outs = [desk / f"out-{one % int(places)}" for one in range(number)]
    started = [child(lambda out=out: release(desk, out, epsilon=0.3)) for out in outs]
    codes = [wait(one) for one in started]
    charged = len(discreet.Ledger.open(desk / "spent.db").releases())
    troubles = fetch_all(desk, desk / "spent.db", sorted(set(outs)))
    if codes.count(0) != charged:
        troubles.append(f"{codes.count(0)} processes succeeded and {charged} were charged")
    return {"troubles": troubles, "charged": charged, "codes": sorted(set(codes))}


@contextlib.contextmanager
def small_disk(place: Path) -> Iterator[Path]:
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def fill(disk: Path, free: int) -> Path:
    """Leave so many bytes on a disk; return the file to remove for more."""
    ballast = disk / "ballast"
    room = os.statvfs(disk)
    ballast.write_bytes(bytes(max(0, room.f_bavail * room.f_frsize - free)))
    return ballast


def lack_room(folder: str, what: str, *kilobytes: str) -> dict[str, object]:
    """Release where the disk of the ledger, of the bundle, or of both is nearly full."""
    troubles, charged, refused = [], 0, 0
    for free in kilobytes:
        top = Path(folder) / free
        top.mkdir()
        with small_disk(top / "disk") as disk:
            ledger = (disk if what in ("ledger", "both") else top) / "spent.db"
            out = (disk if what in ("bundle", "both") else top) / "out"
            desk = make_desk(top / "desk", ledger)
            ballast = fill(disk, 1024 * int(free))
            code = wait(child(lambda d=desk, o=out, b=ledger: release(d, o, b)))
            ballast.unlink()
            entries = discreet.Ledger.open(ledger).releases()
            charged += len(entries)
            refused += code != 0
            if code == 0 and not is_whole(out):
                troubles.append(f"{free} kB: done without a bundle")
            found = fetch_all(desk, ledger, [out])
            troubles += [f"{free} kB: {trouble}" for trouble in found]
    return {"troubles": troubles, "charged": charged, "refused": refused}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    actions = {
        one.__name__: one for one in (kill_at_every_step, kill_at_random, compete, lack_room)
    }
    print(json.dumps(actions[sys.argv[1]](*sys.argv[2:])))
