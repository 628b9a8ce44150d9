"""Who a release is, what it replaces, what it adds up to, and how it ends."""

import json

import pytest

import discreet
from commandline import LSAT_ITEMS
from commandline import discreet as typed
from discreet import Budget, Ledger
from discreet.errors import BadResponses, BadUsage
from discreet.publishing.bundle import hash_source, seal_record
from discreet.publishing.identity import Identity, make_identity
from discreet.report.statement import list_nist_points
from refusals import refused

BUDGET = Budget(epsilon=0.5, delta=1e-6)
FIRST = {
    "title": "Reading in grade 4",
    "version": "1",
    "date": "2026-05-01",
    "body": "Office of Tests",
    "contact": "tests@example.org",
}
SECOND = {**FIRST, "version": "2", "supersedes": "1", "reason": "The key of Item3 was wrong."}


@pytest.fixture
def book(tmp_path):
    return Ledger.create(tmp_path / "spent.db", 3.0, 1e-6)


def publish(book, about, folder, **more):
    return discreet.release(
        discreet.datasets.lsat(),
        BUDGET,
        items=LSAT_ITEMS,
        ledger=book,
        about=about,
        out=folder,
        **more,
    )


def files(folder):
    names = ("statement.md", "report.html", "registry.yaml", "privacy.json")
    return {name: (folder / name).read_text() for name in names}


def test_every_file_of_a_bundle_says_who_it_is(book, tmp_path):
    publish(book, FIRST, tmp_path / "one")
    for name, text in files(tmp_path / "one").items():
        assert "Reading in grade 4" in text, name
        assert "Office of Tests" in text, name
        assert "2026-05-01" in text, name
    page = (tmp_path / "one" / "report.html").read_text()
    assert "<title>Reading in grade 4</title>" in page
    discreet.verify(tmp_path / "one")


def test_a_second_version_says_so_everywhere_and_what_both_allow(book, tmp_path):
    publish(book, FIRST, tmp_path / "one")
    second = publish(book, SECOND, tmp_path / "two")
    account = second.record["account"]
    assert account["population"] == "everyone"
    assert account["releases"] == 2
    assert account["epsilon"] == pytest.approx(book.spent()[0])
    assert account["epsilon"] > BUDGET.epsilon
    spent = f"epsilon {account['epsilon']:.4g} at delta 1e-06"
    for name in ("statement.md", "report.html"):
        text = (tmp_path / "two" / name).read_text()
        assert "takes the place of version 1" in text, name
        assert "The key of Item3 was wrong." in text, name
        assert spent in text, name
    assert spent in (tmp_path / "two" / "registry.yaml").read_text()


def test_the_account_of_a_release_is_that_of_its_own_time(book, tmp_path, monkeypatch):
    """A release that is fetched later says what was spent when it was charged."""
    from discreet.publishing import delivery

    with monkeypatch.context() as patch:
        fail = lambda _self, _files: (_ for _ in ()).throw(OSError)  # noqa: E731
        patch.setattr(delivery.StagedFolder, "fill", fail)
        with pytest.raises(OSError):
            publish(book, FIRST, tmp_path / "lost")
    publish(book, SECOND, tmp_path / "two")
    late = discreet.resume_release(book, 1, out=tmp_path / "late")
    assert late.record["account"]["releases"] == 1
    assert late.record["identity"] == FIRST
    discreet.verify(tmp_path / "late")


def test_a_limit_that_is_exceeded_is_not_called_kept(book, tmp_path):
    """A declaration that is corrected between charge and delivery can show it."""
    made = publish(book, FIRST, tmp_path / "one")
    assert "not more than the ledger's limit of epsilon 3" in str(list_nist_points(made.record))
    account = {**made.record["account"], "epsilon": 3.5}
    told = list_nist_points({**made.record, "account": account})["Releases together"]
    assert "limit of epsilon 3 is exceeded" in told
    assert "not more than" not in told


def test_without_a_ledger_nothing_is_added_up(tmp_path):
    made = discreet.release(discreet.datasets.lsat(), BUDGET, items=LSAT_ITEMS, about=SECOND)
    assert made.record["account"] is None
    made.save(tmp_path / "one")
    assert "nothing here counts what both allow together" in (
        (tmp_path / "one" / "statement.md").read_text()
    )


def test_that_the_data_is_the_same_is_never_found_out(book, tmp_path):
    """Whether two releases have the very same answers is an exact fact about the answers."""
    publish(book, {"title": "a"}, tmp_path / "one")
    publish(book, {"title": "a"}, tmp_path / "two")
    for text in files(tmp_path / "two").values():
        assert "same data" not in text
        assert "takes the place" not in text


