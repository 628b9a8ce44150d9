"""Results in files: private, whole, read back to the last digit, and never run."""

import json

import numpy as np
import pytest

import discreet
from discreet import adaptive
from discreet.errors import BadResponses, BadUsage, WarningKind
from discreet.results.estimate import Estimate, Solution, Status
from discreet.saving import Kept, list_kinds
from refusals import refused

pytestmark = pytest.mark.everywhere


@pytest.fixture
def estimate():
    X = np.array([[1, 0, 0, 1], [1, 1, 0, 1], [0, 1, 1, 1], [1, 0, 1, 1], [0, 0, 1, 1]] * 20)
    answers = discreet.Responses.from_array(X, items=["ä", "b", "c", "all right"])
    return discreet.fit(answers)


def test_an_estimate_comes_back_to_the_last_digit(estimate, tmp_path):
    estimate.save(tmp_path / "e.json")
    again = discreet.Estimate.load(tmp_path / "e.json")
    for name in ("difficulty", "se", "covariance", "answers", "right"):
        old, new = getattr(estimate, name), getattr(again, name)
        assert np.array_equal(old, new, equal_nan=True)
        assert old.dtype == new.dtype
        assert not new.flags.writeable
    assert (again.items, again.steps, again.solution) == (
        estimate.items,
        estimate.steps,
        estimate.solution,
    )
    assert again.status[3] is Status.ALWAYS_RIGHT
    assert [one.kind for one in again.warnings] == [WarningKind.LEFT_OUT]
    assert again.warnings[0].items == ("all right",)


def test_a_file_is_its_owners_alone_and_says_that_it_is_confidential(estimate, tmp_path):
    path = tmp_path / "e.json"
    path.write_text("what was there before")
    path.chmod(0o644)
    estimate.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    document = json.loads(path.read_text())
    assert (document["format"], document["version"]) == ("discreet-result", 1)
    assert document["access"].startswith("confidential")


def test_a_plan_holds_nothing_of_persons_and_says_so(tmp_path):
    plan = discreet.plan(persons=1000, items=50, answers=20, epsilon=1.0)
    plan.save(tmp_path / "p.json")
    assert json.loads((tmp_path / "p.json").read_text())["access"].startswith("public")
    assert discreet.Plan.load(tmp_path / "p.json") == plan
    assert len(plan.to_dataframe()) == 1


def test_another_kind_of_result_is_refused_by_name(estimate, tmp_path):
    discreet.rank(estimate, top=1).save(tmp_path / "r.json")
    with refused(BadUsage, "holds_result_kind_not_use", name="Ranking", name_3="Ranking"):
        discreet.Estimate.load(tmp_path / "r.json")


def test_what_is_loaded_as_a_class_is_one_of_it(estimate, tmp_path):
    estimate.save(tmp_path / "e.json")
    assert discreet.load(tmp_path / "e.json", discreet.Estimate).items == estimate.items
    with refused(BadUsage, "holds_result_kind_not", name="Estimate", name_2="Ranking"):
        discreet.load(tmp_path / "e.json", discreet.Ranking)


def damage(path, change):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


DAMAGED = "damaged_save_result_again"


@pytest.mark.parametrize(
    ("change", "code", "facts"),
    [
        (lambda d: d.update(format="other"), "holds_no_format_give", {"found": "other"}),
        (lambda d: d.update(version=99), "version_version_discreet_reads", {"document": "99"}),
        (lambda d: d["result"]["Estimate"].pop("items"), DAMAGED, {}),
        (lambda d: d["result"]["Estimate"].update(extra=1), DAMAGED, {}),
        (lambda d: d.update(result={"os.system": "true"}), DAMAGED, {}),
        (lambda d: d["result"]["Estimate"].update(se={"array": ["S9", [1], ["x"]]}), DAMAGED, {}),
        (
            lambda d: d["result"]["Estimate"].update(se={"array": ["float64", [9], [1.0]]}),
            DAMAGED,
            {},
        ),
    ],
)
def test_a_damaged_or_foreign_file_is_refused(estimate, tmp_path, change, code, facts):
    path = tmp_path / "e.json"
    estimate.save(path)
    damage(path, change)
    with refused(BadResponses if code == DAMAGED else BadUsage, code, **facts):
        discreet.Estimate.load(path)


def test_what_is_not_json_is_refused(tmp_path):
    (tmp_path / "e.json").write_bytes(b"\x80\x04pickle")
    with refused(BadResponses, "damaged_not_json_read_json"):
        discreet.Estimate.load(tmp_path / "e.json")


def test_a_result_with_a_strange_value_in_it_says_that_it_cannot_be_saved(estimate, tmp_path):
    link = discreet.link_calibrations(estimate, estimate)
    strange = type(link)(**{**vars(link), "linked": object()})
    with refused(BadUsage, "result_holds_value_kind", name="object"):
        strange.save(tmp_path / "l.json")
    assert not (tmp_path / "l.json").exists()


def test_a_session_goes_on_where_it_was_saved(tmp_path):
    bank = {f"q{number}": number / 10 for number in range(-10, 10)}
    rules = adaptive.Rules(among=5)
    start = adaptive.start(bank, rules=rules, rng=np.random.default_rng(5))
    half = start.answer(True).answer(False)
    half.save(tmp_path / "s.json")
    again = adaptive.AdaptiveSession.load(tmp_path / "s.json")
    assert again.to_dict() == half.to_dict()
    assert again.answer(True).item == half.answer(True).item


def test_a_file_can_make_results_and_the_parts_that_their_annotations_name_and_no_others(tmp_path):
    for name in discreet.__all__:
        getattr(discreet, name)
    kinds = list_kinds(Kept)
    assert {"Estimate", "Bank", "AdaptiveSession", "AnalysisTable", "AndersenTest"} <= set(kinds)
    parts = {name for name, kind in kinds.items() if not issubclass(kind, Kept)}
    assert {"FitWarning", "WarningKind", "Status", "Solution", "Guarantee", "Setting"} <= parts
    assert not parts & {"Responses", "Ledger", "Budget", "PairCounts", "NumberName", "Language"}
    for name in ("Ledger", "Responses", "studio", "__version__", "os.system"):
        document = {"format": "discreet-result", "version": 1, "result": {name: ["spent.db"]}}
        (tmp_path / "e.json").write_text(json.dumps(document))
        problem = f"files hold no values of the kind {name}"
        with refused(BadResponses, "damaged_save_result_again", error=problem):
            discreet.load(tmp_path / "e.json")


def test_ranking_is_a_table(estimate):
    table = discreet.rank(estimate, top=1).to_dict()
    assert table["in_top"][0] is True
    assert set(table) == {"item", "place", "in_top", "surely_in"}


def test_the_command_line_takes_a_saved_estimate_as_a_calibration(estimate, tmp_path):
    from discreet.cli.calibrations import read_calibration

    estimate.save(tmp_path / "e.json")
    found = read_calibration(tmp_path / "e.json")
    assert isinstance(found, Estimate)
    assert isinstance(found.solution, Solution)
