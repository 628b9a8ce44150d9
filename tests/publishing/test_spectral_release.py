"""The paper's Algorithm 2 as an estimator of a release: same noise, same charge, other numbers."""

import json
import re
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import discreet as library
from commandline import LSAT_ITEMS, discreet
from discreet.datasets import lsat
from discreet.errors import BadResponses, BadUsage, NotAllowed
from discreet.models import paper
from discreet.models.noisy import spectral
from discreet.models.noisy.disagreements import right_wrong_probability
from discreet.models.noisy.pairs import PairMatrix
from discreet.models.noisy.released import (
    _simulate_noise,
    count_raised,
    estimate_release,
    fit_released_pairs,
    read_pair_matrix,
)
from discreet.models.noisy.spectral import (
    FLOOR_LIMIT,
    FittedCrowd,
    fit_spectral,
    simulate_covariance,
)
from discreet.privacy.ledger.request import Request
from discreet.privacy.mechanisms.pairs import SparsePairs
from discreet.privacy.noise import ExactNoise
from discreet.privacy.protocol import NoiseLaw
from discreet.publishing.bundle import hash_record
from discreet.publishing.delivery import Delivery
from discreet.secure import SeededSource
from refusals import refused

MECHANISMS = ("pairs", "sparse-pairs", "laplace-pairs")
GERMAN = "keine Standardfehler und keine Intervalle"
SPANISH = "no tiene errores estándar ni intervalos"


def names(items):
    return [str(number) for number in range(items)]


def simulate(persons, items, answered=1.0, seed=1):
    return library.simulate(persons, items, answered, rng=np.random.default_rng(seed))


def publish(answers, items, *, epsilon=2.0, mechanism="pairs", seed=3, **more):
    delta = 0.0 if mechanism == "laplace-pairs" else 1e-4
    told = {"estimator": "spectral", "noise": ExactNoise(SeededSource(seed)), **more}
    budget = library.Budget(epsilon, delta, told.pop("neighbours", "replace-one"))
    return library.release(answers, budget, items=items, mechanism=mechanism, **told)


def noisy_counts(released):
    """The counts and the graph, read off what was released and nothing else."""
    noisy, m = released.noisy, len(released.estimate.items)
    counts, compared = np.zeros((m, m)), np.zeros((m, m), dtype=bool)
    if released.record["mechanism"] == "sparse-pairs":
        edges = noisy.settings["edges"]
        forth, back = np.split(noisy.values["right_wrong"], 2)
        for (i, j), one, other in zip(edges, forth, back, strict=True):
            counts[i, j], counts[j, i] = one, other
            compared[i, j] = compared[j, i] = True
        return counts, compared
    values = iter(noisy.values["right_wrong"].tolist())
    for i in range(m):
        for j in range(m):
            if i != j:
                counts[i, j], compared[i, j] = next(values), True
    return counts, compared


# --- the numbers --------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    ("persons", "items", "answered", "epsilon"),
    [(800, 9, 1.0, 2.0), (1500, 12, 0.5, 2.0), (150, 9, 1.0, 0.3)],
)
def test_the_estimate_is_algorithm_two_on_the_noisy_counts(
    mechanism, persons, items, answered, epsilon
):
    drawn = simulate(persons, items, answered)
    released = publish(drawn.responses, names(items), epsilon=epsilon, mechanism=mechanism)
    counts, compared = noisy_counts(released)
    expected = paper.estimate_privately(counts, np.zeros_like(counts), compared)
    assert released.estimate.difficulty == pytest.approx(expected, abs=1e-9)
    floor = released.record["floor"]
    assert floor == {"raised": int((counts[compared] < 1).sum()), "counts": int(compared.sum())}


def test_the_floor_keeps_what_is_above_one_and_lifts_what_is_below():
    counts = np.array([[0.0, 7.0, -3.0], [0.0, 0.0, 5.0], [1.0, 2.0, 0.0]])
    compared = ~np.eye(3, dtype=bool)
    pairs = PairMatrix(counts, compared)
    assert pairs.floored.tolist() == [[0, 7, 1], [1, 0, 5], [1, 2, 0]]
    assert pairs.raised == 2  # a count of one is not raised
    compared[0, 2] = compared[2, 0] = False
    assert PairMatrix(counts, compared).raised == 1
    assert PairMatrix(counts, compared).floored[0, 2] == 0