def test_a_release_without_words_is_as_it_was(tmp_path):
    made = discreet.release(discreet.datasets.lsat(), BUDGET, items=LSAT_ITEMS)
    assert "identity" not in made.record
    made.save(tmp_path / "one")
    page = (tmp_path / "one" / "report.html").read_text()
    assert "Item difficulties, released with differential privacy" in page


def test_the_points_of_nist_are_answered(book, tmp_path):
    made = publish(book, FIRST, tmp_path / "one")
    points = list_nist_points(made.record)
    assert set(points) >= {
        *("Privacy loss", "Unit of privacy", "Trust model", "Side channels", "Access"),
        *("What is not protected", "Small groups"),
    }
    statement = (tmp_path / "one" / "statement.md").read_text()
    assert all(answer in statement for answer in points.values())
    assert made.record["source_sha256"] == hash_source()
    assert len(hash_source()) == 64


@pytest.mark.parametrize(
    ("words", "code", "facts"),
    [
        ({"titel": "x"}, "release_no_refuse_unknown", {"hint": "did you mean title?"}),
        ({"colour": "x"}, "release_no_refuse_unknown", {"name": "colour"}),
        ({"date": "1.5.2026"}, "date_release_written_found", {"text": "1.5.2026"}),
        ({"version": "2", "supersedes": "1"}, "release_supersedes_must_say", {"supersedes": "1"}),
        ({"reason": "because"}, "release_gives_reason_must", {}),
        (
            {"version": "1", "supersedes": "1", "reason": "x"},
            "release_cannot_supersede_itself",
            {"version": "1"},
        ),
        ({"title": "two\nlines"}, "release_must_one_line", {"name": "title"}),
        ({"title": 3}, "release_must_one_line", {"name": "title"}),
    ],
)
def test_words_that_make_no_identity_are_refused(words, code, facts):
    with refused(BadUsage, code, **facts):
        make_identity(words)


def test_a_file_says_who_a_series_is(tmp_path):
    path = tmp_path / "release.toml"
    path.write_text('title = "Reading"\ndate = 2026-05-01\n', encoding="utf-8")
    assert make_identity(path) == Identity(title="Reading", date="2026-05-01")
    path.write_text("title = ", encoding="utf-8")
    with refused(BadUsage, "no_file_read_word_file", is_json="TOML"):
        make_identity(path)
    with refused(BadUsage, "not_exist_should_hold"):
        make_identity(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("name", "value"),
    [("identity", {"colour": "red"}), ("account", {"epsilon": 1}), ("source_sha256", None)],
)
def test_a_record_with_an_identity_that_no_release_has_is_refused(tmp_path, name, value):
    made = discreet.release(discreet.datasets.lsat(), BUDGET, items=LSAT_ITEMS, about=FIRST)
    made.save(tmp_path / "one")
    path = tmp_path / "one" / "privacy.json"
    record = json.loads(path.read_text())
    hashes = record.pop("files")
    record.pop("record_sha256")
    path.write_text(seal_record({**record, name: value}, hashes))
    with refused(BadResponses, "not_whole_release_bundle") as caught:
        discreet.verify(tmp_path / "one")
    assert f"has the {name}" in caught.value.facts["problem"]


# -- later life --------------------------------------------------------------------------------


def test_a_correction_names_both_releases_and_why(book, tmp_path):
    publish(book, FIRST, tmp_path / "one")
    second = publish(book, SECOND, tmp_path / "two")
    notice = discreet.correction_notice(tmp_path / "one", tmp_path / "two")
    assert "# Corrected: Reading in grade 4, version 1" in notice
    assert "The key of Item3 was wrong." in notice
    assert "stays spent" in notice
    assert f"{second.record['account']['epsilon']:.4g}" in notice


def test_a_correction_needs_a_release_that_supersedes(book, tmp_path):
    publish(book, FIRST, tmp_path / "one")
    publish(book, {**FIRST, "version": "2"}, tmp_path / "two")
    publish(book, {**SECOND, "supersedes": "0"}, tmp_path / "three")
    with refused(BadUsage, "later_release_not_say"):
        discreet.correction_notice(tmp_path / "one", tmp_path / "two")
    with refused(BadUsage, "later_release_takes_place", identity="0"):
        discreet.correction_notice(tmp_path / "one", tmp_path / "three")
    with refused(BadUsage, "release_cannot_corrected_itself"):
        discreet.correction_notice(tmp_path / "one", tmp_path / "one")


def test_a_withdrawal_says_that_the_budget_stays_spent(book, tmp_path):
    publish(book, FIRST, tmp_path / "one")
    before = book.spent()
    notice = discreet.withdrawal_notice(tmp_path / "one", "The sample was not the one announced.")
    assert "# Withdrawn: Reading in grade 4, version 1" in notice
    assert "stays spent" in notice
    assert book.spent() == before
    with refused(BadUsage, "notice_must_say_why"):
        discreet.withdrawal_notice(tmp_path / "one", " ")


