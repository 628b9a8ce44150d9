"""What was chosen is kept beside the scores, and says which wrong options attract whom."""

import pickle

import numpy as np
import pandas as pd
import pyreadstat
import pytest

from commandline import discreet
from discreet import Responses, fit, read_responses, score, simulate
from discreet.analysis import analyse_distractors
from discreet.errors import BadUsage
from discreet.figures import option_plot
from discreet.items.distractors import option_map
from discreet.items.study import diagnose
from discreet.report.calibration import read_document
from refusals import refused

KEY = "ABCDABCDAB"
TRUE = simulate(persons=500, items=10, rng=np.random.default_rng(11))


def choose(rng, right, answers=None):
    """Turn scores into letters: the key's where right, another one at random where wrong."""
    answers = TRUE.responses.to_array() if answers is None else answers
    letters = np.array(list("ABCD"))
    place = np.array(["ABCD".index(letter) for letter in right])
    wrong = (place + rng.integers(1, 4, answers.shape)) % 4
    return letters[np.where(answers == 1, place, wrong)]


@pytest.fixture
def letters():
    return choose(np.random.default_rng(12), KEY)


def frame_of(letters):
    names = [f"Q{number + 1}" for number in range(letters.shape[1])]
    frame = pd.DataFrame(letters, columns=names)
    frame.insert(0, "id", [f"p{row}" for row in range(len(frame))])
    return frame


def spell_out(choices):
    """Return what was chosen as text, None where nothing was."""
    return [
        [
            None if code < 0 else options[code]
            for code, options in zip(row, choices.options, strict=True)
        ]
        for row in choices.chosen
    ]


def test_letters_are_kept_from_wide_and_long_files_and_frames(tmp_path, letters):
    wide = frame_of(letters)
    wide.to_csv(tmp_path / "wide.csv", index=False)
    long = wide.melt("id", var_name="item", value_name="response").sample(frac=1, random_state=1)
    long.to_csv(tmp_path / "long.csv", index=False)
    key = dict(zip(wide.columns[1:], KEY, strict=True))
    for answers in (
        read_responses(tmp_path / "wide.csv", key=KEY),
        Responses.from_dataframe(wide, key=KEY),
        read_responses(tmp_path / "long.csv", key=key),
    ):
        found = pd.DataFrame(spell_out(answers.choices), columns=answers.choices.items)
        found.insert(0, "id", answers.persons)
        found = found.set_index("id").loc[wide["id"], list(wide.columns[1:])].reset_index()
        assert found.equals(wide)
        assert [options[flags.index(True)] for options, flags in
                zip(answers.choices.options, answers.choices.right, strict=True)] == [
            key[name] for name in answers.choices.items]  # fmt: skip


def test_choices_follow_selection_and_pickling_and_are_absent_without_a_key(letters):
    frame = frame_of(letters)
    answers = Responses.from_dataframe(frame, key=KEY)
    part = answers.select(["Q3", "Q1"]).choices
    assert part.items == ("Q3", "Q1")
    assert [row[0] for row in spell_out(part)] == frame["Q3"].tolist()
    again = pickle.loads(pickle.dumps(answers))  # noqa: S301 (our own)
    assert (again.choices.chosen == answers.choices.chosen).all()
    assert TRUE.responses.choices is None
    with refused(BadUsage, "these_answers_read_without"):
        analyse_distractors(TRUE.responses)


@pytest.mark.parametrize(("repeats", "kept"), [("first", ["A", "C"]), ("last", ["B", "C"])])
def test_of_repeated_answers_the_choice_is_the_one_that_counts(tmp_path, repeats, kept):
    path = tmp_path / "a.csv"
    path.write_text("person,item,response\nx,Q1,A\nx,Q2,C\nx,Q1,\nx,Q1,B\ny,Q1,A\ny,Q2,D\n")
    answers = read_responses(path, key={"Q1": "A", "Q2": "C"}, repeats=repeats)
    assert spell_out(answers.choices)[0] == kept
    assert answers.to_array()[0].tolist() == [int(kept[0] == "A"), 1]


