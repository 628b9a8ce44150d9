"""The bundled tables say what was published; the publishers' own files are read as they come."""

import gzip
import zipfile

import numpy as np
import pytest
from tools import wellbeing

from discreet import datasets
from discreet.api.calibrating import fit
from discreet.errors import BadResponses, BadUsage
from refusals import refused

SHAPES = {"lsat": (1000, 5), "three_grades": (649, 3), "uci_student": (131, 4)}


@pytest.mark.parametrize("name", SHAPES)
def test_every_data_set_is_complete_and_has_its_published_size(name):
    responses = getattr(datasets, name)()
    persons, items = SHAPES[name]
    assert (responses.n_persons, responses.n_items) == (persons, items)
    assert responses.n_answers == persons * items


def test_lsat_totals_are_those_of_bock_and_lieberman():
    answers, right = datasets.lsat().store.item_totals()
    assert answers.tolist() == [1000] * 5
    assert right.tolist() == [924, 709, 553, 763, 870]


def test_lsat_score_distribution_is_the_published_one():
    _, right = datasets.lsat().store.person_totals()
    assert np.bincount(right).tolist() == [3, 20, 85, 237, 357, 298]


def test_item_names_are_the_columns_of_the_source():
    assert datasets.three_grades().items == ("G1", "G2", "G3")
    assert datasets.uci_student().items == ("tnp", "twp", "iap", "esp")


@pytest.mark.parametrize("name", SHAPES)
def test_every_data_set_has_a_citation_which_its_docstring_gives_too(name):
    author = datasets.citation(name).split(",")[0]
    assert author in getattr(datasets, name).__doc__


def test_citations_and_loaders_name_the_same_data_sets():
    loaders = {name for name in datasets.__all__ if name in datasets.CITATIONS}
    assert loaders == set(datasets.CITATIONS) == {*SHAPES, "movielens", "wellbeing"}


def test_an_unknown_data_set_is_refused_with_the_names():
    with refused(
        BadUsage,
        "no_data_set_choose",
        citations="lsat, three_grades, uci_student, wellbeing, movielens",
    ):
        datasets.citation("lsat7")


def test_the_questionnaire_is_what_its_maker_draws_and_its_texts_fit():
    answers = datasets.wellbeing()
    table = wellbeing.draw_table()
    assert answers.items == tuple(datasets.WELLBEING_TEXTS)
    assert answers.persons.tolist() == [row[0] for row in table]
    assert answers.groups["age"].tolist() == [row[1] for row in table]
    codes = [[int(cell or -1) for cell in row[2:]] for row in table]
    assert answers.to_array().tolist() == codes
    assert set(answers.steps) == {len(datasets.WELLBEING_ANSWERS) - 1}


def test_the_questionnaire_has_the_faults_that_it_tells_of():
    answers = datasets.wellbeing()
    fitted = fit(answers, method="conditional")
    disordered = np.diff(fitted.thresholds, axis=1).min(axis=1) < 0
    assert [item for item, bad in zip(answers.items, disordered, strict=True) if bad] == ["proud"]


# --- the publishers' own files, in their layouts ------------------------------------------------


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def answers_of(responses):
    return responses.store.rows(0, responses.n_persons).tolist()


LSAT_TABLES = {
    "one row a person, from ltm": '"","Item 1","Item 2"\n"1",0,1\n"2",1,1\n"3",1,1\n',
    "patterns with Freq, from mirt": "Item_1,Item_2,Freq\n0,1,1\n1,1,2\n",
    "both sections in one table, from psych": "index Q1 Q2 Ob6 Ob7\n1 0 1 1 9\n2 1 1 2 7\n",
    "row numbers without a heading, from write.table": '"Q1" "Q2" "wt6"\n"1" 0 1 1\n"2" 1 1 2\n',
    "the bundled layout": "item1,item2,persons\n0,1,1\n1,1,2\n",
}


@pytest.mark.parametrize("layout", LSAT_TABLES)
def test_lsat_is_read_in_every_layout_in_circulation(layout, tmp_path):
    path = write(tmp_path / "lsat.txt", LSAT_TABLES[layout])
    responses = datasets.lsat(path)
    assert answers_of(responses) == [[0, 1], [1, 1], [1, 1]]
    assert responses.n_items == 2


def test_an_lsat_table_with_a_foreign_column_is_refused(tmp_path):
    path = write(tmp_path / "lsat.csv", "Q1,Q2,age\n0,1,34\n")
    with refused(BadResponses, "answer_every_column_other", bad="34"):
        datasets.lsat(path)


def test_three_grades_come_from_the_semicolon_file_split_above_the_median(tmp_path):
    rows = ['"school";"sex";"G1";"G2";G3', '"GP";"F";"10";"11";9', '"GP";"M";"12";"11";15',
            '"MS";"M";"11";"14";12']  # fmt: skip
    path = write(tmp_path / "student-por.csv", "\n".join(rows) + "\n")
    # Medians 11, 11 and 12: a mark at the median is not above it.
    assert answers_of(datasets.three_grades(path)) == [[0, 0, 0], [1, 0, 1], [0, 1, 0]]
    assert datasets.three_grades(path).items == ("G1", "G2", "G3")


ARFF = """% a comment
@RELATION Sapfile1
@ATTRIBUTE ge  {M,F}
@ATTRIBUTE tnp {Best,Vg,Good,Pass,Fail}
@ATTRIBUTE twp {Best,Vg,Good,Pass,Fail}
@ATTRIBUTE iap {Best,Vg,Good,Pass,Fail}
@ATTRIBUTE esp {Best,Vg,Good,Pass,Fail}
@DATA
F,Good,Vg,Best,Pass
M,Vg,Fail,Good,Best
"""


