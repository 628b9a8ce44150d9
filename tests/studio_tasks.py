"""Tasks for workers of the studio that behave badly."""

import os
import time
from pathlib import Path


def add(progress, first, second):
    progress.begin("Adding")
    return first + second


def wait(progress):
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
