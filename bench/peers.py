"""Compare the time of a fit with the peers' on the same simulated answers.

Run ``python -P bench/peers.py [--persons 100000] [--items 100] [--repeats 7]`` in an environment
with RaschPy, girth and mirt and this package's ``src`` on its path; eRm joins where Rscript finds
it. What is absent is left out and said. Times are of the whole fit call, without standard errors;
the smallest of the repeats that take turns. ``--cpu`` compares processor seconds instead, for a
machine with other work on it. Our compiled loops are loaded first; the first call, which loads
them, is reported on its own line.

``python -m bench.peers --sizes`` compares many sizes with RaschPy instead: right and wrong answers,
partial credit and rating scale, ours without standard errors, with them, and as the default does
it, RaschPy's without. Both sides start from the same array. ``--votes`` compares rankings with
evalica, choix (both sides without errors) and arena-rank (with errors) from one data frame.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np

import discreet
from bench import conditional
from discreet.answers.responses import Responses
from discreet.api.calibrating import fit
from discreet.jit import load_kernels

GOALS = {
    ("int8", "raschpy"): 40,
    ("int8", "girth"): 300,
    ("int8", "mirt"): 2000,
    ("int8", "eRm"): 5000,
    ("arrow", "raschpy"): 40,
    ("float64 frame", "raschpy"): 10,
}

ERM = """
library(eRm)
size <- as.integer(commandArgs(TRUE)[2:3])
cells <- readBin(commandArgs(TRUE)[1], "integer", prod(size), size = 1)
answers <- matrix(cells, size[1], size[2], byrow = TRUE)
answers[answers < 0] <- NA
began <- proc.time()
model <- RM(answers, se = FALSE)
cat(as.numeric(proc.time() - began)[c(1, 3)], "\\n")
"""


def simulate(rng, n, m, answered):
    b = rng.normal(size=m)
    X = (rng.random((n, m)) < 1 / (1 + np.exp(b - rng.normal(size=(n, 1))))).astype(np.int8)
    X[rng.random((n, m)) >= answered] = -1
    return X


def ours(X):
    """Our fit from every form of input that has a goal; the input is made outside the clock."""
    import pandas as pd
    import pyarrow as pa

    columns = [np.ascontiguousarray(column) for column in X.T]
    table = pa.table(
        {str(i): pa.array(column, mask=column < 0) for i, column in enumerate(columns)}
    )
    frame = pd.DataFrame(np.where(X < 0, np.nan, X))
    frame.columns = frame.columns.astype(str)
    return {
        "int8": lambda: fit(X, method="refined", standard_errors=False),
        "arrow": lambda: fit(
            Responses.from_dataframe(table), method="refined", standard_errors=False
        ),
        "float64 frame": lambda: fit(
            Responses.from_dataframe(frame), method="refined", standard_errors=False
        ),
    }


def peers(X):
    """Every peer that is installed, as a call on answers in the form it takes."""
    import pandas as pd

    found = {}
    if _installed("raschpy"):
        import raschpy

        frame = pd.DataFrame(np.where(X < 0, np.nan, X))
        found["raschpy"] = lambda: raschpy.SLM(frame).calibrate()
    if _installed("girth"):
        import girth

        wide = np.where(X < 0, girth.INVALID_RESPONSE, X.astype(int)).T.copy()
        found["girth"] = lambda: girth.rasch_mml(wide)
    if _installed("mirt"):
        import mirt

        whole = X.astype(int)
        found["mirt"] = lambda: mirt.fit_mirt(whole, model="1PL", compute_standard_errors=False)
    return found


def _installed(name):
    if importlib.util.find_spec(name) is None:
        print(f"# {name} is not installed: left out", file=sys.stderr)
        return False
    return True


def time_erm(X, *, cpu):
    """Seconds of eRm's own call, or None where it is not installed."""
    if shutil.which("Rscript") is None:
        print("# Rscript is not installed: eRm left out", file=sys.stderr)
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.bin"
        path.write_bytes(np.ascontiguousarray(X).tobytes())
        ended = subprocess.run(
            ["Rscript", "-e", ERM, str(path), *map(str, X.shape)],
            capture_output=True,
            text=True,
            check=False,
        )
    if ended.returncode:
        print(f"# eRm left out: {ended.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    return float(ended.stdout.split()[-2 if cpu else -1])


def smallest(calls, clock, repeats):
    """Take the smallest time of each call; the calls take turns."""
    best = dict.fromkeys(calls, np.inf)
    for _ in range(repeats):
        for name, call in calls.items():
            start = clock()
            call()
            best[name] = min(best[name], clock() - start)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--persons", type=int, default=100_000)
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--answered", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=7, help="of the fast ones; others once")
    parser.add_argument("--cpu", action="store_true", help="processor seconds, not wall time")
    parser.add_argument("--only", nargs="*", help="peers to run; default all")
    parser.add_argument("--sizes", action="store_true", help="many sizes against RaschPy")
    parser.add_argument("--votes", action="store_true", help="evalica, choix, arena-rank")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    clock = time.process_time if options.cpu else time.perf_counter
    if options.votes:
        load_kernels()
        compare_comparisons(clock, 3)
        return
    if options.sizes:
        load_kernels()
        compare_sizes(clock, options.repeats)
        return
    X = simulate(np.random.default_rng(1), options.persons, options.items, options.answered)
    calls = ours(X)
    load_kernels()
    start = clock()
    calls["int8"]()
    print(f"# first call from int8, loading the compiled loops: {clock() - start:.3f} s")
    mine = smallest(calls, clock, options.repeats)
    print("input,ours_seconds,peer,peer_seconds,ratio,goal", flush=True)
    for name, call in peers(X).items():
        if options.only is None or name in options.only:
            seconds = smallest({name: call}, clock, 3 if name == "raschpy" else 1)[name]
            mine = {key: min(mine[key], new) for key, new in smallest(calls, clock, 3).items()}
            report(mine, name, seconds)
    if options.only is None or "eRm" in options.only:
        report(mine, "eRm", time_erm(X, cpu=options.cpu))


SIZES_OF_VOTES = ((10_000, 30, 0), (100_000, 100, 0), (1_000_000, 200, 0), (1_000_000, 200, 2))
SIZES = ((2000, 30), (2000, 50), (3334, 30), (5000, 40), (10_000, 40), (20_000, 50), (40_000, 60))
MODELS = {"rasch": ("SLM", 1), "partial-credit": ("PCM", 4), "rating-scale": ("RSM", 4)}


def calibrate_raschpy(model, X):
    import pandas as pd

    return model(pd.DataFrame(X)).calibrate()


def compare_sizes(clock, repeats):
    """Print the ratios to RaschPy for every model and size; goals are 8 without errors, 3 with."""
    import raschpy

    print("model,persons,items,without,with,default,raschpy,ratio_without,ratio_with,ratio_default")
    for model, (name, steps) in MODELS.items():
        for persons, items in (*SIZES, (100_000, 100)) if steps == 1 else SIZES:
            X = conditional.simulate(persons, items, 0.0, steps)
            refined = partial(fit, X, method="refined", model=model)
            calls = {
                "without": partial(refined, standard_errors=False),
                "with": refined,
                "default": partial(fit, X, model=model),
                "raschpy": partial(calibrate_raschpy, getattr(raschpy, name), X),
            }
            seconds = list(smallest(calls, clock, repeats).values())
            ratios = [f"{seconds[-1] / ours:.1f}" for ours in seconds[:-1]]
            print(model, persons, items, *(f"{s:.4f}" for s in seconds), *ratios, sep=",")
            sys.stdout.flush()


def rank_counts(frame):
    return discreet.rank_comparisons(discreet.count_comparisons(frame))


def list_ranking_peers(frame):
    """Every installed peer that ranks, as a call on the frame; arena-rank's gives errors too."""
    found = {}
    if _installed("evalica"):
        import evalica

        won = [evalica.Winner.X] * len(frame)
        found["evalica"] = partial(evalica.bradley_terry, frame["winner"], frame["loser"], won)
    if _installed("choix"):
        import choix

        def rank_choix():
            names, codes = np.unique(frame[["winner", "loser"]].to_numpy(str), return_inverse=True)
            return choix.ilsr_pairwise(len(names), codes.reshape(-1, 2))

        found["choix"] = rank_choix
    if _installed("arena_rank"):
        from arena_rank.models import bradley_terry, contextual_bradley_terry
        from arena_rank.utils.data_utils import ContextualPairDataset, PairDataset

        battles = frame.rename(columns={"winner": "model_a", "loser": "model_b"})
        battles["winner"] = "model_a"
        covered = [name for name in frame if name.startswith("covariate")]

        def rank_arena():
            if covered:
                data = ContextualPairDataset.from_pandas(battles, covered, reweighted=False)
                kind = contextual_bradley_terry.ContextualBradleyTerry
                model = kind(len(data.competitors), len(covered))
            else:
                data = PairDataset.from_pandas(battles)
                model = bradley_terry.BradleyTerry(len(data.competitors))
            return model.compute_ratings_and_cis(data)

        found["arena_rank"] = rank_arena
    return found


def compare_comparisons(clock, repeats):
    """Print the ratios to peers, from a data frame; every comparison has a judge of its own.

    With covariates only arena-rank compares; there 20 comparisons have a judge in common.
    """
    print("comparisons,objects,covariates,peer,ours,peer_seconds,ratio")
    rng = np.random.default_rng(1)
    for number, objects, covariates in SIZES_OF_VOTES:
        strength = rng.normal(size=objects)
        names = np.array([f"object {k}" for k in range(objects)])
        left = rng.integers(0, objects, number)
        right = (left + rng.integers(1, objects, number)) % objects
        won = rng.random(number) < 1 / (1 + np.exp(strength[right] - strength[left]))
        winner, loser = np.where(won, left, right), np.where(won, right, left)
        frame = pd_frame(names[winner], names[loser], rng.normal(size=(number, covariates)))
        others = list_ranking_peers(frame)
        judged = frame.assign(judge=np.arange(number) // (20 if covariates else 1))
        columns = [name for name in frame if name.startswith("covariate")]
        options = {"covariates": columns, "repeats": "first"} if covariates else {}
        ours = {"with errors": partial(discreet.rank_comparisons, judged, **options)}
        if not covariates:
            ours["without"] = partial(rank_counts, judged)
        else:
            others = {name: call for name, call in others.items() if name == "arena_rank"}
        seconds = smallest(ours | others, clock, repeats)
        for peer in others:
            mine = seconds["without" if peer in ("evalica", "choix") else "with errors"]
            ratio = f"{seconds[peer] / mine:.2f}"
            times = (f"{mine:.4f}", f"{seconds[peer]:.4f}")
            print(number, objects, covariates, peer, *times, ratio, sep=",", flush=True)


def pd_frame(winner, loser, covariate):
    import pandas as pd

    named = {f"covariate {k}": column for k, column in enumerate(covariate.T)}
    return pd.DataFrame({"winner": winner, "loser": loser, **named})


def report(mine, peer, other):
    """Print the ratio to one peer for every form of input."""
    if other is None:
        return
    for form, seconds in mine.items():
        goal = GOALS.get((form, peer), "")
        print(form, f"{seconds:.5f}", peer, f"{other:.4f}", f"{other / seconds:.0f}", goal, sep=",")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
