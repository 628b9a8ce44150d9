"""Private means of groups: sensitivity by brute force, the fit, small groups, refusals, bundles."""

import json
import re
from itertools import product

import numpy as np
import pandas as pd
import pytest

import discreet
from commandline import discreet as command
from discreet.answers.pack import store_codes
from discreet.answers.responses import Responses
from discreet.errors import BadResponses, BadUsage
from discreet.planning.audit import Size, Verdict, audit_mechanism, make_attacks
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.mechanisms import group_means
from discreet.privacy.mechanisms.group_means import GroupScores
from discreet.privacy.noise import ExactNoise
from discreet.privacy.protocol import Public
from discreet.publishing.group_means import describe_moments, tabulate_moments
from discreet.secure import SeededSource

BOTH = list(Neighbours)
NAMES = ("a", "b", "c")


# --- sensitivity ----------------------------------------------------------------------------------

PLACES = {
    "one form": {"items": 4},
    "one group": {"items": 4, "groups": ("a",)},
    "six": {"items": 6},
    "forms": {"items": 6, "forms": ("abc", "bcdef")},
    "two forms of one length": {"items": 5, "forms": ("abcd", "bcde")},
}


def prepare(neighbours, items, groups=NAMES[:2], forms=()):
    names = tuple("abcdef"[:items])
    public = Public(
        names, items, neighbours, 9 if neighbours is Neighbours.REPLACE_ONE else None,
        forms=tuple(map(tuple, forms)), design="complete", centre=(0,) * items,
        group_column="g", groups=groups,
    )  # fmt: skip
    mechanism = GroupScores()
    return public, mechanism, mechanism.calibrate(public, Budget(1.0, 1e-6, neighbours), None)


def everybody(public):
    """What each person who can exist adds, from the very function that a release calls."""
    mechanism, added = GroupScores(), []
    for form in public.forms or (public.items,):
        for answers in product((0, 1), repeat=len(form)):
            row = [answers[form.index(item)] if item in form else -1 for item in public.items]
            store = store_codes(np.array([row], dtype=np.int8), public.steps)
            for group in (*public.groups, "elsewhere"):
                person = Responses(public.items, ["p"], store, {"g": [group]})
                counts = mechanism.count(person, public, None)
                added.append(mechanism.cells(counts, None))
    return {name: np.array([one[name] for one in added]) for name in added[0]}


def find_excess(name, neighbours):
    """The largest squared distance in units of the noise, as a share of what the budget has."""
    public, _, calibration = prepare(neighbours, **PLACES[name])
    total = 0.0
    for block, rows in everybody(public).items():
        real = rows.astype(np.float64)  # below 2^53
        square = (real**2).sum(axis=1)
        if neighbours is Neighbours.REPLACE_ONE:
            square = square[:, None] + square - 2 * real @ real.T
        total = total + square / float(calibration.laws[block].scale) ** 2
    return np.max(total) / float(calibration.spend.bound.mu_squared)


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("name", PLACES)
def test_no_two_neighbours_are_farther_apart_than_the_noise_is_made_for(name, neighbours):
    excess = find_excess(name, neighbours)
    assert prepare(neighbours, **PLACES[name])[2].spend.mechanism == "group-means"
    assert excess <= 1 + 1e-12
    assert excess > 0.999  # and the bound is attained


