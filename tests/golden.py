"""Numbers that a change of structure must not change, computed through public names alone.

::

    python -m tests.golden          writes tests/data/golden.json, and names what has moved

A number that agrees with the one written keeps its digits.

`compute` returns a nested dictionary of lists of numbers. Counts, noisy values and charges are
exact; difficulties agree to 1e-11; other solved quantities to 1e-9 relative (`check`). Results that
hold many numbers are kept as `SHOWN` of each of their columns, to 1e-6 relative.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import discreet
from discreet import analysis
from discreet.answers.ratings import Ratings
from discreet.privacy.noise import ExactNoise
from discreet.secure import SeededSource

FILE = Path(__file__).parent / "data" / "golden.json"
#: Of drawn ratings: another version of a library rounds otherwise, and one score in a draw changes.
DRAWN = {"surprise", "spread"}
EXACT = {"values", "charge", "rank_first", "rank_last"}
METHODS = ("conditional", "refined", "spectral", "marginal")
STEP_MECHANISMS = ("totals",)
MECHANISMS = ("margins", "totals", "pairs", "sparse-pairs", "laplace-margins", "laplace-pairs")


def incomplete() -> Any:
    """Return 300 persons with half of 12 items each: a fixed simulation."""
    rng = np.random.default_rng(20)
    return discreet.simulate(persons=300, items=12, answered=0.5, rng=rng).responses


DATA: dict[str, Callable[[], Any]] = {
    "lsat": discreet.datasets.lsat,
    "incomplete": incomplete,
    "wellbeing": discreet.datasets.wellbeing,
}


def compute() -> dict[str, Any]:
    """Compute every golden number."""
    answers = {name: load() for name, load in DATA.items()}
    return {
        "estimates": {name: estimate_all(data) for name, data in answers.items()},
        "analyses": {name: analyse(data) for name, data in answers.items()},
        "links": link(answers["incomplete"]),
        "releases": {name: release_all(data) for name, data in answers.items()},
        "results": {name: pick(result()) for name, result in RESULTS.items()},
    }


def estimate_all(data: Any) -> dict[str, Any]:
    """Fit every method, and the rating scale model where items have steps."""
    results = {method: describe(discreet.fit(data, method=method)) for method in METHODS}
    if has_steps(data):
        results["rating-scale"] = describe(discreet.fit(data, model="rating-scale"))
    return results


def has_steps(data: Any) -> bool:
    """Tell whether an item has more than one step."""
    return bool(discreet.fit(data, standard_errors=False).thresholds.shape[1] > 1)


def describe(estimate: Any) -> dict[str, Any]:
    """Return the numbers of an estimate."""
    return {
        "difficulty": numbers(estimate.difficulty),
        "se": numbers(estimate.se),
        "thresholds": numbers(estimate.thresholds),
        "threshold_se": numbers(estimate.threshold_se),
    }


def analyse(data: Any) -> dict[str, Any]:
    """Score persons, measure fit, compare two groups, test the model, rank the items."""
    estimate = discreet.fit(data)
    scores = discreet.score(data, estimate)
    fit = analysis.measure_fit(data, estimate)
    groups = ["a" if person % 3 else "b" for person in range(data.n_persons)]
    dif = analysis.find_dif(data, groups)
    ranges = discreet.rank_ranges(estimate)
    return {
        "ability": numbers(scores.ability[:50]),
        "ability_se": numbers(scores.se[:50]),
        "infit": numbers(fit.items.infit),
        "outfit": numbers(fit.items.outfit),
        "dif": numbers(dif.difference),
        "dif_se": numbers(dif.se),
        "rank_first": numbers(ranges.first),
        "rank_last": numbers(ranges.last),
    }


def link(data: Any) -> dict[str, Any]:
    """Link two halves of the persons."""
    half = data.n_persons // 2
    first = discreet.fit(data.select_persons(range(half)))
    second = discreet.fit(data.select_persons(range(half, data.n_persons)))
    result = discreet.link_calibrations(first, second)
    return {"shift": numbers(result.shift), "se": numbers(result.se)}


def release_all(data: Any) -> dict[str, Any]:
    """Release with fixed noise: noisy values, the estimate, the charge."""
    estimate = discreet.fit(data, standard_errors=False)
    steps = np.isfinite(estimate.thresholds).sum(axis=1)
    items = dict(zip(data.items, map(int, steps), strict=True))
    budget = discreet.Budget(epsilon=2.0, delta=1e-5)
    mechanisms = STEP_MECHANISMS if max(items.values()) > 1 else MECHANISMS
    return {name: release_one(data, budget, items, name) for name in mechanisms}


def release_one(data: Any, budget: Any, items: dict[str, int], mechanism: Any) -> dict[str, Any]:
    """Release by one mechanism, with noise from a fixed seed."""
    noise = ExactNoise(SeededSource(11))
    cap = 6 if len(items) > 6 else None
    released = discreet.release(
        data, budget, items=items, max_answers=cap, mechanism=mechanism, noise=noise
    )
    return {
        "values": {name: numbers(part) for name, part in released.noisy.values.items()},
        "charge": [released.guarantee.epsilon, released.guarantee.delta],
        **describe(released.estimate),
    }


# -- every other public result -----------------------------------------------------------------

DIF_TESTS: tuple[Any, ...] = ("wald", "mantel-haenszel", "likelihood-ratio")
#: Numbers that are kept of each column of a result, evenly spaced.
SHOWN = 12
#: Parts of results that are other results.
OTHERS = frozenset(["linked", "ratings", "guarantee", "solution", "ladder", "record", "reading"])


def pick(result: Any) -> Any:
    """Return the numbers of a result, part by part; texts and other results are left out."""
    if is_dataclass(result):
        parts = {field.name: getattr(result, field.name) for field in fields(result)}
        result = {name: part for name, part in parts.items() if name not in OTHERS}
    if isinstance(result, Mapping):
        picked = {str(name): pick(part) for name, part in result.items()}
        return {name: part for name, part in picked.items() if part not in (None, {}, [])}
    if isinstance(result, tuple) and any(map(is_dataclass, result)):
        return pick(dict(enumerate(result)))
    if isinstance(result, np.ndarray | tuple | list | float | int):
        flat = np.asarray(result).ravel() if is_numeric(result) else np.empty(0)
        return numbers(flat[:: max(1, len(flat) // SHOWN)][:SHOWN])
    return None


def is_numeric(values: Any) -> bool:
    """Tell whether all values are numbers, and tuples of them equally long."""
    try:
        return np.asarray(values).dtype.kind in "biuf"
    except ValueError:
        return False


def unequal(persons: int = 240, items: int = 8, steps: int = 1) -> Any:
    """Return answers with gaps, groups, weights, strata, schools and replicate weights."""
    rng = np.random.default_rng(31)
    ability = rng.normal(0.3, 1.3, persons)
    threshold = np.linspace(-1.4, 1.6, items)[:, None] + np.linspace(-0.6, 0.7, steps) * (steps > 1)
    logits = np.cumsum(ability[:, None, None] - threshold, axis=2)
    weight = np.exp(np.concatenate([np.zeros((persons, items, 1)), logits], axis=2))
    reach = np.cumsum(weight / weight.sum(axis=2, keepdims=True), axis=2)[:, :, :-1]
    codes = (rng.random((persons, items, 1)) > reach).sum(axis=2).astype(object)
    codes[rng.random(codes.shape) < 0.12] = None
    row = np.arange(persons)
    about = {
        "id": [f"p{number}" for number in row],
        "g": np.array(["a", "b", "c"])[(row * 7) % 11 % 3],
        "w": rng.uniform(0.5, 3, persons).round(3),
        "s": 1 + (row > 100),
        "school": row // 6,
    }
    copies = rng.integers(0, 3, (6, persons)) * about["w"]
    about |= {f"r{number}": copy for number, copy in enumerate(copies)}
    table = pd.DataFrame({**about, **{f"q{i}": column for i, column in enumerate(codes.T)}})
    return discreet.Responses.from_dataframe(table, person="id", group=list(about)[1:])


def weighted(**words: Any) -> Any:
    """Return the same answers with their sampling design."""
    design = words or {"weight": "w", "strata": "s", "cluster": "school"}
    return unequal().weigh(**design)


def rated() -> Any:
    """Return 150 persons, 4 items and 6 raters, with gaps and the month of rating."""
    rng = np.random.default_rng(32)
    drawn = discreet.simulate_ratings(150, 4, 6, rng=rng, marks=3, severity_sd=0.7).ratings
    kept = drawn.select(np.flatnonzero(rng.random(drawn.n_ratings) < 0.9))
    return Ratings.from_codes(
        kept.person, kept.item, kept.score, facets={**kept.codes, "month": kept.person % 3}
    )


def rated_by_few() -> Any:
    """Return the same ratings, of which one rater has few and one nearly none."""
    ratings = rated()
    rater = ratings.codes["rater"]
    few = (rater != 4) | (ratings.person < 30)
    return ratings.select(np.flatnonzero(few & ((rater != 5) | (ratings.person < 8))))


def chosen() -> Any:
    """Return chosen options of five questions, and gaps, with their key."""
    rng = np.random.default_rng(35)
    ability = rng.normal(size=200)
    columns = {}
    for item, right in enumerate("ABCAB"):
        slope = np.where(np.array(list("ABC")) == right, 1.2, rng.normal(0, 0.4, 3))
        logits = rng.normal(0, 0.5, 3) + ability[:, None] * slope
        share = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        option = (rng.random((200, 1)) > share.cumsum(axis=1)[:, :2]).sum(axis=1)
        columns[f"q{item}"] = np.where(rng.random(200) < 0.1, "", np.array(list("ABC"))[option])
    return discreet.Responses.from_dataframe(pd.DataFrame(columns), key="ABCAB")


def study(ratings: Any, **words: Any) -> dict[str, Any]:
    """Fit ratings, and study raters, persons and bias."""
    estimate = discreet.fit(ratings, facets=["rater"], **words)
    found = analysis.study_ratings(ratings, estimate)
    return {
        "estimate": describe(estimate),
        "raters": estimate.facets["rater"],
        "item_effect": estimate.item_effect,
        "spread": [found.estimate.facets["rater"].separation, *found.limits],
        "fit": found.facets,
        "persons": found.persons,
        "unexpected": found.unexpected,
        "categories": found.categories,
        "bias": found.find_bias("rater", "item"),
        "drift": found.find_bias("rater", "month"),
    }


def weigh_everything() -> dict[str, Any]:
    """Fit, score, compare and test with weights."""
    answers, parts = weighted(), {f"q{i}": "xyx"[i % 3] for i in range(8)}
    replicated = weighted(weight="w", replicates="r?", replication="fay:0.3")
    estimate = discreet.fit(answers)
    return {
        "methods": {method: describe(discreet.fit(answers, method=method)) for method in METHODS},
        "replicates": describe(discreet.fit(replicated)),
        "design_effect": estimate.design_effect,
        "fit": analysis.measure_fit(answers, estimate),
        "means": analysis.find_group_means(answers, estimate, "g"),
        "dif": {
            test: analysis.find_dif(
                answers, "g", test=test, anchors=None if test == "wald" else answers.items
            )
            for test in DIF_TESTS
        },
        "purified": {test: analysis.find_dif(answers, "g", test=test) for test in DIF_TESTS[1:]},
        "andersen": analysis.run_andersen(answers),
        "parts": analysis.run_martin_loef(answers, parts),
        "regression": discreet.score(answers, estimate, regress="g", plausible=2).regression,
        "limits": analysis.simulate_cutoffs(answers, estimate, replications=49),
    }


def examine(steps: int) -> dict[str, Any]:
    """Run every analysis of answers without weights."""
    answers = unequal(steps=steps)
    estimate = discreet.fit(answers)
    groups = {"groups": "g", "anchors": ["q0", "q3", "q6"]}
    return {
        "limits": analysis.simulate_cutoffs(answers, estimate, replications=49),
        "fit": analysis.measure_fit(answers, estimate),
        "dif": {test: analysis.find_dif(answers, test=test, **groups) for test in DIF_TESTS},
        "wald": analysis.run_wald(answers),
        "andersen": analysis.run_andersen(answers),
        "martin_loef": analysis.run_martin_loef(answers),
        "residuals": analysis.correlate_residuals(answers, estimate),
        "dimensions": analysis.find_dimensions(answers, estimate, simulations=9),
        "testlets": analysis.measure_testlets(answers, {f"q{i}": f"t{i // 3}" for i in range(8)}),
        "alpha": analysis.measure_alpha(answers),
        "information": analysis.trace_information(estimate),
        "mislabelled": analysis.find_mislabelled(answers, estimate) if steps == 1 else None,
        "models": analysis.compare_step_models(answers) if steps > 1 else None,
        "check": analysis.check_model(answers),
        "scores": {
            method: discreet.score(answers, estimate, method=method)
            for method in ("ml", "warm", "posterior")
        },
        "plausible": discreet.score(
            answers, estimate, plausible=3, regress="g", rng=np.random.default_rng(5)
        ),
    }


def follow_paths() -> dict[str, Any]:
    """Calibrate and test a multistage test given its paths."""
    cells = unequal(steps=1).to_array()
    is_low = np.maximum(cells[:, :4], 0).sum(axis=1) <= 1
    cells[:, :4] = np.maximum(cells[:, :4], 0)
    cells[is_low, 6:], cells[~is_low, 4:6] = -1, -1
    cells = cells[(cells[:, 4:] >= 0).any(axis=1)]
    items = [f"q{i}" for i in range(cells.shape[1])]
    modules = {"first": items[:4], "easy": items[4:6], "hard": items[6:]}
    paths = {
        "low": [("first", 0, 1), ("easy", 0, 2)],
        "high": [("first", 2, 4), ("hard", 0, len(items))],
    }
    design = discreet.RoutingDesign(modules, paths)
    answers = discreet.Responses.from_array(cells, items=items).route(design)
    estimate = discreet.fit(answers)
    return {
        "estimate": describe(estimate),
        "fit": analysis.measure_fit(answers, estimate),
        "limits": analysis.simulate_cutoffs(answers, estimate, replications=49),
        "andersen": analysis.run_andersen(answers),
    }


def move_scales() -> dict[str, Any]:
    """Link, bank, and follow items over time, from calibrations and from answers."""
    rng = np.random.default_rng(33)
    truth = np.linspace(-1.5, 1.5, 9)
    moved = truth + np.array([0, 0, 0.9, 0, 0, 0, 0, -0.3, 0])
    periods = [
        discreet.simulate(persons=size, items=9, answered=0.8, difficulty=b, rng=rng).responses
        for size, b in ((400, truth), (250, moved), (300, moved))
    ]
    fits = [discreet.fit(period) for period in periods]
    bank, _ = discreet.grow_bank(
        discreet.create_bank(fits[0], scale="s", source="first"), fits[1], source="second"
    )
    scores = [discreet.score(periods[0], known) for known in (fits[0], fits[1])]
    return {
        "items": discreet.link_calibrations(*fits[:2]),
        "persons": discreet.link_calibrations(*scores),
        "bank": bank,
        "answers": discreet.find_drift(*periods),
        "calibrations": discreet.find_drift(fits),
        "two": discreet.find_drift(fits[:2]),
    }


def order_everything() -> dict[str, Any]:
    """Rank items and compared texts."""
    estimate = discreet.fit(incomplete())
    rng = np.random.default_rng(34)
    compared = discreet.simulate_comparisons(60, 7, 12, taste=0.3, rng=rng).comparisons
    return {
        "top": discreet.rank(estimate, 4),
        "easiest": discreet.rank(estimate, 5, easiest=True, level=0.9),
        "ranges": discreet.rank_ranges(estimate),
        "pair": discreet.compare_items(estimate, *estimate.items[2:4], simultaneous=True),
        "boards": rank_models(),
        "strengths": {
            method: discreet.rank_comparisons(compared, method=method)
            for method in ("refined", "spectral")
        },
        "released": {
            mechanism: release_ranking(compared, mechanism)
            for mechanism in ("net-wins", "win-pairs")
        },
    }


def rank_models() -> dict[str, Any]:
    """Rank models by samples of questions, with questions and with passages as clusters."""
    rng, logs = np.random.default_rng(38), []
    for question in range(120):
        for model, size in enumerate((2, 3, 3, 4, 5)):
            right = rng.random(size) < 1 / (1 + np.exp(rng.normal() - 0.4 * model))
            logs += [(f"m{model}", f"q{question}", question // 3, int(one)) for one in right]
    log = pd.DataFrame(logs, columns=["model", "question", "passage", "correct"])
    return {
        "questions": discreet.leaderboard(log, repeats="sum", pass_at=(1, 2)),
        "passages": discreet.leaderboard(log, repeats="sum", cluster="passage", method="spectral"),
        "conditional": discreet.fit(log, person="question", item="model", repeats="sum"),
    }


def release_ranking(compared: Any, mechanism: Any) -> dict[str, Any]:
    """Release a ranking with noise from a fixed seed."""
    released = discreet.release_comparisons(
        compared, discreet.Budget(epsilon=3.0, delta=1e-5), items=list(compared.items),
        max_comparisons=12, mechanism=mechanism, noise=ExactNoise(SeededSource(12)),
    )  # fmt: skip
    return describe(released.estimate)


PAIRS = ("pairs", "sparse-pairs", "laplace-pairs")


def release_otherwise() -> dict[str, Any]:
    """Release by the paper's estimator, and by randomized response."""
    rng = np.random.default_rng(36)
    data = discreet.simulate(persons=2500, items=6, rng=rng).responses
    wanted: dict[str, dict[str, Any]] = {
        **{f"spectral {name}": {"mechanism": name, "estimator": "spectral"} for name in PAIRS},
        "response": {"mechanism": "randomized-response"},
        "floored": {"mechanism": "pairs", "estimator": "spectral", "epsilon": 0.1},
    }
    found = {name: release_as(data, **words).estimate for name, words in wanted.items()}
    return {name: describe(estimate) for name, estimate in {**found, **release_forms()}.items()}


