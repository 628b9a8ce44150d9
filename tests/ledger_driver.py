"""Run by test_ledger.py as its own program: forks processes that compete, die or lack rights.

It has one thread and imports little, so forks are safe and cheap. Prints one JSON document.
"""

import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from discreet.errors import BadUsage, BudgetExceeded, DiscreetError
from discreet.privacy.accounting import Budget
from discreet.privacy.accounting.additive_noise import calibrate_counts
from discreet.privacy.accounting.spend import Spend
from discreet.privacy.ledger import Ledger


def spend_of(epsilon: float) -> Spend:
    return calibrate_counts(500, Budget(epsilon, 1e-6))[1]


def fork(action: Callable[[], str]) -> tuple[int, int]:
    """Run an action in a child; give its process id and the pipe its answer comes through."""
    here, there = os.pipe()
    child = os.fork()
    if child:
        os.close(there)
        return child, here
    try:
        answer = action()
    except DiscreetError as error:
        answer = f"{type(error).__name__}: {error}"
    except BaseException as error:
        answer = f"unexpected {error!r}"
    os.write(there, answer.encode())
    os._exit(0)


def answer_of(child: int, pipe: int) -> str:
    with os.fdopen(pipe) as stream:
        answer = stream.read()
    os.waitpid(child, 0)
    return answer


def compete(path: str, processes: str) -> list[str]:
    """All at once, each tries one release."""
    ledger, spend = Ledger.open(path), spend_of(0.2)
    start = time.monotonic() + 0.5

    def release() -> str:
        time.sleep(max(0.0, start - time.monotonic()))
        try:
            return ledger.reserve(spend, fingerprint="f", description="at once")
        except BudgetExceeded:
            return ""

    return [answer_of(*child) for child in [fork(release) for _ in range(int(processes))]]


def declare(path: str, processes: str) -> list[str]:
    """All at once, some declare schools, each a part of "all", and others release about them."""
    ledger, spend = Ledger.open(path), spend_of(0.6)
    start = time.monotonic() + 0.5

    def say(name: str) -> str:
        time.sleep(max(0.0, start - time.monotonic()))
        ledger.declare(name)
        ledger.declare("all", contains=[name])
        return ""

    def release(name: str) -> str:
        for _ in range(12_000):
            try:
                ledger.reserve(spend, fingerprint=name, description="", population=name)
                return name
            except BudgetExceeded:
                return ""
            except BadUsage:  # not declared yet
                time.sleep(0.05)
        return "never declared"

    names = [f"school {number}" for number in range(int(processes))]
    children = [fork(partial(action, name)) for name in names for action in (say, release)]
    return [answer_of(*child) for child in children]


def watch(path: str, writers: str, readers: str, times: str) -> list[str]:
    """Some release again and again while others look: every look finds a whole history."""
    ledger, spend = Ledger.open(path), spend_of(0.001)

    def write() -> str:
        for _ in range(int(times)):
            ledger.complete(ledger.reserve(spend, fingerprint="f", description="watched"))
        return "whole"

    def look() -> str:
        seen = 0
        for _ in range(int(times)):
            found = len(ledger.releases()), len(Ledger.open(path).releases())
            if not seen <= found[0] <= found[1]:
                return f"{found} after {seen}"
            seen = found[1]
        return "whole"

    actions = [look] * int(readers) + [write] * int(writers)
    return [answer_of(*child) for child in [fork(action) for action in actions]]


def kill(folder: str, kills: str) -> dict[str, int]:
    """Kill a process at a random moment of its releases, again and again."""
    rng, spend = random.Random(7), spend_of(0.01)
    lost = acknowledged = unacknowledged = 0
    for number in range(int(kills)):
        ledger = Ledger.create(Path(folder) / f"{number}.db", 1.0, 1e-6)

        def release_for_ever(ledger: Ledger = ledger) -> str:
            log = os.open(f"{ledger.path}.log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            while True:
                reservation = ledger.reserve(spend, fingerprint="f", description="")
                os.write(log, f"{reservation}\n".encode())  # from here on noise may be drawn
                ledger.complete(reservation)

        child, pipe = fork(release_for_ever)
        log, began, wanted = Path(f"{ledger.path}.log"), time.monotonic(), rng.randrange(4)
        # However slow the machine is: after so many releases, at a moment of the next one.
        while not log.exists() or log.read_text().count("\n") < wanted:
            assert time.monotonic() - began < 120, "the child releases nothing"
            time.sleep(0.001)
        time.sleep(rng.uniform(0, (time.monotonic() - began) / max(wanted, 1)))
        os.kill(child, signal.SIGKILL)
        answer_of(child, pipe)
        told = set(log.read_text().split())
        kept = {entry.reservation for entry in Ledger.open(ledger.path).releases()}
        lost += len(told - kept)
        acknowledged += len(told)
        unacknowledged += len(kept - told)
        ledger.reserve(spend, fingerprint="f", description="no lock is left behind")
    return {"lost": lost, "acknowledged": acknowledged, "unacknowledged": unacknowledged}


def lack_rights(path: str) -> list[str]:
    """Try to release without the right to write the file, its folder, or to look inside."""
    ledger, spend = Ledger.open(path), spend_of(0.1)
    folder = ledger.path.parent

    def release() -> str:
        if os.geteuid() == 0:
            os.setuid(65534)  # root may write everywhere; permissions bind others
        return ledger.reserve(spend, fingerprint="f", description="")

    answers = []
    for file_mode, folder_mode in [(0o444, 0o755), (0o666, 0o555), (0o666, 0o000)]:
        ledger.path.chmod(file_mode)
        folder.chmod(folder_mode)
        answers.append(answer_of(*fork(release)))
    folder.chmod(0o700)
    return answers


def fill_disk(path: str) -> str:
    """Try to release where no file may grow, which is what a full disk does."""
    ledger, spend = Ledger.open(path), spend_of(0.1)
    size = ledger.path.stat().st_size // 8
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return answer_of(*fork(lambda: ledger.reserve(spend, fingerprint="f", description="")))


if __name__ == "__main__":
    every = (compete, declare, watch, kill, lack_rights, fill_disk)
    actions = {one.__name__: one for one in every}
    print(json.dumps(actions[sys.argv[1]](*sys.argv[2:])))
