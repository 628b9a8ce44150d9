"""score, dif, link, bank and fit --anchors as a user types them."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

import discreet as library
from commandline import discreet, program
from discreet.report.calibration import analyse_calibration

TRUTH = np.linspace(-1.2, 1.2, 8)
NAMES = [f"q{i}" for i in range(8)]


def write_wide(path, answers, items, group=None):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["person", *items, *(["form"] if group is not None else [])])
        for number, row in enumerate(answers):
            cells = ["" if value < 0 else value for value in row.tolist()]
            writer.writerow([f"p{number}", *cells, *([group[number]] if group is not None else [])])
    return path


def drawn(seed, persons=400):
    rng = np.random.default_rng(seed)
    chance = 1 / (1 + np.exp(TRUTH - rng.normal(size=(persons, 1))))
    return (rng.random(chance.shape) < chance).astype(int)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Two calibrations with common items, a release, a bank."""
    place = tmp_path_factory.mktemp("analysis")
    write_wide(place / "spring.csv", drawn(1)[:, :6], NAMES[:6])
    write_wide(place / "autumn.csv", drawn(2)[:, 2:], NAMES[2:])
    for name in ("spring", "autumn"):
        assert discreet("fit", place / f"{name}.csv", "--out", place / name, "-q").code == 0
    released = library.release(
        library.read_responses(place / "spring.csv"),
        library.Budget(4.0, 1e-6),
        items=NAMES[:6],
        mechanism="pairs",
    )
    released.save(place / "release")
    made = discreet("bank", "create", place / "bank.csv", place / "spring", "--scale", "maths")
    assert made.code == 0, made.err
    return place


# --- score ------------------------------------------------------------------------------------


@pytest.mark.everywhere
def test_every_kind_of_calibration_scores(place):
    estimate = library.fit(place / "spring.csv")
    rows = enumerate(zip(estimate.items, estimate.difficulty, estimate.se, strict=True), 1)
    lines = [f"{entry} {value:.4f} 1 {error:.4f} {name}" for entry, (name, value, error) in rows]
    (place / "items.txt").write_text("\n".join([";ENTRY MEASURE ST MODLSE NAME", *lines]))
    kinds = ["spring", "spring/calibration.confidential.json", "release", "bank.csv", "items.txt"]
    for kind in kinds:
        ended = discreet("score", place / "spring.csv", "--with", place / kind, "--json")
        assert ended.code == 0, ended.err
        assert len(ended.document["persons"]) == 400
        assert ended.document["items"] == NAMES[:6]


def test_scores_are_those_of_the_library(place):
    ended = discreet("score", place / "autumn.csv", "--with", place / "autumn", "--json", "-q")
    answers = library.read_responses(place / "autumn.csv")
    expected = library.score(answers, library.fit(answers))
    found = [row["ability"] for row in ended.document["persons"]]
    assert found == pytest.approx(expected.ability.tolist(), abs=1e-9)
    assert ended.err == ""


def test_items_without_a_difficulty_are_ignored_with_a_warning(place):
    ended = discreet("score", place / "autumn.csv", "--with", place / "spring", "--json")
    assert ended.code == 0
    assert ended.document["items"] == NAMES[2:6]
    assert "2 items were ignored" in ended.err


def test_maximum_likelihood_has_null_for_extreme_scores(place):
    ended = discreet(
        "score", place / "spring.csv", "--with", place / "spring", "--method", "ml", "--json"
    )
    extreme = [row for row in ended.document["persons"] if row["status"] != "measured"]
    assert extreme
    assert all(row["ability"] is None for row in extreme)


def test_posterior_scores_tell_their_prior(place):
    where = (place / "spring.csv", "--with", place / "spring", "--method", "posterior")
    assert discreet("score", *where, "--json").document["prior"]["sd"] == pytest.approx(1, abs=0.4)
    assert "Abilities: normal" in discreet("score", *where).out


@pytest.fixture(scope="module")
def graded(place):
    forms = np.tile(["a", "b"], 200)
    return write_wide(place / "graded.csv", drawn(5)[:, :6], NAMES[:6], group=forms)


