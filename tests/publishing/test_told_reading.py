"""What a bundle says of its data: how it was read, without the key, and what counts as a person."""

import json

import numpy as np
import pytest

import discreet
from commandline import discreet as run
from discreet.answers.responses import Responses
from discreet.errors import BadResponses
from discreet.publishing import delivery
from discreet.publishing.bundle import hash_record
from discreet.publishing.spec import SCORED
from refusals import refused

ITEMS = ["q1", "q2", "q3"]
#: Right answers that no file of a bundle holds for another reason.
KEY = {"q1": "zebra", "q2": ["quokka", "yak"], "q3": "vicuna"}
RIGHT = {"q1": "zebra", "q2": "quokka", "q3": "vicuna"}
STATED = {"person": "pupil", "missing": {"*": [9], "q2": [98, 99]}, "at_least": 2.5}


def write(folder, *, ids=True, cell=lambda item, number: number % 5):
    rows = [
        [cell(item, number + place) for place, item in enumerate(ITEMS)] for number in range(60)
    ]
    head = ["pupil", *ITEMS] if ids else ITEMS
    lines = [[f"p{number}", *row] if ids else row for number, row in enumerate(rows)]
    path = folder / "answers.csv"
    path.write_text("\n".join(",".join(map(str, line)) for line in [head, *lines]) + "\n")
    return path


def write_chosen(folder):
    return write(folder, cell=lambda item, number: RIGHT[item] if number % 3 else "wrong")


def publish(source, out, **words):
    told = {"items": ITEMS, "epsilon": 1.0, "out": out, **words}
    return discreet.release(source, **told)


def read_record(bundle):
    return json.loads((bundle / "privacy.json").read_text())


def test_a_bundle_says_how_the_answers_were_read(tmp_path):
    made = publish(write(tmp_path), tmp_path / "out", **STATED)
    reading = {"person": "pupil", "at_least": 2.5, "missing": {"*": ["9"], "q2": ["98", "99"]}}
    assert read_record(tmp_path / "out")["reading"] == reading
    discreet.verify(tmp_path / "out")
    how = "person = pupil; at_least = 2.5; missing = 9, q2: 98 99."
    said = {
        "en": f"The answers were read as stated: {how}",
        "de": f"Die Antworten wurden gelesen wie angegeben: {how}",
        "es": f"Las respuestas se leyeron como se indicó: {how}",
    }
    for language, sentence in said.items():
        made.save(tmp_path / language, language=language)
        assert sentence in (tmp_path / language / "statement.md").read_text()
    registry = (tmp_path / "out" / "registry.yaml").read_text()
    assert "The answers were read as stated: person = pupil" in registry


def test_of_a_reading_without_words_the_rules_are_named(tmp_path):
    path = write(tmp_path, cell=lambda _, number: number % 2)
    publish(path, tmp_path / "out")
    assert read_record(tmp_path / "out")["reading"] == {}
    assert "Nothing was stated about how to read" in (tmp_path / "out" / "statement.md").read_text()


def test_of_answers_that_were_read_before_nothing_is_claimed(tmp_path):
    answers = discreet.read_responses(write(tmp_path), **STATED)
    publish(answers, tmp_path / "out")
    assert read_record(tmp_path / "out")["reading"] is None
    assert "had been read before" in (tmp_path / "out" / "statement.md").read_text()


def find_key(folder):
    """Return the files that hold a right answer."""
    words = [b"zebra", b"quokka", b"yak", b"vicuna"]
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.name for path in files if any(word in path.read_bytes() for word in words)}


@pytest.mark.parametrize("language", ["en", "de", "es"])
def test_of_a_key_only_that_there_is_one_is_published(tmp_path, language):
    ledger = discreet.Ledger.create(tmp_path / "spent.db", 2.0)
    told = {"key": KEY, "person": "pupil", "ledger": ledger, "about": {"language": language}}
    publish(write_chosen(tmp_path), tmp_path / "out", **told)
    assert read_record(tmp_path / "out")["reading"] == {"person": "pupil", "key": SCORED}
    assert find_key(tmp_path) == {"answers.csv"}  # neither in the bundle nor in the ledger
    words = {"en": "scored with a key", "de": "mit einem Schlüssel", "es": "con una clave"}
    assert words[language] in (tmp_path / "out" / "statement.md").read_text()
    discreet.verify(tmp_path / "out")


def test_a_key_that_is_published_is_found(tmp_path, monkeypatch):
    """The safeguard lost: the test above sees it, and so does whoever verifies the bundle."""

    def leak(public, words):
        return {"person": "pupil", "key": {"q1": ["zebra"]}}

    monkeypatch.setattr(delivery, "record_reading", leak)
    publish(write_chosen(tmp_path), tmp_path / "out", key=KEY, person="pupil")
    assert find_key(tmp_path / "out") == {"privacy.json"}
    with refused(BadResponses, "not_whole_release_bundle") as caught:
        discreet.verify(tmp_path / "out")
    assert caught.value.facts["problem"].startswith("its reading.key is an object")


