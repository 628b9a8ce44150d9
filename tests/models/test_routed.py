"""Multistage tests: likelihood, fit and tests given the path, against lists of all answers."""

import itertools
from copy import deepcopy

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2

import discreet
from commandline import discreet as run
from discreet import analysis
from discreet.errors import BadResponses, BadUsage, DisconnectedItems
from discreet.items.cutoffs import plan_draws
from discreet.items.given_totals import GroupedAnswers
from discreet.items.likelihood_ratios import split_item
from discreet.items.residuals import prepare
from discreet.models.conditional.estimator import _choose_task, find_maximum
from discreet.models.conditional.maximise import Surface
from discreet.models.conditional.routed import group_routes
from discreet.models.structure import Structure
from discreet.readers.routing import read_routing
from refusals import refused

MODULES = {"first": ["a", "b", "c"], "easy": ["d", "e", "f"], "hard": ["g", "h", "i"]}
ITEMS = [item for items in MODULES.values() for item in items]
OF_MODULE = discreet.RoutingDesign(
    MODULES, {"low": [("first", 0, 1), ("easy", 0, 9)], "high": [("first", 2, 9), ("hard", 0, 9)]}
)
#: Who had a middling score so far after the hard module takes the easy one too.
SO_FAR = discreet.RoutingDesign(
    MODULES,
    {
        "low": [("first", 0, 1), ("easy", 0, 99)],
        "both": [("first", 2, 9), ("hard", 0, 4), ("easy", 0, 99)],
        "high": [("first", 2, 9), ("hard", 5, 99)],
    },
    cumulated=True,
)
RIGHT_WRONG = (1,) * 9
STEPS = (2, 1, 1, 1, 2, 1, 1, 1, 2)
CASES = [
    pytest.param(OF_MODULE, RIGHT_WRONG, 0.0, id="module"),
    pytest.param(OF_MODULE, RIGHT_WRONG, 0.3, id="module, gaps"),
    pytest.param(SO_FAR, RIGHT_WRONG, 0.2, id="so far, gaps"),
    pytest.param(OF_MODULE, STEPS, 0.0, id="module, steps"),
    pytest.param(SO_FAR, STEPS, 0.2, id="so far, steps, gaps"),
]


def draw_thresholds(steps, rng):
    """Return thresholds ``[item, step]``, NaN beyond an item's steps."""
    out = rng.normal(size=(len(steps), max(steps)))
    return np.where(np.arange(max(steps)) < np.array(steps)[:, None], out, np.nan)


def simulate(design, steps, persons=300, gaps=0.0, seed=0, threshold=None):
    """Draw answers; gaps are in the last module of a path, where its score decided nothing."""
    rng = np.random.default_rng(seed)
    threshold = draw_thresholds(steps, rng) if threshold is None else threshold
    ability = rng.choice([-1.2, 0.1, 1.9], p=[0.5, 0.3, 0.2], size=persons)
    points = np.cumsum(ability[:, None, None] - threshold, axis=2)
    points = np.pad(np.where(np.isnan(points), -np.inf, points), ((0, 0), (0, 0), (1, 0)))
    full = (points + rng.gumbel(size=points.shape)).argmax(axis=2)
    cells = np.full(full.shape, -1)
    for row, answers in enumerate(full):
        for stages in design.paths.values():
            own = [[ITEMS.index(item) for item in MODULES[module]] for module, *_ in stages]
            if is_allowed(design, stages, [answers[columns].sum() for columns in own]):
                seen = np.concatenate(own)
                share = gaps * (stages[-1][1] == 0)
                missing = [place for place in own[-1][1:] if rng.random() < share]
                seen = np.setdiff1d(seen, missing)
                cells[row, seen] = answers[seen]
    return discreet.Responses.from_array(
        cells, items=ITEMS, steps=dict(zip(ITEMS, steps, strict=True))
    )


