"""Verdicts agree with their numbers, say what they rest on, and name causes first."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import discreet
from commandline import discreet as run
from discreet.analysis import check_model, find_dimensions, measure_fit, run_andersen, run_wald
from discreet.answers.pack import store_codes
from discreet.api.scales import link_calibrations
from discreet.items.groups import split_groups
from discreet.items.study import diagnose
from discreet.items.tables import list_study_tables
from discreet.persons import measures
from discreet.report.diagnosis import diagnose_test, list_tests
from discreet.report.findings import find_limits, find_problems, remarks_on_items
from discreet.report.model_findings import Severity
from discreet.report.page import judge, write_diagnosis
from discreet.report.paper import write_methods
from discreet.saving import read_value, write_value
from stepped import chances

SKEWED = Path(__file__).parents[1] / "data" / "skewed_400x5.csv"


def draw(persons, items, seed, *, slopes=0.0, guess=0.0):
    """Return right and wrong answers, by the Rasch model unless slopes vary or persons guess."""
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.normal(size=(persons, 1)), rng.normal(size=items)
    slope = np.exp(slopes * rng.normal(size=items))
    chance = guess + (1 - guess) / (1 + np.exp(-slope * (ability - difficulty)))
    return discreet.Responses.from_array((rng.random(chance.shape) < chance).astype(float))


def draw_scale(persons, items, seed, turned=(), distances=0.5):
    """Return answers from 0 to 4 with thresholds of their own, some items turned round."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(0, 1.2, persons)
    codes = []
    for item in range(items):
        own = np.sort(np.array([-1.5, -0.5, 0.5, 1.5]) + rng.normal(0, distances, 4))
        share = chances(ability, own).cumsum(axis=1)
        code = (rng.random((persons, 1)) > share).sum(axis=1)
        codes.append(4 - code if item in turned else code)
    names = [f"q{item}" for item in range(items)]
    return discreet.Responses.from_store(store_codes(np.stack(codes, axis=1), [4] * items), names)


def by_name(found):
    return {test.name: test for test in found.tests}


# --- Andersen's test where some answers are missing ---------------------------------------------


def test_few_gaps_do_not_lose_andersens_test():
    """R 4.2.2 with eRm 1.0-2 says 26.45060431 with 8 degrees of freedom, without c and d.

    ``X <- read.csv("skewed_400x5.csv"); m <- rowMeans(X, na.rm = TRUE)``;
    ``LRtest(PCM(X), splitcr = as.numeric(m > mean(m)))``. By its own rule (``splitcr = "mean"``:
    persons with the same gaps are split among themselves) it says 27.37775395.
    """
    with pytest.warns(UserWarning, match="left out 2 items.*lack a category: c, d"):
        found = run_andersen(SKEWED)
    assert found.statistic == pytest.approx(26.45060431, abs=1e-5)
    assert found.degrees == 8
    assert found.persons == (155, 245)
    assert found.excluded == ("c", "d")
    assert found.split == "mean score"


def test_the_split_of_erm_gives_the_statistic_of_erm():
    answers = discreet.read_responses(SKEWED)
    rows = answers.to_array()
    gaps = ["".join(map(str, (row < 0).astype(int))) for row in rows]
    score = np.where(rows < 0, 0, rows).sum(axis=1)
    mean = {one: score[np.array(gaps) == one].mean() for one in gaps}
    high = [value >= mean[gap] for value, gap in zip(score, gaps, strict=True)]
    with pytest.warns(UserWarning, match="c, d"):
        found = run_andersen(answers, np.where(high, "high", "low"))
    assert found.statistic == pytest.approx(27.37775395, abs=1e-5)


def test_the_verdict_and_the_methods_text_say_the_split_and_what_was_left_out():
    answers = discreet.read_responses(SKEWED)
    found = check_model(answers)
    test = by_name(found)["Andersen"]
    assert test.verdict == "worth a look"
    assert test.statistic == pytest.approx(26.4506, abs=1e-4)
    assert "split at the mean score" in test.found
    assert "without c, d" in test.found
    text = write_methods(diagnose_test(found.estimate, found.study))
    assert "split at the mean score" in text
    assert "without c, d, which lacked a category in one of the groups" in text
    kept = read_value(write_value(found.study))
    assert (kept.andersen.split, kept.andersen.excluded) == ("mean score", ("c", "d"))


