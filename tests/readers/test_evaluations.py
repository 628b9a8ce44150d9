"""Logs of evaluations of language models are read like any other table of answers."""

import gzip
import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import discreet
from commandline import discreet as run
from discreet.errors import AssumedReading, BadResponses
from refusals import refused

WRITTEN = Path(__file__).parents[1] / "data" / "inspect.eval"


def harness_record(number, **metrics):
    return {
        "doc_id": number, "doc": {"question": "?"}, "target": "1", "arguments": {}, "resps": [],
        "filtered_resps": [], "filter": "none", "metrics": list(metrics), "doc_hash": "a",
        **metrics,
    }  # fmt: skip


def write_harness(folder, model, records, task="arc_easy"):
    (folder / model).mkdir(parents=True, exist_ok=True)
    path = folder / model / f"samples_{task}_2026-01-05T10-11-12.123456.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def inspect_log(model, answers, task="maths", scorer="match"):
    samples = [
        {"id": name, "epoch": 1, "input": "?", "target": "1", "scores": {scorer: {"value": value}}}
        for name, value in answers.items()
    ]
    header = {"task": task, "model": model, "created": "2026-01-05"}
    return {"version": 2, "status": "success", "eval": header, "plan": {}, "samples": samples}


def write_json(path, log):
    path.write_text(json.dumps(log, indent=2))
    return path


def write_zip(path, log, *, whole=True):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        head = {key: log[key] for key in ("version", "status", "eval")}
        file.writestr("_journal/start.json", json.dumps(head))
        for sample in log["samples"]:
            name = f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
            file.writestr(name, json.dumps(sample))
        if whole:
            file.writestr("summaries.json", json.dumps(log["samples"]))
            file.writestr("header.json", json.dumps(head))
    return path


def test_a_log_that_inspect_wrote_is_read():
    answers = discreet.read_responses(WRITTEN)
    assert list(answers.persons) == ["mockllm/alpha"]
    assert answers.items == ("arithmetic/1", "arithmetic/s1", "arithmetic/s2", "arithmetic/s3")
    assert answers.to_array().tolist() == [[1, 1, 0, 1]]


def test_inspect_itself_reads_the_same_scores_from_its_log():
    log = pytest.importorskip("inspect_ai.log", reason="inspect_ai is not installed")
    told = log.read_eval_log(str(WRITTEN))
    values = [int(sample.scores["match"].value == "C") for sample in told.samples]
    assert discreet.read_responses(WRITTEN).to_array().tolist() == [values]


@pytest.mark.parametrize("form", ["json", "eval", "unfinished"])
def test_logs_of_inspect_in_either_format_give_models_and_questions(tmp_path, form):
    for model, answers in {"a/x": {1: "C", 2: "I"}, "b/y": {1: "N", 2: "C"}}.items():
        log = inspect_log(model, answers)
        name = tmp_path / model.replace("/", "_")
        if form == "json":
            write_json(name.with_suffix(".json"), log)
        else:
            write_zip(name.with_suffix(".eval"), log, whole=form == "eval")
    found = discreet.read_responses(tmp_path)
    assert list(found.persons) == ["a/x", "b/y"]
    assert found.items == ("maths/1", "maths/2")
    assert found.to_array().tolist() == [[1, 0], [0, 1]]


def test_a_sample_without_a_score_is_missing_and_its_model_counts(tmp_path):
    log = inspect_log("m", {1: "C", 2: "I"})
    log["samples"][0]["scores"] = None
    found = discreet.read_responses(write_json(tmp_path / "log.json", log))
    assert found.to_array().tolist() == [[-1, 0]]


def test_partial_credit_needs_a_word_about_what_is_right(tmp_path):
    path = write_json(tmp_path / "log.json", inspect_log("m", {1: "C", 2: "P"}))
    with refused(BadResponses, "bad_answer", where="log.json, sample '2' of epoch 1"):
        discreet.read_responses(path)
    assert discreet.read_responses(path, at_least=0.5).to_array().tolist() == [[1, 1]]


def test_of_several_scorers_one_must_be_named(tmp_path):
    log = inspect_log("m", {1: "C", 2: "I"})
    for sample in log["samples"]:
        sample["scores"]["judge"] = {"value": {"style": 1, "truth": 0}}
    path = write_json(tmp_path / "log.json", log)
    with refused(
        BadResponses, "these_scores_task_say", asked="'match', 'judge/style', 'judge/truth'"
    ):
        discreet.read_responses(path)
    assert discreet.read_responses(path, response="judge/style").to_array().tolist() == [[1, 1]]
    assert discreet.read_responses(path, response="match").to_array().tolist() == [[1, 0]]


