"""Settings for every test."""

import os

from hypothesis import settings

# No deadlines: machines are noisy, and nothing is timed in a test. In continuous integration the
# examples are the same every time, so that a failure is about the change.
settings.register_profile("discreet", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("discreet")
