"""Advice that makes no number wrong, refusals that name the trouble, rows that are no persons."""

import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest

from commandline import discreet as typed
from discreet import Budget, Ledger, Responses, count_pairs, fit, read_responses, release
from discreet.errors import BadResponses
from refusals import refused
from spreadsheet_files import write_xlsx

ITEMS = ["q0", "q1", "q2", "q3"]


def draw_scale(low, high, n=400, seed=5):
    """Answers that a rating scale could have given."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(size=(n, 1))
    steps = np.linspace(-1.2, 1.2, high - low)
    return low + (ability[:, :, None] + rng.logistic(size=(n, 4, 1)) > steps).sum(axis=2)


def write(path, rows, names=ITEMS):
    lines = [",".join(names), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


# -- advice on a paid release ----------------------------------------------------------------------


@pytest.fixture
def desk(tmp_path):
    write(tmp_path / "survey.csv", draw_scale(1, 4))
    lines = [f"{item},3" for item in ITEMS]
    (tmp_path / "items.csv").write_text("\n".join(["item,steps", *lines]) + "\n")
    typed("ledger", "create", tmp_path / "spent.db", "--epsilon", 10)
    return tmp_path


def ask(desk, *options):
    return typed(
        *("release", desk / "survey.csv", "--items", desk / "items.csv", "--epsilon", 5),
        *("--ledger", desk / "spent.db", "--out", desk / "release", "--json", *options),
    )


def test_answers_from_1_are_told_to_name_the_lowest_category(desk):
    ended = ask(desk)
    assert ended.code == 3
    assert "(--lowest 1)" in ended.err
    assert "--missing" not in ended.err
    assert Ledger.open(desk / "spent.db").releases() == ()


def test_following_the_first_advice_gives_the_right_thresholds(desk):
    advice = re.search(r"\((--[a-z].*?)\)", ask(desk).err)[1]
    ended = ask(desk, *shlex.split(advice), "--item-selection", "complete")
    assert ended.code == 0, ended.err
    released = [row["thresholds"] for row in json.loads(ended.out)["items"]]
    true = fit(Responses.from_array(draw_scale(1, 4) - 1, ITEMS, steps=3)).thresholds
    assert np.abs(np.array(released) - true).max() < 0.6  # dropping the top moved them by 1.3


@pytest.mark.parametrize(
    ("low", "high", "steps", "lowest", "advice"),
    [
        (1, 4, 3, 0, {"lowest": 1}),
        (0, 3, 3, 1, {"lowest": 0}),
        (1, 5, 4, 0, {"lowest": 1}),
        (0, 4, 3, 0, {}),
        (2, 5, 3, 0, {"lowest": 2}),
        (1, 2, 1, 0, {"lowest": 1}),
    ],
)
def test_a_value_beside_a_listed_scale_is_never_called_missing(
    tmp_path, low, high, steps, lowest, advice
):
    X = draw_scale(low, high)
    items = dict.fromkeys(ITEMS, steps)
    path = write(tmp_path / "survey.csv", X)
    for source in (path, pd.DataFrame(X, columns=ITEMS)):
        with pytest.raises(BadResponses) as caught:
            release(source, Budget(1.0), items=items, lowest=lowest)
        offered = [one.options for one in caught.value.remedies]
        assert advice in offered
        assert not any("missing" in options for options in offered)
    with pytest.raises(BadResponses) as caught:
        release(X, Budget(1.0), items=dict.fromkeys("0123", steps), lowest=lowest)
    offered = [one.options for one in caught.value.remedies]
    assert advice in offered or steps == 1
    assert not any("missing" in options for options in offered)


@pytest.mark.parametrize("code", [6, 9, 99])
def test_a_value_that_stands_apart_is_asked_about_with_its_share(tmp_path, code):
    X = draw_scale(0, 3)
    X[10:18, 2] = code
    path = write(tmp_path / "survey.csv", X)
    missing = {"missing": [code]}
    with refused(BadResponses, "bad_answer", column="q2", value=f"'{code}'") as caught:
        release(path, Budget(1.0), items=dict.fromkeys(ITEMS, 3))
    assert "8 of 1,600 answers" in str(caught.value)
    assert missing in [one.options for one in caught.value.remedies]
    reason = f"Answers go from 0 to 3, and {code} is far outside"
    with refused(BadResponses, "answers_refuse_apart", reason=reason, times="8") as caught:
        fit(path)
    assert missing in [one.options for one in caught.value.remedies]


def test_a_rare_category_of_the_common_scale_is_not_called_missing(tmp_path):
    X = draw_scale(0, 3, n=3000)
    X[X[:, 1] == 3, 1] = 2
    X[7, 1] = 3
    with refused(BadResponses, "times_refuse_stray") as caught:
        fit(write(tmp_path / "survey.csv", X))
    assert not any("missing" in one.options for one in caught.value.remedies)


def test_a_scale_around_zero_is_told_to_name_its_lowest_category(tmp_path):
    with refused(BadResponses, "not_clear_refuse_questions") as caught:
        fit(write(tmp_path / "survey.csv", draw_scale(-2, 2)))
    assert [one.options for one in caught.value.remedies] == [{"lowest": -2}]


def test_a_letter_that_many_cells_hold_is_an_option(tmp_path):
    letters = np.random.default_rng(3).choice(list("ABCDabcd"), (60, 4)).tolist()
    letters[0][0], letters[3][2], letters[9][1] = "n/a", '"A,B"', '"B,D"'
    with pytest.raises(BadResponses) as caught:
        read_responses(write(tmp_path / "test.csv", letters))
    assert caught.value.remedies[0].asks == "key"
    letters[0][0] = "C"
    with pytest.raises(BadResponses) as caught:
        read_responses(write(tmp_path / "test.csv", letters))
    assert not any("missing" in one.options for one in caught.value.remedies)


def test_release_offers_no_option_that_it_can_only_refuse():
    for command in ("release", "steward propose"):
        text = typed(*command.split(), "--help").out
        assert "--steps" not in text
        assert "--merge" not in text
        assert "where no 0 occurs" not in text
        assert "what the answers look like" not in text
    assert "--merge" in typed("fit", "--help").out


# -- where the trouble is --------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["wide", "long"])
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_refusal_points_at_the_code_and_not_at_a_valid_answer(tmp_path, layout, engine):
    path = tmp_path / "survey.csv"
    X = draw_scale(1, 5, n=50)
    X[20, 1] = 9
    if layout == "wide":
        write(path, X)
    else:
        rows = [(p, item, X[p, k]) for p in range(50) for k, item in enumerate(ITEMS)]
        write(path, rows, ["person", "item", "response"])
    line, column = (22, "q1") if layout == "wide" else (2 + 20 * 4 + 1, "response")
    where = f"survey.csv, line {line}"
    with refused(BadResponses, "answers_refuse_apart", where=where, column=column, value="'9'"):
        count_pairs(path, engine=engine)


def test_a_refusal_points_at_the_word_among_numbers(tmp_path):
    X = draw_scale(1, 5, n=50).astype(object)
    X[20, 1] = "often"
    with refused(
        BadResponses, "bad_answer", where="survey.csv, line 22", column="q1", value="'often'"
    ):
        fit(write(tmp_path / "survey.csv", X))
    X = draw_scale(1, 5, n=50)
    X[20, 1] = 9
    with refused(
        BadResponses, "answers_refuse_apart", reason="Answers go from 1 to 5, and 9 is far outside"
    ):
        Responses.from_array(X)


# -- rows that are no persons ----------------------------------------------------------------------


def class_test(path, extra):
    rng = np.random.default_rng(2)
    pupils = [[f"Pupil {n}", "7a", *rng.choice(list("ABCD"), 4).tolist()] for n in range(60)]
    rows = [["Name", "Class", *ITEMS], *pupils]
    for place, row in extra.items():
        rows.insert(place - 1, row)
    return write_xlsx(path, {"7a": rows})


def test_a_key_totals_and_blank_rows_are_warned_about_with_their_rows(tmp_path):
    extra = {2: ["KEY", None, *"BADC"], 30: [None] * 6, 64: ["Total:", None, 20, 21, 22, 23]}
    path = class_test(tmp_path / "class.xlsx", extra)
    words = {"ignore": ["Name", "Class"], "key": "BADC"}
    with pytest.warns(UserWarning, match="count as persons") as warned:
        answers = read_responses(path, **words)
    text = " ".join(str(one.message) for one in warned)
    assert answers.n_persons == 63
    assert re.search(r"Rows without any entry count as persons, 1 of them: .*row 30\.", text)
    assert re.search(r"key or like totals .*row 2 \('KEY'\); .*row 64 \('Total:'\)", text)
    ended = typed("fit", path, "--ignore", "Name", "--ignore", "Class", "--key", "BADC")
    assert "The row 'KEY' is no person" in ended.err
    assert "60 persons" in ended.out


def test_a_key_among_ids_is_warned_about(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("id,q1,q2\na,1,0\nb,0,1\nMittelwert,1,1\n")
    with pytest.warns(UserWarning, match=r"line 4 \('Mittelwert'\)"):
        assert read_responses(path).n_persons == 3


def test_ordinary_tables_are_read_without_a_word(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("class,q1,q2\n7a,1,0\n7a,NA,NA\n7b,,\nkey,1,1\nkey,0,1\nkey,1,0\n")
    assert read_responses(path, group="class").n_persons == 6
    path.write_text("q1,q2\n1,0\nNA,NA\n")
    assert read_responses(path).n_persons == 2


def test_two_persons_with_one_name_are_not_lost_without_a_word(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("Name,q1,q2\nAnna,1,0\nBen,0,1\nAnna,0,1\n")
    with refused(BadResponses, "person_answered_item_more") as caught:
        read_responses(path, person="Name")
    options = dict(caught.value.remedies[0].options)
    assert options.pop("person") is None
    assert read_responses(path, **options).n_persons == 3
    with pytest.warns(UserWarning, match=r"'Anna' \(.*line 2 and .*line 4\)"):
        assert read_responses(path, person="Name", repeats="first").n_persons == 2


def test_a_quotation_mark_that_is_not_closed_is_refused(tmp_path):
    """The rows behind it were read as one long text."""
    path = tmp_path / "answers.csv"
    path.write_text('id,q1,q2,note\na,1,0,x\nb,0,1,"\nc,1,1,y\nd,0,0,z\n')
    with refused(BadResponses, "line_quotation_mark_not", line="3"):
        read_responses(path, ignore="note")
    path.write_text('id,q1,q2,note\na,1,0,x\nb,0,1,"two\nlines"\nc,1,1,y\n')
    assert read_responses(path, ignore="note").n_persons == 3
    with refused(BadResponses, "release_reads_answers_stated") as caught:
        release(path, Budget(1.0), items=["q1", "q2"])
    assert "line 3: the row and its line differ" in caught.value.facts["advice"]