def release_forms() -> dict[str, Any]:
    """Release two forms that share items, with steps, under both relations."""
    codes = unequal(persons=600, steps=3).to_array()
    codes[:350, 6:] = codes[350:, :3] = -1
    items = [f"q{i}" for i in range(8)]
    data = discreet.Responses.from_array(np.where(codes < 0, np.nan, codes), items)
    words = {"forms": [items[:6], items[3:]], "mechanism": "totals", "epsilon": 8.0}
    return {
        f"forms {relation}": release_as(
            data, **words, items=dict.fromkeys(items, 3), neighbours=relation
        ).estimate
        for relation in ("replace-one", "add-remove")
    }


def release_as(
    data: Any, epsilon: float = 4.0, neighbours: Any = "replace-one", **words: Any
) -> Any:
    """Release with noise from a fixed seed."""
    is_pure = words["mechanism"] in ("laplace-pairs", "randomized-response")
    budget = discreet.Budget(epsilon, 0.0 if is_pure else 1e-5, neighbours)
    noise = ExactNoise(SeededSource(13))
    return discreet.release(data, budget, noise=noise, **{"items": data.items, **words})


PLANS: tuple[dict[str, Any], ...] = (
    {"persons": 900, "items": 30, "answers": 12, "epsilon": 1.0},
    {"persons": 900, "items": 30, "epsilon": 1.0, "mechanism": "pairs", "ability_mean": 0.5},
    {
        "persons": 900,
        "items": 30,
        "answers": 12,
        "epsilon": 1.0,
        "mechanism": "laplace-pairs",
        "design": "booklets",
    },
    {"persons": 900, "items": 20, "epsilon": 2.0, "steps": 3, "answers": 8},
    {"items": 30, "answers": 12, "epsilon": 1.0, "target_rmse": 0.2, "neighbours": "add-remove"},
    {"persons": 4000, "items": 30, "answers": 12, "target_overlap": (5, 0.9)},
)


