"""The rings at run time: the core works alone, and an array needs nobody who reads tables."""

import subprocess
import sys

from tests.whole.test_architecture import RINGS

#: Modules of the package that fitting an array may load, the package itself among them.
MOST_MODULES = 70

BLOCKED = """
import sys

class Wall:
    def find_spec(self, name, path=None, target=None):
        parts = name.split(".")
        if parts[0] == "discreet" and len(parts) > 1 and parts[1] in BLOCKED:
            raise ImportError(f"{name} is outside of the core")

sys.meta_path.insert(0, Wall())

import numpy as np
from discreet.answers.responses import Responses
from discreet.models.calibrate import calibrate
from discreet.models.noisy.released import estimate_release
from discreet.persons.scoring import score
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.mechanisms import find_mechanism
from discreet.privacy.noise import ExactNoise
from discreet.privacy.protocol import Public
from discreet.privacy.wall import release_statistics
from discreet.secure import SystemSource

answers = Responses.from_array(np.random.default_rng(0).integers(0, 2, (400, 6)))
estimate = calibrate(answers)
assert np.isfinite(estimate.se).all()
assert len(score(answers, estimate).ability) == 400
source, items = SystemSource(), answers.items
public = Public(items, len(items), Neighbours.ADD_REMOVE, None)
mechanism = find_mechanism("margins")
noise = mechanism.calibrate(public, Budget(2.0, 1e-6, public.neighbours), source)
made = release_statistics(
    answers, mechanism=mechanism, public=public, calibration=noise,
    guarantee=noise.spend.guarantee(is_private=True), noise=ExactNoise(source),
)
assert np.isfinite(estimate_release(made).difficulty).all()
try:
    Responses.from_dataframe({})
except ImportError as error:
    print(error)
"""

FIT = """
import sys
import numpy as np
import discreet

discreet.fit(np.random.default_rng(0).integers(0, 2, (200, 8)))
print(*(name for name in sys.modules if name.split(".")[0] == "discreet"))
"""


def run(program):
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_core_fits_scores_and_releases_with_the_other_rings_blocked():
    outside = {name.split(".")[0] for ring, names in RINGS.items() for name in names} - {
        name.split(".")[0] for name in RINGS["core"]
    }
    assert {"tables", "readers", "items", "api"} <= outside
    words = run(f"BLOCKED = {outside}\n{BLOCKED}")
    assert words[0] == "discreet.readers"  # the wall stands, and one call goes up


def test_an_array_is_fitted_without_anybody_who_reads_tables():
    loaded = run(FIT)
    packages = {name.split(".")[1] for name in loaded if "." in name}
    assert packages.isdisjoint({*RINGS["door"], *RINGS["statistics"]})
    assert len(loaded) <= MOST_MODULES