def is_allowed(design, stages, scores):
    """Say whether scores of modules follow the rules, from their definition."""
    told = list(itertools.accumulate(scores)) if design.cumulated else scores
    return all(low <= score <= high for (_, low, high), score in zip(stages, told, strict=True))


class Listed:
    """The law of answers given path, answered items and total, by listing all of them."""

    def __init__(self, answers, threshold):
        self.design, self.steps = answers.routing.design, answers.steps
        self.cells, self.path = answers.to_array(), answers.routing.path
        self.cost = np.hstack([np.zeros((len(threshold), 1)), np.cumsum(threshold, axis=1)])
        self.laws = {}

    def find(self, person):
        """Return all answers that could have been, and their chances; and the log norm."""
        row, path = self.cells[person], self.path[person]
        seen = np.flatnonzero(row >= 0)
        key = path, tuple(seen), row[seen].sum()
        if key not in self.laws:
            stages = list(self.design.paths.values())[path]
            rows = []
            for codes in itertools.product(*(range(self.steps[item] + 1) for item in seen)):
                full = np.full(len(row), -1)
                full[seen] = codes
                scores = [
                    sum(max(full[ITEMS.index(item)], 0) for item in MODULES[module])
                    for module, *_ in stages
                ]
                if sum(codes) == key[2] and is_allowed(self.design, stages, scores):
                    rows.append(full)
            logs = np.array([-self.weigh(one) for one in rows])
            norm = np.logaddexp.reduce(logs)
            self.laws[key] = np.array(rows), np.exp(logs - norm), norm
        return self.laws[key]

    def weigh(self, row):
        return sum(self.cost[item, code] for item, code in enumerate(row) if code >= 0)

    def reach(self, rows):
        """Return which steps are reached, ``[row, node]``."""
        marks = [rows[:, i, None] >= np.arange(1, most + 1) for i, most in enumerate(self.steps)]
        return np.hstack(marks).astype(float)

    def derive(self):
        """Return log-likelihood, gradient and minus the second derivatives, by nodes."""
        value, nodes = 0.0, sum(self.steps)
        gradient, information = np.zeros(nodes), np.zeros((nodes, nodes))
        for person, row in enumerate(self.cells):
            rows, chance, norm = self.find(person)
            reached = self.reach(rows)
            mean = chance @ reached
            value -= self.weigh(row) + norm
            gradient += mean - self.reach(row[None])[0]
            information += (reached - mean).T @ ((reached - mean) * chance[:, None])
        return value, gradient, information


def open_surface(answers):
    """Return the likelihood of all nodes of these answers."""
    task = _choose_task(answers, "auto", None)
    counted = task.count(task.collect(answers))
    return Surface(counted.patterns, counted.observed, Structure(np.nonzero(counted.used)[0]))


@pytest.mark.parametrize(("design", "steps", "gaps"), CASES)
def test_likelihood_and_derivatives_are_those_of_a_list_of_all_answers(design, steps, gaps):
    answers = simulate(design, steps, gaps=gaps).route(design)
    threshold = draw_thresholds(steps, np.random.default_rng(5))
    surface = open_surface(answers)
    point = surface.look(threshold[~np.isnan(threshold)], information=True)
    value, gradient, information = Listed(answers, threshold).derive()
    assert point.value == pytest.approx(value, abs=1e-10, rel=1e-12)
    assert surface.score(point) == pytest.approx(gradient, abs=1e-10)
    assert surface.node_information(point) == pytest.approx(information, abs=1e-10)


@pytest.mark.parametrize("design", [OF_MODULE, SO_FAR], ids=["module", "so far"])
def test_the_fit_is_the_maximum_and_its_errors_come_from_the_listed_information(design):
    answers = simulate(design, STEPS, persons=400).route(design)
    found = discreet.fit(answers)
    assert (found.method, found.warnings) == ("conditional given paths", ())
    value, gradient, information = Listed(answers, found.thresholds).derive()
    assert gradient == pytest.approx(np.zeros(12), abs=1e-7)
    assert find_maximum(answers).log_likelihood == pytest.approx(value, abs=1e-9)
    # The mean of the locations is zero: one over an item's steps is the weight of its thresholds.
    weight = np.repeat(1 / np.array(STEPS), STEPS) / 9
    centre = np.eye(12) - np.outer(np.ones(12), weight)
    covariance = centre @ np.linalg.pinv(information) @ centre.T
    used = ~np.isnan(found.thresholds)
    assert found.threshold_se[used] == pytest.approx(np.sqrt(covariance.diagonal()), rel=1e-7)


