"""No name in a file steers a terminal, forges a line, or changes what an approver reads."""

import ast
import csv
import io
import json
import os
import subprocess
import sys
import unicodedata
from base64 import b64encode
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from commandline import discreet as run
from commandline import environment
from discreet.cli import output
from discreet.cli.approvals import print_request
from discreet.errors import BadUsage
from discreet.privacy.accounting import Budget
from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger.request import Request, make_request

ESCAPE = "\x1b[1A\x1b[1G\x1b[2Kepsilon      0.1"
NAMES = [
    f"Q1{ESCAPE}",
    "Q2\r\nepsilon      0.1",
    "Q3\u202e1.0 nolispe\u2066",
    "Q4\x9b2J\x07\x08\x7f",
    "Q5\u2028\u200b\ufeff\u00ad",
    "Q6\u2069\u2068\U000e0041",
]
"""Commands to a terminal, line breaks, direction marks, characters without width."""
INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
ALLOWED = "\n\u2068\u2069\u200c\u200d"
"""Our line breaks, isolates around names, and joiners, which the unit tests look at."""


def steering(text):
    return {sign for sign in text if unicodedata.category(sign) in INVISIBLE} - {*ALLOWED}


def write_rows(path, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """Files whose every name is hostile: items, persons, groups, judges, populations, titles."""
    folder = tmp_path_factory.mktemp("desk")
    rng = np.random.default_rng(4)
    right = rng.random((120, 6)) < 1 / (
        1 + np.exp(np.linspace(-1, 1, 6) - rng.normal(size=(120, 1)))
    )
    people = [f"p{p}{ESCAPE}" for p in range(120)]
    groups = [f"g{p % 2}\x1b[2J" for p in range(120)]
    wide = [["person", *NAMES, "group\x1b[2J"]]
    wide += [
        [person, *row, group]
        for person, row, group in zip(people, right.astype(int).tolist(), groups, strict=True)
    ]
    write_rows(folder / "wide.csv", wide)
    write_rows(folder / "plain.csv", [row[:-1] for row in wide])
    write_rows(folder / "other.csv", [row[:-1] for row in wide[:1] + wide[60:]])
    write_rows(folder / "bad.csv", [wide[0][:-1], [people[0], *["7\x1b[2J"] * 6]])
    votes = [[f"j{j}{ESCAPE}", NAMES[j % 6], NAMES[(j + 1 + j % 4) % 6]] for j in range(60)]
    write_rows(folder / "votes.csv", [["judge", "winner", "loser"], *votes])
    for name, source in (("a", "plain.csv"), ("b", "other.csv")):
        assert run("fit", folder / source, "--out", folder / name).code == 0
    book = Ledger.create(folder / "spent.db", 3.0)
    for version, more in (("1", {}), ("2", {"supersedes": "1", "reason": "Wrong key"})):
        told = {"title": "T", "version": version, **more}
        listed = NAMES if version == "1" else NAMES[:5]
        data = discreet.read_responses(folder / "plain.csv").select(listed)
        discreet.release(
            data, Budget(0.5), items=listed, ledger=book, about=told, out=folder / version
        )
    (folder / "policy.toml").write_text(
        'about = "Board\\u001b[2J\\nepsilon 0.1"\nmax_epsilon = 1.0\n'
    )
    ruled = Ledger.create(folder / "ruled.db", 3.0, policy=folder / "policy.toml")
    spend = book.releases()[0].spend
    ruled.reserve(spend, fingerprint="f", description=ESCAPE)
    return folder


def forged(desk, items=NAMES, **more):
    """Write a request with epsilon 0.9 whose names say 0.1."""
    book = Ledger.open(desk / "spent.db")
    told = {"items": items, "ledger": book, "persons": 200, **more}
    request = discreet.propose(Budget(0.9), **told)
    request.save(desk / "request.json")
    return desk / "request.json"


LINES = {
    "fit": ["fit", "plain.csv"],
    "fit of letters": ["fit", "wide.csv", "--group", "group\x1b[2J"],
    "check": ["check", "plain.csv"],
    "top": ["top", "plain.csv", "-k", "2"],
    "top of a release": ["top", "1", "-k", "2"],
    "mislabelled": ["table", "mislabelled", "plain.csv"],
    "score": ["score", "plain.csv", "--with", "a"],
    "dif": ["dif", "wide.csv", "--group", "group\x1b[2J"],
    "link": ["link", "a", "b"],
    "drift": ["drift", "a", "b"],
    "compare-items": ["result", "compare", "1", NAMES[0], NAMES[1]],
    "compare rank": ["compare", "rank", "votes.csv"],
    "ledger show": ["ledger", "show", "spent.db"],
    "ledger show with a policy": ["ledger", "show", "ruled.db"],
    "ledger report": ["ledger", "report", "spent.db"],
    "verify": ["verify", "1"],
    "withdraw": ["steward", "withdraw", "1", "--because", f"It {ESCAPE}"],
    "correct": ["steward", "correct", "1", "--by", "2"],
    "population": ["ledger", "population", "spent.db", "south"],
    "merge": ["table", "merge", "c.npz", "--out", "m.npz", "--force"],
}
WITH_JSON = ["fit", "check", "top", "mislabelled", "score", "dif", "link", "drift", "ledger show",
             "ledger report", "compare-items", "compare rank"]  # fmt: skip


def run_line(desk, monkeypatch, name, *more):
    monkeypatch.chdir(desk)
    run("table", "counts", "plain.csv", "--out", "c.npz", "--force")
    return run(*LINES[name], *more)


@pytest.mark.parametrize("name", LINES)
def test_no_command_sends_what_a_name_holds_to_the_terminal(desk, monkeypatch, name):
    ended = run_line(desk, monkeypatch, name)
    assert ended.code == 0, ended.err
    assert ended.out
    assert not steering(ended.out + ended.err)


@pytest.mark.parametrize("name", WITH_JSON)
def test_nor_does_json_and_it_still_holds_the_names(desk, monkeypatch, name):
    ended = run_line(desk, monkeypatch, name, "--json")
    assert ended.code == 0, ended.err
    assert not steering(ended.out + ended.err)
    if name in ("fit", "top", "dif"):
        assert NAMES[2] in json.dumps(ended.document, ensure_ascii=False)


MISTAKES = {
    "a file": ["fit", "no\x1b[2J\n.csv"],
    "an option": ["fit", "plain.csv", "--x\x1b[2J"],
    "a value": ["fit", "plain.csv", "--method", "\x1b[2J"],
    "an answer": ["fit", "bad.csv"],
    "an item": ["result", "compare", "1", NAMES[0], "no\x1b[2J"],
    "a group": ["dif", "plain.csv", "--group", "no\x1b[2J"],
    "a list": ["release", "plain.csv", "--items", "one.csv", "--epsilon", "0.1", "--ledger",
               "spent.db", "--out", "o"],
    "a population": ["release", "plain.csv", "--items", "one.csv", "--epsilon", "0.1", "--ledger",
                     "spent.db", "--out", "o", "--population", "no\x1b[2J"],
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_no_error_sends_what_it_repeats_to_the_terminal(desk, monkeypatch, name):
    monkeypatch.chdir(desk)
    write_rows(desk / "one.csv", [["item", "steps"], [NAMES[0], 1], [NAMES[1], "1\x1b[2J"]])
    ended = run(*MISTAKES[name])
    assert ended.code in (2, 3)
    assert not steering(ended.out + ended.err)
    assert ended.err.count("\n") <= (4 if name in ("an option", "a value", "an answer") else 1)


def test_a_message_about_an_endless_name_ends(desk, monkeypatch):
    monkeypatch.chdir(desk)
    ended = run("result", "compare", "1", NAMES[0], "x" * 300_000)
    assert ended.code == 2
    assert len(ended.err) < 5_000
    assert "characters left out" in ended.err


def test_a_fault_of_the_program_is_told_without_what_it_holds(monkeypatch):
    from discreet.cli import fit

    def fail(*_args, **_options):
        raise KeyError("\x1b[2J\nWrote everything")

    monkeypatch.setattr(fit, "check_method", fail)
    ended = run("fit", "x.csv")
    assert (ended.code, ended.err.count("\n")) == (1, 1)
    assert not steering(ended.err)


def test_errors_warnings_and_summaries_of_the_library_are_escaped_too(desk):
    from discreet.errors import DiscreetWarning, FitWarning, ItemsLeftOut, WarningKind

    for made in (BadUsage(ESCAPE), DiscreetWarning(ESCAPE), ItemsLeftOut(ESCAPE)):
        assert str(made) == r"\x1b[1A\x1b[1G\x1b[2Kepsilon      0.1"
    assert not steering(FitWarning(WarningKind.LEFT_OUT, NAMES[1], [NAMES[1]]))
    answers = discreet.read_responses(desk / "plain.csv")
    assert not steering(discreet.fit(answers).summary())


@pytest.mark.posix  # Windows refuses the name
def test_logs_are_escaped_too(desk, caplog):
    odd = desk / "odd\x1b[2J\n.csv"
    odd.write_text((desk / "plain.csv").read_text())
    with caplog.at_level("INFO", logger="discreet"):
        discreet.read_responses(odd)
    assert "reading answers of" in caplog.text
    assert not steering(caplog.text)


def test_labels_of_work_in_progress_are_text(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(output, "PATIENCE_SECONDS", 0.0)
    with output.counting_rows("Reading [/b]\x1b[2J.csv"):
        pass
    with output.counting_bytes("Reading [/b]\x1b[2J.csv", lambda: 10) as move:
        move(5)
    shown = sys.stderr.getvalue()
    assert "[/b]\\x1b[2J.csv" in shown
    assert "\x1b[2J" not in shown


PRINTERS = {"output.py", "failures.py", "app.py", "options.py"}
"""Modules that print: through the boundary, or words of our own only."""


def test_commands_print_through_one_boundary():
    folder = Path(output.__file__).parent
    printing = {
        path.name
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print")
        or (isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("echo", "secho"))
        or (isinstance(node, ast.Call) and ast.unparse(node.func) == "sys.stdout.write")
    }
    assert printing <= PRINTERS


# --- what an approver reads -----------------------------------------------------------------------


def lines_on_screen(text, columns=80):
    """Lay text out as a terminal does: characters in cells, at the right end a new line."""
    rows = []
    for line in text.split("\n"):
        row, used = "", 0
        for sign in line:
            wide = 1 + (unicodedata.east_asian_width(sign) in "WF")
            wide = 0 if unicodedata.combining(sign) else wide
            if used + wide > columns:
                rows.append(row)
                row, used = "", 0
            row, used = row + sign, used + wide
        rows.append(row)
    return rows


def fields_on_screen(text, columns=80):
    """Return what an approver takes for the fields of a request: lines that begin at the left."""
    rows = [row for row in lines_on_screen(text, columns) if row and not row.startswith(" ")]
    return [(row.split()[0], row[13:]) for row in rows]


def shown(request, columns=80):
    os.environ["COLUMNS"] = str(columns)
    try:
        out = io.StringIO()
        with redirect_stdout(out):
            print_request(request)
    finally:
        del os.environ["COLUMNS"]
    return out.getvalue()


def request_for(items, **more):
    """Return a request as somebody could write it by hand."""
    body = {
        "kind": "answers", "items": items, "steps": [1] * len(items), "lowest": 0, "forms": [],
        "design": "unknown", "model": "rasch", "reading": {}, "max_answers": 2, "persons": 200,
        "epsilon": "0.9", "delta": "0.000001", "neighbours": "replace-one", "mechanism": "pairs",
        "population": "everyone", "ledger_file": "spent.db", "about": {},
        "estimator": "noise-aware", "chosen_by": "steward", "looked": False, "centre": [],
        "centre_from": "", "group_column": "", "groups": [],
    }  # fmt: skip
    return make_request("release", "l" * 32, {**body, **more})


def test_an_approver_reads_the_epsilon_that_is_signed_whatever_items_are_called(desk):
    ended = run("steward", "approve", forged(desk))
    fields = fields_on_screen(ended.out)
    assert [value for name, value in fields if name == "epsilon"] == ["0.9"]
    assert not steering(ended.out)


FORGERIES = {
    "a line break": {"population": "everyone\nepsilon      0.1"},
    "the end of a line": {"population": f"x{'.' * 66}epsilon      0.1"},
    "wide letters": {"population": "\u4e00" * 33 + "epsilon      0.1"},
    "blanks": {"population": f"x{' ' * 66}epsilon      0.1"},
    "a reading": {
        "reading": {"person": "p\nepsilon      0.1", "missing": {"\x1b[2J": ["\x1b[2J"]}}
    },
    "a title": {"about": {"identity": {"title": "A\x1b[2J", "note": "\nepsilon      0.1"}}},
    "a file": {"ledger_file": "spent.db\repsilon      0.1"},
}


@pytest.mark.parametrize("how", FORGERIES)
def test_no_field_can_be_made_to_look_like_another(how):
    text = shown(request_for(["a", "b"], **FORGERIES[how]))
    assert not steering(text)
    assert [value for name, value in fields_on_screen(text) if name == "epsilon"] == ["0.9"]


HOSTILE = st.text(
    st.one_of(
        st.sampled_from('\x1b\r\n\t\x9b\u202e\u2068\u2069\u200d\ufeff, ;:()"\\ '),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=120,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    items=st.lists(HOSTILE, min_size=1, max_size=12, unique=True),
    population=HOSTILE,
    title=HOSTILE,
    columns=st.sampled_from([40, 80, 132]),
)
def test_every_field_is_shown_once_and_in_order_whatever_names_hold(
    items, population, title, columns
):
    about = {"identity": {"title": title}}
    request = request_for(items, population=population, about=about)
    text = shown(request, columns)
    assert not steering(text)
    wanted = [
        "purpose", "ledger", "nonce", "date", "kind", "items", "lowest", "design", "centre",
        "centre_from", "group_column", "groups", "model", "max_answers", "persons", "epsilon",
        "delta", "neighbours", "mechanism", "population", "ledger_file", "about", "estimator",
        "chosen_by", "looked", "sha256",
    ]  # fmt: skip
    assert [name for name, _ in fields_on_screen(text, columns)] == wanted


def test_all_items_are_shown_and_two_lists_never_look_alike():
    many = [f"item {number}" for number in range(300)]
    text = " ".join(shown(request_for(many)).split())
    assert all(f"{name}," in text or f"{name};" in text for name in many)
    texts = [
        shown(request_for(items, steps=steps)).split("lowest")[0].split("items")[1]
        for items, steps in (
            (["a", "b", "c"], [1, 1, 1]),
            (["a, b", "c"], [1, 1]),
            (["a", "b; 3 in all"], [1, 1]),
            (["a (2 steps)", "b"], [1, 1]),
            (["a", "b"], [2, 1]),
            (['"a"', "b"], [1, 1]),
            (["a", "b"], [1, 1]),
        )
    ]
    assert len(set(texts)) == len(texts)


@pytest.fixture
def board(tmp_path):
    """A ledger with approvals, a key, and a request."""
    pytest.importorskip("cryptography", reason="the extra approvals is not installed")
    assert run("steward", "key", tmp_path / "ada.key").code == 0
    Ledger.create(tmp_path / "spent.db", 2.0)
    forged(tmp_path, ["a", "b", "c"])
    return tmp_path


def change(board, **more):
    document = json.loads((board / "request.json").read_text())
    document["request"] |= more
    (board / "request.json").write_text(json.dumps(document))


def signatures(board):
    return json.loads((board / "request.json").read_text())["signatures"]


def sign(board):
    return run("steward", "approve", board / "request.json", "--signing-key", board / "ada.key")


UNSHOWABLE = {
    "an identity that is a list": {"about": {"identity": []}},
    "an item without a name": {"items": ["a", None, "c"]},
    "fewer steps than items": {"steps": [1, 1]},
    "steps that are words": {"steps": ["1", "1", "1"]},
    "a form without items": {"forms": [["a", "b"], 3]},
    "part of it no mapping": {"about": {"audit": "passed"}},
}


@pytest.mark.parametrize("how", UNSHOWABLE)
def test_a_request_that_cannot_be_shown_completely_is_not_signed(board, how):
    change(board, **UNSHOWABLE[how])
    ended = sign(board)
    assert ended.code == 2
    assert "fault of the program" not in ended.err
    assert signatures(board) == []


def test_a_title_that_looks_like_a_picture_is_shown_as_it_is():
    title = "data:image/png;base64," + b64encode(b"epsilon 0.1").decode()
    text = shown(request_for(["a"], about={"identity": {"title": title}}), columns=200)
    assert title in text


@pytest.mark.parametrize("end", ["full", "closed"])
def test_a_request_that_did_not_reach_the_screen_is_not_signed(board, end):
    command = [sys.executable, "-m", "discreet", "steward", "approve", board / "request.json"]
    command += ["--signing-key", board / "ada.key"]
    if end == "full":
        writer = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, writer = os.pipe()
        os.close(reader)
    done = subprocess.run(
        command, stdout=writer, stderr=subprocess.PIPE, env=environment(), check=False
    )
    os.close(writer)
    assert done.returncode == 2, done.stderr
    assert b"could not be shown completely" in done.stderr
    assert done.stderr.count(b"\n") == 1
    assert signatures(board) == []


def test_what_was_shown_is_what_is_signed(board, monkeypatch):
    """Another program changes the file while it is shown."""
    from discreet.cli import approvals

    before = Request.load(board / "request.json").digest
    show = approvals.print_request

    def show_and_change(request):
        show(request)
        change(board, epsilon="1.9")

    monkeypatch.setattr(approvals, "print_request", show_and_change)
    assert sign(board).code == 0
    assert Request.load(board / "request.json").digest == before
    assert len(signatures(board)) == 1


# --- the function itself --------------------------------------------------------------------------


@settings(max_examples=300, deadline=None, derandomize=True)
@given(HOSTILE)
def test_escaping_is_idempotent_and_leaves_nothing_that_steers(text):
    from discreet.errors import escape_controls, escape_json

    shown = escape_controls(text)
    assert not steering(shown)
    assert "\n" not in shown
    assert shown.count("\u2068") == shown.count("\u2069")
    assert escape_controls(shown) == shown
    document = json.dumps({text: [text]}, ensure_ascii=False)
    assert not steering(escape_json(document))
    assert json.loads(escape_json(document)) == {text: [text]}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("größe 5\u00a0km", "größe 5\u00a0km"),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", None),
        ("\U0001f469\u200d\U0001f4bb", None),
        ("a\u200db", "a\\u200db"),
        ("\u2068\u05d0\u2069 1", None),
        ("\u2069x\u2068", "\\u2069x\\u2068"),
        ("\udcff", "\\udcff"),
        ("tab\there", "tab\\there"),
    ],
)
def test_words_of_every_script_stay_as_they_are(text, shown):
    from discreet.errors import escape_controls

    assert escape_controls(text) == (text if shown is None else shown)
