"""Whatever the rows of one id hold: of every kind of source everybody else's answers stay.

Tables and kinds of sources are in :mod:`source_kinds`. The rows of one id are replaced by anything,
the source is opened as a release opens it, and everybody else's answers, the items, their steps,
the number of persons and all that is published are compared. A source that is refused counts as
such; of each kind most must be read. Spark and PostgreSQL are compared where their servers run
(``tests/readers``).
"""

import json
import math
from contextlib import closing, suppress
from datetime import date, datetime, time
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import discreet
from commandline import discreet as run
from discreet import Responses, read_comparisons, read_responses
from discreet.answers import matrices
from discreet.coding.reading import Reading
from discreet.errors import BadResponses, DiscreetError
from discreet.publishing.delivery import DataSource, open_listed
from discreet.publishing.release import release_comparisons
from discreet.publishing.spec import make_spec
from discreet.readers.streamed import open_stream
from discreet.tables import opener, sources
from discreet.tables.formats import jsonl, labelled, workbook
from refusals import refused
from source_kinds import (
    BUDGET,
    KINDS,
    CannotHold,
    check_whole,
    compare,
    list_lines,
    publish,
    replace_rows,
    write,
)
from spreadsheet_files import write_xlsx

LEAST = 0.35
"""Share of the tables of a kind that must be read and compared."""
FAST = 40


def test_a_long_run_compares_many_tables_of_every_kind():
    assert sum(LEAST * kind.trials for kind in KINDS.values()) >= 20_000


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", KINDS)
def test_rows_of_one_id_change_nobody_elses_answers(name, tmp_path):
    check_whole(KINDS[name], tmp_path)
    ended = compare(KINDS[name], name, FAST, tmp_path)
    print(f"{name}: {dict(ended)}")
    assert ended["compared"] >= LEAST * FAST


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", KINDS)
def test_rows_of_one_id_that_hold_anything_change_nobody_elses_answers(name, tmp_path):
    kind = KINDS[name]
    ended = compare(kind, f"{name}, long", kind.trials, tmp_path)
    print(f"{name}: {dict(ended)}")
    assert ended["compared"] >= LEAST * kind.trials


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", KINDS)
def test_rows_of_one_id_change_no_published_field(name, tmp_path):
    """Bundles byte by byte: the values are held, so that all else is what the source decided."""
    kind, whole, compared = KINDS[name], {}, set()
    for number, (table, _, lines) in enumerate(replace_rows(kind, f"{name}, published", 60)):
        key = kind.tables.index(table)
        done = key in compared or len(compared) == 2
        if {*table.items.values()} != {1} or table.groups or done:
            continue
        if key not in whole:
            source = kind.write(tmp_path, table, list_lines(table))
            whole[key] = publish(source, table, kind.engine, tmp_path / f"whole-{number}")
        with suppress(CannotHold, DiscreetError):
            source = write(kind, tmp_path, table, lines)
            found = publish(source, table, kind.engine, tmp_path / f"out-{number}")
            assert found == whole[key]
            compared.add(key)
    assert compared


# -- each kind of hole by itself -------------------------------------------------------------------


def read_listed(source, items=("q1", "q2"), persons=None, engine="auto", **words):
    """Return the answers by id as a release reads them."""
    told = make_spec(BUDGET, items=items, persons=persons).public
    with open_listed(DataSource(source, engine), words, told) as answers:
        rows = map(tuple, answers.to_array().tolist())
        return dict(zip(answers.persons.tolist(), rows, strict=True))


def check_refused(source, advice, **words):
    """Check that a release refuses what was detected, and says what to do."""
    with refused(BadResponses, "release_reads_answers_stated") as caught:
        read_listed(source, **words)
    assert advice in caught.value.facts["advice"]