def test_a_design_that_sends_nobody_on_by_score_is_the_plain_fit():
    design = discreet.RoutingDesign(
        MODULES,
        {"one": [("first", 0, 3), ("easy", 0, 3)], "two": [("first", 0, 3), ("hard", 0, 3)]},
    )
    cells = simulate(OF_MODULE, RIGHT_WRONG, persons=600).to_array()
    other = simulate(OF_MODULE, RIGHT_WRONG, persons=600, seed=1).to_array()
    # By lot: the modules of one person, the first module of another.
    cells[:, :3] = other[:, :3]
    answers = discreet.Responses.from_array(cells, items=ITEMS)
    routed, plain = discreet.fit(answers, routing=design), discreet.fit(answers)
    assert routed.difficulty == pytest.approx(plain.difficulty, abs=1e-9)
    assert routed.se == pytest.approx(plain.se, rel=1e-7)


def test_routed_answers_are_unbiased_given_paths_and_not_without():
    threshold = np.array([-1.0, 0.0, 1.0, -2.0, -1.0, 0.5, -0.5, 1.0, 2.0])[:, None]
    answers = simulate(OF_MODULE, RIGHT_WRONG, persons=40_000, threshold=threshold)
    truth = threshold[:, 0] - threshold.mean()
    found = discreet.fit(answers, routing=OF_MODULE)
    assert np.abs((found.difficulty - truth) / found.se).max() < 3
    plain = discreet.fit(answers, method="conditional")
    assert np.abs((plain.difficulty - truth) / plain.se).max() > 10


@pytest.mark.parametrize(("design", "steps", "gaps"), CASES)
def test_conditional_mean_squares_are_given_path_and_total(design, steps, gaps):
    answers = simulate(design, steps, gaps=gaps, seed=2).route(design)
    estimate = discreet.fit(answers)
    fit, listed = analysis.measure_fit(answers, estimate), Listed(answers, estimate.thresholds)
    sums = np.zeros((2, 9))
    for person, row in enumerate(answers.to_array()):
        rows, chance, _ = listed.find(person)
        mean = chance @ rows
        variance = chance @ (rows - mean) ** 2
        seen = (row >= 0) & (variance > 1e-9)
        sums += np.where(seen, [(row - mean) ** 2, variance], 0.0)
    assert fit.items.conditional_infit == pytest.approx(sums[0] / sums[1], rel=1e-8)


def test_answers_are_drawn_by_the_law_given_path_and_total():
    answers = simulate(SO_FAR, STEPS, persons=60, gaps=0.2, seed=3).route(SO_FAR)
    threshold = draw_thresholds(STEPS, np.random.default_rng(6))
    cells = answers.to_array()
    patterns = group_routes(cells, answers.routing, answers.items, answers.steps)
    draws = plan_draws(threshold, cells, patterns)
    drawn = np.stack(list(draws.draw(4000, np.random.default_rng(7))))  # [set, item, person]
    listed, statistic, degrees = Listed(answers, threshold), 0.0, 0
    for person in range(60):
        rows, chance, _ = listed.find(person)
        code = np.maximum(rows, 0) @ 3 ** np.arange(9)
        seen = drawn[:, :, person].astype(int) @ 3 ** np.arange(9)
        observed = (seen[:, None] == code).sum(axis=0)
        assert observed.sum() == 4000  # nothing else was drawn
        statistic += ((observed - 4000 * chance) ** 2 / (4000 * chance)).sum()
        degrees += len(code) - 1
    assert 0.001 < chi2.sf(statistic, degrees) < 0.999


