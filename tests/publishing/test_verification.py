"""Bundles read back: nothing is believed that was not checked."""

import json
import shutil
import warnings

import numpy as np
import pytest

import discreet as library
from commandline import discreet
from discreet.errors import BadResponses, BadUsage, DiscreetError
from discreet.publishing.bundle import hash_content, hash_record
from discreet.simulation import simulate_comparisons
from refusals import refused

ITEMS = ["Item1", "Item2", "Item3", "Item4", "Item5"]
READ = {"answers": library.read_release, "comparisons": library.read_released_ranking}
TABLE = {"answers": "difficulties.csv", "comparisons": "strengths.csv"}


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    """A release of answers and one of comparisons, as this version writes them."""
    folder = tmp_path_factory.mktemp("bundles")
    answers = library.datasets.lsat()
    library.release(answers, library.Budget(1.0), items=ITEMS).save(folder / "answers")
    votes = simulate_comparisons(500, 6, 5, rng=np.random.default_rng(1)).comparisons
    library.release_comparisons(
        votes, library.Budget(1.0), items=votes.items, max_comparisons=5
    ).save(folder / "comparisons")
    return folder


@pytest.fixture(params=["answers", "comparisons"])
def bundle(bundles, tmp_path, request):
    """A copy to spoil."""
    return shutil.copytree(bundles / request.param, tmp_path / request.param)


def edit(bundle, change):
    """Change the record as somebody would who also mends its checksum."""
    path = bundle / "privacy.json"
    record = json.loads(path.read_text())
    change(record)
    record["record_sha256"] = hash_record(record)
    path.write_text(json.dumps(record))


def find_refusal(bundle):
    """What every reader says of a spoilt bundle, which is the same."""
    with pytest.raises(BadResponses) as by_verify:
        library.verify(bundle)
    with refused(BadResponses, by_verify.value.code, **by_verify.value.facts):
        READ[bundle.name](bundle)
    facts = by_verify.value.facts
    assert by_verify.value.code.startswith("not_whole_release_bundle")
    ended = discreet("verify", bundle)
    assert (ended.code, ended.out) == (3, "")
    return facts.get("problem") or f"{facts['privacy_file']} is missing"


def test_a_bundle_is_whole_as_written(bundle):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        library.verify(bundle)
    READ[bundle.name](bundle)
    ended = discreet("verify", bundle)
    assert ended.code == 0
    assert "is complete and unmodified" in ended.out


def test_the_checksums_are_those_of_the_files(bundle):
    record = json.loads((bundle / "privacy.json").read_text())
    assert record["schema_version"] == 1
    files = {path.name for path in bundle.iterdir()} - {"privacy.json"}
    assert set(record["files"]) == files
    for name in files:
        assert record["files"][name] == hash_content((bundle / name).read_bytes())


def test_every_file_that_is_changed_by_one_letter_is_found(bundle):
    for path in sorted(bundle.iterdir()):
        text = path.read_bytes()
        # A number, so that nothing but a checksum can tell; in an archive, anything.
        place = len(text) // 2 if path.suffix == ".npz" else text.index(b"0.")
        path.write_bytes(text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :])
        assert f"{path.name} was changed" in find_refusal(bundle)
        path.write_bytes(text)
    library.verify(bundle)


def test_every_file_that_is_missing_is_found(bundle):
    for path in sorted(bundle.iterdir()):
        text = path.read_bytes()
        path.unlink()
        assert f"{path.name} is missing" in find_refusal(bundle)
        path.write_bytes(text)


def test_what_is_no_part_of_a_release_is_named(bundle):
    """A table beside it may look like one of the release."""
    whole = discreet("verify", bundle)
    assert (whole.code, whole.out.count("\n")) == (0, 1)
    assert library.verify(bundle) == ()
    (bundle / "corrected\x1b.csv").write_text("item,difficulty\nItem1,3\n")
    (bundle / "later").mkdir()
    (bundle / "later" / "deeper.csv").write_text("x")
    assert library.verify(bundle) == ("corrected\x1b.csv", "later")
    ended = discreet("verify", bundle)
    assert (ended.code, ended.out.splitlines()[0]) == (0, whole.out.strip())
    assert ended.out.splitlines()[1:] == [
        r"No part of it, and not checked: corrected\x1b.csv, later."
    ]


def test_a_lost_row_is_found_even_with_a_mended_checksum(bundle):
    table = bundle / TABLE[bundle.name]
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:-1]))
    edit(
        bundle, lambda record: record["files"].update({table.name: hash_content(table.read_text())})
    )
    assert "one row for each item" in find_refusal(bundle)


