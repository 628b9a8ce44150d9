"""Arguments that people give by mistake: each is refused in words, or does what was meant."""

import inspect
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet import adaptive, analysis, datasets, figures
from discreet.checking import _read_annotation
from discreet.errors import DiscreetError

ITEMS = [str(number) for number in range(5)]


def read_open(path):
    with path.open() as file:
        return discreet.read_responses(file)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Answers, with and without steps, and a value of every kind that functions take."""
    folder = tmp_path_factory.mktemp("world")
    rng = np.random.default_rng(1)
    answers = discreet.simulate(150, 5, rng=rng).responses
    steps = discreet.simulate(150, 5, steps=3, rng=rng).responses
    estimate = discreet.fit(answers)
    bank = discreet.create_bank(estimate, scale="s", source="one")
    votes = discreet.simulate_comparisons(60, 4, 5, rng=rng).comparisons
    marks = discreet.simulate_ratings(40, 3, 4, rng=rng).ratings
    released = discreet.release(answers, epsilon=2.0, items=ITEMS)
    discreet.write_bank(folder / "bank.csv", bank)
    discreet.Ledger.create(folder / "spent.db", epsilon=50.0, delta=1e-4)
    answers.to_dataframe().to_csv(folder / "a.csv", index=False)
    return SimpleNamespace(
        answers=answers, X=answers.to_array(), S=steps.to_array(), e=estimate, bank=bank,
        long=answers.to_dataframe(), wide=answers.to_dataframe("wide"), votes=votes, marks=marks,
        steps=discreet.fit(steps), scores=discreet.score(answers, estimate), released=released,
        half=["a", "b"] * 75, folder=folder, dif=discreet.find_dif(answers, ["a", "b"] * 75),
        counts=discreet.count_pairs(answers), ledger=folder / "spent.db", path=folder / "a.csv",
        rank=discreet.rank(estimate, 2),
    )  # fmt: skip


REFUSED = {
    # Truth values
    "force": lambda w: discreet.release(
        w.X, epsilon=1, items=ITEMS, out=w.folder / "r", force="no"
    ),
    "looked": lambda w: discreet.release(w.X, epsilon=1, items=ITEMS, looked="no"),
    "keep_categories": lambda w: discreet.fit(w.S, keep_categories="no"),
    "standard_errors": lambda w: discreet.fit(w.X, standard_errors="no"),
    "standard_errors None": lambda w: discreet.fit(w.X, standard_errors=None),
    "easiest": lambda w: discreet.rank(w.e, 2, easiest="no"),
    "ranges easiest": lambda w: discreet.rank_ranges(w.e, easiest="False"),
    "simultaneous": lambda w: discreet.compare_items(w.e, "0", "1", simultaneous="no"),
    "by_step": lambda w: discreet.find_dif(w.S, w.half, by_step="no"),
    "wald keep": lambda w: analysis.run_wald(w.S, w.half, keep_categories="no"),
    "andersen keep": lambda w: analysis.run_andersen(w.S, keep_categories=1.5),
    "header": lambda w: discreet.read_responses(w.path, header="no"),
    "page": lambda w: discreet.withdrawal_notice(w.folder / "x", "wrong", page="no"),
    "votes header": lambda w: discreet.read_comparisons(w.path, header="no"),
    "save force": lambda w: w.released.save(w.folder / "saved", force="no"),
    "declare correct": lambda w: discreet.Ledger.open(w.ledger).declare("north", correct="no"),
    "remember": lambda w: discreet.Ledger.create(w.folder / "n.db", 1.0, remember_persons="no"),
    "interval simultaneous": lambda w: w.steps.threshold_interval(simultaneous="no"),
    # Numbers
    "level text": lambda w: discreet.rank_ranges(w.e, level="0.9"),
    "level None": lambda w: discreet.rank_ranges(w.e, level=None),
    "rank level": lambda w: discreet.rank(w.e, 2, level="0.95"),
    "level per cent": lambda w: discreet.rank(w.e, 2, level=95),
    "drift level": lambda w: discreet.find_drift(w.e, w.e, level="0.05"),
    "mislabelled level": lambda w: analysis.find_mislabelled(w.X, w.e, level="0.05"),
    "mislabelled level None": lambda w: analysis.find_mislabelled(w.X, w.e, level=None),
    "dif level": lambda w: discreet.find_dif(w.X, w.half, level="0.05"),
    "compare level": lambda w: discreet.compare_items(w.e, "0", "1", level=None),
    "interval level": lambda w: w.e.interval("0.95"),
    "regularisation": lambda w: discreet.fit(w.X, regularisation="0.1"),
    "regularisation None": lambda w: discreet.fit(w.X, regularisation=None),
    "votes regularisation": lambda w: discreet.rank_comparisons(w.votes, regularisation="1"),
    "regularisation nan": lambda w: discreet.fit(w.X, method="refined", regularisation=np.nan),
    "plausible": lambda w: discreet.score(w.X, w.e, plausible=2.5),
    "plausible text": lambda w: discreet.score(w.X, w.e, plausible="5"),
    "plausible None": lambda w: discreet.score(w.X, w.e, plausible=None),
    "max_answers": lambda w: discreet.release(w.X, epsilon=1, items=ITEMS, max_answers=2.5),
    "max_answers text": lambda w: discreet.release(w.X, epsilon=1, items=ITEMS, max_answers="3"),
    "epsilon text": lambda w: discreet.release(w.X, epsilon="one", items=ITEMS),
    "epsilon nan": lambda w: discreet.release(w.X, epsilon=np.nan, items=ITEMS),
    "no epsilon": lambda w: discreet.release(w.X, items=ITEMS),
    "delta text": lambda w: discreet.release(w.X, epsilon=1, delta="tiny", items=ITEMS),
    "budget is a number": lambda w: discreet.release(w.X, 1.0, items=ITEMS),
    "persons text": lambda w: discreet.release(w.X, epsilon=1, items=ITEMS, persons="many"),
    "lowest": lambda w: discreet.release(w.X, epsilon=1, items=ITEMS, lowest="1"),
    "top text": lambda w: discreet.rank(w.e, "two"),
    "top None": lambda w: discreet.rank(w.e, None),
    "top half": lambda w: discreet.rank(w.e, 2.5),
    "target_rmse": lambda w: discreet.plan(1000, 20, target_rmse="0.2"),
    "plan persons": lambda w: discreet.plan("1000", 20, epsilon=1),
    "plan spread": lambda w: discreet.plan(1000, 20, epsilon=1, ability_spread=None),
    "plan overlap": lambda w: discreet.plan(1000, 20, target_overlap=0.9),
    "plan steps": lambda w: discreet.plan(1000, 20, epsilon=1, steps=2.5),
    "plan true": lambda w: discreet.plan(True, 20, epsilon=1),
    "scale": lambda w: discreet.Scale("1", "2"),
    "scale None": lambda w: discreet.Scale(None, 0),
    "scale points": lambda w: discreet.Scale.from_points({"0": "500", "1": "600"}),
    "scale mean": lambda w: discreet.Scale.from_persons(w.scores.ability, mean="500", sd=100),
    "budget": lambda w: discreet.Budget(None),
    "budget list": lambda w: discreet.Budget([1.0]),
    "ledger epsilon": lambda w: discreet.Ledger.create(w.folder / "m.db", "lots"),
    "ledger approvals": lambda w: discreet.Ledger.create(w.folder / "p.db", 1.0, approvals=1.5),
    "folds": lambda w: discreet.count_pairs(w.X, folds="32"),
    "folds half": lambda w: discreet.count_pairs(w.X, folds=2.5),
    "refits": lambda w: discreet.fit(w.marks, refits="2"),
    "flag_at": lambda w: discreet.link_calibrations(w.e, w.e, flag_at="2"),
    "flag_at None": lambda w: discreet.link_calibrations(w.e, w.e, flag_at=None),
    "ability": lambda w: discreet.next_item(w.bank, "0"),
    "ability None": lambda w: discreet.next_item(w.bank, None),
    "target_se": lambda w: adaptive.start(w.bank, target_se="0.3"),
    "max_items": lambda w: adaptive.start(w.bank, max_items="5"),
    "information": lambda w: discreet.item_information(w.bank, "high"),
    "information None": lambda w: discreet.item_information(w.bank, None),
    "replications": lambda w: analysis.simulate_cutoffs(w.X, w.e, replications="20"),
    "simulations": lambda w: analysis.find_dimensions(w.X, w.e, simulations=2.5),
    "simulate persons": lambda w: discreet.simulate("100", 5),
    "simulate None": lambda w: discreet.simulate(None, 5),
    "simulate answered": lambda w: discreet.simulate(100, 5, "0.5"),
    "simulate steps": lambda w: discreet.simulate(100, 5, steps="3"),
    "votes persons": lambda w: discreet.simulate_comparisons(10.5, 4, 3, rng=1),
    "marks severity": lambda w: discreet.simulate_ratings(20, 3, 4, rng=1, severity_sd="0.5"),
    "skip_rows": lambda w: discreet.read_responses(w.path, skip_rows="2"),
    "skip_rows None": lambda w: discreet.read_responses(w.path, skip_rows=None),
    "at_least": lambda w: discreet.fit(w.S, at_least="two"),
    "steps text": lambda w: discreet.fit(w.S, steps="3"),
    "lowest text": lambda w: discreet.fit(w.S, lowest="1"),
    "max_comparisons": lambda w: discreet.release_comparisons(
        w.votes, discreet.Budget(1.0), items=list(w.votes.items), max_comparisons=2.5
    ),
    "groups": lambda w: figures.category_plot(w.steps, "0", groups="8"),
    "picture level": lambda w: figures.difficulty_plot(w.e, level="0.95"),
    "top_overlap": lambda w: discreet.plan(1000, 20, epsilon=1).top_overlap("3"),
    # Texts and lists of texts
    "items None": lambda w: discreet.release(w.X, epsilon=1, items=[None, "1"]),
    "no items": lambda w: discreet.release(w.X, epsilon=1, items=None),
    "items nan": lambda w: discreet.release(w.X, epsilon=1, items=[np.nan, "1"]),
    "items text": lambda w: discreet.release(w.X, epsilon=1, items="01234"),
    "items surrogate": lambda w: discreet.release(w.X, epsilon=1, items=["0", "1", "\ud800"]),
    "items of lists": lambda w: discreet.release(w.X, epsilon=1, items=[["0"], ["1"]]),
    "items steps": lambda w: discreet.release(w.S, epsilon=1, items=dict.fromkeys(ITEMS, "3")),
    "items steps half": lambda w: discreet.release(w.S, epsilon=1, items=dict.fromkeys(ITEMS, 2.5)),
    "votes items": lambda w: discreet.release_comparisons(
        w.votes, discreet.Budget(1.0), items=[None, "1"], max_comparisons=3
    ),
    "population": lambda w: discreet.release(w.X, epsilon=1, items=ITEMS, population=None),
    "ignore": lambda w: discreet.fit(w.wide, ignore=[None]),
    "reverse None": lambda w: discreet.fit(w.S, reverse=[None]),
    "person": lambda w: discreet.fit(w.long, person=["person"]),
    "response": lambda w: discreet.fit(w.long, response=None, item=3),
    "facets": lambda w: discreet.fit(w.long, facets=3),
    "facets None": lambda w: discreet.fit(w.long, facets=[None]),
    "group": lambda w: discreet.fit(w.wide, group=[None]),
    "categories": lambda w: discreet.fit(w.S, categories=5),
    "merge": lambda w: discreet.fit(w.S, merge="2+3"),
    "missing None": lambda w: discreet.fit(w.S, missing=[None]),
    "key": lambda w: discreet.fit(w.wide, key=5),
    "anchors names": lambda w: discreet.find_dif(w.X, w.half, anchors=[None]),
    "anchors one": lambda w: discreet.find_dif(w.X, w.half, anchors="0, 1"),
    "anchors text": lambda w: discreet.fit(w.X, anchors={"0": "hard"}),
    "anchors list": lambda w: discreet.fit(w.X, anchors=["0", "1"]),
    "reference": lambda w: discreet.find_dif(w.X, w.half, reference=3.5),
    "groups number": lambda w: discreet.find_dif(w.X, 3),
    "groups short": lambda w: discreet.find_dif(w.X, ["a", "b"]),
    "weight": lambda w: discreet.fit(w.X, weight=w.half),
    "features": lambda w: discreet.fit(w.marks, features="features"),
    "scale name": lambda w: discreet.create_bank(w.e, scale=None, source="x"),
    "bank source": lambda w: discreet.create_bank(w.e, scale="s", source=None),
    "periods": lambda w: discreet.find_drift(w.e, w.e, periods=[None, None]),
    "reason": lambda w: discreet.withdrawal_notice(w.folder / "x", None),
    "used": lambda w: discreet.next_item(w.bank, 0.0, used=[None]),
    "regress": lambda w: discreet.score(w.answers, w.e, regress=[None]),
    "citation": lambda w: datasets.citation(None),
    "focal": lambda w: figures.dif_plot(w.dif, focal=["b"]),
    "picture item": lambda w: figures.category_plot(w.steps, None),
    "statistic": lambda w: figures.fit_plot(
        w.e, analysis.measure_fit(w.X, w.e), statistic="infitt"
    ),
    # Words of a choice
    "method": lambda w: discreet.fit(w.X, method="best"),
    "method None": lambda w: discreet.fit(w.X, method=None),
    "method number": lambda w: discreet.fit(w.X, method=1),
    "model": lambda w: discreet.fit(w.X, model=["rasch"]),
    "engine": lambda w: discreet.fit(w.path, engine="gpu2"),
    "engine None": lambda w: discreet.fit(w.path, engine=None),
    "within": lambda w: discreet.fit(w.marks, within="person"),
    "latent": lambda w: discreet.fit(w.X, method="marginal", ability="flat"),
    "adjustment": lambda w: discreet.find_dif(w.X, w.half, adjustment="holmes"),
    "adjust": lambda w: analysis.adjust([0.01, 0.2], "none at all"),
    "scoring": lambda w: analysis.measure_fit(w.X, w.e, method="best"),
    "weighting": lambda w: discreet.count_pairs(w.X, weighting="person"),
    "mechanism": lambda w: discreet.release(w.X, epsilon=1, items=ITEMS, mechanism="laplace"),
    "mechanism None": lambda w: discreet.release(w.X, epsilon=1, items=ITEMS, mechanism=None),
    "estimator": lambda w: discreet.release(w.X, epsilon=1, items=ITEMS, estimator="mle"),
    "design": lambda w: discreet.release(w.X, epsilon=1, items=ITEMS, design="adaptive"),
    "neighbours": lambda w: discreet.release(w.X, epsilon=1, items=ITEMS, neighbours="swap"),
    "plan mechanism": lambda w: discreet.plan(1000, 20, epsilon=1, mechanism="noise"),
    "plan design": lambda w: discreet.plan(1000, 20, epsilon=1, design="adaptive"),
    "simulate design": lambda w: discreet.simulate(100, 5, design="random"),
    "rule": lambda w: discreet.Ledger.create(w.folder / "o.db", 1.0, rule="sum"),
    "layout": lambda w: w.answers.to_dataframe("broad"),
    "repeats": lambda w: discreet.read_responses(w.path, repeats="mean"),
    "ties": lambda w: discreet.read_comparisons(w.path, ties="half"),
    "split": lambda w: analysis.run_martin_loef(w.X, "random"),
    "andersen split": lambda w: analysis.run_andersen(w.X, "nothing"),
    "language": lambda w: w.released.save(w.folder / "l", language="fr"),
    "refit": lambda w: discreet.refit(w.released, estimator="best"),
    # Random sources
    "rng text": lambda w: discreet.simulate(50, 5, rng="42"),
    "rng negative": lambda w: discreet.rank(w.e, 2, rng=-1),
    "rng old": lambda w: discreet.score(w.X, w.e, plausible=2, rng=np.random.RandomState(1)),
    "rng module": lambda w: discreet.simulate_ratings(20, 3, 4, rng=np.random),
    "rng None": lambda w: discreet.simulate_comparisons(20, 4, 3, rng=None),
    "rng float": lambda w: discreet.rank_ranges(w.e, rng=0.5),
    # Paths
    "verify None": lambda w: discreet.verify(None),
    "load None": lambda w: discreet.load(None),
    "load NUL": lambda w: discreet.load("a\0b"),
    "load folder": lambda w: discreet.load(w.folder),
    "read_bank None": lambda w: discreet.read_bank(None),
    "read_bank NUL": lambda w: discreet.read_bank("a\0b"),
    "read_release": lambda w: discreet.read_release(w.path),
    "read NUL": lambda w: discreet.read_responses("a\0.csv"),
    "fit NUL": lambda w: discreet.fit("a\0.csv"),
    "read None": lambda w: discreet.read_responses(None),
    "read bytes": lambda w: discreet.read_responses(b"q1,q2\n1,0\n"),
    "read open file": lambda w: read_open(w.path),
    "fit None": lambda w: discreet.fit(None),
    "fit number": lambda w: discreet.fit(3),
    "fit numbers": lambda w: discreet.fit([1, 0, 1]),
    "fit cube": lambda w: discreet.fit(np.zeros((2, 3, 4))),
    "fit text array": lambda w: discreet.fit(np.array([["a", "b"], ["c", "d"]])),
    "fit nobody": lambda w: discreet.fit(np.zeros((0, 5))),
    "fit estimate": lambda w: discreet.fit(w.e),
    "out": lambda w: discreet.release(w.X, epsilon=1, items=ITEMS, out=5),
    "ledger": lambda w: discreet.release(w.X, epsilon=1, items=ITEMS, ledger=5),
    "audit": lambda w: discreet.release(w.X, epsilon=1, items=ITEMS, audit={"claimed": 1}),
    "about": lambda w: discreet.release(w.X, epsilon=1, items=ITEMS, about=5),
    "save None": lambda w: w.e.save(None),
    "save release": lambda w: w.released.save(None),
    "write_bank": lambda w: discreet.write_bank(w.bank, w.folder / "b.csv"),
    "ledger path": lambda w: discreet.Ledger.open(None),
    "resume": lambda w: discreet.resume_release(w.ledger, None),
    "resume other": lambda w: discreet.resume_release(w.path, 1),
    "check_ledger": lambda w: discreet.check_ledger(w.ledger, None),
    "approve": lambda w: discreet.approve(None, "ada.key"),
    "notice": lambda w: discreet.correction_notice(None, by=None),
    # Values of another kind, and in another order
    "grow path": lambda w: discreet.grow_bank("x.csv", w.e, source="two"),
    "grow swapped": lambda w: discreet.grow_bank(w.e, w.bank, source="two"),
    "link answers": lambda w: discreet.link_calibrations(w.X, w.X),
    "drift one": lambda w: discreet.find_drift(w.e),
    "drift none": lambda w: discreet.find_drift(),
    "drift numbers": lambda w: discreet.find_drift([1, 2]),
    "score swapped": lambda w: discreet.score(w.e, w.X),
    "score row": lambda w: discreet.score([1, 0, 1, 0, 1], w.e),
    "score prior": lambda w: discreet.score(w.X, w.e, method="posterior", prior=(0, 1)),
    "score no calibration": lambda w: discreet.score(w.X, None),
    "check calibration": lambda w: analysis.check_model(w.X, {}),
    "check swapped": lambda w: analysis.check_model(w.e, w.X),
    "distractors": lambda w: analysis.analyse_distractors(w.X, {}),
    "wald nobody": lambda w: analysis.run_wald(np.zeros((0, 5))),
    "andersen nobody": lambda w: analysis.run_andersen(np.zeros((0, 5))),
    "fit of nobody": lambda w: analysis.measure_fit(np.zeros((0, 5)), w.e),
    "compare checks": lambda w: analysis.compare_fit(w.e, w.e),
    "ratings": lambda w: analysis.study_ratings(w.X, w.e),
    "testlet": lambda w: analysis.measure_testlets(w.X, ["0", "1"]),
    "testlet number": lambda w: analysis.combine_testlets(w.X, 2),
    "move": lambda w: discreet.link_calibrations(w.e, w.e).move(w.X),
    "votes": lambda w: discreet.rank_comparisons(w.X),
    "votes None": lambda w: discreet.count_comparisons(None),
    "votes ratings": lambda w: discreet.read_ratings(w.long, facets=None),
    "wright": lambda w: figures.wright_plot(w.scores, w.e),
    "wright array": lambda w: figures.wright_plot(w.e, w.scores.ability),
    "contrast": lambda w: figures.contrast_plot(w.e),
    "pairs": lambda w: figures.pair_plot(w.X),
    "ladder": lambda w: figures.ladder_plot(w.e, w.rank),
    "noise": lambda w: discreet.release(w.X, epsilon=1, items=ITEMS, noise=7),
    "forms": lambda w: discreet.release(w.X, epsilon=1, items=ITEMS, forms=3),
    "reading": lambda w: discreet.fit(w.wide, reading={"missing": 9}),
    "rules": lambda w: adaptive.start(w.bank, rules={"max": 5}),
    "concat": lambda w: discreet.Responses.concat(w.X),
    "from_array": lambda w: discreet.Responses.from_array(w.X, items="01234"),
    "from_array names": lambda w: discreet.Responses.from_array(w.X, items=5),
    "from_array None": lambda w: discreet.Responses.from_array(None),
    "from_dataframe": lambda w: discreet.Responses.from_dataframe(None),
    "select": lambda w: w.answers.select("9"),
    "predict": lambda w: w.e.predict_proba("high"),
    "predict None": lambda w: w.e.predict_proba(None),
    "predict item": lambda w: w.e.predict_proba(0.0, [None]),
    "information grid": lambda w: analysis.trace_information(w.e, "all"),
    "simulate ability": lambda w: discreet.simulate(50, 5, ability="normal"),
    "simulate difficulty": lambda w: discreet.simulate(50, 5, difficulty=[0.0, 1.0]),
    "Rasch": lambda w: discreet.Rasch(regularisation="0.1").fit(w.X),
    "PrivateRasch": lambda w: discreet.PrivateRasch(max_answers="3").fit(w.X),
    "Reading": lambda w: discreet.Reading(header="no"),
    "simulate thresholds": lambda w: discreet.simulate(50, 5, thresholds="none"),
}
"""Refused by an error of this library, in one line."""

MEANT = {
    "seed of simulate": (
        lambda w: discreet.simulate(50, 5, rng=42).difficulty,
        lambda w: discreet.simulate(50, 5, rng=np.random.default_rng(42)).difficulty,
    ),
    "seed of ratings": (
        lambda w: discreet.simulate_ratings(20, 3, 4, rng=42).ratings.score,
        lambda w: discreet.simulate_ratings(20, 3, 4, rng=np.random.default_rng(42)).ratings.score,
    ),
    "seed of comparisons": (
        lambda w: discreet.simulate_comparisons(20, 4, 3, rng=np.int64(42)).comparisons.winner,
        lambda w: (
            discreet.simulate_comparisons(
                20, 4, 3, rng=np.random.default_rng(42)
            ).comparisons.winner
        ),
    ),
    "seed of score": (
        lambda w: discreet.score(w.X, w.e, plausible=2, rng=42).plausible,
        lambda w: discreet.score(w.X, w.e, plausible=2, rng=np.random.default_rng(42)).plausible,
    ),
    "seed of rank": (lambda w: discreet.rank(w.e, 2, rng=42).gap, lambda w: w.rank.gap),
    "seed of rank_ranges": (
        lambda w: discreet.rank_ranges(w.e, rng=42).first,
        lambda w: discreet.rank_ranges(w.e, rng=np.random.default_rng(42)).first,
    ),
    "seed of next_item": (
        lambda w: discreet.next_item(w.bank, 0.0, rng=42) is None,
        lambda w: False,
    ),
    "seed of intervals": (
        lambda w: w.e.simultaneous_interval(rng=42),
        lambda w: w.e.simultaneous_interval(rng=np.random.default_rng(42)),
    ),
    "whole float": (lambda w: discreet.rank(w.e, 2.0).gap, lambda w: w.rank.gap),
    "whole float of a plan": (
        lambda w: discreet.plan(1e4, 20.0, epsilon=1).rmse,
        lambda w: discreet.plan(10_000, 20, epsilon=1).rmse,
    ),
    "numpy truth value": (
        lambda w: discreet.rank(w.e, 2, easiest=np.True_).gap,
        lambda w: discreet.rank(w.e, 2, easiest=True).gap,
    ),
    "number for a name": (
        lambda w: discreet.fit(w.wide, ignore=0, person="person").difficulty,
        lambda w: discreet.fit(w.wide, ignore="0", person="person").difficulty,
    ),
    "number of an item": (
        lambda w: discreet.compare_items(w.e, 0, 1).difference,
        lambda w: discreet.compare_items(w.e, "0", "1").difference,
    ),
    "numbers of items used": (
        lambda w: discreet.next_item(w.bank, 0.0, used=[0, 1, 2, 3]),
        lambda w: "4",
    ),
    "number in a prediction": (
        lambda w: w.e.predict_proba(0.0, 1),
        lambda w: w.e.predict_proba(0.0, "1"),
    ),
    "an index of names": (
        lambda w: discreet.find_dif(w.X, w.half, anchors=pd.Index(["0", "1"])).difference,
        lambda w: discreet.find_dif(w.X, w.half, anchors=["0", "1"]).difference,
    ),
}
"""Does what is meant: the first call is worth the second."""


COMPUTED = {
    "release": lambda w: discreet.release(w.X, epsilon=0.5, items=ITEMS, mechanism="pairs"),
    "release of margins": lambda w: discreet.release(w.X, epsilon=0.01, items=ITEMS),
    "plan": lambda w: discreet.plan(1000, 20, epsilon=1e-3),
    "plan of margins": lambda w: discreet.plan(1000, 200, 5, 0.1, mechanism="margins"),
    "fit": lambda w: [
        discreet.fit(w.X, method=one) for one in ("conditional", "refined", "marginal")
    ],
    "score": lambda w: discreet.score(w.S, w.steps, plausible=2),
    "find_dif": lambda w: discreet.find_dif(w.X, w.half),
    "measure_fit": lambda w: analysis.measure_fit(w.S, w.steps),
    "check_model": lambda w: analysis.check_model(w.X),
    "link": lambda w: discreet.link_calibrations(w.e, w.e),
    "drift": lambda w: discreet.find_drift(w.X, w.X),
    "votes": lambda w: discreet.rank_comparisons(w.votes),
    "ratings": lambda w: discreet.fit(w.marks),
    "Rasch": lambda w: discreet.Rasch().fit(w.X).transform(w.X),
}
"""Computed alike, however strict the program is about floating-point numbers."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_a_plausible_mistake_is_refused_in_one_line(world, name):
    with pytest.raises(DiscreetError) as refused:
        REFUSED[name](world)
    assert "\n" not in str(refused.value)
    assert not list(world.folder.glob("[rl]/"))


@pytest.mark.parametrize("name", MEANT)
def test_an_argument_of_another_kind_does_what_is_meant(world, name):
    given, meant = (call(world) for call in MEANT[name])
    np.testing.assert_array_equal(given, meant)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", COMPUTED)
def test_a_program_that_traps_floating_point_errors_gets_its_results(world, name):
    with np.errstate(all="raise"):
        COMPUTED[name](world)
        assert np.geterr()["under"] == "raise"


def test_every_annotation_of_a_public_function_can_be_read():
    unread = set()
    for module in (discreet, adaptive, analysis, datasets, figures):
        functions = [getattr(module, name) for name in module.__all__]
        for function in (one for one in functions if inspect.isfunction(one)):
            assert function.is_checked
            scope = vars(sys.modules[inspect.unwrap(function).__module__])
            parts = inspect.signature(function).parameters.values()
            unread |= {
                one.name
                for one in parts
                if one.annotation not in ("object", object)
                and _read_annotation(one.annotation, scope) is object
            }
    assert unread == {"ax"}  # matplotlib's, which is optional
