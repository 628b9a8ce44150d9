"""JSON lines out of core: the counts and the words of the memory engine, with bounded memory."""

from __future__ import annotations

import gzip
import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_duckdb_engine import Stop, make_small, same, stop_after

from discreet.api.counting import count_pairs
from discreet.coding.reading import Reading
from discreet.errors import BadResponses
from discreet.readers.answers import read_responses
from discreet.readers.streamed import counting as checkpoint
from discreet.readers.streamed.counting import count_source, count_stream
from discreet.tables import dataset
from discreet.tables import resources as limits
from discreet.tables.formats import jsonl
from refusals import refused
from streams import stream_responses


@pytest.fixture(autouse=True)
def small(monkeypatch):
    make_small(monkeypatch)
    monkeypatch.setattr(jsonl, "_ROWS", 5)


@st.composite
def persons(draw):
    """Answers of some persons, who may have none: id, and item to answer."""
    answers = st.dictionaries(
        st.sampled_from(["q1", "q2", "q3", "q4"]), st.sampled_from([0, 1, True, "0", None])
    )
    ids = draw(st.lists(st.integers(0, 40), min_size=1, max_size=20, unique=True))
    if draw(st.booleans()):
        ids = sorted(ids)
    style = draw(st.sampled_from([int, str, "p{}".format]))
    return [(style(number), draw(answers)) for number in ids]


def as_records(people, form):
    if form == "py-irt":
        return [{"subject_id": person, "responses": answers} for person, answers in people]
    if form == "wide":
        return [{"person": person, "q0": 1, **answers} for person, answers in people]
    return [
        {"person": person, "item": item, "response": answer}
        for person, answers in people
        for item, answer in answers.items()
    ]


def write(path, records):
    text = "".join(json.dumps(record) + "\n" for record in records)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


@pytest.mark.parametrize("form", ["py-irt", "wide", "long"])
def test_json_lines_are_counted_as_in_memory(tmp_path, form):
    @settings(max_examples=25, deadline=None)
    @given(people=persons(), files=st.integers(1, 2), ending=st.sampled_from(["", ".gz"]))
    def check(people, files, ending):
        folder = tmp_path / "answers"
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for number in range(files):
            records = as_records(people[number::files], form)
            if records:
                write(folder / f"{number}.jsonl{ending}", records)
        if not any(answers for _, answers in people):
            return
        try:
            expected = count_pairs(folder, engine="memory")
        except BadResponses as error:
            with refused(BadResponses, error.code, **error.facts):
                count_pairs(folder, engine="duckdb")
            return
        assert same(count_pairs(folder, engine="duckdb"), expected)
        streamed = list(stream_responses(folder, items=expected.items))
        assert same(count_stream(streamed, items=expected.items), expected)
        seen = sorted(person for batch in streamed for person in batch.persons)
        assert seen == sorted(read_responses(folder).persons)

    check()


def test_a_person_without_answers_counts_wherever_it_stands(tmp_path):
    people = [("a", {}), ("b", {}), ("c", {"q1": 1, "q2": 0}), ("d", {}), ("e", {"q2": 1})]
    file = write(tmp_path / "answers.jsonl", as_records(people, "py-irt"))
    answers = read_responses(file)
    assert (answers.persons.tolist(), answers.items) == (list("abcde"), ("q1", "q2"))
    counts = count_pairs(file, engine="duckdb")
    assert (counts.persons, counts.answers.tolist()) == (5, [1, 2])


def test_a_person_without_answers_keeps_its_group(tmp_path):
    records = [
        {"subject_id": "a", "school": "x", "responses": {}},
        {"subject_id": "b", "school": "y", "responses": {"q1": 1}},
        {"subject_id": "c", "school": "x", "responses": {}},
    ]
    answers = read_responses(write(tmp_path / "answers.jsonl", records), group="school")
    assert answers.groups["school"].tolist() == ["x", "y", "x"]


REFUSED = [
    '{"subject_id": "a", "responses": {"q1": 1}}\n{"subject_id": "b", "responses": {"q1": 2}}\n',
    '{"subject_id": "a", "responses": {"q1": 1}}\n\n{"subject_id": "a", "responses": {"q1": 1}}\n',
    '{"person": "b", "item": "x", "response": 1}\n{"person": "a", "item": "x"}\n',
    '{"person": "a", "item": "x", "response": 1}\nnonsense\n',
    '{"person": null, "item": "x", "response": 1}\n',
    '{"subject_id": "a", "responses": {}}\n',
    '{"responses": {"q1": 1}}\n',
]