@pytest.mark.parametrize(
    ("reading", "words"),
    [
        ({"colour": "red"}, "has a field 'colour'"),
        ({"header": "False"}, "not true or false"),
        ({"missing": {"*": [9]}}, "not a text"),
        (["person"], "which no release has"),
    ],
)
def test_a_reading_that_no_reader_has_is_refused(tmp_path, reading, words):
    publish(write(tmp_path), tmp_path / "out", **STATED)
    record = {**read_record(tmp_path / "out"), "reading": reading}
    record["record_sha256"] = hash_record(record)
    (tmp_path / "out" / "privacy.json").write_text(json.dumps(record))
    with refused(BadResponses, "not_whole_release_bundle") as caught:
        discreet.verify(tmp_path / "out")
    assert words in caught.value.facts["problem"]


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("ids", [True, False])
def test_a_bundle_says_whether_an_id_or_a_row_is_a_person(tmp_path, engine, ids):
    path = write(tmp_path, ids=ids, cell=lambda _, number: number % 2)
    words = {"person": "pupil"} if ids else {}
    publish(path, tmp_path / "out", engine=engine, **words)
    assert read_record(tmp_path / "out")["person_is"] == ("id" if ids else "row")
    said = "whoever has two ids counts as two" if ids else "whoever is in two rows counts as two"
    for file in ("statement.md", "registry.yaml", "report.html"):
        assert said in (tmp_path / "out" / file).read_text(), file


def test_rows_of_an_array_are_persons_unless_they_have_ids():
    cells = np.random.default_rng(1).integers(0, 2, (50, 3))
    told = {"items": ["0", "1", "2"], "epsilon": 1.0}
    assert discreet.release(cells, **told).record["person_is"] == "row"
    named = Responses.from_array(cells, persons=[f"p{n}" for n in range(50)])
    assert discreet.release(named, **told).record["person_is"] == "id"


def test_comparisons_say_the_same_of_judges(tmp_path):
    rows = "".join(f"j{number},A,B,{'AB'[number % 2]}\n" for number in range(60))
    (tmp_path / "votes.csv").write_text(f"who,one,two,best\n{rows}")
    (tmp_path / "items.txt").write_text("A\nB\n")
    columns = ["--judge", "who", "--left", "one", "--right", "two", "--outcome", "best"]
    assert run("ledger", "create", tmp_path / "spent.db", "--epsilon", 1).code == 0
    ended = run("compare", "release", tmp_path / "votes.csv", "--items", tmp_path / "items.txt",
                "--max-comparisons", 1, "--epsilon", 1, "--ledger", tmp_path / "spent.db",
                "--out", tmp_path / "out", *columns)  # fmt: skip
    assert ended.code == 0, ended.err
    record = read_record(tmp_path / "out")
    reading = {"judge": "who", "left": "one", "right": "two", "outcome": "best"}
    assert (record["reading"], record["person_is"]) == (reading, "id")
    statement = (tmp_path / "out" / "statement.md").read_text()
    assert "One id counts as one judge" in statement
    assert "The comparisons were read as stated: judge = who" in statement


def test_a_release_that_is_resumed_says_what_it_would_have_said(tmp_path, monkeypatch):
    path, ledger = write(tmp_path), discreet.Ledger.create(tmp_path / "spent.db", 2.0)

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(discreet.Ledger, "store", stop)
        with pytest.raises(KeyboardInterrupt):
            publish(path, tmp_path / "out", ledger=ledger, **STATED)
    discreet.resume_release(ledger, 1, path, out=tmp_path / "out", **STATED)
    record = read_record(tmp_path / "out")
    assert (record["reading"]["person"], record["person_is"]) == ("pupil", "id")


@pytest.mark.parametrize("looked", [True, False])
def test_the_registry_never_says_that_there_are_no_conditions(tmp_path, looked):
    publish(write(tmp_path), tmp_path / "out", looked=looked, **STATED)
    text = (tmp_path / "out" / "registry.yaml").read_text()
    line = next(one for one in text.splitlines() if "privacy_parameters_details" in one)
    assert "without further conditions" not in text
    assert ("this promise is void" in line) == looked
    assert ("have to be chosen without looking" in line) != looked
    assert "the way of reading them" in line


@pytest.mark.parametrize(("delta", "shown"), [(1e-6, "3.8e-06"), (0.0, "0")])
def test_the_statement_has_the_promise_to_two_persons_together(tmp_path, delta, shown):
    mechanism = "pairs" if delta else "laplace-pairs"
    publish(write(tmp_path), tmp_path / "out", delta=delta, mechanism=mechanism, **STATED)
    text = (tmp_path / "out" / "statement.md").read_text()
    assert f"For two that is epsilon 2 and delta {shown}." in text