def use_numbers() -> dict[str, Any]:
    """Ask what follows from difficulties: plans, scores, adaptive questions, a reported scale."""
    answers, pieces = unequal(steps=2), {f"q{i}": f"t{i // 3}" for i in range(4)}
    estimate = discreet.fit(answers)
    joined = analysis.combine_testlets(answers, pieces)
    codes = answers.to_array()
    merged = np.where(codes < 0, np.nan, np.where(np.arange(8) == 2, np.minimum(codes, 1), codes))
    merged = discreet.Responses.from_array(merged, items=answers.items)
    return {
        "plans": {number: discreet.plan(**about) for number, about in enumerate(PLANS)},
        "tables": {
            method: analysis.tabulate_scores(estimate, method=method)
            for method in ("ml", "warm", "posterior")
        },
        "information": discreet.item_information(estimate, np.linspace(-2, 2, 5)),
        "session": ask_adaptively(discreet.fit(unequal())),
        "predicted": discreet.predict_scores(
            ask_adaptively(discreet.fit(unequal())), discreet.fit(unequal()), past=unequal()
        ),
        "joined": describe(discreet.fit(joined)),
        "change": analysis.compare_fit(*(analysis.check_model(one) for one in (answers, merged))),
        "adjusted": {
            method: analysis.adjust([0.004, 0.03, 0.011, 0.5, 0.04], method)
            for method in ("holm", "benjamini-hochberg")
        },
        "scale": discreet.Scale.from_persons(
            discreet.score(answers, estimate).ability, mean=500, sd=100
        ),
        "counts": count_all(),
    }


