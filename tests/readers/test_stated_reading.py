"""A release takes stated readings only, ignores what is not listed, and says what to state."""

import numpy as np
import pandas as pd
import pytest

import discreet
from commandline import discreet as typed
from discreet import Budget, Responses, read_responses, release
from discreet.errors import BadResponses
from refusals import refused

BUDGET = Budget(1.0, 1e-6)
NAMES = ["q1", "q2", "q3", "q4"]
RULE = "A release reads answers by stated rules"


# -- the hole: items reversed at the highest category that occurs ----------------------------------


def draw_survey(n=200):
    """Answers from 0 to 3 to four items, and one person who alone may choose 4."""
    X = np.random.default_rng(7).integers(0, 4, (n, 4)).astype(float)
    X[0] = 3
    other = X.copy()
    other[0, 0] = 4
    return X, other


def squared_distance(one, other):
    """Return how far the numbers of persons in each category of each item are apart, squared."""
    counts = [np.stack([(cells == k).sum(axis=0) for k in range(5)]) for cells in (one, other)]
    return int(((counts[0] - counts[1]) ** 2).sum())


HOLE = {
    "an array": lambda X, folder, **words: Responses.from_array(X, NAMES, **words),
    "a frame": lambda X, folder, **words: Responses.from_dataframe(
        pd.DataFrame(X, columns=NAMES), **words
    ),
    "a file": lambda X, folder, **words: read_responses(write_matrix(X, folder), **words),
}


def write_matrix(X, folder):
    path = folder / "survey.csv"
    pd.DataFrame(X.astype(int), columns=NAMES).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("kind", HOLE)
def test_items_reversed_at_the_highest_answer_that_occurs_are_not_released(kind, tmp_path):
    """One answer moved all answers to a reversed item by a category: no noise covers that."""
    X, other = draw_survey()
    items = dict.fromkeys(NAMES, 4)
    both = [HOLE[kind](one, tmp_path, reverse=["q1"]) for one in (X, other)]
    moved = squared_distance(*(one.to_array() for one in both))
    assert moved > 1000  # where 2 S = 8 is covered: four answers, each in one of two categories
    for answers in both:
        with refused(BadResponses, "release_reads_answers_stated") as caught:
            release(answers, BUDGET, items=items, design="complete")
        assert "steps= (--steps)" in caught.value.facts["advice"]
    stated = [HOLE[kind](one, tmp_path, reverse=["q1"], steps=4) for one in (X, other)]
    assert squared_distance(*(one.to_array() for one in stated)) == 2
    release(stated[1], BUDGET, items=items, design="complete")


def test_a_request_refuses_a_reading_that_was_detected(tmp_path):
    _, other = draw_survey()
    book = discreet.Ledger.create(tmp_path / "spent.db", epsilon=2.0)
    request = discreet.propose(
        Budget(1.0), items=dict.fromkeys(NAMES, 4), ledger=book, design="complete"
    )
    answers = Responses.from_array(other, NAMES, reverse=["q1"])
    with refused(BadResponses, "release_reads_answers_stated"):
        discreet.release_request(answers, request)
    path = tmp_path / "survey.csv"
    path.write_text("q1;q2;q3;q4\n" + "1;2;3;4\n" * 20)
    with refused(BadResponses, "release_reads_answers_stated") as caught:
        discreet.release_request(path, request)
    assert "--delimiter ';'" in caught.value.facts["advice"]
    assert book.releases() == ()