@pytest.mark.parametrize("fault", ["a move is forgotten", "rows are longer", "one relation"])
def test_planted_faults_are_found(fault, monkeypatch):
    rows, moves = group_means.list_score_rows, group_means.list_moves
    if fault == "a move is forgotten":  # who goes to another group
        monkeypatch.setattr(group_means, "RATIOS", dict.fromkeys(group_means.RATIOS, 1))
        monkeypatch.setattr(group_means, "list_moves", lambda public: moves(public)[1:])
    elif fault == "one relation":
        halved = lambda public: [tuple(x // 2 for x in one) for one in moves(public)]  # noqa: E731
        monkeypatch.setattr(group_means, "list_moves", halved)
    else:
        table = moves(prepare(Neighbours.REPLACE_ONE, 4)[0])
        monkeypatch.setattr(group_means, "list_moves", lambda _: table)
        monkeypatch.setattr(group_means, "list_score_rows", lambda public: rows(public) * 2)
    assert find_excess("one form", Neighbours.REPLACE_ONE) > 1.3


def test_the_listed_moves_exceed_all_others_in_some_block():
    public = prepare(Neighbours.REPLACE_ONE, 6, forms=("abc", "bcdef"))[0]
    listed = np.array(group_means.list_moves(public), dtype=np.int64)
    for rows in group_means.list_score_rows(public):
        taken = rows[rows[:, 0] > 0]
        for first, second in product(taken, taken):
            assert ((first - second) ** 2 <= listed).all(axis=1).any()


def test_the_audit_changes_groups_and_answers_and_finds_noise_that_is_too_small():
    budget = Budget(1.0, 1e-6)
    names = {
        attack.name for attack in make_attacks(GroupScores(), budget, Size(8), SeededSource(2))
    }
    assert {"the farthest answers", "another group"} <= names
    options = {"size": Size(8), "runs": 200, "noise": ExactNoise(SeededSource(1))}
    assert audit_mechanism(GroupScores(), budget, **options).verdict is not Verdict.REFUTED

    class Silent(GroupScores):
        def calibrate(self, public, budget, source):
            more = Budget(4.0, 1e-6, budget.neighbours)
            honest = super().calibrate(public, budget, source)
            return honest.__class__(
                super().calibrate(public, more, source).laws, honest.spend, honest.settings
            )

    assert audit_mechanism(Silent(), budget, **options).verdict is Verdict.REFUTED


# --- the fit --------------------------------------------------------------------------------------

ITEMS = [f"i{number:02}" for number in range(20)]
TRUTH = np.linspace(-2, 2, 20)
PUBLISHED = dict(zip(ITEMS, TRUTH.tolist(), strict=True))


def draw(seed, sizes=(500, 500, 500), means=(-0.8, 0.0, 1.1), spreads=(1.0, 0.7, 1.3), form=None):
    rng = np.random.default_rng([seed, 5])
    group = np.repeat(np.arange(len(sizes)), sizes)
    ability = np.array(means)[group] + np.array(spreads)[group] * rng.standard_normal(len(group))
    chance = 1 / (1 + np.exp(TRUTH - ability[:, None]))
    codes = (rng.random(chance.shape) < chance).astype(np.int8)
    if form is not None:
        codes[~np.array(form)[rng.integers(len(form), size=len(group))]] = -1
    store, persons = store_codes(codes, (1,) * 20), [f"p{k}" for k in range(len(codes))]
    return Responses(tuple(ITEMS), persons, store, {"school": np.array(NAMES)[group]})


def measure(answers, seed=1, epsilon=1.0, names=NAMES, **words):
    noise = ExactNoise(SeededSource(seed))
    words = {"groups": {"school": names}, **words}
    return discreet.release_means(answers, PUBLISHED, epsilon=epsilon, noise=noise, **words)


@pytest.mark.filterwarnings("ignore:epsilon .* is above")
def test_with_hardly_any_noise_means_and_spreads_come_back():
    made = [measure(draw(seed, (4000,) * 3), seed, epsilon=50.0) for seed in range(4)]
    mean = np.mean([one.mean for one in made], axis=0)
    assert np.abs(mean - [-0.8, 0.0, 1.1]).max() < 0.025
    assert np.allclose(np.mean([one.spread for one in made], axis=0), [1.0, 0.7, 1.3], atol=0.04)
    assert np.allclose(made[0].persons, 4000, atol=5)
    # Sampling alone: the variance of abilities and that of measurement, over the persons.
    assert np.all(made[0].se > np.array([1.0, 0.7, 1.3]) / np.sqrt(4000))
    assert np.all(made[0].se < 1.5 * np.array([1.0, 0.7, 1.3]) / np.sqrt(4000))


def test_errors_are_as_large_as_the_standard_errors_say():
    """Asymmetric groups, noise beside sampling; 60 studies of three groups."""
    errors = []
    for seed in range(60):
        made = measure(draw(seed), seed)
        errors.append((made.mean - [-0.8, 0.0, 1.1]) / made.se)
    rms = np.sqrt(np.mean(np.square(errors)))
    assert 0.85 < rms < 1.15
    table = made.to_dict()
    assert table["lower"][0] < made.mean[0] < table["upper"][0]
    assert np.isclose(table["upper"][0] - table["lower"][0], 2 * 1.96 * made.se[0])


def test_moments_of_scores_are_those_of_all_patterns():
    """Of persons drawn finely from the group, pattern by pattern; y is cut at .8."""
    difficulty = np.array([-0.7, 0.1, 1.2, 0.5])
    public = prepare(Neighbours.REPLACE_ONE, 4)[0]
    ability = 0.4 + 0.8 * np.linspace(-7, 7, 4001)
    weights = np.exp(-(np.linspace(-7, 7, 4001) ** 2) / 2)
    chance = 1 / (1 + np.exp(difficulty - ability[:, None]))
    both, p = [], []
    for pattern in product((0, 1), repeat=4):
        y = np.clip(2 * sum(pattern) / 4 - 1, -0.8, 0.8)
        both.append([y, y**2])
        likely = np.prod(np.where(pattern, chance, 1 - chance), axis=1)
        p.append(weights @ likely / weights.sum())
    both, p = np.array(both).T, np.array(p)
    table = tabulate_moments(difficulty, group_means.list_score_rows(public)[0])
    mean, covariance = describe_moments(np.array([0.4, np.log(0.8)]), table)
    assert np.allclose(mean, both @ p, atol=1e-4)  # the rows are whole numbers
    expected = (both * p) @ both.T - np.outer(both @ p, both @ p)
    assert np.allclose(covariance, expected, atol=1e-4)


@pytest.mark.filterwarnings("ignore:epsilon .* is above")
def test_forms_have_blocks_of_their_own():
    easy, hard = np.arange(20) < 12, np.arange(20) >= 8
    answers = draw(3, (3000,) * 3, form=[easy, hard])
    forms = [[ITEMS[k] for k in np.flatnonzero(one)] for one in (easy, hard)]
    made = measure(answers, epsilon=20.0, forms=forms)
    assert np.abs((made.mean - [-0.8, 0.0, 1.1]) / made.se).max() < 3.5
    assert made.se.max() < 0.05


def test_a_small_group_has_no_mean_by_its_noisy_number_alone():
    answers = draw(1, (500, 40, 500))
    made = measure(answers)
    assert np.isnan(made.mean[1])
    assert np.isfinite(made.mean[[0, 2]]).all()
    assert np.isfinite(measure(answers, least=1).mean).all()
    # The noisy number decides: at a limit just below or above it, and never the true one.
    at = made.persons[0]
    assert np.isfinite(measure(answers, least=int(np.floor(at))).mean[0])
    assert np.isnan(measure(answers, least=int(np.floor(at)) + 1).mean[0])
    assert at != 500


# --- releases -------------------------------------------------------------------------------------


def test_one_charge_one_bundle_and_a_statement_that_says_what_it_is(tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "spent.db", epsilon=2.0, delta=1e-6)
    made = discreet.release_means(
        draw(2), PUBLISHED, epsilon=1.0, groups={"school": NAMES}, ledger=ledger,
        out=tmp_path / "out",
    )  # fmt: skip
    assert len(ledger.releases()) == 1
    discreet.verify(tmp_path / "out")
    loaded = discreet.read_release(tmp_path / "out")
    assert np.allclose(loaded.measure_groups().mean, made.mean, atol=1e-12)
    assert np.allclose(pd.read_csv(tmp_path / "out/means.csv")["mean"], made.mean, atol=1e-6)
    assert pd.read_csv(tmp_path / "out/difficulties.csv")["se"].isna().all()
    for language, words in {"en": "mean abilities of 3", "de": "Gruppen", "es": "grupos"}.items():
        loaded.save(tmp_path / language, language=language)
        assert words in (tmp_path / language / "statement.md").read_text()
        page = (tmp_path / language / "report.html").read_text()
        assert f"{made.mean[0]:.3f}".replace("-", "\N{MINUS SIGN}") in page
    assert set(loaded.record["noise"]) == {"number", "score", "square"}
    statement = (tmp_path / "out/statement.md").read_text()
    assert "sizes of groups have noise" in statement
    assert "fewer than 100 persons, by the noisy number" in statement
    assert "No number is suppressed" not in statement
    assert "**Accuracy.** Standard errors and intervals of means" in statement
    registry = (tmp_path / "out/registry.yaml").read_text()
    assert "mean abilities of 3 groups" in registry
    assert "The difficulties of" not in registry
    with pytest.raises(BadUsage):
        loaded.compare_groups()
    more = discreet.release_means(
        draw(2), PUBLISHED, epsilon=0.5, groups={"school": NAMES}, ledger=ledger
    )
    again = discreet.resume_release(ledger, 2, out=tmp_path / "again")
    assert np.allclose(again.measure_groups().mean, more.mean)


def test_somebody_of_no_group_adds_nothing():
    some = draw(1, (300, 300, 50))
    codes = some.to_array().copy()
    codes[-50:] = 1
    others = Responses(some.items, some.persons, store_codes(codes, some.steps), some.groups)
    first, second = (measure(one, names=NAMES[:2]) for one in (some, others))
    assert (first.mean == second.mean).all()


def test_what_cannot_be_measured_is_refused():
    answers = draw(1, (60, 60, 60))
    codes = answers.to_array().copy()
    codes[3, 3] = -1
    holes = Responses(
        answers.items, answers.persons, store_codes(codes, answers.steps), answers.groups
    )
    with pytest.raises(BadResponses):
        measure(holes)
    for words in (
        {"groups": {"school": []}},
        {"groups": {"school": "abc"}},
        {"groups": {"class": ["a", "b"]}},
        {"least": 0},
        {"items": [*ITEMS, "more"]},
    ):
        with pytest.raises(BadUsage):
            measure(answers, **words)
    confidential = discreet.fit(answers)
    with pytest.raises(BadUsage):
        discreet.release_means(answers, confidential, epsilon=1.0, groups={"school": NAMES})
    with pytest.raises(BadUsage):  # not without groups and a centre
        discreet.release(answers, epsilon=1.0, items=ITEMS, mechanism=GroupScores())
    released = discreet.release(answers, epsilon=1.0, items=ITEMS)
    with pytest.raises(BadUsage):
        released.measure_groups()


def test_the_command_line_releases_means_around_a_bundle(tmp_path):
    answers = draw(2, (300, 300, 300))
    frame = pd.DataFrame(answers.to_array(), columns=ITEMS)
    frame.insert(0, "person", answers.persons)
    frame["school"] = answers.groups["school"]
    frame.to_csv(tmp_path / "answers.csv", index=False)
    discreet.release(
        answers, epsilon=1.0, items=ITEMS, design="complete", out=tmp_path / "published"
    )
    command("ledger", "create", tmp_path / "spent.db", "--epsilon", "4", "--delta", "1e-5")
    terms = ("--epsilon", "1", "--ledger", tmp_path / "spent.db", "--person", "person")
    groups = ("--means", "school", "--groups", "a,b,c", "--with", tmp_path / "published")
    made = command(
        "release", tmp_path / "answers.csv", *terms, *groups, "--least", "50",
        "--out", tmp_path / "out", "--json",
    )  # fmt: skip
    assert made.code == 0, made.err
    rows = json.loads(made.out)["means"]
    assert [row["group"] for row in rows] == list(NAMES)
    assert rows[0]["mean"] < rows[2]["mean"]
    assert (tmp_path / "out/means.csv").exists()
    shown = command(
        "release", tmp_path / "answers.csv", *terms, *groups, "--out", tmp_path / "shown"
    )
    assert not re.search(r"[.][0-9]{5}", shown.out), shown.out  # no float with all its digits
    half = command(
        "release", tmp_path / "answers.csv", *terms, *groups[:4], "--out", tmp_path / "b"
    )
    assert half.code == 2
