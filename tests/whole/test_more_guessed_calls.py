"""More calls and command lines, guessed by users of other programs before they look at the API.

They come from users of R (eRm, mirt, TAM, psychotools), of Winsteps, of pandas and scikit-learn,
of OpenDP and Tumult, and from teachers. A call counts as answered where it works or where its
error names the call that does; the second entry of a row is a word of that call.
"""

from io import StringIO
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from test_guessed_calls import Guess, answer

import discreet
from discreet.cli.app import run

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
    # eRm, mirt, TAM, psychotools
    "e.etapar": (lambda w: w.e.etapar, "difficulty"),
    "Waldtest(e)": (lambda w: discreet.Waldtest(w.e), "run_wald"),
    "plotPImap(e)": (lambda w: discreet.plotPImap(w.e), "wright_plot"),
    "SepRel(e)": (lambda w: discreet.SepRel(w.e), "measure_fit"),
    "fscores(e)": (lambda w: discreet.fscores(w.e), "discreet.score"),
    "fit(df, itemtype='Rasch')": (lambda w: discreet.fit(w.wide, itemtype="Rasch"), "model="),
    "fit(df, SE=True)": (lambda w: discreet.fit(w.wide, SE=True), "standard_errors="),
    "fit(df, xsi_fixed=)": (lambda w: discreet.fit(w.wide, xsi_fixed={"Q1": 0.0}), "anchors="),
    "fit(df, pid=)": (lambda w: discreet.fit(w.wide, pid="student"), "person="),
    "fit(df, formulaA=)": (lambda w: discreet.fit(w.wide, formulaA="~item"), "keywords are"),
    "tam_wle(e)": (lambda w: discreet.tam_wle(w.e), "discreet.score"),
    "pcmodel(df)": (lambda w: discreet.pcmodel(w.steps), "discreet.fit"),
    "btmodel(df)": (lambda w: discreet.btmodel(w.wide), "rank_comparisons"),
    "threshpar(e)": (lambda w: w.e.threshpar, "thresholds"),
    "raschtree(df)": (lambda w: discreet.raschtree(w.wide), "find_dif"),
    # Winsteps, ConQuest, jMetrik
    "e.measure": (lambda w: w.e.measure, "difficulty"),
    "e.MNSQ": (lambda w: w.e.MNSQ, "measure_fit"),
    "e.strata": (lambda w: w.e.strata, "measure_fit"),
    "e.score_table()": (lambda w: w.e.score_table(), "tabulate_scores"),
    "fit(df, umean=500)": (lambda w: discreet.fit(w.wide, umean=500), "Scale"),
    "fit(df, IAFILE=)": (lambda w: discreet.fit(w.wide, IAFILE="a.txt"), "anchors="),
    "read_winsteps(path)": (lambda w: discreet.read_winsteps("a.con"), "read_responses"),
    # Teachers and data scientists
    "item_analysis(df)": (lambda w: discreet.item_analysis(w.wide), "measure_fit"),
    "e.p_values": (lambda w: w.e.p_values, "measure_fit"),
    "e[0]": (lambda w: w.e[0], "to_pandas"),
    "e[:3]": (lambda w: w.e[:3], "to_pandas"),
    "e[['Q1', 'Q2']]": (lambda w: w.e[["Q1", "Q2"]], "to_pandas"),
    "fit(array)[0]": (lambda w: discreet.fit(w.array)[0].difficulty, ""),
    "fit({'Q1': [...]})": (lambda w: discreet.fit(w.wide.to_dict("list")).difficulty, ""),
    "fit({'Q1': 1})": (lambda w: discreet.fit({"Q1": 1, "Q2": 0}), "list of dicts"),
    "fit(open file)": (lambda w: discreet.fit(StringIO("Q1,Q2\n1,0\n")), "path"),
    "fit(['a.csv', 'b.csv'])": (lambda w: discreet.fit(["a.csv", "b.csv"]), "pattern"),
    "score([1, 0, ...], e)": (lambda w: discreet.score([1, 0, 1, 0, 1, 0], w.e), "[[1, 0, 1]]"),
    "fit(df, by=[a, b])": (lambda w: discreet.fit(w.wide, by=["a", "b"]), "takes one column"),
    "fit(df, alpha=0.05)": (lambda w: discreet.fit(w.wide, alpha=0.05), "interval"),
    "fit(df, exclude=)": (lambda w: discreet.fit(w.wide, exclude=["Q1"]), "ignore"),
    "fit(df, guess=)": (lambda w: discreet.fit(w.wide, guess=0.25), "Rasch"),
    "e.predict_proba('Q1', 0)": (lambda w: w.e.predict_proba("Q1", 0.0), "predict_proba(0.5"),
    "e.predict_proba(df)": (lambda w: w.e.predict_proba(w.wide), "discreet.score"),
    "Rasch().fit(X).coef_": (lambda w: w.model.coef_, "difficulty_"),
    "Responses.from_polars(df)": (lambda w: discreet.Responses.from_polars(1), "from_dataframe"),
    "Responses.from_long(df)": (lambda w: discreet.Responses.from_long(w.wide), "person, item"),
    "from_array(X, item_names=)": (
        lambda w: discreet.Responses.from_array(w.array, item_names=w.items),
        "items=None",
    ),
    "show_versions()": (lambda w: discreet.show_versions(), "__version__"),
    "DiscreetError": (lambda w: discreet.DiscreetError, "errors.DiscreetError"),
    "errors.BudgetError": (lambda w: discreet.errors.BudgetError, "BudgetExceeded"),
    "measure_fit(df, e)": (lambda w: discreet.measure_fit(w.wide, w.e), "analysis.measure_fit"),
    "count_pairs(df).matrix": (lambda w: discreet.count_pairs(w.wide).matrix, "right_wrong"),
    # OpenDP, Tumult
    "PureDPBudget(1)": (lambda w: discreet.PureDPBudget(1), "Budget(epsilon"),
    "Budget(rho=0.5)": (lambda w: discreet.Budget(rho=0.5), "epsilon"),
    "make_laplace(1)": (lambda w: discreet.make_laplace(1.0), "mechanism="),
    "release(df, max_contributions=5)": (
        lambda w: discreet.release(w.wide, epsilon=1, items=w.items, max_contributions=5),
        "max_answers=",
    ),
    "release(df, seed=1)": (
        lambda w: discreet.release(w.wide, epsilon=1, items=w.items, seed=1),
        "cannot be repeated",
    ),
    "released.items": (lambda w: w.released.items, "estimate.items"),
    "released.ci()": (lambda w: w.released.ci(), "estimate.interval()"),
    "released.rho": (lambda w: w.released.rho, "guarantee.rho"),
    "released.to_pandas()": (lambda w: w.released.to_pandas(), "estimate.to_pandas"),
    "released.statement": (lambda w: w.released.statement, "statement.md"),
    "ledger.to_dataframe()": (lambda w: w.ledger.to_dataframe(), "history()"),
    "Ledger.create(budget=2)": (lambda w: discreet.Ledger.create("a", budget=2), "epsilon"),
}

