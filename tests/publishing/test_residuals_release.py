"""Releases of residuals from end to end: engines, bundles, centres, refusals, errors."""

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet.answers.pack import store_codes
from discreet.answers.responses import Responses
from discreet.errors import BadUsage
from discreet.models.noisy import residuals as fit
from discreet.models.noisy.released import remove_prior
from discreet.planning.forecast import predict_rmse
from discreet.planning.study import Setting, check_setting
from discreet.privacy.noise import ExactNoise
from discreet.secure import SeededSource
from refusals import refused

pytestmark = pytest.mark.filterwarnings("ignore:epsilon .* is above")

ITEMS = tuple(f"i{number:02}" for number in range(20))
TRUTH = np.linspace(-2, 2, 20)


def draw(persons=1500, answered=1.0, seed=3, spread=1.0):
    rng = np.random.default_rng(seed)
    ability = spread * rng.standard_normal((persons, 1))
    codes = (rng.random((persons, 20)) < 1 / (1 + np.exp(TRUTH - ability))).astype(np.int8)
    codes[rng.random(codes.shape) >= answered] = -1
    return Responses.from_store(store_codes(codes, (1,) * 20), ITEMS)


def publish(answers, epsilon=1.0, seed=5, **words):
    words = {"items": ITEMS, "mechanism": "residuals", **words}
    noise = ExactNoise(SeededSource(seed))
    return discreet.release(answers, epsilon=epsilon, delta=1e-6, noise=noise, **words)


def private(answers, **words):
    return discreet.release(answers, epsilon=1.0, items=ITEMS, **words)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    ("answered", "words"),
    [
        (1.0, {}),
        (1.0, {"design": "complete"}),
        (0.5, {"design": "random"}),
        (0.5, {"max_answers": 8}),
    ],
)
def test_difficulties_come_back_with_honest_intervals(answered, words, neighbours):
    released = publish(draw(4000, answered), epsilon=3.0, neighbours=neighbours, **words)
    error = released.difficulty - TRUTH
    assert np.sqrt(np.mean(error**2)) < 0.16
    assert np.abs(error / released.se).max() < 4
    assert released.estimate.interval(0.95).shape == (20, 2)


def test_with_hardly_any_noise_it_is_the_calibration_without_privacy():
    answers = draw()
    released = publish(answers, epsilon=40.0, design="complete")
    plain = discreet.fit(answers)
    assert np.abs(released.difficulty - plain.difficulty).max() < 0.05
    assert np.allclose(released.se, plain.se, rtol=0.25)


def test_shortening_is_corrected_and_without_the_correction_ends_are_bent(monkeypatch):
    """Many persons, little noise: what is left is the bias of contributions that were shortened."""
    answers = draw(30_000, spread=1.0)
    bent = publish(answers, epsilon=20.0, design="complete").difficulty - TRUTH
    honest = fit.Answered.expect

    def as_if_unshortened(self, centre, tilt):
        found = honest(self, centre, tilt)
        return fit.ExpectedRound(0 * found.mean, found.error, found.moved, found.share)

    monkeypatch.setattr(fit.Answered, "expect", as_if_unshortened)
    naive = publish(answers, epsilon=20.0, design="complete").difficulty - TRUTH
    assert np.sqrt(np.mean(bent**2)) < 0.03
    assert np.sqrt(np.mean(naive**2)) > 2 * np.sqrt(np.mean(bent**2))


def test_memory_and_disk_release_the_same_bits(tmp_path):
    answers = draw(700, 0.6)
    frame = pd.DataFrame(answers.to_array(), columns=list(ITEMS)).replace(-1, np.nan)
    frame.insert(0, "person", [f"p{number:04}" for number in range(len(frame))])
    frame.to_csv(tmp_path / "wide.csv", index=False)
    made = [
        publish(str(tmp_path / "wide.csv"), engine=engine, person="person", design="random")
        for engine in ("memory", "duckdb")
    ]
    for name, values in made[0].noisy.values.items():
        assert (values == made[1].noisy.values[name]).all(), name
    assert (made[0].difficulty == made[1].difficulty).all()


