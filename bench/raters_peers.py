"""Severities of raters by discreet and by other programs, on the same simulated ratings.

``python bench/raters_peers.py NAME`` fits one study with ``discreet``, ``raschpy`` (RaschPy),
``mirt`` (PyPI's mirt) or ``lme4`` (R, by ``Rscript``; ``--steps 1`` only) and prints time, memory,
error and coverage of the severities. It imports the named program only, so that each can have an
environment of its own. Every person is rated on all items by ``--marks`` raters; steps are shared
by the items. Coverage is that of normal intervals, of discreet that of its own (Student's t).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

LME4 = """
suppressMessages(library(lme4))
d <- read.csv("ratings.csv")
for (name in c("person", "item", "rater")) d[[name]] <- factor(d[[name]])
contrasts(d$rater) <- contr.sum(nlevels(d$rater))
m <- glmer(score ~ 0 + item + rater + (1 | person), d, binomial, nAGQ = {nodes})
k <- grep("^rater", names(fixef(m)))
b <- -fixef(m)[k]; v <- as.matrix(vcov(m))[k, k]
write.csv(data.frame(b = c(b, -sum(b)), se = sqrt(c(diag(v), sum(v)))), "out.csv")
"""


def simulate(study: argparse.Namespace) -> tuple[dict[str, Any], Any]:
    """Return columns of ratings, and the severities that they were drawn from."""
    rng = np.random.default_rng(study.seed)
    severity = rng.normal(0, 0.5, study.raters)
    severity -= severity.mean()
    location, steps = np.linspace(-1, 1, study.items), np.linspace(-1, 1, study.steps)
    steps -= steps.mean()
    person = np.repeat(np.arange(study.persons), study.items * study.marks)
    item = np.tile(np.repeat(np.arange(study.items), study.marks), study.persons)
    chosen = [rng.choice(study.raters, study.marks, replace=False) for _ in range(study.persons)]
    rater = np.repeat(np.array(chosen)[:, None], study.items, axis=1).ravel()
    level = rng.normal(size=study.persons)[person] - location[item] - severity[rater]
    draws = rng.gumbel(size=(len(person), study.steps + 1))
    draws[:, 1:] += np.cumsum(level[:, None] - steps, axis=1)
    columns = {"person": person, "item": item, "rater": rater, "score": draws.argmax(axis=1)}
    return columns, severity


def fit_discreet(columns: dict[str, Any], study: argparse.Namespace) -> tuple[Any, Any]:
    """Fit the rating scale model with the default pairs."""
    import discreet
    from discreet.answers.ratings import Ratings

    person, item, rater, score = columns.values()
    ratings = Ratings.from_codes(person, item, score, facets={"rater": rater})
    facet = discreet.fit(ratings, model="rating-scale", method=study.method).facets["rater"]
    return facet.measure, (facet.interval()[:, 1] - facet.measure) / 1.96


def fit_raschpy(columns: dict[str, Any], study: argparse.Namespace) -> tuple[Any, Any]:
    """Fit RaschPy's MFRM with its default estimation and sandwich errors."""
    import pandas as pd
    from raschpy.mfrm import MFRM

    table = pd.DataFrame(columns).pivot_table(
        index=["rater", "person"], columns="item", values="score"
    )
    table.columns = [f"I{name}" for name in table.columns]
    model = MFRM(table, max_score=study.steps)
    model.calibrate(model="global")
    model.std_errors(model="global", se_method="sandwich")
    measures = [vars(model)[name] for name in ("facet_effects_global", "rater_se_global")]
    return tuple(np.asarray(pd.Series(values).sort_index(), float) for values in measures)


def fit_mirt(columns: dict[str, Any], study: argparse.Namespace) -> tuple[Any, Any]:
    """Fit PyPI mirt's polytomous MFRM by marginal likelihood."""
    from mirt.estimation.mfrm_mml import fit_mfrm
    from mirt.models.mfrm import Facet, PolytomousMFRM

    shape = study.persons, study.items * study.marks
    raters = Facet(name="rater", n_levels=study.raters)
    model = PolytomousMFRM(study.items, study.steps + 1, [raters])
    cells = {name: values.reshape(shape) for name, values in columns.items()}
    raters_of = {"rater": cells["rater"]}
    result = fit_mfrm(model, cells["score"], raters_of, item_indices=cells["item"])
    return result.facet_parameters["rater"], result.facet_se["rater"]


def fit_lme4(columns: dict[str, Any], study: argparse.Namespace) -> tuple[Any, Any]:
    """Fit a logistic regression with normal abilities in R."""
    with tempfile.TemporaryDirectory() as folder:
        rows = np.column_stack(list(columns.values()))
        header = ",".join(columns)
        np.savetxt(Path(folder, "ratings.csv"), rows, "%d", ",", header=header, comments="")
        script = LME4.replace("{nodes}", "0" if study.method == "fast" else "1")
        subprocess.run(["Rscript", "-e", script], cwd=folder, check=True)
        out = np.genfromtxt(Path(folder, "out.csv"), delimiter=",", skip_header=1)
    return out[:, 1], out[:, 2]


PROGRAMS = {
    "discreet": fit_discreet, "raschpy": fit_raschpy, "mirt": fit_mirt, "lme4": fit_lme4,
}  # fmt: skip


def main() -> None:
    """Print what one program does with one study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", choices=PROGRAMS)
    sizes = {"persons": 500, "items": 5, "steps": 3, "raters": 20, "marks": 2, "seed": 0}
    for name, size in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--method", default="auto", help="discreet's; lme4: fast is nAGQ = 0")
    study = parser.parse_args()
    columns, severity = simulate(study)
    wall = time.perf_counter()
    measure, se = PROGRAMS[study.program](columns, study)
    seconds = time.perf_counter() - wall
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    error = measure - np.nanmean(measure) - severity
    facts = {
        "seconds": seconds,
        "processor_seconds": sum(part.ru_utime + part.ru_stime for part in usage),
        "peak_gb": max(part.ru_maxrss for part in usage) / 1e6,
        "rmse": float(np.sqrt(np.nanmean(error**2))),
        "coverage": float(np.mean(np.abs(error) < 1.96 * se)),
    }
    print(json.dumps(vars(study) | {name: round(value, 4) for name, value in facts.items()}))


if __name__ == "__main__":
    main()