def test_blanks_codes_case_and_numbers_are_read_as_in_answers(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("Q1,Q2\na,2\nA ,1\n,10\n9,2.0\n")
    choices = read_responses(path, key={"Q1": "A", "Q2": [2, 3]}, missing={"Q1": 9}).choices
    assert spell_out(choices) == [["A", "2"], ["A", "1"], [None, "10"], [None, "2"]]
    assert choices.options == (("A",), ("1", "2", "3", "10"))
    assert choices.right == ((True,), (False, True, True, False))


def test_labels_of_a_statistical_file_name_the_options(tmp_path):
    frame = pd.DataFrame({"Q1": [1.0, 2.0, 1.0], "Q2": [1.0, 1.0, 2.0]})
    labels = {"Q1": {1.0: "Rome", 2.0: "Paris"}}
    pyreadstat.write_sav(frame, str(tmp_path / "a.sav"), variable_value_labels=labels)
    choices = read_responses(tmp_path / "a.sav", key={"Q1": "Rome", "Q2": 1}).choices
    assert choices.options == (("Paris", "Rome"), ("1", "2"))


def test_shares_and_abilities_are_those_of_the_choosers(letters):
    answers = Responses.from_dataframe(frame_of(letters), key=KEY)
    estimate = fit(answers)
    found = analyse_distractors(answers, estimate)
    ability = score(answers, estimate).ability
    for row, (item, option) in enumerate(zip(found.item, found.option, strict=True)):
        took = letters[:, int(item[1:]) - 1] == option
        assert found.chosen[row] == took.sum()
        assert found.share[row] == pytest.approx(took.mean())
        assert found.ability[row] == pytest.approx(ability[took].mean())
    assert sum(found.right) == 10
    assert set(found.to_dict()) == {
        "item", "option", "right", "chosen", "share", "ability", "point_biserial", "flag"
    }  # fmt: skip


def test_point_biserials_are_with_the_ability_on_the_other_items(letters):
    answers = Responses.from_dataframe(frame_of(letters), key=KEY)
    estimate = fit(answers)
    found = analyse_distractors(answers, estimate)
    for item in ("Q2", "Q7"):
        others = answers.select([name for name in answers.items if name != item])
        ability = score(others, estimate).ability
        for row in (row for row, name in enumerate(found.item) if name == item):
            took = letters[:, int(item[1:]) - 1] == found.option[row]
            exact = np.corrcoef(took, ability)[0, 1]
            assert found.point_biserial[row] == pytest.approx(exact, abs=0.03)


def test_a_wrong_key_is_found_and_a_right_one_raises_no_alarm(letters):
    frame = frame_of(letters)
    sound = analyse_distractors(Responses.from_dataframe(frame, key=KEY))
    assert len(sound.flagged) <= 1  # 30 wrong options, each far below zero
    wrong = analyse_distractors(Responses.from_dataframe(frame, key="D" + KEY[1:]))
    assert [(wrong.item[row], wrong.option[row]) for row in wrong.flagged] == [("Q1", "A")]


def test_missing_answers_are_left_out(letters):
    frame = frame_of(letters).astype(object)
    frame.loc[np.arange(0, 500, 3), "Q4"] = None
    found = analyse_distractors(Responses.from_dataframe(frame, key=KEY))
    rows = [row for row, name in enumerate(found.item) if name == "Q4"]
    assert sum(found.chosen[row] for row in rows) == 333
    assert sum(found.share[row] for row in rows) == pytest.approx(1)


def test_the_picture_shows_the_right_answer_rising(letters):
    answers = Responses.from_dataframe(frame_of(letters), key=KEY)
    found = analyse_distractors(answers)
    shown = option_map(found, "Q2")
    assert (shown.options[0], shown.right[0]) == ("B", True)
    rising = [share for _, share, _ in shown.shares[0]]
    assert rising == sorted(rising)
    assert rising[-1] - rising[0] > 0.3
    for groups in zip(*shown.shares, strict=True):
        assert sum(share for _, share, _ in groups) == pytest.approx(1)
    axes = option_plot(found, "Q2")
    assert next(text.get_text() for text in axes.get_legend().get_texts()) == "B (right)"
    with refused(BadUsage, "no_options_known_item", item="nine"):
        option_plot(found, "nine")


@pytest.fixture
def calibrated(tmp_path, letters):
    frame_of(letters).to_csv(tmp_path / "test.csv", index=False)
    ended = discreet(
        "fit", tmp_path / "test.csv", "--key", "D" + KEY[1:], "--out", tmp_path / "out"
    )
    assert ended.code == 0, ended.err
    return tmp_path / "out"


def test_fit_writes_the_table_and_the_report_shows_and_judges_it(calibrated):
    table = pd.read_csv(calibrated / "options.confidential.csv")
    assert table.loc[table["flag"].notna(), ["item", "option"]].to_numpy().tolist() == [["Q1", "A"]]
    page = (calibrated / "report.confidential.html").read_text()
    assert "What was chosen" in page
    assert "Options of the items with a key" in page
    assert "1 wrong option attracts abler persons" in page
    assert "A of Q1 (chosen by" in page


def test_the_report_can_be_made_again_without_the_answers(calibrated):
    stored = read_document(calibrated / "calibration.confidential.json")
    assert stored.study.distractors.flagged
    (calibrated / "report.confidential.html").unlink()
    ended = discreet("result", "report", calibrated)
    assert "- 1 wrong option attracts abler persons" in ended.out
    assert "What was chosen" in (calibrated / "report.confidential.html").read_text()


def test_without_a_key_nothing_is_said_of_options(tmp_path):
    assert diagnose(TRUE.responses, fit(TRUE.responses)).distractors is None


def test_an_existing_table_of_options_is_not_overwritten(calibrated):
    path = calibrated.parent / "test.csv"
    ended = discreet("fit", path, "--key", KEY, "--out", calibrated)
    assert ended.code == 2
    assert discreet("fit", path, "--key", KEY, "--out", calibrated, "--force").code == 0