def test_without_noise_it_is_the_spectral_estimate_of_the_answers():
    drawn = simulate(3000, 8)
    counts = library.count_pairs(drawn.responses).right_wrong.astype(float)
    found = fit_spectral(PairMatrix(counts, ~np.eye(8, dtype=bool)))
    plain = library.fit(drawn.responses, method="spectral", standard_errors=False)
    assert found.difficulty == pytest.approx(plain.difficulty, abs=1e-10)


def test_standard_errors_are_those_of_the_sample_where_there_is_hardly_any_noise():
    drawn = simulate(3000, 10, 0.6)
    with pytest.warns(UserWarning, match="epsilon 60"):
        released = publish(drawn.responses, names(10), epsilon=60)
    plain = library.fit(drawn.responses, method="spectral")
    ratio = released.estimate.se / plain.se
    assert 0.9 < ratio.mean() < 1.1
    assert ratio.min() > 0.75
    assert ratio.max() < 1.3


@pytest.mark.parametrize("family", ["gaussian", "laplace"])
@pytest.mark.parametrize("scale", [3, 17])
def test_noise_of_simulated_releases_is_whole_and_has_the_variance_of_the_law(family, scale):
    law = NoiseLaw(family, Fraction(scale))
    drawn = _simulate_noise(law, 200_000, np.random.default_rng(0))
    assert (drawn == np.rint(drawn)).all()
    # The standard error of the variance is 0.3% of it, with Laplace's tails 0.5%.
    rounding = 1 / 12 if family == "gaussian" else 0.0
    assert drawn.var() == pytest.approx(law.variance + rounding, rel=0.02)
    assert drawn.mean() == pytest.approx(0, abs=4 * law.variance**0.5 / 200_000**0.5)


def simulate_counts(monkeypatch, covariance, *, persons, noise):
    """Simulate releases from a fit that is made up; return their counts, and the errors' matrix."""
    difficulty, seen = np.array([-1.0, 0.2, 0.8]), []
    right_wrong = right_wrong_probability(difficulty, 0.4, 1.2)
    disagreement = persons * 0.49 * (right_wrong + right_wrong.T)
    np.fill_diagonal(disagreement, 0.0)
    fit = SimpleNamespace(
        difficulty=difficulty, covariance=covariance, disagreement=disagreement,
        ability_mean=0.4, ability_spread=1.2,
    )  # fmt: skip
    solve = spectral.fit_spectral

    def keep(pairs):
        seen.append(pairs.noisy)
        return solve(pairs)

    monkeypatch.setattr(spectral, "fit_spectral", keep)
    counted = ~np.eye(3, dtype=bool)
    pairs = PairMatrix(np.zeros((3, 3)), counted)
    found = simulate_covariance(pairs, fit, draw_noise=noise, persons=persons, answers=3)
    return np.array(seen), found, right_wrong * persons * 0.49


def no_noise(size, rng):
    return np.zeros(size)


def test_simulated_releases_have_difficulties_of_their_own(monkeypatch):
    """So many persons that only the difficulties vary: log odds of counts are their differences."""
    root = np.array([[0.4, 0.0, 0.0], [0.3, 0.2, 0.0], [-0.2, 0.1, 0.1]])
    root -= root.mean(axis=0)
    covariance = root @ root.T
    counts, errors, _ = simulate_counts(monkeypatch, covariance, persons=10**12, noise=no_noise)
    assert len(counts) == spectral.DRAWS
    for i, j in ((0, 1), (0, 2), (1, 2)):
        apart = np.log(counts[:, j, i] / counts[:, i, j])
        variance = covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]
        # The error of a variance from 200 draws is 10%.
        assert apart.var() == pytest.approx(variance, rel=0.35)
    # The spectral estimate finds the drawn difficulties again, so that nothing is left over.
    assert np.abs(errors).max() < 1e-6