def ask_adaptively(estimate: Any) -> Any:
    """Return an adaptive session of five answers."""
    session = discreet.adaptive.start(estimate, target_se=0.2)
    for right in (True, True, False, True, False):
        session = session.answer(right)
    return session


def count_all() -> dict[str, Any]:
    """Count pairs in every weighting, and comparisons."""
    rng = np.random.default_rng(37)
    compared = discreet.simulate_comparisons(20, 5, 6, rng=rng).comparisons
    weightings = {
        one: discreet.count_pairs(unequal(), weighting=one) for one in ("refined", "none")
    }
    return {
        **{name: [counts.right_wrong.tolist()] for name, counts in weightings.items()},
        "wins": discreet.count_comparisons(compared).wins,
    }


RESULTS: dict[str, Callable[[], Any]] = {
    "weights": weigh_everything,
    "raters": lambda: study(rated()),
    "raters over all items": lambda: study(rated(), within=None),
    "raters of few": lambda: study(rated_by_few()),
    "raters held": lambda: study(rated(), anchors={"rater": {"2": 0.4}, "2": [-1.0, 0.2, 0.9]}),
    "options": lambda: {"options": analysis.analyse_distractors(chosen())},
    "answers": lambda: examine(1),
    "steps": lambda: examine(3),
    "routed": follow_paths,
    "scales": move_scales,
    "ranks": order_everything,
    "releases": release_otherwise,
    "uses": use_numbers,
}


