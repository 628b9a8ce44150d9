"""Tables for a paper in APA form, as Markdown and Word; sheets of items; pages that print."""

import re

import numpy as np
import pytest
from experiments.calibration.cutoffs import draw_answers

import discreet as library
from browser import count_printed, needs_browser
from commandline import discreet
from discreet.analysis import check_model
from discreet.errors import BadUsage
from discreet.items.study import diagnose
from discreet.report.diagnosis import diagnose_test
from discreet.report.page import write_diagnosis, write_item_sheets
from discreet.report.paper import (
    list_paper_tables,
    write_markdown_tables,
    write_methods,
    write_word_tables,
)
from refusals import refused


def diagnose_drawn(steps=1, groups=False, **fault):
    """Return the diagnosis of 400 persons and 8 items, the second of which has an odd name."""
    drawn = draw_answers(400, 8, np.random.default_rng(3), steps=steps, **fault)
    names = ["a", "b|*b*", *"cdefgh"]
    labels = {"sex": np.array(["f", "m"] * 200)} if groups else {}
    answers = library.Responses(tuple(names), drawn.persons, drawn.store, groups=labels)
    estimate = library.fit(answers)
    return diagnose_test(estimate, diagnose(answers, estimate))


@pytest.fixture(scope="module")
def test_of_steps():
    return diagnose_drawn(steps=2, groups=True)


def test_the_table_of_items_has_the_numbers_of_the_estimate(test_of_steps):
    items, thresholds, _, groups = list_paper_tables(test_of_steps)
    estimate = test_of_steps.estimate
    assert items.heads == ("Item", "n", "M", "b", "SE", "95% CI", "Infit", "Outfit", "r")
    row = items.rows[2]
    assert row[0] == "c"
    assert float(row[3].replace("\N{MINUS SIGN}", "-")) == round(float(estimate.difficulty[2]), 2)
    assert re.fullmatch(r"\[\N{MINUS SIGN}?\d\.\d\d, \N{MINUS SIGN}?\d\.\d\d\]", row[5])
    assert re.fullmatch(r"\.\d\d", row[8])  # a correlation has no zero before the point
    assert thresholds.heads == ("Item", "Step 1", "Step 2")
    assert groups.heads == ("Item", "Group", "Difference", "SE", "p", "ETS")
    assert len(groups.rows) == 8


def test_a_star_marks_what_is_beyond_its_limit():
    test = diagnose_drawn(random_item=0.9)
    items = list_paper_tables(test)[0]
    assert items.rows[0][6].endswith("*") or items.rows[0][7].endswith("*")
    assert not any(row[6].endswith("*") for row in items.rows[3:])
    assert "5% of sound tests" in items.note


def test_markdown_has_every_cell_and_no_mark_of_a_name(test_of_steps):
    text = write_markdown_tables(test_of_steps)
    tables = list_paper_tables(test_of_steps)
    for number, table in enumerate(tables, 1):
        assert f"**Table {number}**\n\n*{table.title}*" in text
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(lines) == sum(len(table.rows) + 2 for table in tables)
    assert {line.count(" | ") for line in lines[:10]} == {8}
    assert "b&#124;" in text
    assert "b|*b*" not in text
    assert "Confidential" in text.splitlines()[0]


def test_word_has_the_same_cells_and_lines_of_apa(test_of_steps, tmp_path):
    docx = pytest.importorskip("docx")
    path = tmp_path / "tables.docx"
    write_word_tables(path, test_of_steps)
    document = docx.Document(str(path))
    tables = list_paper_tables(test_of_steps)
    assert len(document.tables) == len(tables)
    for table, grid in zip(tables, document.tables, strict=True):
        cells = [tuple(cell.text for cell in row.cells) for row in grid.rows]
        assert cells == [table.heads, *table.rows]
        borders = [row.cells[0]._tc.xpath("./w:tcPr/w:tcBorders/*") for row in grid.rows]
        assert [len(lines) for lines in borders] == [2, *[0] * (len(table.rows) - 1), 1]
    texts = [paragraph.text for paragraph in document.paragraphs]
    assert texts[0].startswith("Confidential")
    assert write_methods(test_of_steps) in texts
    assert "Table 1" in texts
    assert any(text.startswith("Note. ") for text in texts)


def test_word_tables_stay_with_their_titles_and_notes(test_of_steps, tmp_path):
    docx = pytest.importorskip("docx")
    path = tmp_path / "tables.docx"
    write_word_tables(path, test_of_steps)
    document = docx.Document(str(path))
    for grid in document.tables:
        above = grid._tbl.getprevious()
        assert above.xpath("./w:pPr/w:keepNext")
        assert above.getprevious().xpath("./w:pPr/w:keepNext")
        assert all(row._tr.xpath("./w:trPr/w:cantSplit") for row in grid.rows)
        assert grid.rows[-1]._tr.xpath(".//w:pPr/w:keepNext")  # the note follows
        assert grid.rows[0]._tr.xpath("./w:trPr/w:tblHeader")
        letters = [max(len(cell.text) for cell in column.cells) for column in grid.columns]
        widths = [column.width for column in grid.columns]
        assert [widths[i] for i in np.argsort(letters, kind="stable")] == sorted(widths)
        assert sum(column.width for column in grid.columns) <= docx.shared.Inches(6.01)