def test_persons_with_gaps_are_split_by_their_share_of_the_points_they_could_have():
    """Steps of 1, 3 and 2: shares 1/1, 2/4, 4/6, 1/6, 1/5, 2/5; the mean is .489."""
    codes = np.array([[1, -1, -1], [1, 1, -1], [1, 2, 1], [0, 1, 0], [-1, 1, 0], [-1, 0, 2]])
    answers = discreet.Responses.from_store(store_codes(codes, (1, 3, 2)))
    split = split_groups(answers, "mean score")
    assert [part.persons.tolist() for part in split.parts] == [["3", "4", "5"], ["0", "1", "2"]]


def test_where_the_mean_makes_no_groups_the_median_does():
    """100 persons have nothing right, the others at least 6 of 10: the mean separates them."""
    rows = draw(3000, 10, 3).to_array()
    able = rows[rows.sum(axis=1) >= 6][:300]
    answers = discreet.Responses.from_array(np.vstack([able, np.zeros((100, 10), dtype=int)]))
    found = check_model(answers)
    test = by_name(found)["Andersen"]
    assert test.p_value is not None
    assert "split at the median score" in test.found
    assert any("at the mean score" in note for note in found.study.notes)


def test_where_no_split_works_the_verdict_is_not_tested_and_the_report_says_so():
    """Two items: whoever is above the mean, or the median, has both right."""
    rows = np.repeat([[1, 0], [0, 1], [1, 1], [0, 0]], [35, 25, 20, 20], axis=0)
    found = check_model(rows)
    assert by_name(found)["Andersen"].verdict == "not tested"
    for split in ("mean score", "median score"):
        assert any(f"not compared at the {split}" in note for note in found.study.notes)
    page = write_diagnosis(diagnose_test(found.estimate, found.study))
    assert "Not tested (the notes say why): Andersen, " in page


def test_tables_of_andersen_and_wald_are_of_the_same_items_and_say_so():
    answers = discreet.read_responses(SKEWED)
    estimate = discreet.fit(answers)
    tables = {one.name: one for one in list_study_tables(estimate, diagnose(answers, estimate))}
    andersen, wald = tables["andersen"].columns, tables["wald"].columns
    for table in (andersen, wald):
        assert table["item"] == ["a", "b", "e", "c", "d"]
        assert table["status"] == ["compared"] * 3 + ["left out"] * 2
        assert np.isnan(table["low score"][3:]).all()
    for group in ("low score", "high score"):
        np.testing.assert_allclose(andersen[group][:3], wald[group][:3], atol=1e-6)
    for name in ("andersen", "wald"):
        assert "split at the mean score (155 low score, 245 high score)" in tables[name].about
        assert "Left out of both tests: c, d." in tables[name].about


def test_wald_tests_of_some_items_keep_the_groups_of_all():
    answers = draw(300, 8, 5)
    whole = run_wald(answers)
    part = run_wald(answers, items=answers.items[:5])
    assert part.persons == whole.persons
    assert part.items == answers.items[:5]


# --- item fit -----------------------------------------------------------------------------------


def slip():
    """300 persons and 20 items; the ablest person misses only the easiest item."""
    rng = np.random.default_rng(6)
    ability, difficulty = np.sort(rng.normal(0, 1.5, 300)), np.linspace(-3, 1.5, 20)
    chance = 1 / (1 + np.exp(difficulty - ability[:, None]))
    rows = (rng.random(chance.shape) < chance).astype(float)
    rows[-1] = 1
    rows[-1, 0] = 0
    return discreet.Responses.from_array(rows)


def test_one_person_does_not_make_an_item_serious():
    """A slip of the ablest person makes an outfit large, which is judged without it."""
    answers = slip()
    estimate = discreet.fit(answers)
    study = diagnose(answers, estimate)
    assert study.fit.outfit[0] > 1.5
    assert study.fit.outfit_t[0] > 2
    assert study.fit.outfit[0] > study.limits.outfit[0, 1] > 1.1
    assert study.fit.outfit_without_one[0] < study.limits.outfit[0, 1]
    findings, fine = find_problems(estimate, study)
    assert "item fit" in fine
    assert not any("less predictably" in one.title for one in findings)
    test = by_name(check_model(answers, estimate))["item fit"]
    assert test.verdict == "holds"
    assert "Limits are those of 999 sets of answers" in test.found


