"""Private differential functioning: what is found, how often wrongly, and what is refused."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import discreet
from commandline import discreet as command
from discreet.answers.pack import store_codes
from discreet.answers.responses import Responses
from discreet.errors import BadUsage, OutOfReach
from discreet.planning.audit import Size, Verdict, audit_mechanism, make_attacks
from discreet.privacy.accounting import Neighbours
from discreet.privacy.mechanisms.residuals import Residuals, select_groups
from discreet.privacy.noise import ExactNoise
from discreet.privacy.protocol import NoiseLaw, Public
from discreet.publishing import group_differences
from discreet.publishing.group_differences import _find_chance
from discreet.secure import SeededSource
from refusals import refused

ITEMS = [f"i{number:02}" for number in range(20)]
NAMES = ["de", "fr", "it"]
DROWNED = (32, 50)


def draw(seed, groups=2, each=2500, effect=0.4, items=20, elsewhere=0):
    """Groups of different ability; the last item but one is harder for the second group."""
    rng = np.random.default_rng([seed, 46])
    difficulty = np.tile(np.linspace(-2, 2, items), (groups, 1))
    difficulty[1, items // 2] += effect
    group = np.repeat(np.arange(groups), each)
    ability = rng.standard_normal(len(group)) - 0.5 * (group % 2)
    chance = 1 / (1 + np.exp(difficulty[group] - ability[:, None]))
    codes = (rng.random(chance.shape) < chance).astype(np.int8)
    labels = np.array(NAMES)[group]
    labels[:elsewhere] = "elsewhere"
    store, persons = store_codes(codes, (1,) * items), [f"p{k}" for k in range(len(codes))]
    return Responses(tuple(ITEMS[:items]), persons, store, {"language": labels})


def compare(answers, seed=1, epsilon=1.0, names=("de", "fr"), **words):
    words = {"design": "complete", "groups": {"language": list(names)}, **words}
    noise = ExactNoise(SeededSource(seed))
    return discreet.release_dif(answers, epsilon=epsilon, noise=noise, **{"items": ITEMS, **words})


def test_few_persons_have_wide_errors_and_no_runaway_differences():
    """300 persons a group: noise is larger than what their answers say, and the errors say so."""
    few = [compare(draw(seed, each=300, effect=0), seed) for seed in range(6)]
    z = np.array([dif.difference / dif.se for dif in few])
    assert 0.5 < np.sqrt(np.mean(z**2)) < 1.2
    assert max(np.median(dif.se) for dif in few) < 5
    assert max(np.abs(dif.difference).max() for dif in few) < 10
    assert not any((dif.p_adjusted < 0.05).any() for dif in few)


def test_a_group_whose_persons_drown_in_noise_is_compared_without_an_error():
    """Seeds at which the noisy numbers of persons with answers are zero in one of the groups."""
    for seed in DROWNED:
        X = np.random.default_rng(seed).integers(0, 2, (400, 3))
        answers = discreet.Responses.from_array(X, items=["a", "b", "c"])
        groups = {"language": ["de", "fr"] * 200}
        answers = Responses(answers.items, answers.persons, answers.store, groups)
        dif = compare(answers, seed, items=["a", "b", "c"], design="unknown")
        assert np.isfinite(dif.difference).all()
        assert dif.se.max() > 100
        assert dif.p_adjusted.min() > 0.05


def test_a_difference_is_found_where_it_is_and_nowhere_else():
    dif = compare(draw(3, effect=0.8))
    assert (dif.reference, dif.groups) == ("de", ("fr",))
    assert dif.difference.shape == dif.se.shape == dif.p_value.shape == (20, 1)
    found = np.flatnonzero(dif.p_adjusted[:, 0] < 0.05)
    assert found.tolist() == [10]
    assert abs(dif.difference[10, 0] - 0.76) < 3 * dif.se[10, 0]
    assert dif.ets[10][0] in "BC"
    assert dif.p_omnibus < 0.01
    assert dif.largest > 0.8
    assert 0.05 < dif.se.mean() < 0.12


def test_errors_are_as_large_as_they_say_and_alarms_as_rare():
    """Of 16 studies without any difference; unequal abilities must not look like one."""
    made = [compare(draw(seed, effect=0.0), seed, names=("de", "fr")) for seed in range(16)]
    z = np.array([dif.difference / dif.se for dif in made])
    assert 0.85 < np.sqrt(np.mean(z**2)) < 1.15
    assert sum((dif.p_adjusted < 0.05).any() for dif in made) <= 4


def test_several_groups_cost_one_charge_and_the_noise_of_one_release(tmp_path):
    answers = draw(1, groups=3, each=800)
    ledger = discreet.Ledger.create(tmp_path / "spent.db", epsilon=1.0, delta=1e-6)
    words = {"items": ITEMS, "design": "complete", "reference": "fr", "out": tmp_path / "out"}
    groups = {"language": NAMES}
    dif = discreet.release_dif(answers, epsilon=1.0, groups=groups, ledger=ledger, **words)
    assert len(ledger.releases()) == 1
    assert (dif.reference, dif.groups) == ("fr", ("de", "it"))
    assert dif.difference.shape == (20, 2)
    two = discreet.release_dif(answers, epsilon=1.0, items=ITEMS, groups={"language": NAMES[:2]})
    discreet.verify(tmp_path / "out")
    again = discreet.read_release(tmp_path / "out").compare_groups()
    assert np.allclose(again.difference, dif.difference, atol=1e-9)
    table = pd.read_csv(tmp_path / "out/dif.csv")
    assert np.allclose(table["difference"], dif.difference.ravel(), atol=1e-5)
    statement = (tmp_path / "out/statement.md").read_text()
    assert "language: fr, de, it" in statement
    assert "how they differ between 3 groups" in statement
    assert "sizes of groups have noise" in statement
    assert "how they differ between 3 groups" in (tmp_path / "out/registry.yaml").read_text()
    assert two.difference.shape == (20, 1)


def test_somebody_of_no_group_adds_nothing():
    """Whoever is elsewhere may have any answers: no released value changes."""
    some = draw(1, each=300, elsewhere=50)
    codes = some.to_array().copy()
    codes[:50] = 1
    others = Responses(some.items, some.persons, store_codes(codes, some.steps), some.groups)
    first, second = (
        discreet.release(
            one, epsilon=1.0, items=ITEMS, groups={"language": NAMES[:2]}, design="complete",
            noise=ExactNoise(SeededSource(2)),
        )
        for one in (some, others)
    )  # fmt: skip
    for name, values in first.noisy.values.items():
        assert (values == second.noisy.values[name]).all(), name


def test_the_audit_attacks_groups_and_finds_noise_that_is_too_small():
    """A person goes to another group; with half the noise it shows."""

    class Loud(Residuals):
        def calibrate(self, public, budget, source):
            honest = super().calibrate(public, budget, source)
            laws = {n: NoiseLaw(law.family, law.scale / 3) for n, law in honest.laws.items()}
            return replace(honest, laws=laws)

    options = {"size": Size(8, groups=2), "runs": 100, "noise": ExactNoise(SeededSource(1))}
    names = {one.name for one in make_attacks(
        Residuals(), discreet.Budget(1.0), options["size"], SeededSource(2)
    )}  # fmt: skip
    assert "another group" in names
    honest = audit_mechanism(Residuals(), discreet.Budget(1.0), **options)
    assert honest.verdict is not Verdict.REFUTED
    assert audit_mechanism(Loud(), discreet.Budget(1.0), **options).verdict is Verdict.REFUTED


def test_an_item_that_differs_in_one_of_several_groups_is_found_by_all_of_them():
    dif = compare(draw(6, groups=3, each=1500, effect=0.9), names=NAMES)
    assert dif.p_item.shape == (20,)
    assert np.argmin(dif.p_item) == 10
    assert dif.p_item[10] < 0.05
    two = compare(draw(6, each=1500, effect=0.5))
    assert np.allclose(two.p_item, two.p_adjusted[:, 0])  # of two groups it is the same


def test_the_chance_of_an_item_is_that_of_its_farthest_group(monkeypatch):
    """Unequal errors, groups of different precision: the test of items written anew."""
    noisy = discreet.release(
        draw(1, groups=3, each=300, items=4), epsilon=1.0, items=ITEMS[:4], design="complete",
        groups={"language": NAMES}, noise=ExactNoise(SeededSource(2)),
    ).noisy  # fmt: skip
    values = np.array([[0.1, 0.0, 0.3, -0.4], [0.2, -0.7, 0.3, 0.2], [0.0, -0.1, 0.9, -0.8]])
    root = (
        np.random.default_rng(5).normal(size=(3, 4, 4)) * np.array([0.1, 0.2, 0.3])[:, None, None]
    )
    errors = root @ root.transpose(0, 2, 1) + 0.01 * np.eye(4)
    monkeypatch.setattr(
        group_differences, "fit_without_prior",
        lambda *_, group, start: (values[group], errors[group]),
    )  # fmt: skip
    dif = group_differences.compare_groups(noisy, np.zeros(4))
    draws = np.array(
        [
            np.random.default_rng(k).multivariate_normal(np.zeros(4), errors[k], 40_000)
            for k in range(3)
        ]
    )
    spread = np.array([[np.var(draws[g] - draws.mean(axis=0), axis=0)] for g in range(3)])[:, 0]
    largest = (np.abs(draws - draws.mean(axis=0)) / spread[:, None] ** 0.5).max(axis=(0, 2))
    own = (np.abs(values - values.mean(axis=0)) / spread**0.5).max(axis=0)
    assert np.abs(dif.p_item - [(largest >= one).mean() for one in own]).max() < 0.012
    assert 0.1 < np.median(dif.p_item) < 0.9
    assert _find_chance(np.array([1e9]), np.sort(largest))[0] == 1 / (1 + len(largest))


def test_one_person_without_a_group_changes_nobody_elses(tmp_path):
    """Numbers as names: a blank must not turn 1 into 1.0 for everybody else."""
    answers = draw(1, each=60, items=4)
    frame = pd.DataFrame(answers.to_array(), columns=list(answers.items))
    frame["class"] = np.repeat([1, 2], 60)
    blank = frame.astype({"class": "float64"})
    blank.loc[119, "class"] = np.nan
    texts = frame.astype({"class": object})
    texts.loc[119, "class"] = "x"
    blank.astype({"class": "Int64"}).to_csv(tmp_path / "blank.csv", index=False)
    public = Public(
        tuple(answers.items), 4, Neighbours.REPLACE_ONE, 120, group_column="class",
        groups=("1", "2"),
    )  # fmt: skip
    for source in (frame, blank, texts, tmp_path / "blank.csv"):
        is_file = source is not frame and not isinstance(source, pd.DataFrame)
        reader = discreet.read_responses if is_file else Responses.from_dataframe
        read = reader(source, group="class")
        sizes = [one.n_persons for one in select_groups(read, public)]
        assert sizes == ([60, 60] if source is frame else [60, 59]), source


def test_what_cannot_be_compared_is_refused(tmp_path):
    answers = draw(1, each=100)
    for groups, reference, code in (
        ({"language": ["de"]}, None, "groups_must_least_two"),
        ({"language": ["de", "de"]}, None, "groups_must_least_two"),
        ({"language": "de"}, None, "must_found_nothing_read"),
        ({"language": ["de", ""]}, None, "groups_must_least_two"),  # who has no group
        ({"language": ["de", "fr"], "sex": ["f", "m"]}, None, "groups_names_one_column"),
        ({"language": ["de", "fr"]}, "it", "reference_none_groups_read_groups"),
        ({"sex": ["f", "m"]}, None, "answers_no_group_column_name"),
    ):
        with refused(BadUsage, code):
            discreet.release_dif(
                answers, epsilon=1.0, items=ITEMS, groups=groups, reference=reference
            )
    released = discreet.release(answers, epsilon=1.0, items=ITEMS)
    with refused(BadUsage, "release_no_groups_make"):
        released.compare_groups()
    with refused(BadUsage, "mechanism_not_use_public"):
        discreet.release(
            answers, epsilon=1.0, items=ITEMS, groups={"language": ["de", "fr"]}, mechanism="pairs"
        )


def test_the_command_line_compares_groups(tmp_path):
    answers = draw(2, each=400, items=5, effect=1.5)
    frame = pd.DataFrame(answers.to_array(), columns=list(answers.items))
    frame.insert(0, "person", answers.persons)
    frame["language"] = answers.groups["language"]
    frame.to_csv(tmp_path / "answers.csv", index=False)
    (tmp_path / "items.txt").write_text("\n".join(answers.items))
    command("ledger", "create", tmp_path / "spent.db", "--epsilon", "4", "--delta", "1e-5")
    terms = (
        "--items", tmp_path / "items.txt", "--epsilon", "1", "--ledger", tmp_path / "spent.db",
        "--person", "person",
    )  # fmt: skip
    made = command(
        "release", tmp_path / "answers.csv", *terms, "--out", tmp_path / "out",
        "--dif", "language", "--groups", "de,fr", "--reference", "de", "--json",
    )  # fmt: skip
    rows = json.loads(made.out)["dif"]
    assert [row["item"] for row in rows] == list(answers.items)
    assert max(rows, key=lambda row: row["difference"])["item"] == "i02"
    assert (tmp_path / "out/dif.csv").exists()
    shown = command(
        "release", tmp_path / "answers.csv", *terms, "--out", tmp_path / "shown",
        "--dif", "language", "--groups", "de,fr",
    )  # fmt: skip
    assert not re.search(r"[.][0-9]{5}", shown.out), shown.out
    half = command(
        "release", tmp_path / "answers.csv", *terms, "--out", tmp_path / "b", "--dif", "language"
    )
    assert half.code == 2
    assert "--groups" in half.err


def test_groups_of_answers_that_stay_where_they_are_are_refused_with_the_remedy(tmp_path):
    answers = draw(2, each=50, items=5)
    frame = pd.DataFrame(answers.to_array(), columns=list(answers.items))
    frame.insert(0, "person", answers.persons)
    frame["language"] = answers.groups["language"]
    frame.to_parquet(tmp_path / "answers.parquet")
    with refused((OutOfReach, BadUsage), "groups_compared_answers_memory"):
        compare(
            str(tmp_path / "answers.parquet"),
            engine="duckdb",
            person="person",
            items=list(answers.items),
            design="unknown",
        )  # fmt: skip


@pytest.mark.parametrize("groups", [2, 3])
def test_a_plan_says_how_sure_a_comparison_will_be(groups):
    study = discreet.plan(persons=2500 * groups, items=20, epsilon=1.0, groups=groups)
    dif = compare(draw(4, groups=groups), names=NAMES[:groups])
    assert study.mechanism == "residuals"
    assert study.difference_se == pytest.approx(dif.se.mean(), rel=0.1)
    fewer = discreet.plan(persons=1000 * groups, items=20, epsilon=1.0, groups=groups)
    assert fewer.difference_se > 1.5 * study.difference_se


def test_a_plan_names_the_difference_that_is_found_in_four_of_five():
    study = discreet.plan(persons=3000, items=10, epsilon=1.0, groups=3)
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((20_000, 10, 2))
    limit = np.quantile(np.abs(scores).max(axis=(1, 2)), 0.95)
    truth = np.zeros((10, 1))
    truth[0] = study.difference_found
    moved = scores[..., :1] + (truth - truth.mean()) / study.difference_se
    # The share of so many draws lies within .01 of .8; one group differs.
    assert np.mean(np.abs(moved[:, 0, 0]) > limit) == pytest.approx(0.8, abs=0.015)


def test_a_plan_of_groups_needs_a_mechanism_that_compares_them():
    for words in ({"groups": 1}, {"groups": 2, "mechanism": "margins"}):
        with refused(BadUsage, "groups_compared_mechanism_residuals"):
            discreet.plan(persons=1000, items=20, epsilon=1.0, **words)


def test_the_command_plans_a_comparison():
    words = ("plan", "--persons", "5000", "--items", "20", "--epsilon", "1", "--groups", "2")
    shown = json.loads(command(*words, "--json").out)
    assert shown["difference_found"] > 3.5 * shown["difference_se"] > 0.2
    assert f"{shown['difference_se']:.3f} logits, its standard error" in command(*words).out
