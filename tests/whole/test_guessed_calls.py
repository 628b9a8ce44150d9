"""Sixty calls that a data scientist would guess from the README, each one written before looking.

A call counts as answered where it works or where its error names the call that does. The
second entry of a row is a word of that call: it must be in the message where there is an error.
"""

import pickle
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa

import discreet

Guess = Callable[[SimpleNamespace], Any]

GUESSES: dict[str, tuple[Guess, str]] = {
    # Fitting
    "fit(df)": (lambda w: discreet.fit(w.df), ""),
    "fit(df, names of columns)": (
        lambda w: discreet.fit(w.df, person="user", item="item", response="correct"),
        "",
    ),
    "fit(df, correct=)": (lambda w: discreet.fit(w.df, correct="correct"), "response="),
    "fit(df, user=, question=, score=)": (
        lambda w: discreet.fit(w.df, user="user", question="item", score="correct"),
        "person=",
    ),
    "fit(path)": (lambda w: discreet.fit(w.folder / "answers.csv"), ""),
    "fit(array)": (lambda w: discreet.fit(w.array), ""),
    "fit(wide pandas)": (lambda w: discreet.fit(w.wide), ""),
    "fit(polars)": (lambda w: discreet.fit(pl.from_pandas(w.df)), ""),
    "fit(df, by=)": (lambda w: discreet.fit(w.df, by="month")["jan"].difficulty, ""),
    "fit(df, model='pcm')": (lambda w: discreet.fit(w.df, model="pcm"), "partial-credit"),
    "fit(df, method='cml')": (lambda w: discreet.fit(w.df, method="cml"), "conditional"),
    "fit(df, is_correct)": (
        lambda w: discreet.fit(w.df.rename(columns={"correct": "is_correct"})),
        "response=",
    ),
    "read_csv(path)": (lambda w: discreet.read_csv(w.folder / "answers.csv"), "read_responses"),
    "RaschModel().fit(X)": (lambda w: discreet.RaschModel().fit(w.array), "Rasch"),
    # Item parameters as a table
    "e.to_pandas()": (lambda w: w.e.to_pandas().merge(w.df, on="item"), ""),
    "e.to_polars()": (lambda w: w.e.to_polars().filter(pl.col("se") > 0), ""),
    "e.to_frame()": (lambda w: w.e.to_frame(), "to_pandas"),
    "e.to_csv(path)": (lambda w: w.e.to_csv(w.folder / "items.csv"), "to_pandas"),
    "e.to_dict()": (lambda w: w.e.to_dict(), "to_pandas"),
    "e.table": (lambda w: w.e.table, "to_"),
    "pandas.DataFrame(e)": (lambda w: w.e.items.index("Q1") + len(pd.DataFrame(w.e)["item"]), ""),
    "polars.DataFrame(e)": (lambda w: pl.DataFrame(w.e)["difficulty"], ""),
    "pyarrow.table(e)": (lambda w: pa.table(w.e)["difficulty"], ""),
    "e.difficulties": (lambda w: w.e.difficulties, "difficulty"),
    "e.coef_": (lambda w: w.e.coef_, "difficulty"),
    "e['Q1']": (lambda w: w.e["Q1"].difficulty, ""),
    "e['no such item']": (lambda w: w.e["Q1 "], "Q1"),
    "len(e)": (lambda w: range(len(w.e)), ""),
    "for item in e": (lambda w: [item.difficulty for item in w.e], ""),
    "'Q1' in e": (lambda w: {True: "yes"}["Q1" in w.e], ""),
    "e.standard_errors": (lambda w: w.e.standard_errors, "se"),
    "e.std_err": (lambda w: w.e.std_err, "se"),
    "e.conf_int()": (lambda w: w.e.conf_int(), "interval"),
    "e.summary()": (lambda w: w.e.summary(), ""),
    "e.plot()": (lambda w: w.e.plot(), ""),
    "plot(e)": (lambda w: discreet.plot(w.e), "plot"),
    # Probabilities and persons
    "e.predict_proba(ability, item)": (lambda w: float(w.e.predict_proba(0.5, "Q1")), ""),
    "e.predict_proba(abilities)": (lambda w: w.e.predict_proba([-1.0, 0.0, 1.0])[2], ""),
    "e.predict(df)": (lambda w: w.e.predict(w.df), "predict_proba"),
    "e.score(df)": (lambda w: w.e.score(w.df), "discreet.score"),
    "e.abilities": (lambda w: w.e.abilities, "score"),
    "score(df, e)": (lambda w: discreet.score(w.df, w.e), ""),
    "score(e, df)": (lambda w: discreet.score(w.e, w.df), "score("),
    "predict(e, df)": (lambda w: discreet.predict(w.e, w.df), "predict_proba"),
    "scores.to_pandas()": (lambda w: discreet.score(w.df, w.e).to_pandas()["ability"], ""),
    "scores.theta": (lambda w: discreet.score(w.df, w.e).theta, "ability"),
    # Comparisons over time and between groups
    "find_drift(a, b)": (lambda w: discreet.find_drift(w.e, w.e2), ""),
    "compare(a, b)": (lambda w: discreet.compare(w.e, w.e2), "find_drift"),
    "dif(df, group=)": (lambda w: discreet.dif(w.df, group="month"), "find_dif"),
    "link(a, b)": (lambda w: discreet.link(w.e, w.e2), "link_calibrations"),
    "rank(e, top=)": (lambda w: discreet.rank(w.e, top=3).surely_in, ""),
    "item_fit(df, e)": (lambda w: discreet.item_fit(w.df, w.e), "fit"),
    # Saving
    "save, load": (
        lambda w: (w.e.save(w.folder / "e.json"), discreet.load(w.folder / "e.json")),
        "",
    ),
    "pickle": (lambda w: pickle.loads(pickle.dumps(w.e)).difficulty, ""),  # noqa: S301
    # Privacy
    "release(df, epsilon=)": (
        lambda w: discreet.release(w.df, epsilon=1, items=w.e.items).difficulty,
        "",
    ),
    "private_fit(df, epsilon=)": (lambda w: discreet.private_fit(w.df, epsilon=1.0), "release"),
    "released.to_dataframe()": (
        lambda w: discreet.release(w.df, epsilon=1, items=w.e.items).to_dataframe(),
        "",
    ),
    "Ledger.create(path, epsilon=, delta=)": (
        lambda w: discreet.Ledger.create(w.folder / "spent.db", epsilon=2.0, delta=1e-6),
        "",
    ),
    # Data
    "datasets.lsat()": (lambda w: discreet.fit(discreet.datasets.lsat()), ""),
    "simulate(1000, 20)": (lambda w: discreet.simulate(1000, 20), "persons="),
}