MODERATE = np.array([-0.5, 0.2, 0.6, -1.0, -0.6, 0.1, 0.0, 0.8, 1.3])[:, None]


def test_andersens_test_compares_likelihoods_given_paths_in_halves_of_each_path():
    answers = simulate(OF_MODULE, RIGHT_WRONG, persons=500, seed=4, threshold=MODERATE)
    answers = answers.route(OF_MODULE)
    test = analysis.run_andersen(answers)
    cells = answers.to_array()
    score, path = np.maximum(cells, 0).sum(axis=1), answers.routing.path
    high = score > np.array([score[path == 0].mean(), score[path == 1].mean()])[path]

    def climb(chosen):
        part = answers.select_persons(chosen)

        def loss(free):
            listed = Listed(part, np.append(free, -free.sum())[:, None])
            value, gradient, _ = listed.derive()
            return -value, -(gradient[:-1] - gradient[-1])

        return -minimize(loss, np.zeros(8), jac=True, tol=1e-10).fun

    gain = climb(high) + climb(~high) - climb(np.ones(len(high), dtype=bool))
    assert test.persons == (int((~high).sum()), int(high.sum()))
    assert (test.degrees, test.excluded) == (8, ())
    assert test.statistic == pytest.approx(2 * gain, abs=1e-5)
    assert test.p_value == pytest.approx(chi2.sf(2 * gain, 8), abs=1e-6)


def test_a_report_says_that_the_test_was_routed_and_makes_what_it_can():
    answers = simulate(OF_MODULE, RIGHT_WRONG, persons=500, seed=4, threshold=MODERATE)
    answers = answers.route(OF_MODULE)
    found = analysis.check_model(answers)
    assert found.estimate.method == "conditional given paths"
    assert any("routed" in note for note in found.study.notes)
    assert found.study.halves is None
    assert found.study.mislabelled is None
    assert found.study.limits is not None
    assert found.study.dimensionality.correlation is None
    assert [test.name for test in found.tests if test.verdict == "not tested"] == ["Martin-Löf"]


def test_groups_are_calibrated_given_paths():
    answers = simulate(OF_MODULE, RIGHT_WRONG, persons=800, seed=5).route(OF_MODULE)
    label = np.array(["x", "y"])[np.arange(800) % 3 // 2]
    table = analysis.find_dif(answers, label.tolist())
    assert table.method == "conditional given paths"
    with refused(BadUsage, "refused_routed_answers_would"):
        split_item(answers, np.arange(800) % 2, 0, free=np.zeros(9, dtype=bool), model="rasch")


def test_a_missing_answer_that_decided_the_path_needs_a_rule():
    cells = simulate(OF_MODULE, RIGHT_WRONG).to_array()
    low = np.flatnonzero((cells[:, 3] >= 0) & (cells[:, 0] == 0))[0]
    filled = discreet.fit(cells, routing=discreet.RoutingDesign(*number_items(OF_MODULE)))
    cells[low, 0] = -1
    gappy = discreet.Responses.from_array(cells, items=ITEMS)
    with refused(BadResponses, "left_out_answer_decided", person=str(low), item="a"):
        gappy.route(OF_MODULE)
    wrong = discreet.RoutingDesign(MODULES, OF_MODULE.paths, skipped="wrong")
    assert discreet.fit(gappy, routing=wrong).difficulty == pytest.approx(filled.difficulty)


def number_items(design):
    """Return modules of numbered items, and the paths."""
    modules = {
        module: [str(ITEMS.index(item)) for item in items] for module, items in MODULES.items()
    }
    return modules, design.paths


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("routed_test_paths_state", {"paths": {}}),
        ("path_module_whose_items", {"paths": {"low": [("other", 0, 1)]}}),
        ("path_takes_scores_module", {"paths": {"low": [("first", 1, 0)]}}),
        ("path_item_twice_item", {"paths": {"low": [("first", 0, 1), ("first", 0, 1)]}}),
    ],
)
def test_designs_that_contradict_themselves_are_refused(code, change):
    with refused(BadUsage, code):
        discreet.RoutingDesign(**({"modules": MODULES, "paths": OF_MODULE.paths} | change))


