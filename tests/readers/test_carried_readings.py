"""A calibration keeps how its answers were read; new answers are read so, or refused."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import discreet
from commandline import discreet as type_line
from discreet import Responses, analysis, read_responses
from discreet.coding.agreement import join_readings
from discreet.coding.reading import Reading
from discreet.errors import AssumedReading, BadResponses, BadUsage
from discreet.items.tables import tabulate_categories
from refusals import refused

ITEMS = [f"A{number}" for number in range(1, 6)]
REVERSED = {"reverse": ["A1"]}
MERGED = {"merge": dict.fromkeys(ITEMS, "2+3")}
TYPED = {
    "reverse": ["--reverse", "A1"],
    "merge": [word for item in ITEMS for word in ("--merge", f"{item}:2+3")],
}


def make_table() -> pd.DataFrame:
    """A questionnaire answered from 1 to 6, whose item A1 is worded the other way round."""
    rng = np.random.default_rng(5)
    codes = discreet.simulate(500, 5, steps=5, rng=rng).responses.to_array() + 1
    codes[:, 0] = 7 - codes[:, 0]
    table = pd.DataFrame(codes, columns=ITEMS)
    table.insert(0, "id", [f"p{number}" for number in range(len(table))])
    return table


TABLE = make_table()
USED = TABLE[ITEMS]
CASES = {
    "reverse forgotten": (REVERSED, TABLE.iloc[:40], {}),
    "merge forgotten": (REVERSED | MERGED, TABLE[(USED != 6).all(axis=1)].iloc[:30], {}),
    "reverse typed, nobody in the top category": (
        REVERSED,
        TABLE[(USED != 6).all(axis=1)],
        {"reverse": ["A1"]},
    ),
    "nobody in the lowest category": (REVERSED, TABLE[(USED != 1).all(axis=1)], {}),
    "one person": (REVERSED | MERGED, TABLE.iloc[[3]], {}),
    "missing code": ({"missing": 6, **REVERSED}, TABLE.iloc[:40], {}),
}
"""How the calibration was read; new answers of the same persons; what is stated about them."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("first.csv", index=False)
    return tmp_path


def abilities(scores):
    return dict(zip(scores.persons, scores.ability.tolist(), strict=True))


def calibrate(words):
    """A calibration, and the abilities of its persons from answers that are read as they were."""
    answers = read_responses("first.csv", **words)
    estimate = discreet.fit("first.csv", **words)
    return estimate, abilities(discreet.score(answers, estimate))


def assert_same(scores, known):
    """Everybody has the ability that the calibration's own answers give, to the last digit."""
    found = abilities(scores)
    assert found
    assert {person: known[person] for person in found} == pytest.approx(found, abs=0, nan_ok=True)


@pytest.mark.filterwarnings("ignore::discreet.errors.AssumedReading")
@pytest.mark.parametrize("case", CASES)
def test_new_answers_are_read_as_those_of_the_calibration(folder, case):
    words, new, stated = CASES[case]
    estimate, known = calibrate(words)
    new.to_csv("new.csv", index=False)
    estimate.save("estimate.json")
    for calibration in (estimate, discreet.load("estimate.json")):
        for source in ("new.csv", new.reset_index(drop=True)):
            assert_same(discreet.score(source, calibration, **stated), known)
    read = read_responses("new.csv", person="id", **estimate.reading.stated)
    assert_same(discreet.score(read, estimate), known)


@pytest.mark.parametrize("case", CASES)
def test_the_command_line_reads_new_answers_as_those_of_the_calibration(folder, case):
    words, new, stated = CASES[case]
    known = calibrate(words)[1]
    new.to_csv("new.csv", index=False)
    typed = [word for name in words if name in TYPED for word in TYPED[name]]
    typed += ["--missing", "6"] if "missing" in words else []
    assert type_line("fit", "first.csv", *typed, "--out", "fitted").code == 0
    options = [word for name in stated for word in TYPED[name]]
    ended = type_line("score", "new.csv", "--with", "fitted", *options, "--json")
    assert ended.code == 0, ended.err
    rows = {row["person"]: row["ability"] for row in ended.document["persons"]}
    assert rows == pytest.approx({person: known[person] for person in rows}, abs=0)
    assert len(rows) == len(new)
    (line,) = [one for one in ended.err.splitlines() if "as those of the calibration" in one]
    assert ("reverse=A1" in line) == ("reverse" in words and "reverse" not in stated)
    assert ("merge=" in line) == ("merge" in words)


