"""Run by test_delivery.py as its own program: releases that are killed, compete, or lack room.

Each release runs in a child of its own, as the command line runs it. Prints one JSON document. An
empty list of troubles means: no charge without its bundle, none lost, none overspent; and in
`rounds`, no charge with two draws that nobody finds.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import discreet
import discreet.publishing.delivery
from discreet.cli import main
from discreet.privacy.accounting import Neighbours
from discreet.privacy.accounting.additive_noise import pure_spend
from discreet.privacy.ledger import values as ledger_values
from discreet.privacy.wall import pack_release
from discreet.secure import SeededSource

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
        values = entry.has_values
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
    if any(entry.has_values for entry in book.releases()):
        troubles.append("stored values stay behind")
    return troubles


STEPS = [
    (os, "link"),
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
    (discreet.Ledger, "store"),
    (discreet.Ledger, "fetch"),
    (discreet.Ledger, "complete"),
]


def die_at(step: int | str, end: int = signal.SIGKILL) -> None:
    """Let this process kill itself (or stop) at a step: before or after what changes a file.

    A step is a number, or the name of a function when it is first called.
    """
    left = [step]

    def count_down(name: str = "") -> None:
        if left[0] in (0, name):
            os.kill(os.getpid(), end)
            left[0] = -1
        elif isinstance(left[0], int):
            left[0] -= 1

    def wrap(real: Callable[..., object], name: str = "") -> Callable[..., object]:
        def wrapped(*given: object, **named: object) -> object:
            count_down(name)
            result = real(*given, **named)
            count_down()
            return result

        return wrapped

    for home, name in STEPS:
        setattr(home, name, wrap(getattr(home, name), name))

    class Counting(sqlite3.Connection):
        """Every statement is a step too, and a lock is not waited for long."""

        def execute(self, *given: Any) -> sqlite3.Cursor:
            return wrap(super().execute)(*given)

    real = sqlite3.connect
    sqlite3.connect = lambda *given, **named: real(
        *given, **{**named, "factory": Counting, "timeout": 0.2}
    )


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


def no_cipher(_: bytes, parts: list[bytes]) -> list[bytes]:
    return parts


def last_counts(ledger: Path, name: str, path: Path, key: bytes, parts: list[bytes]) -> list[bytes]:
    ledger_values._write_key(path, key)
    return parts


#: Faults of a safeguard, which must be found: by module, name, and what stands there instead.
FAULTS = {
    "no cipher": (ledger_values, "_encipher", no_cipher),
    "the last draw counts": (discreet.privacy.ledger, "settle_draw", last_counts),
    "none": (ledger_values, "KEY_BYTES", ledger_values.KEY_BYTES),
}


def can_read(ledger: discreet.Ledger, draw: bytes) -> bool:
    """Say whether somebody who reads all files, and knows this program, finds a draw."""
    parts = [draw[start : start + 50] for start in range(100, len(draw), len(draw) // 7)]
    files = [path.read_bytes() for path in ledger.path.parent.rglob("*") if path.is_file()]
    in_plain = any(part in content for part in parts for content in files)
    return in_plain or ledger_values.read_draw(ledger.path, "mine") is not None


def peek(folder: str, size: str, inside: str, fault: str) -> dict[str, object]:
    """Kill a store at each of its steps: a draw that can be read then is the one that counts."""
    ledger_values.INSIDE_BYTES = int(inside)
    home, name, replacement = FAULTS[fault]
    setattr(home, name, replacement)
    spend = pure_spend(0.1, Neighbours.REPLACE_ONE, mechanism="any")
    first, second = (SeededSource(n).words(int(size) // 8).tobytes() for n in (1, 2))
    troubles, step, seen = [], 0, 0
    while True:
        desk = Path(folder) / str(step)
        desk.mkdir()
        ledger = discreet.Ledger.create(desk / "spent.db", 1.0, 1e-6)
        ledger.reserve(spend, fingerprint="f", description="", reservation="mine")

        def dying(ledger: discreet.Ledger = ledger, step: int = step) -> int:
            die_at(step)
            return len(ledger.store("mine", [first])) == 0

        code = wait(child(dying))
        was_readable, is_committed = can_read(ledger, first), ledger.releases()[0].stored_at
        seen += was_readable and not is_committed
        expected = first if was_readable or is_committed else second
        try:
            found = ledger.store("mine", [second])
        except discreet.errors.LedgerError:
            found = b"void"
        if found != expected:
            troubles.append(f"step {step}: two draws for one charge, or none")
        shutil.rmtree(desk)
        if code == 0 or (troubles and fault != "none"):
            return {"troubles": troubles, "steps": step, "readable before the commit": seen}
        step += 1


def kill_at_random(folder: str, kills: str) -> dict[str, object]:
    """Kill a process at random moments of its releases."""
    rng, troubles, charged = random.Random(11), [], 0
    for number in range(int(kills)):
        if number % 20 == 0:  # so that kills fall everywhere, on a machine that gets slower too
            desk, start = make_desk(Path(folder) / f"whole-{number}"), time.monotonic()
            wait(child(lambda desk=desk: release(desk, desk / "out")))
            usual = time.monotonic() - start
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


# --- rounds: kills, deletions and copies at random moments -------------------------------------

MOST_STEPS = 420
"""About as many as a release has; the charge comes after half of them."""


@dataclass
class Round:
    """One ledger and everything that was ever published from it or from a copy."""

    desk: Path
    rng: random.Random
    beside: bool
    done: Counter[str]
    published: int = 0

    @property
    def ledger(self) -> Path:
        return self.desk / "work" / "spent.db"

    @property
    def archive(self) -> Path:
        return self.desk / "published"

    def act(
        self, action: Callable[[], int], step: int | str = -1, end: int = signal.SIGKILL
    ) -> int:
        """Start an action in a child that may die or stop at a step."""

        def prepared() -> int:
            if self.beside:  # as if the values were large
                ledger_values.INSIDE_BYTES = 10
            die_at(step, end)
            return action()

        return child(prepared)

    def release(self, step: int | str, end: int) -> int:
        out = self.desk / "work" / f"out-{self.rng.randrange(10**9)}"
        return self.act(lambda: release(self.desk, out, self.ledger), step, end)

    def publish(self) -> None:
        """Put every bundle that is whole where readers have it."""
        for path in sorted((self.desk / "work").glob("*/privacy.json")):
            if is_whole(path.parent):
                self.published += 1
                shutil.move(path.parent, self.archive / str(self.published))

    def delete(self) -> None:
        """Remove everything beside the ledger; a journal is part of it."""
        self.done["deletions"] += 1
        self.publish()
        for path in (self.desk / "work").iterdir():
            if path.name not in ("spent.db", "spent.db-journal"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def resume(self) -> None:
        """Ask for everything that has no bundle, as a steward would."""
        try:
            entries = discreet.Ledger.open(self.ledger, timeout=0.2).releases()
        except discreet.errors.LedgerError:
            return  # locked by a release that was stopped in the middle of a transaction
        for entry in entries:
            out = self.desk / "work" / f"out-{self.rng.randrange(10**9)}"
            typed = ["ledger", "resume", str(self.ledger), str(entry.number), "--out", str(out)]
            typed += ["--answers", str(self.desk / "answers.csv"), "--quiet"]
            self.done["resumes"] += wait(self.act(lambda typed=typed: main(typed))) == 0

    def settle(self) -> list[str]:
        """Resume until nothing waits; list charges that are neither delivered nor void."""
        self.resume()
        self.publish()
        entries = discreet.Ledger.open(self.ledger).releases()
        states = [state_of(entry) for entry in entries]
        self.done["charges"] += len(states)
        self.done["void"] += states.count("void")
        if discreet.Ledger.open(self.ledger).spent()[0] > 1.0:
            return ["overspent"]
        return [f"release {n} is {one}" for n, one in enumerate(states, 1) if one not in SETTLED]

    def find_second_draws(self) -> list[tuple[Path, Path]]:
        """Return pairs of bundles with one number and different noise."""
        by_number: dict[int, dict[bytes, Path]] = {}
        for path in sorted(self.archive.iterdir()):
            self.done["bundles"] += 1
            record = json.loads((path / "privacy.json").read_text())
            number = (record.get("charge") or record["account"] or {}).get("release", 1)
            values = discreet.read_release(path).noisy.values
            content = b"".join(values[name].tobytes() for name in sorted(values))
            by_number.setdefault(number, {}).setdefault(content, path)
        return [
            (first, other)
            for draws in by_number.values()
            for first, *others in [[*draws.values()]]
            for other in others
        ]


SETTLED = ("completed", "void")


def state_of(entry: Any) -> str:
    return getattr(entry, "state", "completed" if entry.completed_at else "unfinished")


def disturb(one: Round, process: int) -> bool:
    """While a release stands still, do what nobody should; say whether the ledger was copied."""
    copied = one.desk / "copy.db"
    if one.rng.random() < 0.6:
        one.delete()
    if one.rng.random() < 0.4:
        shutil.copy(one.ledger, copied)
    if one.rng.random() < 0.5:
        one.resume()
    if one.rng.random() < 0.3:
        one.delete()
    kill = one.rng.random() < 0.5
    one.done["kills"] += kill
    os.kill(process, signal.SIGKILL if kill else signal.SIGCONT)
    wait(process)
    return copied.exists()


def restore(one: Round) -> list[str]:
    """Settle the ledger, put the old copy in its place, and settle that one too."""
    troubles = one.settle()
    shutil.move(one.ledger, one.desk / "first.db")
    for path in (one.desk / "work").iterdir():
        if path.name.startswith("spent.db"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.move(one.desk / "copy.db", one.ledger)
    one.done["restored"] += 1
    try:
        troubles += one.settle()
    except discreet.errors.LedgerError as error:
        one.done["torn"] += 1  # copied in the middle of a transaction
        if "damaged" not in str(error):
            troubles.append(str(error))
    shutil.move(one.ledger, one.desk / "second.db")
    return troubles


def names_both(one: Round, pair: tuple[Path, Path]) -> bool:
    """Say whether either ledger, compared with all that was published, names two bundles."""
    for ledger in (one.desk / "first.db", one.desk / "second.db"):
        try:
            discreet.check_ledger(ledger, one.archive)
        except discreet.errors.BadResponses as error:
            if not all(str(path) in str(error) for path in pair):
                return False
        else:
            return False
    return True


def find_uncommitted(one: Round) -> list[str]:
    """Return bundles whose draw neither ledger file committed; each commits one per charge."""
    committed = set()
    for ledger in (one.desk / "first.db", one.desk / "second.db"):
        with contextlib.suppress(discreet.errors.LedgerError):  # a torn copy
            entries = discreet.Ledger.open(ledger).releases()
            committed |= {entry.stored.get("sha256") for entry in entries}
    return [
        f"{path.name} holds a draw that no ledger committed"
        for path in sorted(one.archive.iterdir())
        if digest_draw(path) not in committed
    ]


def digest_draw(bundle: Path) -> str:
    parts = pack_release(discreet.read_release(bundle).noisy)
    return ledger_values.describe_values(parts)["sha256"]


def play(one: Round) -> list[str]:
    anywhere = max(one.rng.randrange(MOST_STEPS), one.rng.randrange(MOST_STEPS))
    step = one.rng.choice([anywhere, anywhere, "store", "fetch", "complete"])
    process = one.release(step, signal.SIGSTOP)
    stopped = os.WIFSTOPPED(os.waitpid(process, os.WUNTRACED)[1])
    one.done["stopped"] += stopped
    copied = disturb(one, process) if stopped else False
    if not copied:
        troubles = one.settle()
        if one.find_second_draws():
            troubles.append("two draws for one charge")
        return troubles
    troubles = restore(one) + find_uncommitted(one)
    for pair in one.find_second_draws():
        one.done["second draws"] += 1
        if not names_both(one, pair):
            troubles.append(f"{pair} are not named")
    return troubles


def rounds(folder: str, number: str, seed: str = "25") -> dict[str, object]:
    """Release, stop at a random step, delete, copy, resume, kill or go on, settle, compare."""
    troubles, done = [], Counter()
    for turn in range(int(number)):
        desk = Path(folder) / str(turn)
        make_desk(desk, limit=9.0)
        (desk / "work").mkdir()
        (desk / "published").mkdir()
        (desk / "spent.db").rename(desk / "work" / "spent.db")
        one = Round(desk, random.Random(f"{seed} {turn}"), bool(turn % 2), done)
        troubles += [f"round {turn}: {trouble}" for trouble in play(one)]
        shutil.rmtree(desk)
    return {"troubles": troubles, "rounds": int(number), **dict(sorted(done.items()))}


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
            if code and entries:
                troubles.append(f"{free} kB: charged, and not delivered")
            found = fetch_all(desk, ledger, [out])
            troubles += [f"{free} kB: {trouble}" for trouble in found]
    return {"troubles": troubles, "charged": charged, "refused": refused}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    actions = {
        one.__name__: one
        for one in (kill_at_every_step, peek, kill_at_random, compete, lack_room, rounds)
    }
    print(json.dumps(actions[sys.argv[1]](*sys.argv[2:])))