#: Command lines, and a word of the one that is right.
TYPED = {
    "calibrate a.csv": "discreet fit FILE",
    "rasch a.csv": "discreet fit FILE",
    "rank a.csv": "discreet top FILE",
    "inspect a.csv": "discreet check FILE",
    "reliability a.csv": "discreet check FILE",
    "abilities a.csv": "discreet score FILE --with",
    "equate a b": "discreet link A B",
    "private a.csv": "discreet release FILE",
    "power": "discreet plan",
    "gui": "discreet studio",
    "help": "discreet --help",
    "plot a.csv": "--out DIR",
    "ledger status a.db": "discreet ledger show FILE",
    "ledger new a.db": "discreet ledger create FILE",
    "budget a.db": "discreet ledger show FILE",
    "fit a.csv --output b": "--out DIR",
    "fit a.csv -o b": "--out DIR",
    "fit a.csv --format json": "--json",
    "fit a.csv --sep ;": "--delimiter",
    "fit a.csv --id student": "--person",
    "fit a.csv --na 9": "--missing",
    "fit a.csv --exclude sex": "--ignore COL",
    "fit a.csv --by sex": "--group COL",
    "fit a.csv --model pcm": "Use partial-credit",
    "fit a.csv --html": "--out DIR",
    "top a.csv -n 3": "Use -k",
    "score a.csv --calibration b": "--with CALIBRATION",
    "dif a.csv --mh": "--test mantel-haenszel",
    "release a.csv --seed 1": "cannot be repeated",
    "release a.csv --no-ledger": "--ledger FILE",
    "plan --n 1000": "--persons N",
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
        released=discreet.release(wide, epsilon=1.0, items=items),
    )


@pytest.mark.filterwarnings("ignore")
def test_more_guessed_calls_work_or_are_told_the_right_one(world):
    ends = {name: answer(*guess, world) for name, guess in GUESSES.items()}
    wrong = {name: end for name, end in ends.items() if end not in ("works", "named")}
    assert len(GUESSES) == 165
    assert len(wrong) <= 6, "\n".join(f"{name}: {end}" for name, end in wrong.items())


@pytest.mark.parametrize("typed", TYPED)
def test_guessed_commands_and_options_are_told_the_right_one(typed, capsys):
    assert run(typed.split()) == 2
    assert TYPED[typed] in " ".join(capsys.readouterr().err.split())


def test_a_misspelt_command_is_answered_by_its_spelling(capsys):
    assert run(["relase"]) == 2
    assert "Did you mean 'release'" in capsys.readouterr().err


def test_the_reliability_of_an_estimate_says_of_what(world):
    fit = discreet.analysis.measure_fit(world.wide, world.e)
    assert world.e.item_reliability == pytest.approx(fit.item_reliability.reliability)
    with pytest.raises(AttributeError, match="measure_fit"):
        _ = world.e.reliability