def test_simulated_counts_vary_as_sums_over_persons_and_by_the_noise(monkeypatch):
    """Without doubt about difficulties: the covariances of counts, in closed form."""
    persons = 4000

    def noise(size, rng):
        return np.rint(30 * rng.standard_normal(size))

    counts, errors, mean = simulate_counts(monkeypatch, None, persons=persons, noise=noise)
    off = ~np.eye(3, dtype=bool)
    share = mean[off] / persons
    exact = persons * share * (1 - share) + 30**2
    assert counts[:, off].mean(axis=0) == pytest.approx(mean[off], abs=15)
    assert counts[:, off].var(axis=0).mean() == pytest.approx(exact.mean(), rel=0.1)
    plain = solve_spectral_errors(counts)
    products = plain.T @ plain / len(plain)
    # Correlations are pulled towards none: three items weigh as much as three of the draws.
    shrunk = products * 200 / 203
    np.fill_diagonal(shrunk, products.diagonal())
    assert errors == pytest.approx(shrunk)
    assert np.abs(errors[~np.eye(3, dtype=bool)]).max() > 0.3 * errors.diagonal().min()


def solve_spectral_errors(counts):
    """Errors of the stationary vector of floored counts, about the difficulties they are from."""
    rows = []
    for noisy in counts:
        chain = np.maximum(noisy, 1.0) * ~np.eye(3, dtype=bool)
        # From an item to one that is harder: by persons right on the first, wrong on the second.
        generator = chain - np.diag(chain.sum(axis=1))
        stationary = np.linalg.svd(generator.T)[2][-1]
        logs = np.log(np.abs(stationary))
        rows.append(logs - logs.mean() - [-1.0, 0.2, 0.8])
    return np.array(rows)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_standard_errors_grow_with_the_noise(neighbours):
    drawn = simulate(1500, 8)
    said = [
        publish(drawn.responses, names(8), epsilon=epsilon, neighbours=neighbours).estimate.se
        for epsilon in (4.0, 0.5)
    ]
    assert (said[1] > said[0]).all()
    assert np.mean(said[1]) > 1.2 * np.mean(said[0])


# --- no privacy parameter -----------------------------------------------------------------------


def test_the_noisy_values_and_the_charge_do_not_depend_on_the_estimator(tmp_path):
    made = {}
    for estimator in ("noise-aware", "spectral"):
        ledger = library.Ledger.create(tmp_path / f"{estimator}.db", 5.0, 1e-3)
        made[estimator] = publish(lsat(), LSAT_ITEMS, estimator=estimator, ledger=ledger)
    values = [one.noisy.values["right_wrong"] for one in made.values()]
    assert (values[0] == values[1]).all()
    spends = [
        library.Ledger.open(tmp_path / f"{name}.db").releases()[0].spend.to_dict() for name in made
    ]
    assert spends[0] == spends[1]
    guarantees = [
        {**one.guarantee.to_dict(), "ledger": None, "ledger_note": None} for one in made.values()
    ]
    assert guarantees[0] == guarantees[1]
    assert "floor" not in made["noise-aware"].record


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_release_is_fitted_again_either_way_and_nothing_is_charged(mechanism, tmp_path):
    ledger = library.Ledger.create(tmp_path / "spent.db", 5.0, 1e-3)
    drawn = simulate(2000, 8)
    released = publish(drawn.responses, names(8), mechanism=mechanism, ledger=ledger)
    released.save(tmp_path / "out")
    aware = publish(drawn.responses, names(8), mechanism=mechanism, estimator="noise-aware")
    for source in (released, tmp_path / "out"):
        same = library.refit(source)
        assert (same.difficulty == released.estimate.difficulty).all()
        assert (same.se == released.estimate.se).all()
        other = library.refit(source, estimator="noise-aware")
        assert (other.difficulty == aware.estimate.difficulty).all()
        assert other.method == "noise-aware"
    back = library.refit(aware, estimator="spectral")
    assert (back.difficulty == released.estimate.difficulty).all()
    assert len(ledger.releases()) == 1


def test_a_stopped_release_arrives_with_the_estimator_that_was_asked_for(tmp_path, monkeypatch):
    ledger = library.Ledger.create(tmp_path / "spent.db", 5.0, 1e-3)

    def stop(self, released):
        raise RuntimeError("the power failed")

    with monkeypatch.context() as broken:
        broken.setattr(Delivery, "deliver", stop)
        with pytest.raises(RuntimeError):
            publish(lsat(), LSAT_ITEMS, ledger=ledger, noise=ExactNoise())
    arrived = library.resume_release(ledger, 1, out=tmp_path / "out")
    assert arrived.record["estimator"] == "spectral"
    assert (library.refit(tmp_path / "out").difficulty == arrived.estimate.difficulty).all()


