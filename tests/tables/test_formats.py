"""Other programs' files: what goes out comes back, and odd files are refused with a reason."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.errors import BadResponses, BadUsage
from discreet.persons.scoring import PersonStatus
from discreet.report.formats import (
    read_parameters,
    read_warehouse,
    write_jsonl,
    write_table,
    write_warehouse,
)
from discreet.report.winsteps import (
    read_item_file,
    read_person_file,
    write_item_file,
    write_person_file,
)
from discreet.results.estimate import Status

# The layout of Winsteps: two heading lines, a semicolon before what has no ordinary measure,
# numbers without a leading zero. Made up, after the manual's pages on IFILE= and PFILE=.
IFILE = """\
; ITEM  control.txt  Nov 15 2026
;ENTRY MEASURE ST   COUNT   SCORE MODLSE IN.MSQ IN.ZST OUTMSQ OUTZST  DISPL PTMA WEIGHT NAME
      1    -.50  1   200.0   140.0    .15    .93   -.54    .88   -.56    .00  .47   1.00 2 + 2
      2    1.25  2   200.0    60.0    .17   1.09    .35   1.05    .27   -.12  .41   1.00 3 x 4
;     3    5.10  0   200.0      .0   1.83   1.00    .00   1.00    .00    .00  .00   1.00 proof
;     4   -5.10 -1   200.0   200.0   1.83   1.00    .00   1.00    .00    .00  .00   1.00 1 + 1
;     5 9999.00 -2      .0      .0    .00   1.00    .00   1.00    .00    .00  .00   1.00 spare
;     6 9999.00 -3      .0      .0    .00   1.00    .00   1.00    .00    .00  .00   1.00 gone
"""


def saved(tmp_path, text, name="items.txt"):
    path = tmp_path / name
    path.write_text(text)
    return path


def extremes():
    answers = np.array(
        [[1, 0, 1, 0, np.nan], [0, 1, 1, 0, np.nan], [1, 0, 1, 0, np.nan], [0, 1, 1, 0, np.nan]]
    )
    return discreet.Responses.from_array(answers, items=["a", "b c", "easy", "hard", "new"])


# --- Winsteps ---------------------------------------------------------------------------------


def test_an_item_file_of_winsteps_is_read(tmp_path):
    estimate = read_item_file(saved(tmp_path, IFILE))
    assert estimate.items == ("2 + 2", "3 x 4", "proof", "1 + 1", "spare", "gone")
    assert estimate.difficulty[:2].tolist() == [-0.5, 1.25]
    assert estimate.se[:2].tolist() == [0.15, 0.17]
    assert np.isnan(estimate.difficulty[2:]).all()
    assert [str(one) for one in estimate.status] == [
        "estimated",
        "anchored",
        "always_wrong",
        "always_right",
        "no_answers",
        "no_answers",
    ]
    assert estimate.answers.tolist() == [200, 200, 200, 200, 0, 0]


def test_the_raw_score_tells_extreme_items_apart_where_manuals_disagree(tmp_path):
    # Older manuals have 0 for the easiest and -1 for the hardest item.
    older = IFILE.replace("5.10  0 ", "5.10 -1 ").replace("-5.10 -1 ", "-5.10  0 ")
    estimate = read_item_file(saved(tmp_path, older))
    assert estimate.status[2] is Status.ALWAYS_WRONG
    assert estimate.status[3] is Status.ALWAYS_RIGHT


def test_without_scores_the_present_manual_decides(tmp_path):
    text = "ENTRY,MEASURE,STTS,NAME\n1,0.5,1,a\n2,5,0,b\n3,-5,-1,c\n4,9999,-6,d\n"
    estimate = read_item_file(saved(tmp_path, text, "items.csv"))
    assert [str(one) for one in estimate.status] == [
        "estimated",
        "always_wrong",
        "always_right",
        "not_connected",
    ]
    assert estimate.answers is None


@pytest.mark.parametrize("name", ["items.txt", "items.csv", "items.tsv"])
def test_an_estimate_survives_an_item_file(tmp_path, name):
    estimate = discreet.fit(extremes())
    write_item_file(tmp_path / name, estimate, decimals=6)
    again = read_item_file(tmp_path / name)
    assert again.items == estimate.items
    assert again.status == estimate.status
    assert again.difficulty == pytest.approx(estimate.difficulty, abs=1e-6, nan_ok=True)
    assert again.se == pytest.approx(estimate.se, abs=1e-6, nan_ok=True)
    assert again.answers.tolist() == estimate.answers.tolist()
    assert again.right.tolist() == estimate.right.tolist()


def test_an_item_file_has_the_codes_and_marks_of_winsteps(tmp_path):
    write_item_file(tmp_path / "items.txt", discreet.fit(extremes()))
    lines = (tmp_path / "items.txt").read_text().splitlines()
    assert lines[1].split()[:6] == [";ENTRY", "MEASURE", "ST", "COUNT", "SCORE", "MODLSE"]
    assert [line.startswith(";") for line in lines[2:]] == [False, False, True, True, True]
    assert [line.lstrip(";").split()[2] for line in lines[2:]] == ["1", "1", "-1", "0", "-2"]
    assert lines[2].split()[0] == "1"


def test_fit_statistics_travel_as_further_columns(tmp_path):
    estimate = discreet.fit(discreet.datasets.lsat())
    extra = {"IN.MSQ": [1.0] * 5, "DISPL": np.arange(5) / 10}
    write_item_file(tmp_path / "items.txt", estimate, extra=extra, decimals=2)
    head = (tmp_path / "items.txt").read_text().splitlines()[1].split()
    assert head[6:8] == ["IN.MSQ", "DISPL"]
    with pytest.raises(BadUsage, match="'CHARM'"):
        write_item_file(tmp_path / "x.txt", estimate, extra={"CHARM": [1.0] * 5})
    with pytest.raises(BadUsage, match="'DISPL'"):
        write_item_file(tmp_path / "x.txt", estimate, extra={"DISPL": [1.0]})


def test_anchored_items_have_code_two(tmp_path):
    anchored = discreet.fit(discreet.datasets.lsat(), anchors={"Item2": 0.0})
    write_item_file(tmp_path / "items.csv", anchored)
    assert read_item_file(tmp_path / "items.csv").status[1] is Status.ANCHORED
    assert (tmp_path / "items.csv").read_text().splitlines()[2].split(",")[2] == "2"


def test_rescaled_measures_are_refused_until_the_user_says_how(tmp_path):
    text = "ENTRY,MEASURE,ST,MODLSE,NAME\n1,450,1,10,a\n2,550,1,10,b\n"
    path = saved(tmp_path, text, "items.csv")
    with pytest.raises(BadUsage, match="cannot be in logits"):
        read_item_file(path)
    estimate = read_item_file(path, user_mean=500, user_scale=100)
    assert estimate.difficulty.tolist() == [-0.5, 0.5]
    assert estimate.se.tolist() == [0.1, 0.1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no line begins with an entry number"),
        ("person,item,response\n", "no line begins with an entry number"),
        (";ENTRY MEASURE ST NAME\n1 0.5 1 a\n2 0.6 1 a\n", "two items are called 'a'"),
        (";ENTRY MEASURE ST NAME\n1 hard 1 a\n", "MEASURE is 'hard'"),
        (";ENTRY MEASURE ST COUNT SCORE NAME\n1 0.5\n", "has 2 fields"),
    ],
)
def test_a_file_that_is_no_item_file_is_refused(tmp_path, text, words):
    with pytest.raises(BadResponses, match=words):
        read_item_file(saved(tmp_path, text))


def test_abilities_survive_a_person_file(tmp_path):
    responses = discreet.Responses.from_array(
        np.array([[1, 1], [0, 0], [1, 0], [np.nan, np.nan]]), persons=["001", "b b", "c", "d"]
    )
    scores = discreet.score(responses, {"0": -0.5, "1": 0.5})
    write_person_file(tmp_path / "persons.txt", scores, decimals=6)
    assert "confidential" in (tmp_path / "persons.txt").read_text().splitlines()[0]
    again = read_person_file(tmp_path / "persons.txt")
    assert again.persons.tolist() == ["001", "b b", "c", "d"]
    assert again.status.tolist() == [
        PersonStatus.ALL_RIGHT,
        PersonStatus.ALL_WRONG,
        PersonStatus.MEASURED,
        PersonStatus.NO_ANSWERS,
    ]
    assert again.ability == pytest.approx(scores.ability, abs=1e-6, nan_ok=True)
    assert again.score.tolist() == scores.score.tolist()


@settings(max_examples=40, deadline=None)
@given(
    names=st.lists(
        st.text("abc ;,\"'0.ä", min_size=1).filter(lambda s: s.strip(" ") not in ("", ".")),
        min_size=2,
        max_size=5,
        unique_by=lambda s: " ".join(s.split()),
    ),
    ending=st.sampled_from(["txt", "csv", "tsv"]),
)
def test_item_names_survive_an_item_file_but_for_their_blanks(names, ending, tmp_path_factory):
    path = tmp_path_factory.mktemp("items") / f"items.{ending}"
    responses = discreet.Responses.from_array(np.eye(len(names)), items=names)
    write_item_file(path, discreet.fit(responses))
    assert read_item_file(path).items == tuple(" ".join(name.split()) for name in names)


# --- py-irt -----------------------------------------------------------------------------------


def test_answers_survive_the_json_lines_of_pyirt(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", extremes())
    first = json.loads((tmp_path / "a.jsonl").read_text().splitlines()[0])
    assert first == {"subject_id": "0", "responses": {"a": 1, "b c": 0, "easy": 1, "hard": 0}}
    again = discreet.read_responses(tmp_path / "a.jsonl")
    kept = extremes().select(again.items)
    assert again.to_array().tolist() == kept.to_array().tolist()


def test_difficulties_of_pyirt_are_read_by_name(tmp_path):
    saved_by = {"irt_model": "1pl", "diff": [0.5, -0.5], "item_ids": {"0": "b", "1": "a"}}
    path = saved(tmp_path, json.dumps(saved_by), "best_parameters.json")
    assert read_parameters(path) == {"b": 0.5, "a": -0.5}


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("[]", BadResponses, "not a parameter file"),
        ("{", BadResponses, "not a parameter file"),
        ('{"irt_model": "1pl", "diff": [1], "item_ids": {}}', BadResponses, "KeyError"),
        ('{"irt_model": "2pl", "diff": [1], "item_ids": {"0": "a"}}', BadUsage, "2pl"),
    ],
)
def test_parameters_that_cannot_be_used_are_refused(tmp_path, text, error, words):
    with pytest.raises(error, match=words):
        read_parameters(saved(tmp_path, text))


# --- Item Response Warehouse, tables ----------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_answers_survive_the_layout_of_the_warehouse(tmp_path, ending):
    responses = discreet.simulate(200, 8, 0.5, rng=np.random.default_rng(1)).responses
    write_warehouse(tmp_path / f"a.{ending}", responses)
    again = read_warehouse(tmp_path / f"a.{ending}")
    assert set(again.items) == set(responses.items)
    place = {person: i for i, person in enumerate(again.persons)}
    rows = again.select(responses.items).to_array()
    for number, person in enumerate(responses.persons):
        if person in place:
            assert rows[place[person]].tolist() == responses.rows(number, number + 1)[0].tolist()
    assert again.n_answers == responses.n_answers


def test_the_warehouse_has_its_three_columns(tmp_path):
    write_warehouse(tmp_path / "a.csv", extremes())
    assert (tmp_path / "a.csv").read_text().splitlines()[0].replace('"', "") == "id,item,resp"
    with pytest.raises(BadUsage, match=r"\.csv or \.parquet"):
        write_warehouse(tmp_path / "a.xls", extremes())


def test_ratings_of_the_warehouse_become_right_and_wrong_when_asked(tmp_path):
    path = saved(tmp_path, "id,item,resp,rt\n1,a,3,9.5\n1,b,1,2.0\n2,a,2,1.0\n", "a.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_warehouse(path).to_array().tolist() == [[2, 0], [1, -1]]
    assert read_warehouse(path, at_least=2).to_array().tolist() == [[1, 0], [1, -1]]


def test_an_estimate_is_written_as_csv_and_parquet(tmp_path):
    import pyarrow.parquet as pq

    estimate = discreet.fit(extremes())
    for ending in ("csv", "parquet"):
        write_table(tmp_path / f"e.{ending}", estimate)
    table = pq.read_table(tmp_path / "e.parquet")
    assert table["item"].to_pylist() == list(estimate.items)
    assert table["difficulty"].to_pylist()[2] is None
    lines = (tmp_path / "e.csv").read_text().splitlines()
    assert lines[0].startswith("item,difficulty,se")
    assert lines[3].startswith("easy,,,")
    with pytest.raises(BadUsage, match="ending"):
        write_table(tmp_path / "e.doc", estimate)
