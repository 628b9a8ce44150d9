"""The table of mistakes: what is understood without asking, and what is asked with which advice.

Both give the right analysis, which every row of the table compares with the answers behind it.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from commandline import discreet
from discreet import Responses, fit, read_responses, simulate

ANSWERS = simulate(persons=60, items=4, rng=np.random.default_rng(3)).responses.to_array()
NAMES = ["Q1", "Q2", "Q3", "Q4"]
RIGHT = "BADC"


@dataclass(frozen=True)
class Mistake:
    """What somebody brings, and what the message must begin its advice with.

    Attributes
    ----------
    table
        Rows of text; the first one holds names.
    advice
        Options of the first advice, as the message spells them.
    follow
        What is typed instead where the advice leaves something open.
    also
        Words that the message must have too.
    delimiter
        Between the fields.
    is_sure
        Whether the table is read without asking.
    """

    table: list
    advice: str
    follow: str = ""
    also: tuple = ()
    delimiter: str = ","
    is_sure: bool = False


def cells(right="1", wrong="0"):
    return [[right if cell else wrong for cell in row] for row in ANSWERS]


def beside(name, values, rows=None):
    """Put a column before the answers."""
    rows = rows or cells()
    return [[name, *NAMES], *([str(v), *row] for v, row in zip(values, rows, strict=True))]


def letters():
    """What was chosen: the right letter, or one that stands beside it."""
    wrong = {"A": "C", "B": "D", "C": "A", "D": "B"}
    return [
        [key if cell else wrong[key] for key, cell in zip(RIGHT, row, strict=True)]
        for row in ANSWERS
    ]


def coded(code, rows=None):
    """Add a person whose first answer is a code for a missing one."""
    rows = rows or cells()
    return [
        ["id", *NAMES],
        *([str(n), *row] for n, row in enumerate(rows)),
        ["last", code] + 3 * ["0"],
    ]


SCORES = [[["0", "1"][n % 2] if not cell else ["2", "3"][n % 2] for n, cell in enumerate(row)]
          for row in ANSWERS]  # fmt: skip
PERSONS = range(1, 61)
SURNAMES = [f"Name{number}" for number in PERSONS]

MISTAKES = {
    "a running number": Mistake(beside("nr", PERSONS), "--person nr", is_sure=True),
    "a German running number": Mistake(beside("lfd", PERSONS), "--person lfd", is_sure=True),
    "surnames": Mistake(beside("Nachname", SURNAMES), "--person Nachname", is_sure=True),
    "ids by an unknown name": Mistake(
        beside("Zeichen", SURNAMES), "--person Zeichen", is_sure=True
    ),
    "a blank in the name": Mistake(
        beside("lfd. Nr.", PERSONS), "--person 'lfd. Nr.'", is_sure=True
    ),
    "a name beside ids": Mistake(
        [["id", "Nachname", *NAMES], *([f"{n}", f"N{n}", *row] for n, row in enumerate(cells()))],
        "--ignore Nachname",
        is_sure=True,
    ),
    "a group": Mistake(beside("sex", ["m", "f"] * 30), "--group sex", is_sure=True),
    "letters": Mistake(
        beside("id", PERSONS, letters()), "--key BADC", f"--key {RIGHT}", also=("--key key.csv",)
    ),
    "words": Mistake(beside("id", PERSONS, cells("yes", "no")), "", "--key key.csv", is_sure=True),
    "scores and a code": Mistake(
        coded("9", SCORES), "--missing 9", "--missing 9 --at-least 2", also=("9 is far outside",)
    ),
    "a lone 9": Mistake(coded("9"), "--missing 9"),
    "a lone 99": Mistake(coded("99"), "--missing 99"),
    "a lone -1": Mistake(coded("-1"), "--missing -1"),
    "a word for missing": Mistake(coded("omitted"), "--missing omitted", is_sure=True),
    "no row of names": Mistake(cells(), "--no-header"),
    "a strange delimiter": Mistake(beside("id", PERSONS), "--delimiter ':'", delimiter=":"),
}


def write(folder, mistake):
    path = folder / "answers.csv"
    lines = [mistake.delimiter.join(row) for row in mistake.table]
    path.write_text("\n".join(lines) + "\n")
    rights = "".join(f"{name},yes\n" for name in NAMES)
    (folder / "key.csv").write_text("item,answer\n" + rights)
    return path


@pytest.fixture(params=MISTAKES)
def mistake(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return MISTAKES[request.param]


def test_the_message_gives_the_right_advice_first(mistake):
    ended = discreet("fit", write(Path.cwd(), mistake))
    if mistake.is_sure:
        assert ended.code == 0
        assert mistake.advice in ended.err
        return
    assert (ended.code, ended.out) == (3, "")
    first = re.search(r"\((--[a-z].*?)[,)]", ended.err)[1]
    assert first == mistake.advice
    for words in mistake.also:
        assert words in ended.err
    assert not re.search(r"--at-least [0-9]", ended.err)  # never a threshold made of a code


def compare(ended, table):
    """Fail unless the items have the numbers of the answers behind the table."""
    assert ended.code == 0, ended.err
    with_last = np.vstack([ANSWERS, [-1, 0, 0, 0]])
    wanted = fit(Responses.from_array(with_last if table[-1][0] == "last" else ANSWERS))
    found = ended.document["items"]
    assert [row["right"] for row in found] == wanted.right.tolist()
    assert [row["answers"] for row in found] == wanted.answers.tolist()
    assert np.allclose([row["difficulty"] for row in found], wanted.difficulty)


def test_what_is_understood_without_asking_gives_the_right_analysis(mistake):
    if mistake.is_sure:
        ended = discreet("fit", write(Path.cwd(), mistake), "--json")
        compare(ended, mistake.table)


def test_following_the_first_advice_gives_the_right_analysis(mistake):
    path = write(Path.cwd(), mistake)
    typed = shlex.split(mistake.follow or mistake.advice)
    compare(discreet("fit", path, *typed, "--json"), mistake.table)


# -- what is no error, but a reason to look ----------------------------------------------------


def test_a_table_on_its_side_is_asked_about(tmp_path):
    upright = simulate(persons=3000, items=6, rng=np.random.default_rng(4)).responses.to_array()
    path = tmp_path / "answers.csv"

    def bring(matrix):
        rows = [[f"c{n}" for n in range(matrix.shape[1])], *matrix.tolist()]
        path.write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n")
        return discreet("fit", path, "--json")

    asked = "6 persons and 3,000 items: is the table transposed?"
    ended = bring(upright.T)
    assert asked in ended.err
    assert "exchange rows and columns" in ended.err
    followed = bring(upright)
    assert (followed.code, "transposed" in followed.err) == (0, False)
    assert followed.document["persons"] == 3000


def test_a_table_on_its_side_that_determines_nothing_is_asked_about_too():
    ended = fit_error(np.array([400 * [1], 400 * [0]]))
    assert "2 persons and 400 items: is the table transposed?" in ended


def fit_error(matrix):
    from discreet.errors import DisconnectedItems

    with pytest.raises(DisconnectedItems) as refused:
        fit(Responses.from_array(matrix))
    return str(refused.value)


def test_roll_calls_are_not_asked_about():
    votes = simulate(persons=100, items=520, rng=np.random.default_rng(5)).responses
    estimate = fit(votes, standard_errors=False)
    assert "transposed" not in {notice.kind for notice in estimate.warnings}


def test_groups_of_fewer_than_30_persons_are_warned_about(tmp_path):
    path = tmp_path / "answers.csv"
    sim = simulate(persons=100, items=5, rng=np.random.default_rng(6)).responses.to_array()

    def bring(n_small):
        groups = ["small" if n < n_small else "large" for n in range(100)]
        rows = [["id", "form", *(f"q{n}" for n in range(5))],
                *([n, groups[n], *row] for n, row in enumerate(sim.tolist()))]  # fmt: skip
        path.write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n")
        return discreet("dif", path, "--group", "form")

    few = bring(29)
    assert (few.code, "fewer than 30 persons in small (29)" in few.err) == (0, True)
    enough = bring(30)
    assert (enough.code, "fewer than" in enough.err) == (0, False)
    tiny = bring(2)
    assert (tiny.code, "join small groups" in tiny.err) == (5, True)


def test_the_python_side_gets_the_same_words(tmp_path):
    from discreet.errors import BadResponses

    path = write(tmp_path, MISTAKES["letters"])
    with pytest.raises(BadResponses) as caught:
        read_responses(path)
    assert caught.value.remedies[0].asks == "key"
    assert read_responses(path, key=RIGHT).to_array().tolist() == ANSWERS.tolist()