# --- refused before anything is charged ---------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["margins", "laplace-margins", "totals",
                                       "randomized-response"])  # fmt: skip
def test_a_mechanism_without_pair_counts_is_refused_before_the_data_and_the_charge(
    mechanism, tmp_path
):
    ledger = library.Ledger.create(tmp_path / "spent.db", 5.0, 1e-3)
    with refused(BadUsage, "estimator_spectral_needs_noisy", mechanism=mechanism):
        library.release(
            tmp_path / "no such file.csv", library.Budget(1.0, 1e-4), items=LSAT_ITEMS,
            mechanism=mechanism, estimator="spectral", ledger=ledger,
        )  # fmt: skip
    assert ledger.releases() == ()


def test_auto_that_does_not_choose_pairs_is_refused_too(tmp_path):
    ledger = library.Ledger.create(tmp_path / "spent.db", 5.0, 1e-3)
    with refused(BadUsage, "estimator_spectral_needs_noisy", mechanism="margins"):
        library.release(
            tmp_path / "none.csv", library.Budget(1.0, 1e-4), items=LSAT_ITEMS, max_answers=3,
            estimator="spectral", ledger=ledger,
        )  # fmt: skip
    assert ledger.releases() == ()


def test_an_unknown_estimator_is_refused():
    with refused(
        BadUsage,
        "estimator_must_found_nothing",
        choices="'noise-aware' or 'spectral'",
        estimator="bayes",
    ):
        publish(lsat(), LSAT_ITEMS, estimator="bayes")


def test_released_comparisons_cannot_be_fitted_so():
    votes = library.simulate_comparisons(200, 6, 5, rng=np.random.default_rng(1)).comparisons
    objects = [f"object {number}" for number in range(6)]
    released = library.release_comparisons(
        votes, library.Budget(1.0), items=objects, max_comparisons=5, mechanism="win-pairs"
    )
    with refused(BadUsage, "estimator_spectral_needs_noisy", mechanism="win-pairs"):
        library.refit(released, estimator="spectral")


# --- above the limit of the floor ---------------------------------------------------------------


@pytest.fixture(scope="module")
def drowned():
    """More noise than the floor can bear, and answers missing."""
    drawn = simulate(300, 8, 0.6)
    released = publish(drawn.responses, names(8), epsilon=0.3)
    floor = released.record["floor"]
    assert floor["raised"] > FLOOR_LIMIT * floor["counts"]
    return released


def test_above_the_limit_there_are_no_standard_errors_and_a_sentence_says_why(drowned):
    assert np.isnan(drowned.estimate.se).all()
    assert drowned.estimate.covariance is None
    assert np.isfinite(drowned.estimate.difficulty).all()
    (notice,) = drowned.estimate.warnings
    assert re.search(r"raised \d+ of 56 released counts to 1, more than 2%", notice)
    assert library.refit(drowned, estimator="noise-aware").se.max() < np.inf


@pytest.mark.parametrize(
    ("language", "words"),
    [("en", "no standard errors and no intervals"), ("de", GERMAN), ("es", SPANISH)],
)
def test_the_published_files_say_so_and_promise_no_interval(drowned, tmp_path, language, words):
    drowned.save(tmp_path / "out", language=language)
    library.verify(tmp_path / "out")
    statement = (tmp_path / "out" / "statement.md").read_text(encoding="utf-8")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    raised, counts = drowned.record["floor"].values()
    for text in (statement, page):
        assert words in text
        assert re.search(rf"\b{raised}\b[^.]*\b{counts}\b", text)
    for text in (page, statement):
        for promise in ("95% interval", "95‑%‑Intervall", "intervalos del 95", "wide interval"):
            assert promise not in text
    table = (tmp_path / "out" / "difficulties.csv").read_text().splitlines()
    assert all(line.endswith(",,,,estimated") for line in table[1:])
    assert "without standard errors" in (tmp_path / "out" / "registry.yaml").read_text()
    again = library.read_release(tmp_path / "out")
    assert np.isnan(again.estimate.se).all()
    assert again.estimate.warnings == drowned.estimate.warnings
    assert again.estimate.difficulty == pytest.approx(drowned.estimate.difficulty, abs=1e-6)