def test_a_sheet_without_names_is_counted_from_column_a_and_row_1(tmp_path):
    """One answer to the first item, or none: the others stay where they are."""
    rows = [[None, 1, 0], [1, 0, 1], [None, 1, 1]]
    for mine in ([1, 0, 1], [None, 0, 1]):
        path = write_xlsx(tmp_path / "answers.xlsx", {"one": [rows[0], mine, rows[2]]})
        found = read_listed(path, ["1", "2", "3"], persons=3, header=False)
        assert (found["0"], found["2"]) == ((-1, 1, 0), (-1, 1, 1))
        assert found["1"] == (1 if mine[0] else -1, 0, 1)
    with refused(BadResponses, "bad_answer", where="b.xlsx, sheet 'one', row 4", column="3"):
        read_responses(
            write_xlsx(tmp_path / "b.xlsx", {"one": [*rows, [None, 1, "x"]]}), header=False
        )
    named = [[None, None, None], [None, "q1", "q2"], [None, 1, 0], [None, 0, 1]]
    path = write_xlsx(tmp_path / "named.xlsx", {"one": named})
    assert read_responses(path).to_array().tolist() == [[1, 0], [0, 1]]


def test_a_text_in_a_sheet_makes_no_truth_value_a_number(tmp_path):
    for mine in (1, "x", None):
        rows = [["id", "q1", "q2"], ["a", True, 1], ["b", mine, 0], ["c", False, 1]]
        path = write_xlsx(tmp_path / "answers.xlsx", {"one": rows})
        found = read_listed(path, at_least=0.5, invalid="missing")
        assert (found["a"], found["c"]) == ((-1, 1), (-1, 1))


FRAMES = {
    "records": lambda table: table.to_dict("records"),
    "columns": lambda table: {name: list(table[name]) for name in table},
    "pandas objects": lambda table: table,
}


@pytest.mark.parametrize("form", FRAMES)
@pytest.mark.parametrize(
    "cell", [date(1970, 1, 2), time(0, 0, 1), datetime(1970, 1, 1, 0, 0, 1), Decimal("1.5"), True]
)
def test_a_cell_of_another_type_in_the_first_row_changes_no_other_cell(form, cell):
    rows = [("b", cell, 1), ("a", 1, 0), ("c", 0, 1)]
    table = pd.DataFrame(rows, columns=["id", "q1", "q2"], dtype=object)
    found = read_listed(FRAMES[form](table), invalid="missing")
    assert (found["a"], found["c"]) == ((1, 0), (0, 1))
    keyed = read_listed(FRAMES[form](table), key={"q1": "1", "q2": "0"})
    assert (keyed["a"], keyed["c"]) == ((1, 1), (0, 0))
    whole = Responses.from_dataframe(FRAMES[form](table), invalid="missing")
    assert list(found.values()) == list(map(tuple, whole.to_array().tolist()))


@pytest.mark.parametrize("form", FRAMES)
def test_a_decimal_renames_no_other_item_and_no_object(form):
    rows = [(who, Decimal(item), 1) for who in "ac" for item in (1, 2)] + [("b", Decimal("1.5"), 0)]
    table = pd.DataFrame(rows, columns=["id", "item", "response"], dtype=object)
    found = read_listed(FRAMES[form](table), ["1", "2", "1.5"])
    assert found == {"a": (1, 1, -1), "c": (1, 1, -1), "b": (-1, -1, 0)}
    rows = [(who, Decimal(1), Decimal(2)) for who in "ac"] + [("b", Decimal("1.5"), Decimal(1))]
    table = pd.DataFrame(rows, columns=["judge", "winner", "loser"], dtype=object)
    assert read_comparisons(FRAMES[form](table)).items == ("1", "1.5", "2")


def test_a_frame_is_read_cell_by_cell_for_a_fit_as_for_a_release():
    """Numbers of all types, and texts of them: the same answers, the same ids."""
    cells = [1, 1.0, True, "1", Decimal("1.0"), np.int8(1), np.float32(1), np.bool_(True), "1.00"]
    records = [{"id": n, "q1": cell, "q2": 0} for n, cell in enumerate(cells)]
    answers = Responses.from_dataframe(records, keep=["q1", "q2"])
    assert answers.to_array().tolist() == [[1, 0]] * len(cells)
    assert list(read_listed(records).values()) == [(1, 0)] * len(cells)
    assert answers.to_dataframe()["person"].dtype == np.int64  # all of them were numbers
    ids = [7, 7.0, "8", Decimal("8.0"), np.float32(9), pd.NA, None, math.nan, pd.NaT]
    table = [{"id": one, "item": n, "response": 1} for n, one in enumerate(ids[:5])]
    assert Responses.from_dataframe(table).persons.tolist() == ["7", "8", "9"]
    for nobody in ids[5:]:
        with refused(
            BadResponses, "column_id_missing_without", name="id", role="person", role_2="person"
        ):
            Responses.from_dataframe([*table, {"id": nobody, "item": 9, "response": 1}])


