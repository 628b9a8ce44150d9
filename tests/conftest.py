"""Settings for every test."""

import os

from hypothesis import settings

# No deadlines: machines are noisy, and nothing is timed in a test. In continuous integration the
# examples are the same every time, so that a failure is about the change.
settings.register_profile("discreet", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("discreet")

# A file of tests stays in one process; the long ones begin first, so that both processes end
# together.
LONG_FILES = (
    "test_spark.py",
    "test_studio_browser.py",
    "test_postgres.py",
    "test_audit.py",
    "test_documents.py",
)


def pytest_collection_modifyitems(items):
    """Put the files that take longest in front, and leave everything else in its order."""
    items.sort(key=lambda item: item.path.name not in LONG_FILES)