def test_exactly_at_the_limit_there_are_standard_errors(monkeypatch):
    from discreet.models.noisy import spectral as chain

    released = publish(simulate(300, 8).responses, names(8), epsilon=0.5)
    floor = released.record["floor"]
    assert 0 < floor["raised"] < floor["counts"]
    for factor, is_kept in ((1.0, True), (0.999, False)):
        limit = factor * floor["raised"] / floor["counts"]
        monkeypatch.setattr(chain, "FLOOR_LIMIT", limit)
        again = estimate_release(released.noisy, estimator="spectral")
        assert np.isfinite(again.se).all() == is_kept


# --- the bundle ---------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [{"raised": 1}, {"counts": 21}, {"raised": 30}, {"raised": -1}])
def test_a_floor_that_does_not_fit_the_noisy_values_is_found(tmp_path, change):
    released = publish(lsat(), LSAT_ITEMS)
    assert released.record["floor"] == {"raised": 0, "counts": 20}
    released.save(tmp_path / "out")
    library.verify(tmp_path / "out")
    path = tmp_path / "out" / "privacy.json"
    record = json.loads(path.read_text())
    record["floor"] |= change
    record["record_sha256"] = hash_record(record)
    path.write_text(json.dumps(record))
    with refused(BadResponses, "not_whole_release_bundle") as caught:
        library.verify(tmp_path / "out")
    assert "floor" in caught.value.facts["problem"]


def test_a_record_of_another_estimator_is_refused(tmp_path):
    publish(lsat(), LSAT_ITEMS).save(tmp_path / "out")
    path = tmp_path / "out" / "privacy.json"
    record = {**json.loads(path.read_text()), "estimator": "guessed"}
    record["record_sha256"] = hash_record(record)
    path.write_text(json.dumps(record))
    with refused(BadResponses, "not_whole_release_bundle") as caught:
        library.verify(tmp_path / "out")
    assert "has the estimator 'guessed'" in caught.value.facts["problem"]


