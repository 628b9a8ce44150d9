"""Tasks for workers of the studio that behave badly, and workers that are none."""

import os
import time
from pathlib import Path
from types import SimpleNamespace

from discreet.studio.jobs import JobTable, StudioJob, run_task


def add(progress, first, second):
    progress.begin("Adding")
    return first + second


def wait(progress, **_):
    progress.begin("Waiting")
    progress._write(1, 4)
    time.sleep(600)


def take_memory(progress, size):
    progress.begin("Taking memory")
    return len(bytearray(size))


def die(progress):
    os.kill(os.getpid(), 9)


def fail(progress):
    raise RuntimeError("a surprise")


def spend(progress, gate):
    progress.begin("Spending")
    progress.commit()
    while not Path(gate).exists():
        time.sleep(0.02)
    return "spent"


class InPlace(JobTable):
    """Does a job at once and in this process, where a test can plant faults."""

    def start(self, title, task, /, **arguments):
        name = f"job-{len(self._jobs) + 1}"
        folder = self.folder / name
        folder.mkdir()
        process = SimpleNamespace(exitcode=0, kill=lambda: None, join=lambda: None)
        job = self._jobs[name] = StudioJob(name, title, folder, process)
        run_task(folder, task, arguments, None)
        return job