def numbers(values: Any) -> list[Any]:
    """Return an array as a flat list; JSON has no NaN, so it is null."""
    flat = np.asarray(values, dtype=float).ravel()
    return [None if np.isnan(value) else float(value) for value in flat]


def check(path: str, found: list[Any], written: list[Any]) -> None:
    """Fail where numbers have moved."""
    names = path.split(".")
    if EXACT & set(names):
        assert found == written
        return
    is_difficulty, is_result = names[-1] == "difficulty", names[0] == "results"
    is_drawn = path.startswith("results.raters") and names[-1] in DRAWN
    np.testing.assert_allclose(
        np.array(found, dtype=float),
        np.array(written, dtype=float),
        atol=1e-9 if is_result else 1e-11 if is_difficulty else 1e-12,
        rtol=1e-3 if is_drawn else 1e-6 if is_result else 0.0 if is_difficulty else 1e-9,
    )


def keep_digits(found: Any, written: Any, path: str = "") -> Any:
    """Return what was computed, with the written digits wherever nothing has moved."""
    if isinstance(found, dict):
        old = written if isinstance(written, dict) else {}
        return {n: keep_digits(found[n], old.get(n), f"{path}.{n}".lstrip(".")) for n in found}
    if isinstance(written, list):
        with suppress(AssertionError):
            check(path, found, written)
            return written
    print(path)
    return found


if __name__ == "__main__":
    settled = keep_digits(compute(), json.loads(FILE.read_text()))
    FILE.write_text(json.dumps(settled, indent=0) + "\n")
