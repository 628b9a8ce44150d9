"""Settings for every test."""

import os
import sys
import zlib

import pytest
from hypothesis import settings

from discreet.secure import SeededSource, SystemSource

SEED = os.environ.get("DISCREET_TEST_SEED", "")
"""Empty: the same examples and noise in every run, so that a failure is about the change. Whoever
looks for other ones gives a number, and the same one to pytest as --hypothesis-seed."""

# No deadlines: machines are noisy, and nothing is timed in a test. Nothing is remembered either:
# what fails once and passes in a clean copy helps nobody.
settings.register_profile("discreet", deadline=None, derandomize=not SEED, database=None)
settings.load_profile("discreet")

REAL_RANDOMNESS = ("test_secure.py", "test_noise.py")
"""Their subject is the randomness of the system."""
draw_words = SystemSource.words


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Give every test its own fixed noise, also where it asks the system for randomness.

    The noise belongs to the names of test and file, so that a move to another folder changes none.
    """
    _, _, name = item.nodeid.partition("::")
    source = SeededSource(zlib.crc32(f"{SEED} tests/{item.path.name}::{name}".encode()))
    is_real = item.path.name in REAL_RANDOMNESS
    SystemSource.words = draw_words if is_real else lambda _, n, /: source.words(n)


# A file of tests stays in one process; the long ones begin first, so that both processes end
# together.
LONG_FILES = (
    "test_studio_walks.py",
    "test_studio_browser.py",
    "test_spark.py",
    "test_delivery.py",
    "test_reading_privacy.py",
    "test_audit.py",
    "test_report.py",
    "test_weights.py",
    "test_facets.py",
    "test_documents.py",
    "test_verdicts.py",
    "test_postgres.py",
    "test_fuzz_commands.py",
    "test_experiments.py",
)


PRETENDS_WINDOWS = hasattr(sys.modules.get("sitecustomize"), "pretend_windows")
"""Whether tests/whole/windows is on PYTHONPATH."""


def pytest_collection_modifyitems(items):
    """Put the files that take longest in front, and leave everything else in its order."""
    if PRETENDS_WINDOWS or sys.platform == "win32":
        for item in items:
            if item.get_closest_marker("posix"):
                item.add_marker(pytest.mark.skip("Windows has no modes of files, no such signals"))
    order = {name: place for place, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))