def test_a_cell_that_is_no_text_is_shown_by_its_signs_and_refused():
    """Half a character, bytes in another encoding, a number of thousands of digits."""
    for cell, shown in (("\ud800", r"\\ud800"), (b"\xff", r"\\xff"), (10**5000, "0x")):
        with refused(BadResponses, "bad_answer", column="q1") as caught:
            Responses.from_dataframe([{"id": "a", "q1": 1}, {"id": "b", "q1": cell}])
        assert str(caught.value.facts["value"]).strip("'").startswith(shown)
        named = read_listed([{"id": "a", "q1": 1, "q2": 0}, {"id": cell, "q1": 0, "q2": 1}])
        (name,) = named.keys() - {"a"}
        assert (named["a"], name.startswith(shown[0])) == ((1, 0), True)


@pytest.mark.parametrize("number", [2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**30])
def test_whole_numbers_of_any_size_are_ids_and_no_answers(number):
    for table in (
        [{"id": "a", "q1": 1, "q2": 0}, {"id": number, "q1": 0, "q2": 1}],
        {"id": ["a", number], "q1": [1, 0], "q2": [0, 1]},
        pd.DataFrame({"id": ["a", number], "q1": [1, 0], "q2": [0, 1]}),
        pd.DataFrame({"id": [5, number], "q1": [1, 0], "q2": [0, 1]}),
    ):
        assert Responses.from_dataframe(table).persons.tolist()[1] == str(number)
        assert list(read_listed(table)) == Responses.from_dataframe(table).persons.tolist()
    with refused(BadResponses, "bad_answer"):
        Responses.from_dataframe([{"id": "a", "q1": 1}, {"id": "b", "q1": number}])
    assert Responses.from_array([[1], [0]], persons=[5, number]).persons.tolist()[1] == str(number)


VOTES = 'judge,winner,loser,note\nb,ash,elm,"x\na,ash,elm,1\nc,elm,ash,1\nb,elm,oak,y"\n'
WRITTEN = "judge,winner,loser,note\nb,ash,elm,x\na,ash,elm,1\nc,elm,ash,1\nb,elm,oak,y\n"


def test_a_quoted_line_end_of_one_judge_takes_in_nobody_elses_rows(tmp_path):
    path, about = tmp_path / "votes.csv", {"items": ["ash", "elm", "oak"], "max_comparisons": 3}
    path.write_text(WRITTEN)
    assert release_comparisons(path, BUDGET, **about).record["judges"] == 3
    path.write_text(VOTES)
    before = read_comparisons(path)
    assert before.n_judges == 1  # a text may have several lines, but not in a release
    for votes in (path, before, before.keep(["ash", "elm"])):
        with refused(BadResponses, "release_reads_answers_stated") as caught:
            release_comparisons(votes, BUDGET, **about)
        assert "line 2: the row and its line differ" in caught.value.facts["advice"]
    (tmp_path / "objects.txt").write_text("ash\nelm\noak\n")
    ledger = tmp_path / "ledger.db"
    assert run("ledger", "create", ledger, "--epsilon", 5, "--delta", 1e-5).code == 0
    listed = ("--items", tmp_path / "objects.txt", "--max-comparisons", 3, "--epsilon", 1)
    done = run(
        *("compare", "release", path, *listed, "--ledger", ledger, "--out", tmp_path / "out")
    )
    assert done.code == 3
    assert "Write every row in one line" in done.err


QUOTED = 'id,q1,q2,note\na,1,0,x\nb,0,1,"two\nlines"\nc,1,1,y\n'


