"""Items that belong together, as one item each; parts of a test that measure the same."""

import csv

import numpy as np
import pytest

import discreet
from commandline import discreet as run
from discreet.analysis import combine_testlets, measure_testlets, run_martin_loef
from discreet.answers.pack import store_codes
from discreet.errors import BadUsage
from refusals import refused
from stepped import chances


def draw_passages(persons, passages, size, spread, seed, steps=1):
    """Return answers to items in passages, each with an ability of its own beside the common."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(size=persons)
    codes = []
    for _ in range(passages):
        own = ability + spread * rng.normal(size=persons)
        for item in range(size):
            middle = np.linspace(-0.8, 0.8, size)[item]
            thresholds = middle + 0.7 * (np.arange(steps) - (steps - 1) / 2)
            share = chances(own, thresholds).cumsum(axis=1)[:, :-1]
            codes.append((rng.random((persons, 1)) > share).sum(axis=1))
    names = [f"p{p}i{i}" for p in range(passages) for i in range(size)]
    store = store_codes(np.stack(codes, axis=1), [steps] * len(names))
    return discreet.Responses.from_store(store, names)


def passage_of(answers):
    return {item: item[:2] for item in answers.items}


def test_sums_are_items_with_steps_and_items_without_a_testlet_stay():
    rows = np.array([[1, 0, 2, 1], [0, 1, 1, 0], [1, -1, 0, 1], [-1, -1, 2, 0]])
    answers = discreet.Responses.from_store(store_codes(rows, [1, 1, 2, 1]), list("abcd"))
    combined = combine_testlets(answers, {"a": "text", "c": "text"})
    assert combined.items == ("text", "b", "d")
    assert combined.steps == (3, 1, 1)
    assert combined.to_array().tolist() == [[3, 0, 1], [1, 1, 0], [1, -1, 1], [-1, -1, 0]]


@pytest.mark.parametrize("steps", [1, 2])
def test_reliability_is_overstated_where_passages_share_more_than_the_ability(steps):
    dependent = draw_passages(800, 5, 4, 1.2, 1, steps)
    sound = draw_passages(800, 5, 4, 0.0, 2, steps)
    found, fine = (measure_testlets(one, passage_of(one)) for one in (dependent, sound))
    assert found.items == (20, 5)
    assert found.overstated > 0.05
    assert abs(fine.overstated) < 0.03
    assert found.alpha[0] - found.alpha[1] > 0.05
    assert found.estimate.steps == (4 * steps,) * 5


def test_the_reliability_of_testlets_is_nearer_to_the_truth():
    """True: the squared correlation of estimated with true abilities, from passages redrawn."""
    rng = np.random.default_rng(3)
    ability = rng.normal(size=1500)
    codes = []
    for _ in range(5):
        own = ability + 1.0 * rng.normal(size=1500)
        codes += [(rng.random(1500) < 1 / (1 + np.exp(b - own))) for b in (-0.6, 0.0, 0.6)]
    answers = discreet.Responses.from_array(np.stack(codes, axis=1).astype(float))
    found = measure_testlets(answers, {str(item): f"p{item // 3}" for item in range(15)})
    score = answers.to_array().sum(axis=1)
    truth = np.corrcoef(score, ability)[0, 1] ** 2
    assert abs(found.reliability[1] - truth) < abs(found.reliability[0] - truth)


def test_a_column_of_a_long_table_names_the_testlets(tmp_path):
    answers = draw_passages(60, 3, 2, 0.5, 4)
    path = tmp_path / "long.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["person", "item", "response", "Passage"])
        for person, row in enumerate(answers.to_array()):
            for item, code in zip(answers.items, row, strict=True):
                writer.writerow([person, item, code, item[:2]])
    by_column = combine_testlets(path, "passage", ignore=["Passage"])
    assert set(by_column.items) == {"p0", "p1", "p2"}
    by_name = combine_testlets(answers, passage_of(answers)).select(by_column.items)
    assert by_column.to_array().sum(axis=0).tolist() == by_name.to_array().sum(axis=0).tolist()


def test_partly_answered_testlets_are_left_out_and_counted():
    rows = draw_passages(200, 3, 2, 0.0, 5).to_array().astype(float)
    rows[:7, 1] = np.nan
    answers = discreet.Responses.from_array(rows)
    found = measure_testlets(answers, {"0": "a", "1": "a", "2": "b", "3": "b"})
    assert "7 answers to testlets that a person answered in part" in str(found.warnings[0])


@pytest.mark.parametrize(
    ("testlet", "code", "facts"),
    [
        ({"x": "a"}, "answers_no_item_testlets", {"unknown": "x"}),
        ({"p0i0": "p1i0"}, "name_item_testlet_rename", {}),
        ("passage", "answers_read_do_not", {}),
    ],
)
def test_wrong_testlets_are_refused(testlet, code, facts):
    answers = draw_passages(20, 2, 2, 0.0, 6)
    with refused(BadUsage, code, **facts):
        combine_testlets(answers, testlet)


def test_one_testlet_of_everything_and_an_item_in_two_are_refused(tmp_path):
    answers = draw_passages(20, 2, 2, 0.0, 6)
    with refused(BadUsage, "testlets_leave_items_two", n_names="1"):
        combine_testlets(answers, dict.fromkeys(answers.items, "all"))
    path = tmp_path / "long.csv"
    path.write_text("person,item,response,text\n1,a,1,x\n1,b,0,x\n2,a,0,y\n2,b,1,x\n")
    with refused(BadUsage, "item_belongs_two_testlets", name="a"):
        combine_testlets(path, "text", ignore=["text"])


def test_the_command_prints_both_reliabilities(tmp_path):
    answers = draw_passages(150, 4, 3, 1.0, 7)
    path = tmp_path / "wide.csv"
    lines = [",".join(answers.items)]
    lines += [",".join(map(str, row)) for row in answers.to_array().tolist()]
    path.write_text("\n".join(lines))
    testlets = tmp_path / "testlets.csv"
    testlets.write_text("item,testlet\n" + "".join(f"{i},{i[:2]}\n" for i in answers.items))
    result = run("table", "testlets", path, "--testlets", testlets, "--json").document
    assert result["overstated"] > 0
    assert [row["items"] for row in result["rows"]] == [12, 4]
    assert (
        "overstate the reliability by" in run("table", "testlets", path, "--testlets", testlets).out
    )


# --- Martin-Löf's test ---------------------------------------------------------------------------


def reference_martin_loef(codes, parts):
    """Christensen et al. (2002), from fits of the parts and tables of scores, with loops."""

    def likelihood(columns):
        most = codes[:, columns].max(axis=0).tolist()
        answers = discreet.Responses.from_store(store_codes(codes[:, columns], most))
        estimate = discreet.fit(answers, method="conditional")
        total = 0.0
        for row in codes[:, columns]:
            polynomial, own = np.ones(1), 1.0
            for thresholds, code in zip(estimate.thresholds, row, strict=True):
                steps = thresholds[~np.isnan(thresholds)]
                weight = np.exp(-np.concatenate([[0.0], np.cumsum(steps)]))
                polynomial = np.convolve(polynomial, weight)
                own *= weight[code]
            total += np.log(own / polynomial[row.sum()])
        return total

    def entropy(keys):
        counts = {key: keys.count(key) for key in set(keys)}
        return sum(count * np.log(count) for count in counts.values())

    scores = [tuple(int(row[part].sum()) for part in parts) for row in codes]
    gain = sum(likelihood(part) for part in parts) - likelihood([c for part in parts for c in part])
    return 2 * (gain + entropy(scores) - entropy([sum(score) for score in scores]))


@pytest.mark.parametrize(
    ("steps", "parts"),
    [
        ((1, 1, 1, 1, 1), ([0, 1], [2, 3, 4])),
        ((2, 1, 3, 2, 1), ([0, 4], [1, 2, 3])),
        ((2, 1, 1, 2, 1, 1), ([0, 1], [2, 3], [4, 5])),
    ],
)
def test_stated_parts_of_uneven_steps_are_tested_as_the_formula_says(steps, parts):
    rng = np.random.default_rng(8)
    ability = rng.normal(size=400)
    codes = np.stack(
        [
            (rng.random((400, 1)) > chances(ability, np.linspace(-0.6, 0.6, most) + shift)
             .cumsum(axis=1)[:, :-1]).sum(axis=1)
            for most, shift in zip(steps, np.linspace(-0.5, 0.5, len(steps)), strict=True)
        ],
        axis=1,
    )  # fmt: skip
    answers = discreet.Responses.from_store(store_codes(codes, steps))
    split = {str(item): f"part {number}" for number, part in enumerate(parts) for item in part}
    found = run_martin_loef(answers, split)
    assert found.statistic == pytest.approx(reference_martin_loef(codes, parts), rel=1e-6)
    highest = [sum(steps[item] for item in part) for part in parts]
    degrees = np.prod([score + 1 for score in highest]) - len(parts) - sum(highest)
    assert found.degrees == degrees
    if len(parts) == 2:
        assert degrees == highest[0] * highest[1] - 1
    assert found.part == tuple(f"part {n}" for n, part in enumerate(parts) for _ in part)


def test_two_abilities_are_found_with_steps_by_the_stated_parts():
    rng = np.random.default_rng(9)
    first, second = rng.normal(size=(2, 600))
    codes = np.stack(
        [
            (rng.random((600, 1)) > chances(theta, [-0.4, 0.4]).cumsum(axis=1)[:, :-1]).sum(axis=1)
            for theta in (first, first, first, second, second, second)
        ],
        axis=1,
    )
    answers = discreet.Responses.from_store(store_codes(codes, [2] * 6))
    assert run_martin_loef(answers, ["0", "1", "2"]).p_value < 1e-6
    mixed = run_martin_loef(answers, {"0": "a", "3": "a", "1": "b", "4": "b"})
    assert mixed.excluded == ("2", "5")