def test_plausible_values_are_written_beside_abilities_with_their_regression(place, graded):
    out = place / "drawn"
    command = ("score", graded, "--with", place / "spring", "--plausible", 3, "--regress", "form")
    ended = discreet(*command, "--out", out)
    assert ended.code == 0, ended.err
    assert "the columns explain" in ended.out
    assert "form = b" in ended.out
    written = {path.name for path in out.iterdir()}
    assert written == {"abilities.confidential.csv", "regression.confidential.csv"}
    with (out / "abilities.confidential.csv").open() as file:
        rows = list(csv.DictReader(file))
    answers = library.read_responses(graded, group="form")
    known = library.fit(library.read_responses(place / "spring.csv"))
    expected = library.score(answers, known, plausible=3, regress="form").plausible
    drawn = [[float(row[f"pv{number}"]) for number in (1, 2, 3)] for row in rows]
    assert np.array(drawn) == pytest.approx(expected, abs=1e-3)


def test_another_seed_draws_other_plausible_values(place, graded):
    command = ("score", graded, "--with", place / "spring", "--plausible", 1, "--ignore", "form")
    first, again, other = (
        discreet(*command, "--json", "--seed", seed).document["persons"][0]["pv1"]
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_a_scale_gives_its_mean_and_sd_to_plausible_values(place, graded):
    command = ("score", graded, "--with", place / "spring", "--plausible", 5, "--regress", "form")
    rows = discreet(*command, "--scale", "500,100", "--json").document["persons"]
    turned = np.array([[row[f"scaled_pv{number}"] for number in range(1, 6)] for row in rows])
    assert turned.mean() == pytest.approx(500)
    assert turned.std(ddof=1) == pytest.approx(100)
    assert np.std([row["scaled_ability"] for row in rows]) < 95


def test_plausible_values_that_would_be_lost_are_said_to_be_elsewhere(place, graded):
    command = ("score", graded, "--with", place / "spring", "--ignore", "form", "--plausible", 1)
    assert "--out DIR" in discreet(*command).err


def test_a_column_that_is_not_there_cannot_be_regressed_on(place):
    ended = discreet("score", place / "spring.csv", "--with", place / "spring", "--regress", "sex")
    assert ended.code in (2, 3)
    assert "sex" in ended.err


def test_scores_are_written_as_confidential_files(place, tmp_path):
    out = tmp_path / "scores"
    command = ("score", place / "spring.csv", "--with", place / "spring", "--out", out)
    assert discreet(*command).code == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "abilities.confidential.csv",
        "score_table.confidential.csv",
    ]
    with (out / "abilities.confidential.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 400
    assert rows[0]["access"] == "confidential"
    with (out / "score_table.confidential.csv").open() as file:
        table = [float(row["ability"]) for row in csv.DictReader(file)]
    assert len(table) == 7
    assert table == sorted(table)
    refused = discreet(*command)
    assert refused.code == 2
    assert "--force" in refused.err
    assert discreet(*command, "--force").code == 0


@pytest.mark.parametrize(
    ("name", "text", "code", "words"),
    [
        ("missing", None, 2, "no such file"),
        ("answers.csv", "person,q0\n1,1\n", 2, "is no calibration"),
        ("other.json", '{"format": "other"}', 2, "format is 'other'"),
        ("broken.json", "{", 3, "damaged"),
        ("future.json", '{"format": "discreet-calibration", "version": 9}', 2, "version 9"),
        ("holes.json", '{"format": "discreet-calibration", "version": 1}', 3, "damaged"),
        (
            "unit.csv",
            '# {"format": "discreet-bank", "version": 1, "unit": "chit", "scale": "s", '
            '"access": "public"}\n',
            2,
            "unit 'chit'",
        ),
    ],
)
def test_a_calibration_that_cannot_be_used_is_refused(place, tmp_path, name, text, code, words):
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    ended = discreet("score", place / "spring.csv", "--with", path, "--json")
    assert (ended.code, ended.out) == (code, "")
    assert words in ended.err


def test_a_folder_without_a_calibration_is_refused(place, tmp_path):
    ended = discreet("score", place / "spring.csv", "--with", tmp_path)
    assert ended.code == 2
    assert "neither a calibration" in ended.err


def test_answers_to_other_items_are_refused(place, tmp_path):
    write_wide(tmp_path / "other.csv", drawn(3)[:, :2], ["x", "y"])
    ended = discreet("score", tmp_path / "other.csv", "--with", place / "spring")
    assert ended.code == 2
    assert "none of the 2 items" in ended.err


# --- dif --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def grouped(tmp_path_factory):
    rng = np.random.default_rng(5)
    form = np.where(np.arange(1600) % 2 == 0, "A", "B")
    difficulty = np.tile(TRUTH, (1600, 1))
    difficulty[form == "B", 3] += 1.2
    chance = 1 / (1 + np.exp(difficulty - rng.normal(size=(1600, 1))))
    answers = (rng.random(chance.shape) < chance).astype(int)
    return write_wide(tmp_path_factory.mktemp("dif") / "forms.csv", answers, NAMES, form)


def test_dif_finds_the_item_that_is_harder_for_a_group(grouped):
    ended = discreet("dif", grouped, "--group", "form", "--reference", "A", "--json")
    assert ended.code == 0, ended.err
    rows = {row["item"]: row for row in ended.document["items"]}
    assert ended.document["reference"] == "A"
    assert rows["q3"]["confirmed"]
    assert rows["q3"]["difference"] == pytest.approx(1.2, abs=0.35)
    assert rows["q3"]["ets"] == "C"
    assert sum(row["confirmed"] for row in rows.values()) == 1


def test_dif_prints_and_writes_a_table(grouped, tmp_path):
    ended = discreet("dif", grouped, "--group", "form", "--out", tmp_path / "out")
    assert ended.code == 0
    assert "form: A 800, B 800" in ended.out
    assert "confirmed" in ended.out
    with (tmp_path / "out" / "dif.confidential.csv").open() as file:
        assert [row["item"] for row in csv.DictReader(file)] == NAMES


def test_dif_needs_one_group_column(grouped):
    for asked in ((), ("--group", "form", "--group", "q0")):
        ended = discreet("dif", grouped, *asked)
        assert ended.code == 2
        assert "exactly one --group" in ended.err


def test_dif_with_one_group_or_an_unknown_reference_is_refused(tmp_path, grouped):
    one = write_wide(tmp_path / "one.csv", drawn(1)[:50], NAMES, ["A"] * 50)
    assert "two groups or more" in discreet("dif", one, "--group", "form").err
    ended = discreet("dif", grouped, "--group", "form", "--reference", "Z", "--json")
    assert (ended.code, ended.out) == (2, "")


def test_persons_without_a_label_are_left_out_with_a_warning(tmp_path):
    labels = np.where(np.arange(400) % 3 == 0, "", np.where(np.arange(400) % 3 == 1, "A", "B"))
    path = write_wide(tmp_path / "some.csv", drawn(6), NAMES, labels)
    ended = discreet("dif", path, "--group", "form", "--json")
    assert ended.code == 0
    assert "134 persons without a group label" in ended.err


def test_an_item_without_variance_in_a_group_says_so(tmp_path):
    answers = drawn(7)
    labels = np.where(np.arange(400) % 2 == 0, "A", "B")
    answers[labels == "B", 0] = 1
    path = write_wide(tmp_path / "flat.csv", answers, NAMES, labels)
    row = discreet("dif", path, "--group", "form", "--json").document["items"][0]
    assert row["difference"] is None
    assert row["status"] == "always_right in B"


# --- link -------------------------------------------------------------------------------------


def test_link_prints_the_shift_and_the_common_items(place):
    ended = discreet("link", place / "spring", place / "autumn")
    assert ended.code == 0
    assert ended.out.startswith("Add ")
    assert "from 4 common items" in ended.out
    document = discreet("link", place / "spring", place / "autumn", "--json").document
    expected = TRUTH[:6].mean() * -1 + TRUTH[2:].mean()
    assert document["shift"] == pytest.approx(expected, abs=4 * document["se"])
    assert [row["item"] for row in document["items"]] == NAMES[2:6]
    assert "Every se includes the scatter of the items" in ended.out
    for row in document["items"]:
        assert row["z"] == pytest.approx(row["drift"] / row["se"])


def test_link_writes_the_moved_calibration_and_it_scores(place, tmp_path):
    out = tmp_path / "linked"
    assert discreet("link", place / "spring", place / "autumn", "--out", out).code == 0
    assert (out / "link.confidential.csv").exists()
    moved = json.loads((out / "calibration.confidential.json").read_text())["items"]
    plain = json.loads((place / "autumn" / "calibration.confidential.json").read_text())["items"]
    shift = discreet("link", place / "spring", place / "autumn", "--json").document["shift"]
    for one, two in zip(moved, plain, strict=True):
        assert one["difficulty"] == pytest.approx(two["difficulty"] + shift)
    assert discreet("score", place / "autumn.csv", "--with", out).code == 0
    assert discreet("link", place / "spring", place / "autumn", "--out", out).code == 2


def test_a_drifted_item_is_left_out_and_said(place, tmp_path):
    spring = library.load(place / "spring")
    difficulty = spring.difficulty + 3 * (np.arange(len(spring.items)) == 4)
    analyse_calibration(replace(spring, difficulty=difficulty)).write(tmp_path)
    ended = discreet("link", place / "spring", tmp_path)
    assert ended.code == 0
    assert "left out" in ended.out
    assert "From all 6 common items" in ended.out
    assert "1 of 6 common items drifted" in ended.err
    quiet = discreet("link", place / "spring", tmp_path, "--quiet")
    assert quiet.err == ""


def test_calibrations_without_common_items_are_not_identifiable(place, tmp_path):
    write_wide(tmp_path / "other.csv", drawn(3)[:, :3], ["x", "y", "z"])
    assert discreet("fit", tmp_path / "other.csv", "--out", tmp_path / "other").code == 0
    ended = discreet("link", place / "spring", tmp_path / "other", "--json")
    assert (ended.code, ended.out) == (5, "")
    assert "0 items" in ended.err


# --- bank -------------------------------------------------------------------------------------


def test_a_bank_grows_on_the_command_line(place, tmp_path):
    bank = tmp_path / "bank.csv"
    assert discreet("bank", "create", bank, place / "spring", "--scale", "maths").code == 0
    added = discreet("bank", "add", bank, place / "autumn", "--json")
    assert added.code == 0
    assert added.document["added"] == NAMES[6:]
    shown = discreet("bank", "show", bank, "--json").document
    assert [row["item"] for row in shown["items"]] == NAMES
    assert {row["source"] for row in shown["items"]} == {"spring", "autumn"}
    assert shown["access"] == "confidential"
    assert shown["guarantee"] is None
    assert "maths: 8 items from 2 calibrations" in discreet("bank", "show", bank).out
    again = discreet("bank", "add", bank, place / "autumn")
    assert again.code == 2
    assert "'autumn' already" in again.err


def test_a_bank_of_releases_is_public_and_scores(place, tmp_path):
    bank = tmp_path / "public.csv"
    made = discreet("bank", "create", bank, place / "release", "--scale", "maths")
    assert "(public)" in made.out
    shown = discreet("bank", "show", bank, "--json").document
    promised = json.loads((place / "release" / "privacy.json").read_text())["guarantee"]
    assert shown["access"] == "public"
    assert shown["guarantee"] == promised
    assert "epsilon" in discreet("bank", "show", bank).out
    assert discreet("score", place / "spring.csv", "--with", bank).code == 0


def test_a_bank_is_not_overwritten_without_force(place):
    command = ("bank", "create", place / "bank.csv", place / "autumn", "--scale", "x")
    before = (place / "bank.csv").read_bytes()
    assert discreet(*command).code == 2
    assert (place / "bank.csv").read_bytes() == before


def test_a_bank_that_a_calibration_does_not_fit_stays_as_it_was(place, tmp_path):
    write_wide(tmp_path / "other.csv", drawn(3)[:, :3], ["x", "y", "z"])
    assert discreet("fit", tmp_path / "other.csv", "--out", tmp_path / "other").code == 0
    before = (place / "bank.csv").read_bytes()
    ended = discreet("bank", "add", place / "bank.csv", tmp_path / "other")
    assert ended.code == 5
    assert (place / "bank.csv").read_bytes() == before


# --- fit --anchors ----------------------------------------------------------------------------


def anchors(tmp_path, rows):
    path = tmp_path / "anchors.csv"
    path.write_text("item,difficulty\n" + "".join(f"{row}\n" for row in rows))
    return path


def test_anchored_items_keep_their_value(place, tmp_path):
    held = anchors(tmp_path, ["q2,2.0", "q3,2.3"])
    ended = discreet("fit", place / "autumn.csv", "--anchors", held, "--json", "-q")
    assert ended.code == 0, ended.err
    rows = {row["item"]: row for row in ended.document["items"]}
    assert (rows["q2"]["difficulty"], rows["q2"]["status"]) == (2.0, "anchored")
    assert rows["q5"]["difficulty"] > 2
    assert [row["item"] for row in ended.document["anchors"]] == ["q2", "q3"]
    assert "displacement" in discreet("fit", place / "autumn.csv", "--anchors", held).out


def test_a_bank_anchors_the_items_it_has(place):
    ended = discreet("fit", place / "autumn.csv", "--anchors", place / "bank.csv", "--json")
    status = [row["status"] for row in ended.document["items"]]
    assert status == ["anchored"] * 4 + ["estimated"] * 2


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (["nonsense,1"], "do not have: nonsense"),
        (["q2,1", "q2,2"], "contradict"),
        (["q2,inf"], "finite"),
        (["q2,hard"], "an item and its difficulty"),
        ([], "no anchor"),
    ],
)
def test_anchors_that_cannot_be_used_are_refused(place, tmp_path, rows, words):
    held = anchors(tmp_path, rows)
    ended = discreet("fit", place / "autumn.csv", "--anchors", held, "--json")
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err