def test_a_notice_as_a_page_says_what_the_text_says_and_shows_words_as_words(book, tmp_path):
    publish(book, FIRST, tmp_path / "one")
    publish(book, {**SECOND, "reason": "<b>Item3</b> & more."}, tmp_path / "two")
    pages = [
        discreet.correction_notice(tmp_path / "one", tmp_path / "two", page=True),
        discreet.withdrawal_notice(tmp_path / "one", "<b>Item3</b> & more.", page=True),
    ]
    for page, title in zip(pages, ("Corrected", "Withdrawn"), strict=True):
        assert f"<title>{title}: Reading in grade 4, version 1</title>" in page
        assert "&lt;b&gt;Item3&lt;/b&gt; &amp; more." in page
        assert "<b>Item3" not in page
        assert "stays spent" in page
        assert "<dt>responsible</dt><dd>Office of Tests</dd>" in page
        assert "<script" not in page
    assert pages[0].index("The earlier release") < pages[0].index("The later release")


def test_a_notice_is_a_text_or_a_page(book, tmp_path):
    publish(book, FIRST, tmp_path / "one")
    asked = [
        "steward",
        "withdraw",
        tmp_path / "one",
        "--because",
        "The sample was another.",
        "--out",
    ]
    assert typed(*asked, tmp_path / "notice.html").code == 0
    assert (tmp_path / "notice.html").read_text().startswith("<!doctype html>")
    wrong = typed(*asked, tmp_path / "notice.pdf")
    assert wrong.code == 2
    assert ".md or .html" in wrong.err


def test_the_life_of_a_release_as_typed(tmp_path):
    answers, items = tmp_path / "lsat.csv", tmp_path / "items.txt"
    lsat = discreet.datasets.lsat().to_array()
    rows = [",".join(LSAT_ITEMS), *(",".join(map(str, row)) for row in lsat.tolist())]
    answers.write_text("\n".join(rows) + "\n")
    items.write_text("\n".join(LSAT_ITEMS) + "\n")
    (tmp_path / "release.toml").write_text('title = "LSAT"\nbody = "Office"\n')
    typed("ledger", "create", tmp_path / "spent.db", "--epsilon", 3)
    terms = (
        *("--items", items, "--epsilon", 0.5, "--ledger", tmp_path / "spent.db"),
        *("--about", tmp_path / "release.toml"),
    )
    run = typed("release", answers, *terms, "--edition", 1, "--out", tmp_path / "one")
    assert run.code == 0, run.err
    run = typed(
        *("release", answers, *terms, "--edition", 2, "--supersedes", 1),
        *("--because", "A wrong key.", "--out", tmp_path / "two"),
    )
    assert run.code == 0, run.err
    run = typed(
        "steward", "correct", tmp_path / "one", "--by", tmp_path / "two", "--out", tmp_path / "n.md"
    )
    assert run.code == 0, run.err
    assert "A wrong key." in (tmp_path / "n.md").read_text()
    run = typed("steward", "withdraw", tmp_path / "two", "--because", "Nobody asked for it.")
    assert "# Withdrawn: LSAT, version 2" in run.out
    assert typed("release", answers, *terms, "--because", "x", "--out", tmp_path / "z").code == 2


# -- audits ------------------------------------------------------------------------------------


def audited(tmp_path, **more):
    found = {
        "mechanism": "pairs", "claimed_epsilon": 0.5, "lower_bound": 0.3, "verdict": "not refuted",
        "runs": 2000, "items": 5, "max_answers": 5,
    }  # fmt: skip
    path = tmp_path / "audit.json"
    path.write_text(json.dumps({**found, **more}))
    return path


def test_an_audit_is_published_with_its_release(book, tmp_path):
    publish(book, FIRST, tmp_path / "one", audit=audited(tmp_path))
    assert "the attacks prove epsilon 0.3" in (tmp_path / "one" / "statement.md").read_text()
    discreet.verify(tmp_path / "one")


@pytest.mark.parametrize(
    ("more", "code", "facts"),
    [
        ({"mechanism": "totals"}, "audit_mechanism_release_attack", {"mechanism": "pairs"}),
        ({"lower_bound": 2.0}, "audit_refuted_promise_mechanism", {}),
    ],
)
def test_an_audit_that_does_not_fit_stops_a_release(book, tmp_path, more, code, facts):
    with refused(BadUsage, code, **facts):
        publish(book, FIRST, tmp_path / "one", audit=audited(tmp_path, **more))
    assert book.releases() == ()


def test_what_is_no_audit_is_refused(book, tmp_path):
    (tmp_path / "other.json").write_text("{}")
    with refused(BadUsage, "not_what_discreet_audit"):
        publish(book, FIRST, tmp_path / "one", audit=tmp_path / "other.json")