def test_both_rounds_of_a_capped_stream_keep_the_same_answers(tmp_path):
    answers = draw(500)
    frame = pd.DataFrame(answers.to_array(), columns=list(ITEMS)).replace(-1, np.nan)
    frame.insert(0, "person", [f"p{number:04}" for number in range(len(frame))])
    frame.to_csv(tmp_path / "wide.csv", index=False)
    released = publish(
        str(tmp_path / "wide.csv"), engine="duckdb", person="person", max_answers=9, epsilon=500.0
    )
    counted = released.noisy.values["answered"] / 1024
    assert abs(counted.sum() - 500 * 9) < 5


def test_one_release_is_one_charge_and_one_bundle_that_can_be_fitted_again(tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "spent.db", epsilon=2.0, delta=1e-6)
    released = private(draw(), mechanism="residuals", ledger=ledger, out=tmp_path / "out")
    assert len(ledger.releases()) == 1
    assert set(released.record["noise"]) == {"rough", "cells", "answered", "residual"}
    discreet.verify(tmp_path / "out")
    assert "proved in docs/privacy.md" in (tmp_path / "out/statement.md").read_text()
    again = discreet.refit(tmp_path / "out")
    assert (again.difficulty == released.difficulty).all()
    assert (again.se == released.se).all()
    loaded = discreet.read_release(tmp_path / "out")
    assert (loaded.noisy.values["centre"] == released.noisy.values["centre"]).all()


def test_a_public_centre_leaves_out_the_first_round_and_the_statement_names_it(tmp_path):
    first = private(draw(seed=1), design="complete", out=tmp_path / "first")
    second = private(draw(seed=2), design="complete", centre=tmp_path / "first")
    stated = private(draw(seed=2), design="complete", centre=dict(zip(ITEMS, TRUTH, strict=True)))
    assert "public already" in second.record["choice"]
    assert set(second.record["noise"]) == {"cells", "residual"}
    assert second.record["centre"] == [round(1024 * one) for one in first.difficulty.round(6)]
    second.save(tmp_path / "second")
    assert "difficulties of an earlier release" in (tmp_path / "second/statement.md").read_text()
    stated.save(tmp_path / "stated")
    assert "states as public" in (tmp_path / "stated/statement.md").read_text()
    assert (discreet.refit(tmp_path / "second").difficulty == second.difficulty).all()
    discreet.verify(tmp_path / "second")
    bank = discreet.create_bank(first.estimate, scale="s", source="first")
    assert private(draw(seed=2), centre=bank).record["centre_from"].startswith("difficulties of an")


def test_a_centre_that_is_not_public_is_refused():
    answers = draw(300)
    plain = discreet.fit(answers)
    seeded = publish(answers)
    bank = discreet.create_bank(plain, scale="s", source="here")
    public = private(draw(seed=9), design="complete")
    anchored = discreet.fit(answers, anchors=dict(zip(ITEMS[:3], public.difficulty, strict=False)))
    for centre in (anchored, discreet.count_pairs(answers), pd.Series(TRUTH, ITEMS)):
        with pytest.raises(BadUsage):
            private(answers, centre=centre)
    must_be_public, must_be_number = "centre_must_public_confidential", "centre_item_must_number"
    for centre, code, facts in (
        (plain, must_be_public, {"found": "has no guarantee"}),
        (bank, must_be_public, {"found": "has no guarantee"}),
        (seeded, must_be_public, {"found": "was made with noise for tests"}),
        ({"i00": 0.0}, "centre_no_value_listed", {"n_missing": "19"}),
        (dict.fromkeys(ITEMS, 99.0), must_be_number, {"value": 99.0}),
        (dict.fromkeys(ITEMS, "easy"), must_be_number, {"value": "easy"}),
        (dict.fromkeys(ITEMS, True), must_be_number, {}),
        (dict.fromkeys(ITEMS, np.nan), must_be_number, {}),
        (dict.fromkeys(ITEMS, 10**400), must_be_number, {}),
    ):
        with refused(BadUsage, code, **facts):
            private(answers, centre=centre)
    whole = private(answers, centre=dict.fromkeys(ITEMS, np.int64(1)))  # a number like any other
    assert whole.record["centre"] == [1024] * len(ITEMS)
    with refused(BadUsage, "mechanism_not_use_public"):
        private(answers, centre=dict.fromkeys(ITEMS, 0.0), mechanism="pairs")