def test_an_outfit_that_one_person_makes_large_is_told_apart():
    answers = slip()
    estimate = discreet.fit(answers)
    study = diagnose(answers, estimate)
    rules_of_thumb = replace(study, limits=None)
    outfit = study.limits.outfit.copy()
    outfit[0, 1] = 1.4
    study = replace(study, limits=replace(study.limits, outfit=outfit))
    for each in (study, rules_of_thumb):
        assert remarks_on_items(estimate, each)[0] == ["noisy by few persons"]
    findings, fine = find_problems(estimate, study)
    assert "item fit" in fine
    assert not any("less predictably" in one.title for one in findings)
    (test,) = [test for test in list_tests(estimate, study) if test.name == "item fit"]
    plain = study.fit.conditional_outfit[0]
    rest = study.fit.outfit_without_one[0]
    assert test.verdict == "holds"
    assert f"0 ({plain:.2f}; {rest:.2f} without 1 person)" in test.found


def test_many_persons_still_make_an_item_noisy_and_the_finding_says_by_which_number():
    rng = np.random.default_rng(7)
    rows = slip().to_array().astype(float)
    some = rng.random(300) < 0.5
    rows[some, 2] = rng.integers(0, 2, some.sum())
    answers = discreet.Responses.from_array(rows)
    estimate = discreet.fit(answers)
    study = diagnose(answers, estimate)
    (finding,) = [
        one for one in find_problems(estimate, study)[0] if "less predictably" in one.title
    ]
    assert finding.severity is Severity.SERIOUS
    infit, outfit = study.fit.conditional_infit[2], study.fit.conditional_outfit[2]
    limits = [find_limits(study, name, 2)[1] for name in ("infit", "outfit")]
    assert (
        f"2 (infit {infit:.2f}, limit {limits[0]:.2f}; outfit {outfit:.2f}, limit "
        f"{limits[1]:.2f})" in finding.found
    )


# --- links --------------------------------------------------------------------------------------


class Known:
    """Items with difficulties and standard errors."""

    def __init__(self, difficulty, se):
        self.items = tuple(f"q{number}" for number in range(len(difficulty)))
        self.difficulty, self.se = np.array(difficulty), np.array(se)


def link_noise(seed, unit=1.0, errors=(0.1, 0.15)):
    """Link two calibrations of ten items with unequal errors, the second in another unit."""
    rng = np.random.default_rng(seed)
    truth = np.linspace(-0.62, 0.62, 10)
    sides = [Known(scale * truth + rng.normal(0, error, 10), np.full(10, error))
             for scale, error in zip((1.0, unit), errors, strict=True)]  # fmt: skip
    return link_calibrations(*sides)


def warned_share(words, runs, **settings):
    said = [" ".join(map(str, link_noise(seed, **settings).warnings)) for seed in range(runs)]
    return np.mean([words in one for one in said])


@pytest.mark.parametrize("errors", [(0.1, 0.15), (0.05, 0.3), (0.3, 0.05)])
def test_sound_links_are_warned_about_as_often_as_chance_may(errors):
    """400 links: the Monte Carlo standard error of 5% is 1.1%. The limits alone warn of a third."""
    assert 0.015 <= warned_share("times as much", 400, errors=errors) <= 0.07
    assert 0.015 <= warned_share("correlate by", 400, errors=errors) <= 0.07
    ratio = np.array([link_noise(seed, errors=errors).spread_ratio for seed in range(100)])
    assert np.mean((ratio < 0.9) | (ratio > 1.1)) > 0.2


def test_another_unit_is_still_warned_about():
    assert warned_share("times as much", 100, unit=0.5) >= 0.8
    found = link_noise(0, unit=0.4)
    assert any("beyond chance (p 0.0" in str(one) for one in found.warnings)


def test_items_that_scatter_beyond_their_errors_are_still_warned_about():
    first = Known(np.linspace(-0.6, 0.6, 12), np.full(12, 0.05))
    second = Known(first.difficulty + 0.25 * np.tile([1.0, -1.0, 0.4], 4), np.full(12, 0.05))
    assert any("correlate by" in str(one) for one in link_calibrations(first, second).warnings)


# --- dimensions, steps, Martin-Löf --------------------------------------------------------------


def test_an_eigenvalue_beyond_chance_is_never_called_sound(monkeypatch):
    answers = draw(300, 15, 9)
    estimate = discreet.fit(answers)
    study = diagnose(answers, estimate)
    found = study.dimensionality
    small = replace(found, eigenvalue=(found.limit[0] * 1.001, *found.eigenvalue[1:]),
                    p_value=(0.05, *found.p_value[1:]))  # fmt: skip
    assert small.eigenvalue[0] < 1.1 * small.expected[0]
    findings, fine = find_problems(estimate, replace(study, dimensionality=small))
    assert "dimensionality" not in fine
    (finding,) = [one for one in findings if "share more than the ability" in one.title]
    assert finding.severity is Severity.LOOK
    assert "beyond chance, but small" in finding.found