def test_the_methods_paragraph_tells_of_groups_and_of_weights():
    drawn = draw_answers(400, 8, np.random.default_rng(3), steps=2)
    groups = {
        "sex": np.array(["f", "m", "f", "m", ""] * 80, dtype=object),
        "w": np.array(["1.5", "0.5"] * 200, dtype=object),
    }
    answers = library.Responses(drawn.items, drawn.persons, drawn.store, groups=groups)
    weighted = answers.weigh(weight="w")
    estimate = library.fit(weighted)
    test = diagnose_test(estimate, diagnose(weighted, estimate))
    text = write_methods(test)
    for words in (
        "Persons counted by their sampling weights.",
        "corrected for the sampling design (Rao & Scott, 1984)",
        "sums over persons were weighted",
        "between groups by sex by Wald tests of separate calibrations, with errors of the sampling",
        "80 persons without a group label were left out",
    ):
        assert words in text
    assert "groups by w" not in text  # the weights are no groups
    assert "those of the sample; all else is weighted" in list_paper_tables(test)[0].note
    plain = library.fit(library.Responses(drawn.items, drawn.persons, drawn.store))
    assert "weights" not in write_methods(diagnose_test(plain, diagnose(answers, plain)))


def test_the_methods_paragraph_names_every_exclusion():
    rows = draw_answers(300, 6, np.random.default_rng(5)).to_array().astype(float)
    rows[:, 0] = 1
    rows[5:12] = np.nan
    rows[5:12, 0] = 1
    names = ["easy", *"bcdef"]
    answers = library.Responses.from_array(rows, items=names)
    estimate = library.fit(answers)
    test = diagnose_test(estimate, diagnose(answers, estimate))
    text = write_methods(test)
    assert "1 of the 6 items had no estimable difficulty: easy (always in the highest" in text
    assert f"{test.study.abilities.extreme:,} who had everything right or everything wrong" in text
    assert "7 who answered no item with a difficulty" in text
    assert "999 sets of answers simulated" in text
    assert "Martin-Löf's (1973) test" in text


def test_a_sheet_per_item_says_what_its_writer_can_use(test_of_steps):
    page = write_item_sheets(test_of_steps)
    assert page.count('<section class="sheet">') == 8
    assert page.count("Confidential. Computed from persons") == 8
    assert "<h1>b|*b*</h1>" in page
    assert "Expected and observed" in page
    assert "Categories" in page
    assert "mean score" in page


def test_sheets_need_answers():
    test = diagnose_test(library.fit(library.datasets.lsat()))
    with refused(BadUsage, "item_sheets_need_answers"):
        write_item_sheets(test)


def test_a_check_writes_its_tables_and_sheets(tmp_path):
    pytest.importorskip("docx")
    found = check_model(library.datasets.lsat())
    for name in ("tables.docx", "tables.md"):
        found.write_tables(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    found.write_item_sheets(tmp_path / "sheets.html")
    assert (tmp_path / "sheets.html").read_text().count('class="sheet"') == 5
    with refused(BadUsage, "tables_written_docx_md", name="tables.txt"):
        found.write_tables(tmp_path / "tables.txt")


@needs_browser
def test_sheets_print_one_item_a_page_and_the_report_prints_whole(test_of_steps, tmp_path):
    sheets, report = tmp_path / "sheets.html", tmp_path / "report.html"
    sheets.write_text(write_item_sheets(test_of_steps))
    assert count_printed(sheets) == 8
    report.write_text(write_diagnosis(test_of_steps))
    assert 4 <= count_printed(report) <= 14


def test_the_command_writes_tables_and_sheets(tmp_path):
    pytest.importorskip("docx")
    path = tmp_path / "answers.csv"
    rows = library.datasets.lsat().to_array()[::4]
    path.write_text("a,b,c,d,e\n" + "\n".join(",".join(map(str, row)) for row in rows))
    out = tmp_path / "out"
    assert discreet("fit", path, "--out", out).code == 0
    ended = discreet("result", "report", out, "--tables", "word", "--item-sheets")
    assert ended.code == 0
    names = {"tables.confidential.docx", "item_sheets.confidential.html"}
    assert names <= {file.name for file in out.iterdir()}
    assert all(name in ended.out for name in names)
    assert discreet("result", "report", out, "--tables", "markdown").code == 0
    assert (out / "tables.confidential.md").read_text().startswith("> Confidential")
    assert discreet("result", "report", out, "--tables", "markdown").code == 2  # it exists
