"""What parts fields, decimal commas, files without names, row names of R."""

import pytest

from commandline import discreet
from discreet import fit, read_comparisons, read_responses
from discreet.errors import BadResponses, BadUsage
from refusals import refused

ROWS = [["id", "Q1", "Q2"], ["a", "1", "0"], ["b", "0", "1"], ["c", "1", "1"]]
PLAIN = [[1, 0], [0, 1], [1, 1]]


@pytest.fixture
def write(tmp_path):
    def to_file(content, name="answers.csv"):
        path = tmp_path / name
        path.write_text(content)
        return path

    return to_file


def join(delimiter):
    return "".join(delimiter.join(row) + "\n" for row in ROWS)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " "])
def test_usual_delimiters_are_recognised(write, delimiter):
    assert read_responses(write(join(delimiter), "a.txt")).to_array().tolist() == PLAIN


@pytest.mark.parametrize(("sign", "said"), [(":", ":"), ("~", "~"), ("\t", "tab"), (" ", "space")])
def test_a_delimiter_can_be_named(write, sign, said):
    path = write(join(sign), "a.txt")
    assert discreet("fit", path, "--delimiter", said, "--json").document["persons"] == 3
    assert read_responses(path, delimiter=said).to_array().tolist() == PLAIN


def test_another_delimiter_is_named_in_the_message(write):
    ended = discreet("fit", write(join(":")))
    assert (ended.code, "(--delimiter ':')" in ended.err) == (3, True)
    with refused(BadResponses, "fields_seem_separated_several"):
        read_responses(write(join("   ")))
    with refused(BadUsage, "delimiter_must_one_sign"):
        read_responses(write(join(":")), delimiter="::")


def test_the_delimiter_is_the_one_on_which_the_lines_agree(write):
    path = write("id;Q1, first, part, a;Q2\na;1;0\nb;0;1\n")
    assert read_responses(path).items == ("Q1, first, part, a", "Q2")
    path = write("id,Q1|a|b|c,Q2\na,1,0\nb,0,1\n")
    assert read_responses(path).items == ("Q1|a|b|c", "Q2")


def test_one_column_with_blanks_in_its_name_is_one_column(write):
    assert read_responses(write("my item\n1\n0\n")).items == ("my item",)


def test_the_line_that_tells_excel_about_the_delimiter_is_no_row(write):
    assert read_responses(write("sep=;\n" + join(";"))).to_array().tolist() == PLAIN


def test_row_names_that_r_writes_without_a_name_are_the_persons(write):
    answers = read_responses(write('"Q1" "Q2"\n"ann" 1 0\n"bob" 0 1\n', "r.txt"))
    assert answers.persons.tolist() == ["ann", "bob"]
    with refused(BadResponses, "line_found_first_row", n_fields="3 fields"):
        read_responses(write("Q1,Q2\n1,0,\n0,1,\n"))  # a comma too many is no row name


def test_decimal_commas_are_read_as_points(write):
    assert read_responses(write("id;Q1;Q2\na;1,0;0,00\nb;0,0;1\n")).to_array().tolist() == [
        [1, 0],
        [0, 1],
    ]
    scored = read_responses(write("id;Q1\na;2,5\nb;2,49\nc;99,0\n"), at_least=2.5, missing=99)
    assert scored.to_array()[:, 0].tolist() == [1, 0, -1]
    assert read_responses(write('id,Q1\na,"1,0"\nb,0\n')).to_array().tolist() == [[1], [0]]
    with refused(BadResponses, "bad_answer", column="Q1", value="'1,000'"):
        read_responses(write("id;Q1\na;1,000\nb;0\n"))


def test_anchors_may_have_decimal_commas_with_any_number_of_digits(write):
    answers = read_responses(write(join(",")))
    anchors = write("item;difficulty\nQ1;-0,125\n", "anchors.csv")
    assert fit(answers, anchors=anchors).difficulty[0] == -0.125


@pytest.mark.parametrize(
    "content",
    ["1,0,1\n0,1,1\n1,1,0\n", "7,1,0\n8,0,1\n9,1,1\n", "A,B,A,C\nB,B,C,C\n", "x;1;1\ny;0;1\n"],
)
def test_a_first_row_of_answers_is_not_taken_for_names(write, content):
    ended = discreet("fit", write(content))
    assert (ended.code, "looks like answers" in ended.err) == (3, True)
    assert "(--no-header)" in ended.err


def test_files_without_names_number_their_columns(write):
    path = write("7,1,0\n8,0,1\n9,1,1\n")
    answers = read_responses(path, header=False, person="1")
    assert (answers.items, answers.persons.tolist()) == (("2", "3"), ["7", "8", "9"])
    assert answers.to_array().tolist() == PLAIN
    with refused(BadResponses, "bad_answer", where="answers.csv, line 2", column="1", value="'8'"):
        read_responses(write("1,0,1\n8,1,1\n"), header=False)


def test_a_long_file_without_names_has_person_item_and_answer(write):
    path = write("ann,q1,1\nann,q2,0\nbob,q1,0\n")
    ended = discreet("fit", path)
    assert (ended.code, "--layout long" in ended.err) == (3, True)
    answers = read_responses(path, header=False, layout="long")
    assert answers.items == ("q1", "q2")
    assert answers.to_array().tolist() == [[1, 0], [0, -1]]


def test_names_that_are_numbers_are_names_where_they_differ(write):
    assert read_responses(write("person,0,1\na,1,0\nb,0,1\n")).items == ("0", "1")
    assert read_responses(write("0,1\n1,0\n0,1\n")).items == ("0", "1")
    assert read_responses(write("1,2,3\n1,0,1\n0,1,1\n")).items == ("1", "2", "3")


def test_comparisons_have_the_same_delimiters(write):
    votes = write("judge|winner|loser\na|x|y\n", "votes.txt")
    assert read_comparisons(votes).n_comparisons == 1
    votes = write("judge:winner:loser\na:x:y\nb:y:x\n", "votes.txt")
    assert read_comparisons(votes, delimiter=":").n_comparisons == 2
    assert discreet("compare", "rank", votes, "--delimiter", ":").code == 0