@pytest.mark.parametrize("items", [4, 5, 6])
def test_no_item_is_on_both_ends_of_a_contrast(items):
    rng = np.random.default_rng(items)
    ability = rng.normal(size=(500, 2))
    away = ability[:, np.arange(items) % 2] - np.linspace(-1, 1, items)
    answers = (rng.random(away.shape) < 1 / (1 + np.exp(-away))).astype(float)
    advice = by_name(check_model(answers))["dimensionality"].advice
    first, second = advice.removeprefix("Read what ").split(" have in common and how ")
    ends = first.split(", "), second.split(" differ from them")[0].split(", ")
    assert not set(ends[0]) & set(ends[1])
    assert all(ends)


def test_a_corrected_correlation_stays_between_minus_one_and_one():
    answers = draw_scale(300, 12, 10, turned=(1, 4, 7, 10))
    found = find_dimensions(answers, discreet.fit(answers), simulations=1)
    assert found.correlation == -1.0


def test_steps_that_need_partial_credit_are_not_said_to_hold():
    answers = draw_scale(800, 6, 11, distances=0.8)
    test = by_name(check_model(answers))["steps"]
    assert test.p_value < 0.01
    assert test.verdict == "partial credit needed"
    alike = by_name(check_model(draw_scale(800, 6, 12, distances=0.0)))["steps"]
    assert alike.p_value >= 0.01
    assert alike.verdict == "holds"


def test_martin_loefs_test_says_what_it_does_not_see():
    test = by_name(check_model(discreet.datasets.lsat()))["Martin-Löf"]
    assert test.verdict == "holds"
    assert "does not see two skills that easy and hard items ask for alike" in test.found


# --- causes first -------------------------------------------------------------------------------


def test_turned_items_come_first_and_what_they_explain_is_under_them():
    answers = draw_scale(300, 14, 13, turned=(1, 4, 8, 11))
    estimate = discreet.fit(answers)
    study = diagnose(answers, estimate)
    findings, _ = find_problems(estimate, study)
    assert findings[0].title.startswith("4 items run against the others")
    assert "--reverse " in findings[0].advice
    assert set(findings[0].advice.split("--reverse ")[1].split(")")[0].split(",")) == {
        *("q1", "q4", "q8", "q11")
    }
    below = [one.title for one in findings[0].consequences]
    assert "These items do not measure one thing" in below
    assert not any("measure one thing" in one.title for one in findings)
    assert judge(findings).startswith("Stop: 4 items run against the others")
    page = write_diagnosis(diagnose_test(estimate, study))
    assert page.index("4 items run against") < page.index("These items do not measure one thing")
    tests = check_model(answers, estimate).tests
    assert tests[0].name == "direction"
    assert by_name(check_model(answers, estimate))["dimensionality"].advice.startswith("First see")


def test_one_wrong_key_among_many_items_explains_nothing_else():
    rows = draw(500, 30, 14).to_array().astype(float)
    rows[:, 4] = 1 - rows[:, 4]
    rows[:, 9] = rows[:, 8]
    answers = discreet.Responses.from_array(rows)
    estimate = discreet.fit(answers)
    findings, _ = find_problems(estimate, diagnose(answers, estimate))
    assert all(not one.consequences for one in findings)
    assert any("depends on each other" in one.title for one in findings)


# --- few persons --------------------------------------------------------------------------------


def take_few(persons):
    """Return so many rows of six answers with right and wrong ones, none of an item all alike."""
    three = np.array([[1, 0, 1, 0, 1, 0], [0, 1, 1, 1, 0, 0], [1, 1, 0, 0, 0, 1]])
    rows = draw(400, 6, 15).to_array()
    rows = rows[(rows.sum(axis=1) > 0) & (rows.sum(axis=1) < 6)]
    return np.vstack([three, rows])[:persons]