SPOILT = {
    "epsilon -1": lambda record: record["guarantee"].update(epsilon=-1),
    "epsilon text": lambda record: record["guarantee"].update(epsilon="1"),
    "epsilon true": lambda record: record["guarantee"].update(epsilon=True),
    "delta 2": lambda record: record["guarantee"].update(delta=2),
    "delta none": lambda record: record["guarantee"].update(delta=None),
    "rho -1": lambda record: record["guarantee"].update(rho=-1),
    "relation": lambda record: record["guarantee"].update(neighbours="friends"),
    "conditions": lambda record: record["guarantee"].update(conditions="none"),
    "is private": lambda record: record["guarantee"].update(is_private="yes"),
    "more promises": lambda record: record["guarantee"].update(certified="by nobody"),
    "guarantee list": lambda record: record.update(guarantee=[1]),
    "items text": lambda record: record.update(items="Item1"),
    "items twice": lambda record: record.update(items=record["items"][:-1] + record["items"][:1]),
    "items numbers": lambda record: record.update(items=[1, 2, 3, 4, 5]),
    "cap": lambda record: record.update(max_answers=-5, max_comparisons=-5),
    "persons": lambda record: record.update(persons="many", judges="many"),
    "estimator": lambda record: record.update(estimator=None),
    "noise": lambda record: record.update(noise=None),
    "kind": lambda record: record.update(kind=["answers"]),
    "files": lambda record: record.update(files=None),
    "a file elsewhere": lambda record: record["files"].update({"../../etc/passwd": "0"}),
}


@pytest.mark.parametrize("what", SPOILT)
def test_a_record_that_no_release_has_is_refused(bundle, what):
    edit(bundle, SPOILT[what])
    find_refusal(bundle)


def test_every_key_of_the_record_is_needed(bundle):
    path = bundle / "privacy.json"
    record = json.loads(path.read_text())
    text = path.read_text()
    for key in set(record) - {"schema_version"}:
        path.write_text(text)
        edit(bundle, lambda record, key=key: record.pop(key))
        if key != "record_sha256":  # which `edit` puts back
            find_refusal(bundle)
    for key in set(record["guarantee"]) - {"noise", "ledger_note"}:
        path.write_text(text)
        edit(bundle, lambda record, key=key: record["guarantee"].pop(key))
        assert key in find_refusal(bundle)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"null", b"{", b"\xff\xfe", b"[" * 100_000, b'{"schema_version": 1}']
)
def test_a_record_that_is_no_record_is_refused(bundle, content):
    (bundle / "privacy.json").write_bytes(content)
    with pytest.raises(DiscreetError):
        library.verify(bundle)
    with pytest.raises(DiscreetError):
        READ[bundle.name](bundle)
    assert discreet("verify", bundle).code in (2, 3)


def test_a_table_that_is_no_table_is_refused(bundle):
    table = bundle / TABLE[bundle.name]
    good = table.read_text()
    first = good.splitlines()[1]
    for bad in ("", "item\n", good.replace(first, first + ",1"), good.replace("estimated", "sure"),
                good.replace(first.split(",")[1], "inf"), good.replace(first.split(",")[1], "x"),
                '"' + good):  # fmt: skip
        table.write_text(bad)
        edit(
            bundle, lambda record, bad=bad: record["files"].update({table.name: hash_content(bad)})
        )
        find_refusal(bundle)


def test_a_release_of_the_other_kind_is_named(bundles):
    with refused(BadUsage, "release_comparisons_not_answers"):
        library.read_release(bundles / "comparisons")
    with refused(BadUsage, "release_answers_not_comparisons"):
        library.read_released_ranking(bundles / "answers")
    answers = bundles / "answers" / "difficulties.csv"
    ended = discreet("score", answers, "--with", bundles / "comparisons")
    assert ended.code == 2
    assert "release of comparisons" in ended.err


def test_a_ranking_has_the_same_page_in_its_own_words(bundles, tmp_path):
    written = (bundles / "comparisons" / "report.html").read_text()
    assert "Strengths of objects" in written
    assert "How strong each object is" in written
    assert "stronger objects lie further right" in written
    assert "comparisons per judge" in written
    for word in ("difficult", "per person", "Rasch", "harder", "All items"):
        assert word not in written, word
    ended = discreet("result", "report", bundles / "comparisons", "--out", tmp_path)
    assert ended.code == 0, ended.err
    assert (tmp_path / "report.html").read_text() == written


def test_what_is_no_bundle_at_all_is_wrong_usage(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere"):
        with refused(BadUsage, "no_release_bundle_missing"):
            library.verify(path)
        assert discreet("verify", path).code == 2


def test_report_and_score_refuse_a_bundle_that_was_changed(bundles, tmp_path):
    bundle = shutil.copytree(bundles / "answers", tmp_path / "answers")
    table = bundle / "difficulties.csv"
    table.write_text(table.read_text().replace("0.", "1.", 1))
    (tmp_path / "new.csv").write_text("Item1,Item2\n1,0\n")
    for command in (
        ["result", "report", bundle],
        ["score", tmp_path / "new.csv", "--with", bundle],
    ):
        ended = discreet(*command)
        assert ended.code == 3
        assert "difficulties.csv was changed" in ended.err


def test_a_report_written_into_a_bundle_leaves_it_whole(bundles, tmp_path, monkeypatch):
    bundle = shutil.copytree(bundles / "answers", tmp_path / "answers")
    before = {path.name: path.read_bytes() for path in bundle.iterdir()}
    assert discreet("result", "report", bundle).code == 0
    assert {path.name: path.read_bytes() for path in bundle.iterdir()} == before
    real = "discreet.report.public.write_public_page"
    from discreet.report.public import write_public_page

    monkeypatch.setattr(real, lambda *given: write_public_page(*given) + "<!-- later -->\n")
    assert discreet("result", "report", bundle).code == 0
    assert "later" in (bundle / "report.html").read_text()
    library.verify(bundle)