def test_comparisons_whose_reading_was_detected_are_not_released(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("judge;winner;loser\n" + "".join(f"{n};a;b\n" for n in range(20)))
    asked = {"items": ["a", "b"], "max_comparisons": 1}
    for votes in (path, discreet.read_comparisons(path)):
        with refused(BadResponses, "release_reads_answers_stated") as caught:
            discreet.release_comparisons(votes, BUDGET, **asked)
        assert "delimiter=';'" in caught.value.facts["advice"]
    stated = discreet.read_comparisons(path, delimiter=";")
    assert discreet.release_comparisons(stated, BUDGET, **asked).record["judges"] == 20


def test_the_command_names_what_to_state_and_charges_nothing(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("pupil;q1;q2;region\n" + "".join(f"p{n};1;{n % 2};N\n" for n in range(30)))
    (tmp_path / "items.txt").write_text("q1\nq2\n")
    typed("ledger", "create", tmp_path / "spent.db", "--epsilon", 2)
    asked = [
        *("release", path, "--items", tmp_path / "items.txt", "--epsilon", 1),
        *("--ledger", tmp_path / "spent.db", "--out", tmp_path / "release"),
    ]
    ended = typed(*asked)
    assert (ended.code, ended.out) == (3, "")
    assert "(--delimiter ';')" in ended.err
    assert discreet.Ledger.open(tmp_path / "spent.db").releases() == ()
    assert typed(*asked, "--delimiter", ";", "--person", "pupil").code == 0
    assert discreet.read_release(tmp_path / "release").record["persons"] == 30


# -- what is not listed --------------------------------------------------------------------------

ROWS = [("a", 1, 0), ("b", 0, 1), ("c", 1, 1)] * 10


def test_columns_outside_the_list_are_ignored(tmp_path):
    path = tmp_path / "national.csv"
    lines = [f"p{n},{q1},{q2},{n % 9},late" for n, (_, q1, q2) in enumerate(ROWS)]
    path.write_text("\n".join(["pupil,q1,q2,score,note", *lines]) + "\n")
    made = release(path, BUDGET, items=["q2", "q1"])
    assert made.estimate.items == ("q2", "q1")
    assert made.record["persons"] == 30
    for source in (pd.read_csv(path), path):
        assert release(source, BUDGET, items=["q1", "q2"], person="pupil").record["persons"] == 30
    matrix = [[q1, q2, 7] for _, q1, q2 in ROWS]
    assert release(matrix, BUDGET, items=["0", "1"]).estimate.items == ("0", "1")


def test_rows_outside_the_list_are_ignored_and_their_persons_count(tmp_path):
    path = tmp_path / "long.csv"
    lines = [f"p{n},q{k},{row[k]}" for n, row in enumerate(ROWS) for k in (1, 2)]
    lines += ["p0,essay,a long text", "p0,essay,another", "q,essay,5"]
    path.write_text("\n".join(["person,item,response", *lines]) + "\n")
    assert release(path, BUDGET, items=["q1", "q2"]).record["persons"] == 31
    answers = read_responses(path, key={"essay": "5"}, repeats="last")
    assert release(answers, BUDGET, items=["q1", "q2"]).record["persons"] == 31


# -- what goes on working without a word -----------------------------------------------------------


def test_ordinary_tables_need_no_statement(tmp_path):
    plain = pd.DataFrame(ROWS, columns=["id", "q1", "q2"])
    plain["id"] = [f"p{n}" for n in range(30)]
    long = plain.melt("id", var_name="item", value_name="response")
    X = plain[["q1", "q2"]].to_numpy()
    plain.to_csv(tmp_path / "wide.csv", index=False)
    plain.drop(columns="id").to_csv(tmp_path / "numbered.csv", index=False)
    long.to_csv(tmp_path / "long.tsv", sep="\t", index=False)
    long.to_parquet(tmp_path / "long.parquet")
    long.to_json(tmp_path / "long.jsonl", orient="records", lines=True)
    plain.to_excel(tmp_path / "wide.xlsx", index=False)
    files = ("wide.csv", "numbered.csv", "long.tsv", "long.parquet", "long.jsonl", "wide.xlsx")
    for name in files:
        for source in (tmp_path / name, read_responses(tmp_path / name)):
            assert release(source, BUDGET, items=["q1", "q2"]).record["persons"] == 30, name
    for frame in (plain, long, plain.set_index("id"), plain[plain["q1"] >= 0].iloc[::-1]):
        assert release(frame, BUDGET, items=["q1", "q2"]).record["persons"] == 30
    for matrix in (X, X.astype(float), X.tolist()):
        assert release(matrix, BUDGET, items=["0", "1"]).record["persons"] == 30
    survey = Responses.from_array(X + 1, lowest=1)
    assert release(survey, BUDGET, items={"0": 2, "1": 2}, lowest=1).record["persons"] == 30