@pytest.mark.parametrize("text", REFUSED)
def test_bad_json_lines_are_refused_in_the_words_of_the_memory_engine(tmp_path, text):
    file = tmp_path / "answers.jsonl"
    file.write_text(text)
    with pytest.raises(BadResponses) as found:
        count_pairs(file, engine="memory")
    assert found.value.facts
    with refused(BadResponses, found.value.code, **found.value.facts):
        count_pairs(file, engine="duckdb")


def test_a_repeated_answer_is_named_with_both_lines_after_many_batches(tmp_path):
    people = [(f"p{number:02}", {"q1": 1, "q2": 0}) for number in range(30)]
    records = [*as_records(people, "py-irt"), {"subject_id": "p03", "responses": {"q2": 1}}]
    file = write(tmp_path / "answers.jsonl", records)
    for engine in ("memory", "duckdb"):
        with refused(
            BadResponses,
            "person_answered_item_more",
            first="answers.jsonl, line 4",
            second="answers.jsonl, line 31",
        ):
            count_pairs(file, engine=engine)


def test_options_reach_the_records(tmp_path):
    records = [
        {"who": p, "age": 9, "a": p % 3, "b": (p + 1) % 3, "c": (p // 2) % 3} for p in range(9)
    ]
    file = write(tmp_path / "answers.jsonl", records)
    words = {"person": "who", "ignore": ("age",), "at_least": 1.0, "one_means": "wrong"}
    expected = count_pairs(read_responses(file, **words))
    assert same(count_source(file, reading=Reading(**words)), expected)


def test_a_stopped_run_goes_on_without_counting_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    monkeypatch.setattr(limits, "REPORT_INTERVAL", 0.0)
    people = [(p + 100, {"q1": p % 2, "q2": (p // 2) % 2} if p % 5 else {}) for p in range(40)]
    file = write(tmp_path / "answers.jsonl.gz", as_records(people, "py-irt"))
    kept = tmp_path / "kept"
    with pytest.raises(Stop):
        count_source(file, checkpoint=kept, progress=stop_after(30))
    assert (kept / "counts.npz").exists()
    assert same(count_source(file, checkpoint=kept), count_pairs(file, engine="memory"))


def test_the_size_of_json_lines_is_estimated_in_answers(tmp_path, monkeypatch):
    monkeypatch.setattr(dataset, "SURELY_SMALL", 0)
    people = [(p, {f"q{i}": 1 for i in range(10)}) for p in range(50)]
    for form in ("long", "py-irt"):
        file = write(tmp_path / f"{form}.jsonl", as_records(people, form))
        monkeypatch.setattr(dataset, "available_memory", lambda: 2 * 9 * 400)
        assert dataset.is_too_large(file)
        monkeypatch.setattr(dataset, "available_memory", lambda: 2 * 9 * 650)
        assert not dataset.is_too_large(file)


def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonl, "_ROWS", 500)
    peaks = []
    for size in (2_000, 20_000):
        people = [(p, {"q1": p % 2, "q2": 1}) for p in range(size)]
        file = write(tmp_path / "answers.jsonl", as_records(people, "py-irt"))
        source = jsonl.JsonLinesSource(file, Reading())
        tracemalloc.start()
        assert sum(len(batch[0]) for batch in source.batches((0, 1, 2))) == 2 * size
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0]  # of ten times the file; other threads allocate too


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_records_without_ids_in_several_files_are_refused(tmp_path, engine):
    """Numbered anew in each file, the first persons of both would become one."""
    for name, item in (("a", "q1"), ("b", "q2")):
        (tmp_path / f"{name}.jsonl").write_text(f'{{"{item}": 1, "q3": 0}}\n')
    with refused(BadResponses, "records_name_no_person", files="2"):
        count_pairs(str(tmp_path / "*.jsonl"), engine=engine)
    assert count_pairs(tmp_path / "a.jsonl", engine=engine).persons == 1