@pytest.mark.parametrize("text", [QUOTED, QUOTED.replace('"two\nlines"', "two\rz,1,1,x")])
def test_answers_that_were_read_before_keep_that_a_row_had_several_lines(text, tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text(text, newline="")
    for engine in ("memory", "disk"):
        check_refused(path, "Write every row in one line", engine=engine)
    with closing(open_stream(path, reading=Reading(ignore="note", repeats="last"))) as streamed:
        check_refused(streamed, "Write every row in one line")
    before = read_responses(path, ignore="note", repeats="last")
    check_refused(before, "Write every row in one line")
    check_refused(before.select(["q1", "q2"]), "Write every row in one line")
    path.write_text(text.replace("two\nlines", "two").replace("\rz,1,1,x", ""), newline="")
    assert len(read_listed(path)) == 3


def test_a_cell_that_reads_like_a_control_file_makes_none_of_the_table(tmp_path):
    """The format is public: what stands in front decides on it, never one person's text."""
    path = tmp_path / "answers.csv"
    control = "NI=2\nITEM1=5\nNAME1=1\nNAMLEN=3\nCODES=01\n&END\nq1\nq2\nEND NAMES\na   10\n"
    for quote, names in (
        ('"', "id,q1,q2,note\n"),
        ("", "id,q1,q2,note\n"),
        ('"', "=,q1,q2,note\n"),
    ):
        path.write_text(f"{names}a,1,0,x\nb,1,1,{quote}x\n{control}{quote}\nc,1,1,y\nd,0,0,z\n")
        with pytest.raises(BadResponses) as caught:
            read_listed(path)
        assert caught.value.code in ("release_reads_answers_stated", "line_found_first_row")
    for head in ("&INST\n", "; a test\n\n", "TITLE='A test'\n", ""):
        (tmp_path / "test.con").write_text(f"{head}{control}b   11\n")
        assert read_listed(tmp_path / "test.con") == {"a": (1, 0), "b": (1, 1)}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_are_counted_whatever_ends_them(encoding, end, tmp_path):
    """Quoted texts without line ends are released, also a name of several lines."""
    path = tmp_path / "answers.csv"
    lines = ['"id","q1","q2","a', 'note"', '"a",1,0,"x ""y"" z"', 'b,0,1,""', "", "c,1,1,u\u2028"]
    path.write_text(end.join(lines), encoding=encoding, newline="")
    assert read_listed(path) == {"a": (1, 0), "b": (0, 1), "c": (1, 1)}
    lines[3] = f'b,0,1,"x{end}{end}y"'
    path.write_text(end.join(lines), encoding=encoding, newline="")
    check_refused(path, "line 4: the row and its line differ")


@pytest.mark.parametrize("text", ["q1,q2\n1,0\n\n0,1\n", "q1,q2\r\n1,0\r\n0,1\r\n\r\n"])
def test_blank_lines_between_rows_without_ids_may_be_persons(text, tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text(text, newline="")
    check_refused(path, "persons= (--persons)")
    check_refused(read_responses(path), "persons= (--persons)")
    assert len(read_listed(path, persons=3)) == 2
    path.write_text(text.replace("q1,q2", "id,q1,q2").replace("1,0", "a,1,0"), newline="")
    path.write_text(path.read_text().replace("0,1", "b,0,1", 1).replace("a,1,b,0,1", "a,1,0"))
    assert len(read_responses(path, ignore="id")) == 2


def test_a_first_row_that_reads_like_the_delimiters_line_is_a_person(tmp_path):
    path = tmp_path / "answers.csv"
    for first in ("sep=;", "sep=,", "1"):
        path.write_text(f'"{first}",1,x\n1,0,x\n0,1,x\n')
        found = read_listed(path, ["1", "2"], header=False, invalid="missing")
        assert (len(found), found["1"], found["2"]) == (3, (1, 0), (0, 1))


@pytest.mark.parametrize("make", [list, np.array, lambda rows: np.ma.array(rows, mask=False)])
@pytest.mark.parametrize("text", ["true", "FALSE", " true ", "1", b"true"])
def test_a_text_of_one_person_does_not_switch_the_told_steps_off(make, text):
    """Rows of 0 and 1 were read as right and wrong, turned items and all."""
    rows = [[0, 1], [text, "1"], [1, 1]]
    found = read_listed(make(rows), {"0": 3, "1": 3}, reverse=["0"])
    assert (found["0"], found["2"]) == ((3, 1), (2, 1))
    assert found["1"][0] == (3 if text == "FALSE" else 2)
    for bad in ("x", "2024-05-01"):
        with pytest.raises(BadResponses, match=f"Row 1, column 0 .*found '{bad}'"):
            read_listed(make([[0, 1], [bad, "1"], [1, 1]]), {"0": 3, "1": 3}, reverse=["0"])
    nothing = np.array([[0, 1], [pd.NA, 1], [1, pd.NaT]], dtype=object)
    found = read_listed(nothing, {"0": 3, "1": 3}, reverse=["0"])
    assert found == {"0": (3, 1), "1": (-1, 1), "2": (2, -1)}


def write_log(folder, model, scores):
    """Write a log of Inspect."""
    samples = [
        {"id": name, "epoch": 1, "scores": {"match": {"value": value}}}
        for name, value in scores.items()
    ]
    log = {"version": 2, "status": "success", "eval": {"task": "arc", "model": model}}
    path = folder / f"{model}.json"
    path.write_text(json.dumps({**log, "samples": samples}))
    return path


@pytest.mark.filterwarnings("ignore:.*holds no samples")
def test_a_log_without_samples_is_a_person_without_answers(tmp_path):
    for model in "abc":
        write_log(tmp_path, model, {1: 1, 2: 0})
    listed = ["arc/1", "arc/2"]
    assert len(read_listed(tmp_path, listed)) == 3
    for model in "ac":
        write_log(tmp_path, model, {})
    expected = {"a": (-1, -1), "b": (1, 0), "c": (-1, -1)}
    assert read_listed(tmp_path, listed) == expected
    assert read_listed(tmp_path, listed, group="epoch") == expected
    assert read_listed(tmp_path, listed, response="match") == expected
    assert read_listed(read_responses(tmp_path), listed) == expected
    turned = read_responses(tmp_path, person="question", item="model")
    assert turned.persons.tolist() == listed
    write_log(tmp_path, "b", {})
    with refused(BadResponses, "no_file_read_take"):
        read_responses(tmp_path)


def test_only_a_line_feed_ends_a_line_of_winsteps(tmp_path):
    head = "NI=2\nITEM1=4\nNAME1=1\nCODES=01\n&END\nq1\nq2\n"
    path = tmp_path / "test.con"

    def write(label, *, names="END NAMES\n", end="\n"):
        path.write_bytes(f"{head}{names}a  10\n{label}\nc  11{end}".encode())
        return path

    whole = {"a": (1, 0), "b": (0, 1), "c": (1, 1)}
    assert read_listed(write("b  01")) == read_listed(write("b  01\r", end="")) == whole
    for sign in "\u2028\u2029\x0b\x0c\x1c\x85\r":
        found = read_listed(write(f"b{sign} 01"))
        assert (len(found), found["a"], found["c"]) == (3, (1, 0), (1, 1))
    check_refused(write("       "), "it has blank lines")
    check_refused(write("b  01", end="\n\n"), "it has blank lines")
    check_refused(write("b  01", names=""), "no END NAMES")
    check_refused(write("b  01"), "without ids", ignore="person")
    assert len(read_listed(write("b  01"), persons=3, ignore="person")) == 3
    assert len(read_responses(write("       "))) == 2


# -- ids that were rounded -------------------------------------------------------------------------


ROUNDED = "so large that it was rounded"


@pytest.mark.parametrize(
    ("kind", "first"), [("float64", 2**53), ("float32", 2**24), ("float16", 2**11)]
)
def test_ids_that_floats_round_are_refused(kind, first):
    def table(start):
        ids = np.array([start, start + 1, start + 2], dtype=kind)
        return pd.DataFrame({"person": ids, "item": ["q1", "q2", "q1"], "response": [1, 0, 0]})

    assert Responses.from_dataframe(table(first - 3)).n_persons == 3
    wide = table(first).rename(columns={"person": "id", "response": "q1"})[["id", "q1"]]
    for frame, words in ((table(first), {}), (table(-first), {}), (wide, {"person": "id"})):
        with refused(BadResponses, "column_found_large_rounded"):
            Responses.from_dataframe(frame, **words)
    with refused(BadResponses, "not_clear_refuse_questions"):  # each may be a person
        Responses.from_dataframe(wide)
    items = table(first).rename(columns={"person": "item", "item": "person"})
    with refused(BadResponses, "column_found_large_rounded"):
        Responses.from_dataframe(items)
    grouped = table(first).assign(person=["a", "b", "c"], size=table(first)["person"])
    assert Responses.from_dataframe(grouped, group="size").n_persons == 3


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_ids_that_a_file_has_in_exponents_are_refused(engine, tmp_path):
    """400 persons of a merged table became 201."""
    ids = 2**60 + 128 * np.arange(400)
    cells = [(f"q{(7 * n + k) % 5000}", 1) for n in range(400) for k in range(6)]
    table = pd.DataFrame(cells, columns=["item", "response"]).assign(person=np.repeat(ids, 6))
    path = tmp_path / "answers.csv"
    table.to_csv(path, index=False)
    assert discreet.count_pairs(path, engine=engine).persons == 400
    table.assign(person=table["person"].astype(float)).to_csv(path, index=False)
    with refused(BadResponses, "column_found_large_rounded"):
        discreet.count_pairs(path, engine=engine)
    judged = pd.DataFrame(
        {"judge": ids[:2].astype(float), "winner": ["x", "y"], "loser": ["y", "x"]}
    )
    with refused(BadResponses, "column_found_large_rounded", role="judge"):
        read_comparisons(judged)


@pytest.mark.parametrize(
    ("start", "is_exact"),
    [("1e+05", True), ("2.5e+10", True), ("1.23457E+11", False), ("9007199254740994.0", False)],
)
def test_numbers_as_programs_write_them_are_ids_unless_they_were_rounded(start, is_exact, tmp_path):
    """R writes 100000 as 1e+05, Excel shows 12 digits with an exponent, pandas adds a point."""
    path, answers = tmp_path / "answers.csv", "".join(f"{n},q1,1\n{n},q2,0\n" for n in range(9))
    path.write_text(f"person,item,response\n{answers}{start},q1,1\n{start},q2,0\n")
    if is_exact:
        assert read_responses(path).persons[-1] == start
        return
    with refused(BadResponses, "column_found_large_rounded"):
        read_responses(path)
    path.write_text(path.read_text() + f"{start},q1,0\n")  # as many persons with one id have
    with refused(BadResponses, "column_found_large_rounded"):
        read_responses(path)


# -- planted faults --------------------------------------------------------------------------------


def nothing(*_args, **_words):
    return ()


def infer(cells):
    """Let Arrow find a type for all cells, as it was once."""
    return sources.pa.array(cells, from_pandas=True)


def make_numbers(cells):
    """Take truth values for numbers wherever that goes."""
    with suppress(sources.pa.ArrowInvalid, sources.pa.ArrowTypeError):
        return sources.pa.array(cells, sources.pa.float64())
    return sources.make_column(cells)


def skip_empty(path, load=jsonl._load_inspect):
    """Return a log without samples as one of nobody new."""
    model, samples = load(path)
    return (model if samples else "d", samples)


def count_used(table, list_rows=workbook._list_rows):
    """Begin with the first column that holds anything."""
    return [row[table.start[1] :] for row in list_rows(table)]


def forget_scale(X, items, missing=(), options=None, scale=None, store=matrices.store_array):
    """Read right and wrong where an entry is a text."""
    has_text = any(isinstance(cell, str) for cell in np.ma.getdata(X).ravel().tolist())
    return store(X, items, missing, options, None if has_text else scale)


def make_decimals(*args, assign=opener.assign_groups):
    """Spell the groups of everybody with a point where somebody has none."""
    groups = assign(*args)
    if "" in groups:
        groups[:] = [f"{group}.0" if group.isdigit() else group for group in groups]
    return groups


FAULTS = {
    "groups that a blank renames": (opener, "assign_groups", make_decimals, "records"),
    "types of all cells together": (sources, "make_column", infer, "pandas objects"),
    "types of all cells of records": (sources, "make_column", infer, "records"),
    "numbers of all cells of a sheet": (
        *(workbook, "make_column", make_numbers),
        lambda folder: test_a_text_in_a_sheet_makes_no_truth_value_a_number(folder),
    ),
    "columns from the first one used": (
        workbook,
        "_list_rows",
        count_used,
        "workbook without names",
    ),
    "lines that are not counted": (sources.DelimitedSource, "_check_lines", nothing, "csv"),
    "steps that a text switches off": (matrices, "store_array", forget_scale, "object array"),
    "a log that is skipped": (jsonl, "_load_inspect", skip_empty, "log of inspect"),
    "lines that end at any sign": (labelled, "_split_lines", str.splitlines, "winsteps"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault, tmp_path, monkeypatch):
    place, name, replacement, kind = FAULTS[fault]
    monkeypatch.setattr(place, name, replacement)
    with pytest.raises(AssertionError):
        kind(tmp_path) if callable(kind) else compare(KINDS[kind], f"{kind}, long", 2000, tmp_path)
