"""Over a hundred more calls, guessed by users of other programs before they look at the API.

They come from users of R (eRm, mirt, TAM), of Winsteps, of pandas and scikit-learn, and from
teachers. A call counts as answered where it works or where its error names the call that does;
the second entry of a row is a word of that call.
"""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from test_guessed_calls import Guess, answer

import discreet

GUESSES: dict[str, tuple[Guess, str]] = {
    # Models and methods by the names of the field
    "fit(df, model='rsm')": (lambda w: discreet.fit(w.steps, model="rsm"), "rating-scale"),
    "fit(df, model='PCM')": (lambda w: discreet.fit(w.steps, model="PCM"), "partial-credit"),
    "fit(df, model='1pl')": (lambda w: discreet.fit(w.wide, model="1pl"), "rasch"),
    "fit(df, model='2pl')": (lambda w: discreet.fit(w.wide, model="2pl"), "rasch"),
    "fit(df, model='Rasch')": (lambda w: discreet.fit(w.wide, model="Rasch"), "rasch"),
    "fit(df, model='rating_scale')": (
        lambda w: discreet.fit(w.steps, model="rating_scale"),
        "rating-scale",
    ),
    "fit(df, model='grm')": (lambda w: discreet.fit(w.steps, model="grm"), "partial-credit"),
    "fit(df, method='CML')": (lambda w: discreet.fit(w.wide, method="CML"), "conditional"),
    "fit(df, method='mml')": (lambda w: discreet.fit(w.wide, method="mml"), "marginal"),
    "fit(df, method='jml')": (lambda w: discreet.fit(w.wide, method="jml"), "conditional"),
    "fit(df, method='em')": (lambda w: discreet.fit(w.wide, method="em"), "marginal"),
    "fit(df, method='pairwise')": (lambda w: discreet.fit(w.wide, method="pairwise"), "refined"),
    "Rasch(method='cml')": (lambda w: discreet.Rasch(method="cml").fit(w.array), "conditional"),
    # Keywords
    "fit(df, id=)": (lambda w: discreet.fit(w.wide, id="student"), "person="),
    "fit(df, items=[...])": (lambda w: discreet.fit(w.wide, items=["Q1", "Q2"]), "ignore"),
    "fit(df, weights=)": (lambda w: discreet.fit(w.wide, weights="w"), "weight"),
    "fit(df, se=False)": (lambda w: discreet.fit(w.wide, se=False), "standard_errors"),
    "fit(df, anchor=)": (lambda w: discreet.fit(w.wide, anchor={"Q1": 0.0}), "anchors"),
    "fit(df, estimator=)": (lambda w: discreet.fit(w.wide, estimator="cml"), "method"),
    "release(df, eps=)": (lambda w: discreet.release(w.wide, eps=1, items=w.items), "epsilon"),
    "Budget(eps=1)": (lambda w: discreet.Budget(eps=1), "epsilon"),
    "simulate(n_persons=, n_items=)": (
        lambda w: discreet.simulate(n_persons=100, n_items=5),
        "persons",
    ),
    "simulate(..., seed=1)": (lambda w: discreet.simulate(persons=50, items=5, seed=1), "rng"),
    "plan(n=, items=, eps=)": (lambda w: discreet.plan(n=1000, items=20, eps=1), "persons"),
    "score(df, e, method='eap')": (
        lambda w: discreet.score(w.wide, w.e, method="eap"),
        "posterior",
    ),
    "score(df, e, method='wle')": (lambda w: discreet.score(w.wide, w.e, method="wle"), "warm"),
    "find_dif(df, g, test='mh')": (
        lambda w: discreet.find_dif(w.wide, ["a", "b"], test="mh"),
        "mantel-haenszel",
    ),
    # Functions by the names of other programs
    "check_model(df)": (lambda w: discreet.check_model(w.wide), "analysis.check_model"),
    "martin_loef(df)": (lambda w: discreet.martin_loef(w.wide), "run_martin_loef"),
    "e.person_parameters()": (lambda w: w.e.person_parameters(), "discreet.score"),
    "e.rank()": (lambda w: w.e.rank(), "discreet.rank"),
    "e.rescale(500, 100)": (lambda w: w.e.rescale(500, 100), "Scale"),
    "e.plot_icc('Q1')": (lambda w: w.e.plot_icc("Q1"), "curve_plot"),
    "inspect(path)": (lambda w: discreet.inspect("a.csv"), "inspect_table"),
    "PartialCredit().fit(df)": (lambda w: discreet.PartialCredit().fit(w.steps), "discreet.fit"),
    "RM(df)": (lambda w: discreet.RM(w.wide), "discreet.fit"),
    "tam(df)": (lambda w: discreet.tam(w.wide), "discreet.fit"),
    "mirt(df, 1)": (lambda w: discreet.mirt(w.wide, 1), "discreet.fit"),
    "read_spss(path)": (lambda w: discreet.read_spss("a.sav"), "read_responses"),
    "load_dataset('lsat')": (lambda w: discreet.load_dataset("lsat"), "datasets"),
    "person_fit(df, e)": (lambda w: discreet.person_fit(w.wide, w.e), "measure_fit"),
    "outfit(df, e)": (lambda w: discreet.outfit(w.wide, w.e), "measure_fit"),
    "wright_map(e)": (lambda w: discreet.wright_map(w.e), "wright"),
    "equate(a, b)": (lambda w: discreet.equate(w.e, w.e), "link_calibrations"),
    "anchor(df, bank)": (lambda w: discreet.anchor(w.wide, w.e), "anchors"),
    "cronbach_alpha(df)": (lambda w: discreet.cronbach_alpha(w.wide), "measure_alpha"),
    "separation(df, e)": (lambda w: discreet.separation(w.wide, w.e), "measure_fit"),
    "distractors(df)": (lambda w: discreet.distractors(w.wide), "analyse_distractors"),
    "andersen_test(df)": (lambda w: discreet.andersen_test(w.wide), "run_andersen"),
    "LRtest(df)": (lambda w: discreet.LRtest(w.wide), "run_andersen"),
    "q3(df, e)": (lambda w: discreet.q3(w.wide, w.e), "correlate_residuals"),
    "plausible_values(df, e)": (lambda w: discreet.plausible_values(w.wide, w.e), "score"),
    "mantel_haenszel(df)": (lambda w: discreet.mantel_haenszel(w.wide), "find_dif"),
    "facets(df)": (lambda w: discreet.facets(w.wide), "facets="),
    "item_bank(e)": (lambda w: discreet.item_bank(w.e), "create_bank"),
    # Results
    "e.n_items": (lambda w: w.e.n_items, "items"),
    "e.shape": (lambda w: w.e.shape, "to_pandas"),
    "np.asarray(e)": (lambda w: np.asarray(w.e)[0], "difficulty"),
    "e.iloc[0]": (lambda w: w.e.iloc[0], "to_pandas"),
    "e.sort_values('difficulty')": (lambda w: w.e.sort_values("difficulty"), "to_pandas"),
    "e.to_latex()": (lambda w: w.e.to_latex(), "to_pandas"),
    "e.reliability": (lambda w: w.e.reliability, "measure_fit"),
    "e.person_fit()": (lambda w: w.e.person_fit(), "measure_fit"),
    "e.loglik": (lambda w: w.e.loglik, "check_model"),
    "e.converged": (lambda w: w.e.converged, "solution"),
    # Answers, scikit-learn, releases
    "responses.shape": (lambda w: w.responses.shape, "n_persons"),
    "responses.head()": (lambda w: w.responses.head(), "to_"),
    "len(responses)": (lambda w: len(w.responses), ""),
    "model.item_difficulties_": (lambda w: w.model.item_difficulties_, "difficulty_"),
    "model.predict_proba(X)": (lambda w: w.model.predict_proba(w.array), ""),
    "ledger.remaining()": (lambda w: w.ledger.remaining(), "left()"),
    # Classes that are called, and what they do not have
    "Responses(df)": (lambda w: discreet.Responses(w.wide), "from_dataframe"),
    "Ledger(path)": (lambda w: discreet.Ledger("spent.db"), "Ledger.open"),
    "Ledger(path=, epsilon=)": (lambda w: discreet.Ledger(path="a.db", epsilon=2), "Ledger.create"),
    "Responses.from_csv(path)": (lambda w: discreet.Responses.from_csv("a.csv"), "read_responses"),
    "Responses.from_pandas(df)": (lambda w: discreet.Responses.from_pandas(w.wide), "from_data"),
    "Estimate.from_json(path)": (lambda w: discreet.Estimate.from_json("a.json"), "load"),
    "Published.load(folder)": (lambda w: discreet.Published.load("a"), "read_release"),
    # Answers as a table
    "responses['Q1']": (lambda w: w.responses["Q1"].n_answers, ""),
    "responses[['Q1', 'Q2']]": (lambda w: w.responses[["Q1", "Q2"]].items[1], ""),
    "responses['Q9']": (lambda w: w.responses["Q9"], "Q1"),
    "responses.mean()": (lambda w: w.responses.mean(), "to_dataframe"),
    "responses.p_values": (lambda w: w.responses.p_values, "to_dataframe"),
    # Modules
    "report(e, df)": (lambda w: discreet.report(w.e, w.wide), "discreet fit FILE --out"),
    "studio()": (lambda w: discreet.studio(), "discreet studio"),
    "datasets.load_lsat()": (lambda w: discreet.datasets.load_lsat(), "lsat()"),
    "datasets.fetch('lsat')": (lambda w: discreet.datasets.fetch("lsat"), "lsat()"),
    "datasets.list()": (lambda w: discreet.datasets.list(), "CITATIONS"),
    "sklearn.RaschEstimator()": (lambda w: discreet.sklearn.RaschEstimator(), "Rasch()"),
    # More words of other programs
    "plotICC(e)": (lambda w: discreet.plotICC(w.e), "curve_plot"),
    "BradleyTerry().fit(df)": (lambda w: discreet.BradleyTerry().fit(w.wide), "rank_comparisons"),
    "yen_q3(e)": (lambda w: discreet.yen_q3(w.e), "correlate_residuals"),
    "separation_index(e)": (lambda w: discreet.separation_index(w.e), "measure_fit"),
    "kr20(df)": (lambda w: discreet.kr20(w.wide), "measure_alpha"),
    "guttman(df)": (lambda w: discreet.guttman(w.wide), "order_answers"),
    "open_ledger(path)": (lambda w: discreet.open_ledger("a.db"), "Ledger.open"),
    "load_estimate(path)": (lambda w: discreet.load_estimate("a.json"), "discreet.load"),
    "set_threads(2)": (lambda w: discreet.set_threads(2), "DISCREET_THREADS"),
    "e.rename({...})": (lambda w: w.e.rename({"Q1": "A"}), "to_pandas"),
    "fit(df, epsilon=1)": (lambda w: discreet.fit(w.wide, epsilon=1), "discreet.release"),
    "fit(df, item_col=)": (lambda w: discreet.fit(w.wide, item_col="item"), "item=?"),
    "fit(df, rater=)": (lambda w: discreet.fit(w.wide, rater="rater"), "facets="),
    "fit(df, n_jobs=2)": (lambda w: discreet.fit(w.wide, n_jobs=2), "DISCREET_THREADS"),
    "fit(df, verbose=True)": (lambda w: discreet.fit(w.wide, verbose=True), "logging"),
    "plan(df, epsilon=1)": (lambda w: discreet.plan(w.wide, epsilon=1), "persons must be"),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A class test as teachers have it, ratings, and what is made of them."""
    rng = np.random.default_rng(3)
    sim = discreet.simulate(persons=150, items=6, rng=rng)
    items = [f"Q{number}" for number in range(1, 7)]
    array = sim.responses.rows(0, 150).astype(float)
    wide = pd.DataFrame(array, columns=items)
    ratings = discreet.simulate(persons=150, items=4, steps=3, rng=rng).responses
    steps = pd.DataFrame(ratings.rows(0, 150).astype(int), columns=list("ABCD"))
    folder = tmp_path_factory.mktemp("world")
    return SimpleNamespace(
        items=items,
        array=array,
        wide=wide,
        steps=steps,
        responses=discreet.Responses.from_dataframe(wide),
        e=discreet.fit(wide),
        model=discreet.Rasch().fit(array),
        ledger=discreet.Ledger.create(folder / "spent.db", epsilon=2.0, delta=1e-6),
    )


@pytest.mark.filterwarnings("ignore")
def test_more_guessed_calls_work_or_are_told_the_right_one(world):
    ends = {name: answer(*guess, world) for name, guess in GUESSES.items()}
    wrong = {name: end for name, end in ends.items() if end not in ("works", "named")}
    assert len(GUESSES) == 105
    assert len(wrong) <= 6, "\n".join(f"{name}: {end}" for name, end in wrong.items())