def test_epochs_are_repeated_attempts(tmp_path):
    log = inspect_log("m", {1: "C", 2: "I"})
    log["samples"] += [{**sample, "epoch": 2} for sample in log["samples"]]
    path = write_json(tmp_path / "log.json", log)
    with refused(
        BadResponses, "person_answered_item_more", second="log.json, sample '1' of epoch 2"
    ):
        discreet.read_responses(path)
    assert discreet.read_responses(path, repeats="first").to_array().tolist() == [[1, 0]]


@pytest.mark.parametrize("damage", ["cut", "changed", "no model", "not JSON"])
def test_a_damaged_log_is_refused_in_one_line(tmp_path, damage):
    path = tmp_path / "log.eval"
    data = bytearray(WRITTEN.read_bytes())
    if damage == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "changed":
        with zipfile.ZipFile(WRITTEN) as file:
            place = file.getinfo("summaries.json").header_offset
        data[place + 120] ^= 255
        path.write_bytes(data)
    elif damage == "no model":
        write_zip(path, {**inspect_log("m", {1: "C"}), "eval": {"task": "t"}})
    else:
        path = tmp_path / "log.json"
        path.write_text('{"version": 2, "status": "success", "eval": ')
    with refused(BadResponses, "damaged_log_inspect_version") as caught:
        discreet.read_responses(path)
    assert "\n" not in str(caught.value)


def test_samples_of_the_harness_are_named_after_folder_and_file(tmp_path):
    for model, scores in {"org__one": (1.0, 0.0), "org__two": (0.0, 1.0)}.items():
        write_harness(tmp_path, model, [harness_record(k, acc=s) for k, s in enumerate(scores)])
    found = discreet.read_responses(f"{tmp_path}/*/samples_*.jsonl")
    assert list(found.persons) == ["org__one", "org__two"]
    assert found.items == ("arc_easy/0", "arc_easy/1")
    assert found.to_array().tolist() == [[1, 0], [0, 1]]


def test_accuracy_is_taken_and_another_metric_can_be_named(tmp_path):
    records = [harness_record(0, acc=1.0, acc_norm=0.0), harness_record(1, acc=0.0, acc_norm=1.0)]
    path = write_harness(tmp_path, "m", records)
    assert discreet.read_responses(path).to_array().tolist() == [[1, 0]]
    assert discreet.read_responses(path, response="acc_norm").to_array().tolist() == [[0, 1]]


def test_older_samples_without_a_list_of_metrics_are_read(tmp_path):
    record = harness_record(0, exact_match=1.0)
    del record["metrics"], record["filter"]
    assert discreet.read_responses(write_harness(tmp_path, "m", [record])).n_answers == 1


def test_filters_of_one_answer_are_repeated_attempts(tmp_path):
    records = [
        {**harness_record(0, exact_match=score), "filter": name}
        for name, score in {"strict-match": 0.0, "flexible-extract": 1.0}.items()
    ]
    path = write_harness(tmp_path, "m", records, task="gsm8k")
    with refused(
        BadResponses,
        "person_answered_item_more",
        second="samples_gsm8k_2026-01-05T10-11-12.123456.jsonl, line 2",
    ):
        discreet.read_responses(path)
    assert discreet.read_responses(path, repeats="last").to_array().tolist() == [[1]]


def test_a_packed_log_of_the_harness_and_a_group_by_task_work(tmp_path):
    path = write_harness(tmp_path, "m", [harness_record(0, acc=1.0), harness_record(1, acc=0.0)])
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    found = discreet.read_responses(packed, group="task")
    assert found.items == ("arc_easy/0", "arc_easy/1")
    assert list(found.groups["task"]) == ["arc_easy"]


def test_logs_are_counted_from_disk_as_in_memory(tmp_path):
    rng = np.random.default_rng(1)
    for model in "abcd":
        records = [harness_record(k, acc=float(rng.integers(2))) for k in range(6)]
        write_harness(tmp_path, model, records)
        answers = dict(enumerate(rng.choice(["C", "I"], 6).tolist()))
        write_json(tmp_path / model / "log.json", inspect_log(model, answers))
    for pattern in (f"{tmp_path}/*/*.jsonl", f"{tmp_path}/*/*.json"):
        memory = discreet.count_pairs(pattern, engine="memory")
        disk = discreet.count_pairs(pattern, engine="disk")
        order = [disk.items.index(name) for name in memory.items]
        assert np.array_equal(memory.right_wrong, disk.right_wrong[np.ix_(order, order)])


