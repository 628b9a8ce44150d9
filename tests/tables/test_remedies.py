"""What a refusal proposes is a value: it can be applied, and its sentence says the same."""

import re
from contextlib import suppress

import pytest

from discreet.coding.remedies import make_remedy, spell_command
from discreet.errors import BadResponses, BadUsage, DiscreetError
from discreet.readers.answers import read_responses
from discreet.tables.inspection import inspect_table
from spreadsheet_files import write_xlsx

ROWS = "ann,1,0,1\nbob,0,1,1\ncat,1,1,0\ndan,0,0,1\n"
WIDE = f"person,q1,q2,q3\n{ROWS}"

CASES = {
    "a code": (WIDE.replace("0,1,1", "0,9,1"), {"missing": [9]}),
    "a word": (WIDE.replace("0,1,1", "0,absent,1"), {"missing": ["absent"]}),
    "a note": (
        "person,note,q1,q2\nann,came much too late,1,0\nbob,,0,1\ncat,left before the end,1,1\n",
        "ignore",
    ),
    "a name": ("Matrikelnr,q1,q2\n4711,1,0\n4712,0,1\n4713,1,1\n", {"person": "Matrikelnr"}),
    "a class": ("person,Klasse,q1,q2\nann,7a,1,0\nbob,7b,0,1\ncat,7a,1,1\n", {"group": "Klasse"}),
    "a scale with a code": (
        "person,q1,q2\nann,4,0\nbob,1,2\ncat,9,1\ndan,3,4\neve,2,3\nfay,0,0\n",
        {"missing": [9]},
    ),
    "one item with steps": (WIDE.replace("0,1,1", "0,2,1"), {"missing": [2]}),
    "two persons' columns": (
        "student,user,q1,q2\na,1,1,0\nb,0,0,1\nc,1,1,1\n",
        {"person": "student"},
    ),
    "half a long table": ("id,item,q1\nann,1,0\nbob,0,1\ncat,1,1\n", {"layout": "wide"}),
    "answers given twice": (
        "person,item,response\nann,q1,1\nann,q1,0\nbob,q1,0\nbob,q2,1\n",
        {"repeats": "first"},
    ),
    "no row of names": ("1,0,1\n0,1,1\n1,1,0\n", {"header": False}),
    "a rare sign": ("person#q1#q2\nann#1#0\nbob#0#1\ncat#1#1\n", {"delimiter": "#"}),
}


def refuse(path, **options) -> DiscreetError:
    with pytest.raises((BadResponses, BadUsage)) as refused:
        read_responses(path, **options)
    return refused.value


@pytest.mark.parametrize("name", CASES)
def test_the_first_remedy_that_sets_something_makes_the_file_readable(name, tmp_path):
    content, wanted = CASES[name]
    path = tmp_path / "answers.csv"
    path.write_text(content)
    first = next(one for one in refuse(path).remedies if one.options)
    if isinstance(wanted, str):
        assert list(first.options) == [wanted]
    else:
        assert first.options == wanted
    assert read_responses(path, **first.options).n_answers > 0


@pytest.mark.parametrize("name", ["a code", "a word", "a note", "a name", "a class"])
def test_the_message_holds_the_words_of_every_remedy(name, tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text(CASES[name][0])
    refusal = refuse(path)
    assert refusal.remedies
    for one in refusal.remedies:
        assert f"{one.words[0].upper()}{one.words[1:]}." in str(refusal)
    assert refusal.found.column in str(refusal)


@pytest.mark.parametrize("name", CASES)
def test_a_button_says_what_to_do_in_words_without_keywords_and_options(name, tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text(CASES[name][0])
    offered = [*refuse(path).remedies]
    with suppress(BadResponses):
        offered += [one for finding in inspect_table(path).findings for one in finding.answers]
    for one in offered:
        assert not re.search(r"--|\w=|\bsay( so)?$|[ :,]$", one.label), one.label
        assert one.label[:1] == one.label[:1].upper()


def test_the_button_for_a_missing_code_is_a_whole_sentence(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text(CASES["a word"][0])
    assert refuse(path).remedies[0].label == "Absent stands for a missing answer"


def test_letters_ask_for_a_key_and_points_for_a_score(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("person,q1,q2\nann,A,B\nbob,C,A\n")
    assert refuse(path).remedies[0].asks == "key"
    path.write_text("person,q1,q2\nann,1.5,0\nbob,0,7\ncat,3,1\n")
    assert "at_least" in {one.asks for one in refuse(path).remedies}


def test_a_workbook_with_two_sheets_offers_each(tmp_path):
    rows = [["person", "q1", "q2"], ["ann", 1, 0], ["bob", 0, 1]]
    path = write_xlsx(tmp_path / "answers.xlsx", {"May": rows, "June 1": rows})
    remedies = refuse(path).remedies
    assert [one.options for one in remedies] == [{"sheet": "May"}, {"sheet": "June 1"}]
    assert remedies[1].words.endswith("(--sheet 'June 1')")


def test_options_are_spelt_as_a_shell_reads_them():
    assert make_remedy("say", {"missing": [98, "n/a"]}, asks="at_least").words == (
        "say missing=[98,'n/a'], at_least=SCORE (--missing 98,n/a --at-least SCORE)"
    )
    options = {
        "group": ["age", "the class"],
        "at_least": 2.5,
        "merge": {"Q1": "2+3"},
        "header": True,
    }
    assert spell_command(options) == [
        *("--group", "age", "--group", "'the class'", "--at-least", "2.5", "--merge", "Q1:2+3")
    ]