def test_it_is_said_in_one_line_unless_it_is_stated(folder):
    estimate = discreet.fit("first.csv", reverse="A1", missing=6)
    with pytest.warns(AssumedReading) as told:
        discreet.score("first.csv", estimate)
    assert [str(one.message) for one in told] == [
        "The answers are read as those of the calibration were: missing=6; lowest=1; reverse=A1. "
        "Stating it ends this message."
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        discreet.score("first.csv", estimate, reverse="A1", missing=6, lowest=1)


@pytest.mark.filterwarnings("ignore::discreet.errors.AssumedReading")
@pytest.mark.parametrize(
    ("stated", "code", "facts"),
    [
        (
            {"reverse": ["A2"]},
            "states_answers_calibration_read",
            {
                "name": "reverse",
                "name_2": "reverse",
                "theirs": "not turned round",
                "where": "item 'A1'",
                "ours": "turned round",
            },
        ),
        (
            {"reverse": []},
            "states_answers_calibration_read",
            {
                "name": "reverse",
                "name_2": "reverse",
                "theirs": "not turned round",
                "where": "item 'A1'",
                "ours": "turned round",
            },
        ),
        (
            {"merge": {"A2": "1+2"}},
            "states_answers_calibration_read",
            {
                "name": "merge",
                "name_2": "merge",
                "theirs": "1+2",
                "where": "item 'A2'",
                "ours": "nothing",
            },
        ),
        (
            {"lowest": 2},
            "states_answers_calibration_read",
            {"name": "lowest", "name_2": "lowest", "theirs": "2", "ours": "1"},
        ),
        (
            {"steps": 6},
            "states_answers_calibration_read",
            {"name": "steps", "name_2": "steps", "theirs": "6", "ours": "5"},
        ),
    ],
)
def test_what_contradicts_the_calibration_is_refused_with_both(folder, stated, code, facts):
    estimate = discreet.fit("first.csv", reverse="A1")
    for act in (
        lambda: discreet.score("first.csv", estimate, **stated),
        lambda: discreet.score(TABLE, estimate, **stated),
        lambda: discreet.fit("first.csv", anchors=estimate, **stated),
        lambda: analysis.measure_fit(TABLE, estimate, **stated),
    ):
        with refused(BadUsage, code, **facts):
            act()


def test_a_key_is_carried_and_never_repeated(folder):
    chosen = np.random.default_rng(2).choice(list("ABC"), (60, 3))
    letters = pd.DataFrame(chosen, columns=["Q1", "Q2", "Q3"])
    estimate = discreet.fit(letters, key={"Q1": "A", "Q2": "B", "Q3": "C"})
    with pytest.warns(AssumedReading, match="were: a key") as told:
        scores = discreet.score(letters.iloc[:3], estimate)
    assert "B" not in str(told[0].message)
    assert scores.score.tolist() == (chosen[:3] == ["A", "B", "C"]).sum(axis=1).tolist()
    with refused(BadUsage, "states_answers_calibration_read", name="key"):
        discreet.score(letters, estimate, key={"Q1": "B", "Q2": "B", "Q3": "C"})
    scored = Responses.from_array(np.array([[1, 0, 1]]), items=["Q1", "Q2", "Q3"])
    assert discreet.score(scored, estimate).score.tolist() == [2]  # scored elsewhere, by its key


def test_answers_that_were_read_are_compared_and_never_recoded(folder):
    estimate = discreet.fit("first.csv", reverse="A1")
    plain = read_responses("first.csv", reverse=[])
    low = read_responses(TABLE[(USED != 6).all(axis=1)].pipe(write), reverse="A1")
    for answers in (plain, low):
        for act in (
            lambda answers=answers: discreet.score(answers, estimate),
            lambda answers=answers: discreet.fit(answers, anchors=estimate),
            lambda answers=answers: analysis.measure_fit(answers, estimate),
        ):
            with refused(BadUsage, "answers_item_read_one", item="A1"):
                act()
    stated = read_responses("low.csv", reverse="A1", steps=5)
    assert_same(discreet.score(stated, estimate), calibrate(REVERSED)[1])
    # A table of thresholds says nothing about how answers were read.
    table = estimate.thresholds_to_dataframe()
    assert discreet.score(plain, table).ability[0] != discreet.score(stated, estimate).ability[0]


def write(table):
    table.to_csv("low.csv", index=False)
    return "low.csv"


def test_a_value_that_the_calibration_does_not_know_is_refused(folder):
    estimate = discreet.fit(write(TABLE[(USED != 6).all(axis=1)]), reverse="A1")
    with refused(BadResponses, "bad_scale", where="first.csv, line 19", value="'6'"):
        discreet.score("first.csv", estimate, reverse="A1", lowest=1)


@pytest.mark.filterwarnings("ignore::discreet.errors.AssumedReading")
def test_anchors_apply_the_reading_of_their_calibration(folder):
    estimate = discreet.fit("first.csv", **REVERSED)
    held = discreet.fit(TABLE.iloc[:200], anchors=estimate)
    stated = discreet.fit(TABLE.iloc[:200], anchors=estimate.thresholds_to_dataframe(), **REVERSED)
    np.testing.assert_array_equal(held.displacement, stated.displacement)
    assert held.reading == estimate.reading
    estimate.save("estimate.json")
    ended = type_line("fit", "first.csv", "--anchors", "estimate.json", "--json")
    assert ended.code == 0
    moved = [row["displacement"] for row in ended.document["anchors"]]
    assert np.abs(moved).max() < 0.3


@pytest.mark.filterwarnings("ignore::discreet.errors.AssumedReading")
def test_a_check_reads_as_the_calibration_and_holds_its_difficulties(folder):
    estimate = discreet.fit("first.csv", **REVERSED)
    estimate.save("estimate.json")
    discreet.write_bank("bank.csv", discreet.create_bank(estimate, scale="s", source="one"))
    fewer = TABLE.iloc[:200].drop(columns="A3")
    write(fewer)
    stated = read_responses("low.csv", **REVERSED, steps=5)
    held = analysis.check_model(stated, discreet.fit(stated, anchors=estimate))
    found = analysis.check_model("low.csv", anchors=estimate)
    assert found.to_dict() == held.to_dict()
    np.testing.assert_array_equal(found.estimate.displacement, held.estimate.displacement)
    for calibration in ("estimate.json", "bank.csv"):
        ended = type_line("check", "low.csv", "--with", calibration, "--json")
        assert ended.code == 0, ended.err
        rows = ended.document["anchors"]
        assert [row["displacement"] for row in rows] == found.estimate.displacement.tolist()
        assert [row["statistic"] for row in ended.document["tests"]] == [
            None if one.statistic is None else pytest.approx(one.statistic, abs=0)
            for one in held.tests
        ]
        (line,) = [one for one in ended.err.splitlines() if "as those of the calibration" in one]
        assert "reverse=A1" in line
    shown = type_line("check", "low.csv", "--with", "estimate.json")
    assert "Question" not in shown.out
    assert "how far each would move" in shown.out
    ended = type_line("check", "low.csv", "--with", "estimate.json", "--reverse", "A2")
    assert ended.code != 0
    assert "of the calibration were read with turned round" in ended.err


def test_a_calibration_of_other_items_is_no_calibration_of_these_answers(folder):
    answers = read_responses("first.csv", **REVERSED)
    estimate = discreet.fit(answers)
    for arguments in ({"estimate": discreet.fit(answers.select(ITEMS[:4]))},
                      {"estimate": estimate, "anchors": estimate}):  # fmt: skip
        with refused(BadUsage, "estimate_calibration_these_answers"):
            analysis.check_model(answers, **arguments)


def test_links_and_drift_refuse_calibrations_that_were_read_differently(folder):
    turned, plain = discreet.fit("first.csv", **REVERSED), discreet.fit("first.csv", reverse=[])
    other = discreet.fit("first.csv", reverse="A1", merge=dict.fromkeys(ITEMS, "4+5"))
    merged = discreet.fit("first.csv", reverse="A1", **MERGED)
    for pair in ((turned, plain), (merged, other)):
        for compare in (discreet.link_calibrations, discreet.find_drift):
            with refused(BadUsage, "answers_item_read_one"):
                compare(*pair)
    with refused(BadUsage, "answers_item_read_one", item="A1"):
        discreet.find_drift(read_responses("first.csv", **REVERSED), read_responses("first.csv"))
    assert discreet.link_calibrations(turned, turned).shift == 0


@pytest.mark.filterwarnings("ignore::discreet.errors.AssumedReading")
def test_a_link_by_persons_reads_each_side_as_its_calibration(folder):
    for name in ("a", "b"):
        discreet.fit("first.csv", **REVERSED).save(f"{name}.json")
    both = ("--answers-a", "first.csv", "--answers-b", "first.csv")
    ended = type_line("link", "a.json", "b.json", *both, "--json")
    assert ended.code == 0, ended.err
    assert ended.document["shift"] == 0


@pytest.mark.filterwarnings("ignore::discreet.errors.AssumedReading")
def test_a_bank_keeps_how_its_answers_were_read(folder):
    estimate, known = calibrate(REVERSED | MERGED)
    bank = discreet.create_bank(estimate, scale="s", source="one")
    discreet.write_bank("bank.csv", bank)
    again = discreet.read_bank("bank.csv")
    assert again.reading == bank.reading == estimate.reading
    assert_same(discreet.score(TABLE.iloc[:30], again), known)
    more = TABLE.rename(columns={"A5": "B5"})
    other = discreet.fit(more, reverse="A1", merge=dict.fromkeys(ITEMS[:4], "4+5"), keep="B5")
    with refused(BadUsage, "answers_item_read_one", name="merge"):
        discreet.grow_bank(again, other, source="two")
    other = discreet.fit(
        more, reverse=["A1", "B5"], merge=dict.fromkeys(ITEMS[:4], "2+3") | {"B5": "1+2"}
    )
    grown = discreet.grow_bank(again, other, source="two")[0]
    assert grown.reading.reverse == ("A1", "B5")
    assert grown.reading.merge["B5"] == ((1, 2),)
    first, rows = (folder / "bank.csv").read_text().split("\n", 1)
    head = json.loads(first.removeprefix("# "))
    head["reading"] = {"Reading": {"reverse": {"float": "nan"}}}
    (folder / "bank.csv").write_text(f"# {json.dumps(head)}\n{rows}")
    with refused(BadResponses, "bank_reading_damaged_read_reading"):
        discreet.read_bank("bank.csv")


def test_readings_are_joined_by_item():
    one = Reading(reverse="a", steps={"a": 2}, lowest=1, missing=9)
    two = Reading(reverse="b", steps={"b": 3}, lowest=1, missing=8)
    assert join_readings([one, two]).stated == {
        "steps": {"b": 3, "a": 2},
        "lowest": 1,
        "reverse": ("a", "b"),
    }
    assert join_readings([one, None]) is None


def test_a_release_does_not_say_how_answers_were_read_beyond_what_it_is_told(folder):
    answers = Responses.from_array(USED.to_numpy() >= 4, items=ITEMS)
    assert discreet.release(answers, epsilon=1.0, items=ITEMS).estimate.reading is None


def test_columns_that_are_no_items_of_the_calibration_are_left_out_and_named(tmp_path):
    """The table of the calibration is scored as it lies, without saying again what is no item."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.integers(0, 2, (90, 6)), columns=[f"Q{k}" for k in range(1, 7)])
    table["w"] = 1.0 + np.arange(90) % 3
    table.to_csv(tmp_path / "answers.csv", index=False)
    with refused(BadResponses, "not_clear_refuse_questions"):
        discreet.fit(tmp_path / "answers.csv")
    type_line("fit", tmp_path / "answers.csv", "--ignore", "w", "--out", tmp_path / "out")
    estimate = discreet.load(tmp_path / "out")
    expected = discreet.score(table.drop(columns="w"), estimate).ability
    for source in (tmp_path / "answers.csv", table):
        with pytest.warns(AssumedReading) as told:
            scores = discreet.score(source, estimate)
        assert any("w left out" in str(one.message) for one in told)
        assert np.array_equal(scores.ability, expected)
    made = type_line("score", tmp_path / "answers.csv", "--with", tmp_path / "out")
    assert made.code == 0, made.err
    assert "w left out" in made.err
    few = table.rename(columns={f"Q{k}": f"X{k}" for k in range(1, 5)})
    with refused(BadResponses, "not_clear_refuse_questions"):
        discreet.score(few, estimate)  # most of its items are not there: ask


@pytest.mark.filterwarnings("ignore::discreet.errors.AssumedReading")
def test_person_scores_keep_how_their_answers_were_read(folder):
    estimate = discreet.fit("first.csv", **REVERSED)
    scores = discreet.score(write(TABLE.iloc[:20]), estimate)
    assert scores.reading == estimate.reading
    scores.save("scores.json")
    assert discreet.load("scores.json") == scores


@pytest.mark.filterwarnings("ignore::discreet.errors.AssumedReading")
def test_reports_say_how_answers_were_read_and_show_categories_as_the_file_has_them(folder):
    texts = TABLE.assign(**{one: TABLE[one].map(dict(enumerate("abcdef", 1))) for one in ITEMS})
    for table, words, shown in (
        (TABLE, REVERSED, [6, 5, 4, 3, 2, 1]),
        (TABLE, MERGED, [1, "2+3", 4, 5, 6]),
        (texts, {"reverse": ["A2"], "categories": [*"abcdef"]}, ["f", "e", "d", "c", "b", "a"]),
    ):
        item = (words.get("reverse") or ["A1"])[0]
        write(table)
        typed = ["--reverse", "A1"] if words is REVERSED else []
        answers = read_responses("low.csv", person="id", **words)
        check = analysis.check_model(answers)
        rows = tabulate_categories(check.estimate, check.study).columns
        own = [
            code for name, code in zip(rows["item"], rows["category"], strict=True) if name == item
        ]
        assert own == shown
        if typed:
            assert type_line("fit", "low.csv", *typed, "--out", "out").code == 0
            remarks = pd.read_csv("out/items.confidential.csv").set_index("item")["remarks"]
            assert "reversed" in remarks["A1"]
            assert "reversed" not in str(remarks["A2"])
            assert type_line("result", "report", "out", "--tables", "markdown").code == 0
            methods = (folder / "out" / "tables.confidential.md").read_text()
            assert (
                "The lowest category, 1, was taken off every answer. A1 was turned round."
                in methods
            )


@pytest.mark.filterwarnings("ignore::discreet.errors.AssumedReading")
def test_persons_without_ids_are_rows_counted_from_one_in_every_file(folder):
    USED.iloc[:40].to_csv("rows.csv", index=False)
    assert type_line("fit", "rows.csv", "--reverse", "A1", "--out", "out").code == 0
    scored = type_line("score", "rows.csv", "--with", "out", "--json").document["persons"]
    rows = [str(row) for row in range(1, 41)]
    assert [one["person"] for one in scored] == rows
    for table in ("persons", "unexpected"):
        listed = pd.read_csv(f"out/{table}.confidential.csv", dtype=str)["person"]
        assert {*listed} <= {*rows}
    assert pd.read_csv("out/persons.confidential.csv", dtype=str)["person"].tolist() == rows