def test_the_command_line_reads_a_folder_of_logs(tmp_path):
    for number, model in enumerate("abcdef"):
        answers = {k: "C" if (k + number) % 3 else "I" for k in range(5)}
        write_json(tmp_path / f"{model}.json", inspect_log(model, answers))
    ended = run("fit", str(tmp_path), "--json", "--quiet")
    assert ended.code == 0
    assert len(json.loads(ended.out)["items"]) == 5


def test_tables_of_models_and_prompts_need_no_words_about_their_columns():
    rows = {"model": ["a", "a", "b", "b"], "correct": [1, 0, 0, 1]}
    for name in ("prompt", "question_id", "prompt_id"):
        frame = pd.DataFrame({**rows, name: ["p", "q", "p", "q"]})
        found = discreet.Responses.from_dataframe(frame)
        assert (list(found.persons), found.items) == (["a", "b"], ("p", "q"))


def test_the_id_of_a_question_counts_more_than_the_text_of_a_prompt(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("user,model,prompt,question_id,correct\nu,m,What?,7,1\nv,m,What?,7,0\n")
    found = discreet.read_responses(path)
    assert (list(found.persons), found.items) == (["u", "v"], ("7",))


def test_a_plain_table_of_models_by_questions_is_wide(tmp_path):
    path = tmp_path / "leaderboard.csv"
    path.write_text("model,q1,q2,q3\none,1,0,1\ntwo,0,1,\n")
    found = discreet.read_responses(path)
    assert list(found.persons) == ["one", "two"]
    assert found.items == ("q1", "q2", "q3")


@pytest.mark.parametrize("beside", ["subject", "id"])
def test_a_column_of_models_names_the_persons_beside_subjects_and_ids(beside):
    rows = [
        {"model": f"m{m}", beside: f"s{q % 3}", "question": f"q{q}", "correct": (m * q + m) % 2}
        for m in range(5)
        for q in range(9)
    ]
    answers = discreet.Responses.from_dataframe(pd.DataFrame(rows))
    assert answers.persons.tolist() == [f"m{m}" for m in range(5)]
    stated = discreet.Responses.from_dataframe(pd.DataFrame(rows), person=beside, repeats="first")
    assert stated.n_persons == 3


GRADED = Path(__file__).parent.parent / "data" / "tables" / "exports" / "lm eval output"


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_task_with_graded_scores_is_left_out_by_its_name(engine):
    with pytest.warns(AssumedReading, match="summaries"):
        counts = discreet.count_pairs(GRADED, engine=engine)
    assert (counts.persons, len(counts.items)) == (3, 6)
    stated = discreet.count_pairs(GRADED, engine=engine, ignore=["summaries"])
    assert np.array_equal(stated.right_wrong, counts.right_wrong)
    alone = discreet.read_responses(f"{GRADED}/*/samples_s*", ignore="arc_easy", at_least=0.5)
    assert len(alone.items) == 6


def test_words_of_inspect_are_correct_and_incorrect_in_tables_too():
    rows = [
        {"model": f"m{m}", "question": f"q{q}", "score": "C" if m > q else "I"}
        for m in range(6)
        for q in range(5)
    ]
    seen = discreet.inspect_table(pd.DataFrame(rows))
    assert seen.is_sure
    assert seen.options["categories"] == [["i", "c"]]


def test_a_folder_a_pattern_and_a_query_are_asked_about_as_a_file_is(tmp_path):
    rng = np.random.default_rng(1)
    names = ["q1", "q2", "q3", "q4", "sex", "arm"]
    table = pd.DataFrame(rng.integers(0, 2, (40, 6)), columns=names)
    for part in (0, 1):
        table[part::2].to_csv(tmp_path / f"{part}.csv", index=False)
    pattern = f"{tmp_path}/*.csv"
    for source in (tmp_path, pattern, f"FROM '{pattern}'", tmp_path / "0.csv"):
        asked = {question.cells for question in discreet.inspect_table(source).questions}
        assert asked == {("sex",), ("arm",)}
        with pytest.raises(BadResponses):
            discreet.fit(source)