def test_anchors_are_held_by_marginal_likelihood_too(place, tmp_path):
    free = discreet("fit", place / "autumn.csv", "--method", "marginal", "--json").document
    own = [f"{one['item']},{one['difficulty']!r}" for one in free["items"]]
    held = anchors(tmp_path, own)
    ended = discreet(
        "fit", place / "autumn.csv", "--anchors", held, "--method", "marginal", "--json"
    ).document
    assert ended["method"] == "marginal"
    assert len(ended["anchors"]) == len(own)
    assert max(abs(one["displacement"]) for one in ended["anchors"]) < 1e-6


def test_anchors_go_with_every_method(place, tmp_path):
    held = anchors(tmp_path, ["q2,1"])
    for method in ("spectral", "refined", "conditional", "marginal"):
        ended = discreet("fit", place / "autumn.csv", "--anchors", held, "--method", method)
        assert ended.code == 0, ended.err
        assert "it is the only anchor" in ended.out


def test_anchors_may_be_a_table_of_any_kind(place, tmp_path):
    for name, text in [
        ("held.tsv", "item\tdifficulty\nq2\t2.0\n"),
        ("a.csv", "difficulty;item\n2;q2\n"),
    ]:
        (tmp_path / name).write_text(text)
        ended = discreet("fit", place / "autumn.csv", "--anchors", tmp_path / name, "--json", "-q")
        assert ended.code == 0, ended.err
        assert [row["item"] for row in ended.document["anchors"]] == ["q2"]


def test_a_csv_without_the_columns_of_anchors_is_refused(place, tmp_path):
    path = tmp_path / "anchors.csv"
    path.write_text("q2,1\n")
    ended = discreet("fit", place / "autumn.csv", "--anchors", path)
    assert ended.code == 2
    assert "'item' and 'difficulty'" in ended.err


def test_the_commands_work_as_a_program_of_its_own(place):
    ended = program("score", "spring.csv", "--with", "bank.csv", "--json", "--quiet", cwd=place)
    assert ended.code == 0
    assert len(ended.document["persons"]) == 400
    assert ended.err == ""