def test_answers_that_do_not_fit_the_design_are_refused():
    answers = simulate(OF_MODULE, RIGHT_WRONG)
    paths = {**OF_MODULE.paths, "low": [("first", 0, 0), ("easy", 0, 9)]}
    with refused(BadResponses, "answers_do_not_fit"):
        answers.route(discreet.RoutingDesign(MODULES, paths))
    with pytest.raises(BadUsage):
        answers.route({"modules": MODULES, "paths": paths})
    with refused(BadUsage, "item_modules_name_items", item="i"):
        answers.select(ITEMS[:-1]).route(OF_MODULE)
    with refused(BadUsage, "item_modules_name_items", item="new"):
        answers.select([*ITEMS, "new"]).route(OF_MODULE)


def test_what_does_not_know_paths_refuses_routed_answers(tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "spent.db", 2.0)
    answers = simulate(OF_MODULE, RIGHT_WRONG).route(OF_MODULE)
    assert answers.select(ITEMS[:-1]).routing is answers.routing  # no path was decided by it
    other = deepcopy(answers.select_persons(slice(9, 2, -1)))
    assert other.routing.path.tolist() == answers.routing.path[9:2:-1].tolist()
    for method in ("refined", "spectral"):
        with refused(BadUsage, "method_wrong_routed_answers", method=method):
            discreet.fit(answers, method=method)
    assert discreet.fit(answers, method="marginal").method == "marginal"
    with refused(BadUsage, "answers_decided_items_followed"):
        answers.select(ITEMS[1:])
    for refuses in (
        lambda: discreet.fit(answers, anchors={"a": 0.0}),
        lambda: discreet.Responses.concat([answers, answers]),
        lambda: analysis.split_items(answers, {"a": ["x", "y"] * 150}),
        lambda: analysis.find_mislabelled(answers, discreet.fit(answers)),
        lambda: analysis.combine_testlets(answers, {"d": "t", "e": "t"}),
        lambda: answers.cap(3, None),
        lambda: discreet.count_pairs(answers),
        lambda: discreet.release(answers, epsilon=1.0, items=list(ITEMS), ledger=ledger),
        lambda: discreet.find_dif(answers, ["x", "y"] * 150, test="mantel-haenszel"),
        lambda: answers.weigh(weight="w"),
    ):
        with refused(BadUsage, "refused_routed_answers_would"):
            refuses()


def test_an_item_that_everybody_got_right_is_refused_by_name():
    answers = simulate(OF_MODULE, RIGHT_WRONG).to_array()
    answers[answers[:, 8] >= 0, 8] = 1
    answers = discreet.Responses.from_array(answers, items=ITEMS)
    labels = "item 'i' category 0"
    with refused(DisconnectedItems, "nobody_steps_around_unused", labels=labels):
        discreet.fit(answers, routing=OF_MODULE)


def test_a_warning_of_routing_leads_to_the_rules():
    threshold = np.linspace(-1.5, 1.5, 9)[:, None]
    answers = simulate(OF_MODULE, RIGHT_WRONG, persons=4000, threshold=threshold)
    warnings = discreet.fit(answers).warnings
    assert [one.kind for one in warnings] == ["routed"]
    assert "(routing=, --routing)" in warnings[0]


def write_design(folder, design):
    """Write the tables of a design, and return their paths."""
    rules, modules = folder / "rules.csv", folder / "modules.csv"
    rows = [f"{module},{item}" for module, items in MODULES.items() for item in items]
    modules.write_text("\n".join(["module,item", *rows]))
    names = "total_from,total_to" if design.cumulated else "from,to"
    stages = [(path, *stage) for path, own in design.paths.items() for stage in own]
    rows = [",".join(map(str, row)) for row in stages]
    rules.write_text("\n".join([f"path,module,{names}", *rows]))
    return rules, modules