@pytest.mark.parametrize("persons", [3, 12, 29])
def test_few_persons_are_described_and_nothing_is_tested(persons, tmp_path):
    place = tmp_path / "few.csv"
    with place.open("w", newline="") as file:
        names = [f"q{item}" for item in range(6)]
        csv.writer(file).writerows([names, *take_few(persons).tolist()])
    ended = run("check", place)
    assert ended.code == 0
    assert ended.out.startswith(f"A description of {persons} persons")
    document = run("check", place, "--json").document
    assert {test["verdict"] for test in document["tests"]} <= {"too few persons", "not tested"}
    assert document["notes"][0].startswith(f"A description of {persons} persons")
    found = check_model(place)
    assert found.summary().startswith("A description of")
    findings, fine = find_problems(found.estimate, found.study)
    assert findings[0].severity is Severity.NOTE
    assert judge(findings) == "What these answers say"
    assert fine == []
    page = write_diagnosis(diagnose_test(found.estimate, found.study))
    assert "Tests of the model" not in page
    assert 'class="alarm">A description' not in page
    assert "Checked, nothing found" not in page


def test_thirty_persons_are_enough_to_be_judged():
    found = check_model(take_few(30))
    assert not found.doubts
    assert "holds" in {test.verdict for test in found.tests}


# --- answers in categories ----------------------------------------------------------------------


def test_answers_in_categories_are_all_answers_in_python_and_in_files(tmp_path):
    answers = draw_scale(400, 4, 16)
    estimate = discreet.fit(answers)
    found = measure_fit(answers, estimate).categories
    rows = answers.to_array()
    extreme = (rows.sum(axis=1) == 0) | (rows.sum(axis=1) == 16)
    assert extreme.any()
    counts = [int((rows[:, k] == c).sum()) for k in range(4) for c in range(5)]
    inside = [int((rows[~extreme, k] == c).sum()) for k in range(4) for c in range(5)]
    assert found.answers.tolist() == counts
    assert found.answers_without_extremes.tolist() == inside
    assert found.share.tolist() == pytest.approx([count / 400 for count in counts])
    table = diagnose_test(estimate, diagnose(answers, estimate)).tables["categories"].columns
    assert table["answers"] == counts
    assert table["answers_without_extremes"] == inside


# --- standard errors of abilities ---------------------------------------------------------------


@pytest.mark.parametrize("items", [400, pytest.param(1000, marks=pytest.mark.slow)])
def test_too_small_errors_of_abilities_are_told_in_the_summary_and_the_report(items):
    answers = draw(60, items, 17, slopes=0.5, guess=0.25)
    estimate = discreet.fit(answers, method="refined")
    scores = discreet.score(answers, estimate)
    assert "The standard errors of abilities are too small" in scores.summary()
    assert [str(one.kind) for one in scores.warnings] == ["understated_errors"]
    assert scores.halves.times > 1.2
    study = diagnose(answers, estimate)
    findings, _ = find_problems(estimate, study)
    (finding,) = [one for one in findings if "standard errors of abilities" in one.title]
    assert finding.severity is Severity.SERIOUS
    assert "The standard errors of abilities are too small" in write_diagnosis(
        diagnose_test(estimate, study)
    )


@pytest.mark.parametrize("method", ["warm", "ml", "posterior"])
def test_guessing_is_seen_by_every_way_to_score(method):
    answers = draw(1000, 40, 18, guess=0.25)
    scores = discreet.score(answers, discreet.fit(answers, method="refined"), method=method)
    assert [str(one.kind) for one in scores.warnings] == ["distorted_scale"]
    assert "The scale of abilities is distorted" in scores.summary()
    assert scores.halves.z > 0


def test_rasch_answers_warn_of_nothing():
    warned = 0
    for seed in range(40):
        answers = draw(300, 12, 100 + seed)
        warned += bool(discreet.score(answers, discreet.fit(answers)).warnings)
    assert warned <= 2


def test_errors_of_a_poor_calibration_are_not_taken_for_guessing():
    """Difficulties from 25 persons, 2,000 persons scored, with and without the items' errors."""
    rng = np.random.default_rng(19)
    difficulty = rng.normal(size=20)

    def answer(persons):
        chance = 1 / (1 + np.exp(difficulty - rng.normal(size=(persons, 1))))
        return discreet.Responses.from_array((rng.random(chance.shape) < chance).astype(float))

    z = []
    for _ in range(20):
        known, new = discreet.fit(answer(25), method="refined"), answer(2000)
        exact = dict(zip(known.items, known.difficulty, strict=True))
        z.append([discreet.score(new, one).halves.z for one in (known, exact)])
    with_errors, without = np.std(z, axis=0)
    assert with_errors < 1.5
    assert without > 1.4 * with_errors