def test_a_request_carries_the_centre(tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "spent.db", epsilon=2.0, delta=1e-6)
    centre = dict(zip(ITEMS, TRUTH, strict=True))
    request = discreet.propose(
        discreet.Budget(1.0), items=list(ITEMS), ledger=ledger, centre=centre, design="complete"
    )
    assert request.body["mechanism"] == "residuals"
    released = discreet.release_request(draw(), request, ledger=ledger)
    assert released.record["centre"] == [round(1024 * one) for one in TRUTH]


@pytest.mark.parametrize(
    "setting",
    [
        Setting(1000, 20, 20, 1.0, mechanism="residuals"),
        Setting(3000, 30, 12, 2.0, mechanism="residuals"),
    ],
)
def test_a_plan_is_close_to_what_simulated_releases_have(setting):
    check = check_setting(setting, runs=6, rng=np.random.default_rng(1))
    assert abs(check.rmse / predict_rmse(setting) - 1) < 0.15 + 2 * check.uncertainty / check.rmse


def test_drift_of_two_releases_is_not_hidden_by_the_centre_of_the_second():
    """A later release around the earlier one is drawn to it: drift is measured without that."""
    moved = TRUTH.copy()
    moved[7] += 1.2
    rng = np.random.default_rng(8)

    def cohort(difficulty):
        chance = 1 / (1 + np.exp(difficulty - rng.standard_normal((1500, 1))))
        codes = (rng.random(chance.shape) < chance).astype(np.int8)
        return Responses.from_store(store_codes(codes, (1,) * 20), ITEMS)

    earlier = private(cohort(TRUTH), design="complete")
    words = {"items": ITEMS, "design": "complete", "centre": earlier}
    later = discreet.release(cohort(moved), epsilon=0.4, **words)
    drift = discreet.find_drift(earlier, later)
    assert drift.moved_items == ("i07",)
    free = remove_prior(later.noisy, later.estimate).difficulty - earlier.difficulty
    drawn = later.difficulty - earlier.difficulty
    assert np.std(free) > 1.05 * np.std(drawn)
    assert drift.guarantee.epsilon == pytest.approx(1.4)


def test_forms_for_persons_of_different_ability_do_not_bend_the_fit(monkeypatch):
    """Abilities are fitted for each form: one mean for all of them would bend the difficulties."""
    rng = np.random.default_rng(4)
    form = rng.integers(3, size=9000)
    inside = np.array([np.arange(20) < 10, (np.arange(20) >= 5) & (np.arange(20) < 15),
                       np.arange(20) >= 10])  # fmt: skip
    chance = 1 / (1 + np.exp(TRUTH - (1.5 * (form - 1) + rng.standard_normal(9000))[:, None]))
    codes = np.where(inside[form], rng.random(chance.shape) < chance, -1).astype(np.int8)
    answers = Responses.from_store(store_codes(codes, (1,) * 20), ITEMS)
    forms = [[ITEMS[item] for item in np.flatnonzero(one)] for one in inside]

    def error():
        released = publish(answers, epsilon=8.0, design="complete", forms=forms)
        return np.sqrt(np.mean((released.difficulty - TRUTH) ** 2))

    own = error()
    monkeypatch.setattr(fit.Answered, "_shift_forms", lambda _self, _value, shift, *_: shift)
    assert own < 0.1
    assert error() > 1.3 * own