def test_the_command_line_fits_and_reports_routed_answers(tmp_path):
    rules, modules = write_design(tmp_path, OF_MODULE)
    answers = simulate(OF_MODULE, RIGHT_WRONG, persons=400, threshold=MODERATE)
    file = tmp_path / "answers.csv"
    answers.to_dataframe("wide").to_csv(file, index=False)
    about = ("--routing", rules, "--modules", modules)
    done = run("fit", file, *about, "--json", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    found = [item["difficulty"] for item in done.document["items"]]
    assert found == pytest.approx(discreet.fit(answers, routing=OF_MODULE).difficulty)
    page = (tmp_path / "out" / "report.confidential.html").read_text(encoding="utf-8")
    assert "Zwitser" in page
    assert "Abler persons got harder items" not in page
    counts = tmp_path / "counts.json"
    discreet.count_pairs(answers).save(counts)
    for wrong in (
        ("fit", file, "--routing", rules),
        ("fit", counts, *about),
        ("fit", file, *about, "--rater", "x"),
        ("fit", file, *about, "--method", "refined"),
    ):
        assert run(*wrong).code == BadUsage.exit_code


def test_designs_are_read_from_tables(tmp_path):
    for design in (OF_MODULE, SO_FAR):
        assert read_routing(*write_design(tmp_path, design)) == design
    (tmp_path / "rules.csv").write_text("path,module,from,to\nlow,first,0,half\n")
    with refused(BadUsage, "path_lowest_highest_score"):
        read_routing(tmp_path / "rules.csv", tmp_path / "modules.csv")
    (tmp_path / "rules.csv").write_text("path,module,low,high\nlow,first,0,1\n")
    with pytest.raises(BadUsage):
        read_routing(tmp_path / "rules.csv", tmp_path / "modules.csv")


def test_too_many_combinations_of_module_scores_are_refused(monkeypatch):
    from discreet.models.conditional import routed

    answers = simulate(OF_MODULE, RIGHT_WRONG).route(OF_MODULE)
    monkeypatch.setattr(routed, "MOST_COMBINATIONS", 10)
    with refused(BadUsage, "module_scores_these_paths"):
        discreet.fit(answers)


def test_prepared_groups_share_path_and_total():
    answers = simulate(SO_FAR, RIGHT_WRONG, gaps=0.3).route(SO_FAR)
    prepared = prepare(answers, discreet.fit(answers), "ml")
    used = np.flatnonzero(prepared.used)
    patterns = prepared.group(used)
    cells = answers.to_array()[used]
    keys = {
        (path, tuple(row >= 0), int(np.maximum(row, 0).sum())): entry
        for path, row, entry in zip(answers.routing.path[used], cells, patterns.entry, strict=True)
    }
    assert len(keys) == len(patterns.size) == patterns.entry.max() + 1
    assert patterns.size.sum() == len(used)


@pytest.mark.parametrize("steps", [RIGHT_WRONG, STEPS], ids=["right and wrong", "steps"])
def test_sums_of_reached_thresholds_have_the_moments_of_all_listed_answers(steps):
    answers = simulate(SO_FAR, steps, persons=60, gaps=0.2).route(SO_FAR)
    threshold = draw_thresholds(steps, np.random.default_rng(5))
    listed, grouped = (
        Listed(answers, threshold),
        group_routes(answers.to_array(), answers.routing, answers.items, answers.steps),
    )
    found = GroupedAnswers.of(grouped).weigh_loads(threshold, np.zeros(len(grouped.size)))
    for person, group in enumerate(grouped.entry):
        rows, chance, _ = listed.find(person)
        load = np.array([listed.weigh(row) for row in rows])
        mean = chance @ load
        assert found[:, group] == pytest.approx([mean, chance @ (load - mean) ** 2], abs=1e-10)