def test_the_test_of_halves_is_that_of_its_definition():
    """Unequal halves, steps and gaps: five easier and four harder items."""
    rng = np.random.default_rng(20)
    thresholds = [
        [-2.0],
        [-1.5, -0.5],
        [-0.8],
        [-0.4, 0.3, 0.5],
        [0.1, 0.3],
        [0.9],
        [1.2],
        [2.5],
        [0.4],
    ]
    ability = rng.normal(0, 1.5, 80)
    codes = np.stack(
        [(rng.random((80, 1)) > chances(ability, own).cumsum(axis=1)).sum(axis=1)
         for own in thresholds], axis=1)  # fmt: skip
    codes[rng.random(codes.shape) < 0.15] = -1
    padded = np.full((9, 3), np.nan)
    for row, own in enumerate(thresholds):
        padded[row, : len(own)] = own
    se = rng.uniform(0.05, 0.3, 9)
    found = measures.compare_halves(codes.astype(np.int8), padded, ability, se)
    location = np.array([np.mean(own) for own in thresholds])
    easier = location <= np.median(location)
    mean, variance = np.empty((2, 80, 9))
    for item, own in enumerate(thresholds):
        share, category = chances(ability, own), np.arange(len(own) + 1)
        mean[:, item] = share @ category
        variance[:, item] = share @ category**2 - mean[:, item] ** 2
    given = codes >= 0
    residual, variance = np.where(given, codes - mean, 0), np.where(given, variance, 0)

    def slope(shifted):
        one, two = shifted[:, easier].sum(axis=1), shifted[:, ~easier].sum(axis=1)
        return (one - own / both * (one + two)) @ away

    own, both = variance[:, easier].sum(axis=1), variance.sum(axis=1)
    weight = own * (both - own) / both
    away = ability - np.average(ability, weights=weight)
    moved = [slope(np.where(np.arange(9) == item, variance, 0)) for item in range(9)]
    spread = weight @ away**2 + np.square(moved) @ se**2
    assert found.z == pytest.approx(slope(residual) / np.sqrt(spread))
    one, two = residual[:, easier].sum(axis=1), residual[:, ~easier].sum(axis=1)
    kept = (own > 0) & (own < both)
    u = (one - own / both * (one + two))[kept]
    assert found.times == pytest.approx(np.sqrt(np.mean(u**2 / weight[kept])))


def test_few_items_or_persons_say_nothing_about_errors_of_abilities():
    rng = np.random.default_rng(21)
    code = rng.integers(0, 2, (100, 8)).astype(np.int8)
    ability, b, se = rng.normal(size=100), np.linspace(-1, 1, 8)[:, None], np.zeros(8)
    assert measures.compare_halves(code, b, ability, se) is not None
    assert measures.compare_halves(code[:, :7], b[:7], ability, se[:7]) is None
    assert measures.compare_halves(code[:29], b, ability[:29], se) is None


# --- items that differ between groups -----------------------------------------------------------


def test_what_ends_where_items_are_split_by_group_is_part_of_that_finding():
    """Three of 12 items are 2 logits harder for half of 600 persons, and so share more."""
    rng = np.random.default_rng(8)
    focal = np.arange(600) % 2 == 1
    away = rng.normal(size=(600, 1)) - np.linspace(-1.5, 1.5, 12)
    away[:, :3] -= 2.0 * focal[:, None]
    cells = (rng.random(away.shape) < 1 / (1 + np.exp(-away))).astype(float)
    plain = discreet.Responses.from_array(cells)
    answers = discreet.Responses(
        plain.items, None, plain.store, groups={"sex": np.where(focal, "f", "m")}
    )
    found = check_model(answers)
    assert set(found.study.resolved.items) == {"0", "1", "2"}
    assert {"0:f", "0:m"} <= set(found.study.resolved.estimate.items)
    findings, _ = find_problems(found.estimate, found.study)
    (groups,) = [one for one in findings if "work differently in groups" in one.title]
    ended = {one.title for one in groups.consequences}
    assert any("depends on each other" in title for title in ended)
    assert any("answered unexpectedly" in title for title in ended)
    assert not ended & {one.title for one in findings}
    test = by_name(found)["person fit"]
    assert test.verdict == "holds"
    assert test.found.startswith("With ")
    left = found.study.resolved.study.small_chances
    assert test.statistic == left.share <= left.limit < found.study.small_chances.share
    assert read_value(write_value(found.study)).resolved.study.small_chances == left