def test_uci_students_come_from_the_arff_file(tmp_path):
    path = write(tmp_path / "Sapfile1.arff", ARFF)
    responses = datasets.uci_student(path)
    assert answers_of(responses) == [[0, 1, 1, 0], [1, 0, 0, 1]]
    assert responses.items == ("tnp", "twp", "iap", "esp")


def test_only_the_first_131_students_count(tmp_path):
    path = write(tmp_path / "Sapfile1.arff", ARFF + "M,Vg,Fail,Good,Best\n" * 200)
    assert datasets.uci_student(path).n_persons == 131


SMALL = "userId,movieId,rating,timestamp\n1,31,2.5,1260759144\n1,1029,3.0,1260759179\n2,31,4.0,8\n"
HUNDRED = "196\t242\t3\t881250949\n186\t302\t3\t891717742\n196\t302\t1\t878887116\n"


def test_movielens_latest_small_is_read_as_a_file_a_folder_an_archive_and_gzipped(tmp_path):
    folder = tmp_path / "ml-latest-small"
    folder.mkdir()
    write(folder / "ratings.csv", SMALL.replace("\n", "\r\n"))
    with zipfile.ZipFile(tmp_path / "ml.zip", "w") as archive:
        archive.writestr("ml-latest-small/movies.csv", "movieId,title\n")
        archive.writestr("ml-latest-small/ratings.csv", SMALL)
    (tmp_path / "ratings.csv.gz").write_bytes(gzip.compress(SMALL.encode()))
    copies = (folder / "ratings.csv", folder, tmp_path / "ml.zip", tmp_path / "ratings.csv.gz")
    for copy in copies:
        ratings = datasets.movielens(copy)
        assert ratings.persons == ("1", "2")
        assert [ratings.items[place] for place in ratings.item] == ["31", "1029", "31"]
        assert ratings.rating.tolist() == [2.5, 3.0, 4.0]


def test_movielens_100k_is_read_from_its_file_with_tabs(tmp_path):
    ratings = datasets.movielens(write(tmp_path / "u.data", HUNDRED))
    assert set(ratings.items) == {"242", "302"}
    assert [ratings.persons[place] for place in ratings.person] == ["196", "186", "196"]
    assert ratings.rating.tolist() == [3.0, 3.0, 1.0]


@pytest.mark.parametrize(
    ("text", "code", "facts"),
    [
        ("movieId,title\n1,Heat\n", "no_column_among_publisher", {"missing": "person"}),
        ("userId,movieId,rating\n1,2\n", "some_line_not_user", {}),
        ("userId,movieId,rating\n1,2,good\n", "rating_not_number_build", {}),
        ("userId,movieId,rating\n1,2,3\n1,2,4\n", "somebody_rated_same_item", {}),
    ],
)
def test_ratings_that_cannot_be_used_are_refused(text, code, facts, tmp_path):
    with refused(BadResponses, code, **facts):
        datasets.movielens(write(tmp_path / "ratings.csv", text))


def test_a_missing_file_and_a_folder_without_ratings_are_named(tmp_path):
    with refused(BadUsage, "no_file_give_path"):
        datasets.movielens(tmp_path / "nothing.csv")
    with refused(BadUsage, "not_hold_give_path", expected="ratings.csv or u.data"):
        datasets.movielens(tmp_path)


def some_ratings(share, rng):
    scores = 3 + np.outer(rng.normal(size=30), rng.normal(size=12)) + rng.normal(size=12)
    person, item = np.nonzero(rng.random(scores.shape) < share)
    names = tuple(map(str, range(30))), tuple(map(str, range(12)))
    return datasets.FilmRatings(*names, person, item, scores[person, item]), scores


def test_complete_ratings_of_full_rank_are_split_at_each_persons_mean():
    ratings, scores = some_ratings(2.0, np.random.default_rng(1))
    responses = datasets.binarise_ratings(ratings, rank=12)
    expected = scores < scores.mean(axis=1, keepdims=True)
    assert answers_of(responses) == expected.astype(int).tolist()


def test_more_rounds_complete_a_low_rank_matrix():
    ratings, scores = some_ratings(0.7, np.random.default_rng(2))
    expected = scores < scores.mean(axis=1, keepdims=True)
    once, often = (
        np.mean(answers_of(datasets.binarise_ratings(ratings, rank=2, rounds=rounds)) == expected)
        for rounds in (1, 300)
    )
    assert often > 0.97 > once


def test_prepared_ratings_are_random_items_without_gaps():
    ratings, _ = some_ratings(0.5, np.random.default_rng(3))
    drawn = [
        datasets.prepare_ratings(ratings, 5, rng=np.random.default_rng(seed), rank=3)
        for seed in (0, 0, 1)
    ]
    assert drawn[0].items == drawn[1].items != drawn[2].items
    assert all(responses.n_answers == 30 * 5 for responses in drawn)


def test_preparation_refuses_a_rank_or_a_number_of_items_that_is_not_there():
    ratings, _ = some_ratings(0.5, np.random.default_rng(3))
    rng = np.random.default_rng(0)
    with refused(BadUsage, "rank_must_lie_between", m="12"):
        datasets.prepare_ratings(ratings, 5, rng=rng, rank=13)
    with refused(BadUsage, "items_must_lie_between", n_items="12"):
        datasets.prepare_ratings(ratings, 13, rng=rng, rank=3)
    with refused(BadUsage, "rounds_must_least_found"):
        datasets.prepare_ratings(ratings, 5, rng=rng, rank=3, rounds=0)