def test_page_and_statement_say_how_the_numbers_came_about(tmp_path):
    publish(lsat(), LSAT_ITEMS).save(tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "stationary vector of a Markov chain on noisy counts" in page
    assert "full knowledge of the noise" not in page
    statement = (tmp_path / "out" / "statement.md").read_text()
    assert "raised 0 of the 20 released counts to 1." in statement
    assert "Standard errors and intervals include both" in statement


def test_a_released_graph_is_part_of_the_chain():
    drawn = simulate(2000, 30)
    released = publish(drawn.responses, names(30), mechanism=SparsePairs(0.3), epsilon=3.0)
    assert released.record["floor"]["counts"] == 2 * len(released.record["settings"]["edges"])
    assert released.record["floor"] == count_raised(released.noisy)


# --- as a steward types it ----------------------------------------------------------------------


@pytest.fixture
def desk(tmp_path):
    """A steward's folder: LSAT, an incomplete table, their lists and a ledger."""
    rows = [",".join(LSAT_ITEMS), *(",".join(map(str, r)) for r in lsat().store.rows(0, 1000))]
    (tmp_path / "lsat.csv").write_text("\n".join(rows))
    (tmp_path / "lsat.txt").write_text("\n".join(LSAT_ITEMS))
    drawn = simulate(4000, 8, 0.6).responses
    cells = drawn.store.rows(0, 4000)
    lines = [",".join("" if cell < 0 else str(cell) for cell in row) for row in cells]
    (tmp_path / "gaps.csv").write_text("\n".join([",".join(f"Q{k}" for k in range(8)), *lines]))
    (tmp_path / "gaps.txt").write_text("\n".join(f"Q{k}" for k in range(8)))
    assert discreet("ledger", "create", tmp_path / "spent.db", "--epsilon", 9).code == 0
    return tmp_path


def release(desk, name, *more):
    return discreet(
        "release", desk / f"{name}.csv", "--items", desk / f"{name}.txt", "--epsilon", 1,
        "--delta", 1e-6, "--ledger", desk / "spent.db", "--out", desk / f"{name}-out", *more,
    )  # fmt: skip


@pytest.mark.parametrize(("name", "counts"), [("lsat", 20), ("gaps", 56)])
def test_the_command_line_releases_and_verifies(desk, name, counts):
    ended = release(desk, name, "--mechanism", "pairs", "--estimator", "spectral", "--json")
    assert ended.code == 0, ended.err
    out = desk / f"{name}-out"
    record = json.loads((out / "privacy.json").read_text())
    assert record["estimator"] == "spectral"
    assert record["floor"]["counts"] == counts
    assert len(ended.document["items"]) == len(record["items"])
    assert discreet("verify", out).code == 0
    found = library.read_release(out)
    counted, compared = noisy_counts(found)
    expected = paper.estimate_privately(counted, np.zeros_like(counted), compared)
    assert found.estimate.difficulty == pytest.approx(expected, abs=1e-6)


def test_the_command_line_refuses_in_words_and_charges_nothing(desk):
    ended = release(desk, "lsat", "--mechanism", "margins", "--estimator", "spectral")
    assert ended.code == 2
    assert "does not release them. Nothing was charged" in ended.err
    assert not (desk / "lsat-out").exists()
    assert library.Ledger.open(desk / "spent.db").releases() == ()


def test_approvers_sign_the_estimator_and_it_is_released_so(tmp_path):
    pytest.importorskip("cryptography", reason="the extra approvals is not installed")
    ledger = library.Ledger.create(tmp_path / "spent.db", 5.0, 1e-3)
    asked = {"items": LSAT_ITEMS, "ledger": ledger, "mechanism": "pairs"}
    budget = library.Budget(1.0, 1e-4)
    spectral = library.propose(budget, estimator="spectral", **asked)
    assert spectral.body["estimator"] == "spectral"
    assert Request.from_dict(spectral.to_dict()) == spectral
    assert library.propose(budget, **asked).body["estimator"] == "noise-aware"
    with refused(BadUsage, "estimator_spectral_needs_noisy", mechanism="margins"):
        library.propose(budget, estimator="spectral", **{**asked, "mechanism": "margins"})
    released = library.release_request(lsat(), spectral, ledger=ledger)
    assert released.record["estimator"] == "spectral"
    order = ledger.releases()[0].order
    plain = library.propose(budget, **asked)
    asked_for = type("Asked", (), {"epsilon": 1.0, "delta": 1e-4, "neighbours": "replace-one",
                                   "mechanism": "pairs", "persons": None})()  # fmt: skip
    spectral.check_covers(asked_for, "everyone", order)
    with refused(NotAllowed, "request_another_release_another", others="estimator"):
        plain.check_covers(asked_for, "everyone", order)


# --- coverage -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("answered", [1.0, 0.6])
def test_simulated_persons_answer_as_often_as_the_real_ones(mechanism, answered):
    released = publish(
        simulate(8_000, 12, answered).responses, names(12), mechanism=mechanism, epsilon=3.0
    ).noisy
    pairs = read_pair_matrix(released)
    fitted = fit_released_pairs(released, standard_errors=False)
    crowd = FittedCrowd.of(fitted, pairs.counted, persons=8_000, answers=12)
    assert crowd.chance == pytest.approx(answered, abs=0.1)
    assert crowd.chance.mean() == pytest.approx(answered, abs=0.04)


@pytest.mark.parametrize(
    "number", [1, *(pytest.param(more, marks=pytest.mark.slow) for more in (6, 10))]
)
def test_standard_errors_are_as_large_as_the_errors(number):
    from experiments.calibration.spectral import SETTINGS, run_once

    rng = np.random.default_rng([5, number])
    rows = [run_once(SETTINGS[number], rng) for _ in range(10)]
    kept = [row for row in rows if row["share"] <= FLOOR_LIMIT]
    assert len(kept) >= 6
    claimed, true = (np.mean([row[name] for row in kept]) for name in ("variance", "square"))
    # 60 to 120 errors: the ratio scatters by about a tenth. Half as wide or twice as wide fails.
    assert 0.7 < np.sqrt(claimed / true) < 1.4
    assert 0.87 < np.mean([row["inside"] for row in kept]) < 0.995


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 5, 6, 10, 11])
def test_intervals_cover_where_the_floor_raised_little(number):
    from experiments.calibration.spectral import SETTINGS, run_once

    rng = np.random.default_rng([7, number])
    rows = [run_once(SETTINGS[number], rng) for _ in range(60)]
    kept = [row["inside"] for row in rows if row["share"] <= FLOOR_LIMIT]
    assert len(kept) >= 30
    # Standard error of the mean over 30 to 60 runs of 8 to 12 items: .007 to .012.
    assert 0.91 < np.mean(kept) < 0.985
