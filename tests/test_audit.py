"""The audit passes what is honest and catches every fault that is planted."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from discreet.engines import count_pairs
from discreet.privacy.accounting import Budget, Neighbours, gaussian_epsilon
from discreet.privacy.audit import audit_mechanism
from discreet.privacy.audit.attacks import make_attacks
from discreet.privacy.audit.discrimination import highest_rate, prove_epsilon
from discreet.privacy.mechanisms import MECHANISMS, NoiseLaw, SparsePairs, find_mechanism
from discreet.privacy.noise import ExactNoise
from discreet.privacy.wall import release_statistics
from discreet.secure import SeededSource

# Large enough that a fault stands out after few runs; the claim itself is just as tight.
EPSILON, DELTA, RUNS = 4.0, 1e-6, 700
PURE = {"laplace-pairs", "laplace-margins", "randomized-response"}


def budget_for(name, relation="replace-one", epsilon=EPSILON):
    return Budget(1.0, 0.0, relation) if name in PURE else Budget(epsilon, DELTA, relation)


def seeded(seed=1):
    return ExactNoise(SeededSource(seed))


def run(name, release=release_statistics, relation="replace-one", runs=RUNS, epsilon=EPSILON):
    budget = budget_for(name, relation, epsilon)
    return audit_mechanism(find_mechanism(name), budget, runs=runs, noise=seeded(), release=release)


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_an_honest_mechanism_passes(name):
    report = run(name, runs=300)
    assert report.passed
    assert report.lower_bound <= report.claimed_epsilon


@pytest.mark.parametrize("name", sorted(set(MECHANISMS) - {"randomized-response"}))
def test_an_honest_mechanism_passes_when_a_person_is_added(name):
    assert run(name, relation="add-remove", runs=300).passed


def test_the_bound_comes_close_to_the_claim():
    report = run("pairs", runs=1500)
    assert 0.5 * EPSILON < report.lower_bound <= EPSILON


@pytest.mark.parametrize("noise_for", ["a random graph", "the drawn graph"])
def test_both_promises_about_graphs_pass_and_too_little_noise_fails(noise_for):
    budget, mechanism = budget_for("sparse-pairs"), SparsePairs(noise_for=noise_for)
    attacks = make_attacks(mechanism, budget, SeededSource(3))[:1]
    honest, faulty = (
        audit_mechanism(
            mechanism, budget, runs=1500, noise=seeded(), release=release, attacks=attacks
        )
        for release in (release_statistics, too_little_noise)
    )
    assert 0.4 * EPSILON < honest.lower_bound <= EPSILON
    assert honest.lower_bound < faulty.lower_bound
    assert not faulty.passed


def test_answers_that_attack_a_random_graph_do_not_depend_on_one():
    budget = budget_for("sparse-pairs")
    first, second = (make_attacks(SparsePairs(), budget, SeededSource(seed))[0] for seed in (4, 5))
    assert first.calibration.settings["edges"] != second.calibration.settings["edges"]
    assert np.array_equal(first.data.to_array(), second.data.to_array(), equal_nan=True)
    assert np.array_equal(first.neighbour.to_array(), second.neighbour.to_array(), equal_nan=True)


def exact_cells(data, mechanism, public, calibration):
    weighting = mechanism.weighting(public, calibration)
    return mechanism.cells(count_pairs(data, weighting=weighting), calibration)


def skips_zeros(data, *, mechanism, public, calibration, **rest):
    """The printed code's fault: only counts above zero get noise."""
    made = release_statistics(
        data, mechanism=mechanism, public=public, calibration=calibration, **rest
    )
    exact = exact_cells(data.select(public.items), mechanism, public, calibration)
    return SimpleNamespace(
        values={name: np.where(exact[name] == 0, 0, made.values[name]) for name in exact}
    )


def too_little_noise(data, *, calibration, **rest):
    laws = {
        name: NoiseLaw(law.family, law.scale * Fraction(100, 142))
        for name, law in calibration.laws.items()
    }
    return release_statistics(data, calibration=replace(calibration, laws=laws), **rest)


def ignores_the_cap(data, *, public, **rest):
    everything = replace(public, max_answers=len(public.items))
    return release_statistics(data, public=everything, **rest)


def leaks_a_float(data, **rest):
    made = release_statistics(data, **rest)
    return SimpleNamespace(values={k: v + 1e-9 * np.arange(v.size) for k, v in made.values.items()})


def leaks_the_count(data, *, mechanism, public, calibration, **rest):
    made = release_statistics(
        data, mechanism=mechanism, public=public, calibration=calibration, **rest
    )
    exact = exact_cells(data.select(public.items), mechanism, public, calibration)
    extra = {f"exact {name}": values for name, values in exact.items()}
    return SimpleNamespace(values={**made.values, **extra})


def forgets_to_flip(data, *, calibration, **rest):
    tame = {**calibration.settings, "answer_epsilon": 3 * calibration.settings["answer_epsilon"]}
    return release_statistics(data, calibration=replace(calibration, settings=tame), **rest)


ADDITIVE = sorted(set(MECHANISMS) - {"randomized-response"})


@pytest.mark.parametrize("fault", [skips_zeros, leaks_a_float, leaks_the_count])
@pytest.mark.parametrize("name", ADDITIVE)
def test_a_crude_fault_is_caught_in_every_mechanism(name, fault):
    assert not run(name, fault, runs=300).passed


@pytest.mark.parametrize("name", sorted(set(ADDITIVE) - PURE))
def test_too_little_noise_is_caught_in_every_gaussian_mechanism(name):
    budget = budget_for(name)
    mechanism = find_mechanism(name)
    attacks = make_attacks(mechanism, budget, SeededSource(2))[:1]
    report = audit_mechanism(
        mechanism,
        budget,
        runs=2500,
        noise=seeded(),
        release=too_little_noise,
        attacks=attacks,
    )
    assert not report.passed


@pytest.mark.parametrize("name", ["pairs", "sparse-pairs", "laplace-pairs"])
def test_a_cap_that_is_not_enforced_is_caught(name):
    budget, mechanism = budget_for(name, epsilon=2.0), find_mechanism(name)
    attacks = make_attacks(mechanism, budget, SeededSource(2))
    report = audit_mechanism(
        mechanism,
        budget,
        runs=1500,
        noise=seeded(),
        release=ignores_the_cap,
        attacks=[attack for attack in attacks if attack.name == "more answers than the cap"],
    )
    assert not report.passed


def test_margins_do_not_lean_on_the_cap():
    """Their weights shorten long contributions, so that a missing cap breaks no promise."""
    assert run("margins", ignores_the_cap, runs=500, epsilon=2.0).passed


def test_laplace_noise_that_is_too_small_is_caught():
    def halved(data, *, calibration, **rest):
        laws = {n: NoiseLaw(law.family, law.scale / 3) for n, law in calibration.laws.items()}
        return release_statistics(data, calibration=replace(calibration, laws=laws), **rest)

    report = audit_mechanism(
        find_mechanism("laplace-pairs"),
        Budget(1.0, 0.0, "add-remove"),
        runs=1500,
        noise=seeded(),
        release=halved,
    )
    assert not report.passed


def test_answers_flipped_too_rarely_are_caught():
    report = audit_mechanism(
        find_mechanism("randomized-response"),
        Budget(1.0, 0.0),
        runs=1200,
        noise=seeded(),
        release=forgets_to_flip,
    )
    assert not report.passed


def test_attacks_are_neighbours_of_the_declared_kind():
    for relation in Neighbours:
        budget = budget_for("pairs", relation)
        for attack in make_attacks(find_mechanism("pairs"), budget, SeededSource(0)):
            data, other = attack.data.to_array(), attack.neighbour.to_array()
            if relation is Neighbours.REPLACE_ONE:
                assert data.shape == other.shape
                assert (data != other).any(axis=1).sum() == 1, attack.name
                assert attack.public.persons == len(data)
            else:
                assert len(data) == len(other) + 1
                assert attack.public.persons is None


def test_the_proved_epsilon_is_sound_for_a_perfect_gaussian_test():
    budget = budget_for("pairs")
    attack = make_attacks(find_mechanism("pairs"), budget, SeededSource(0))[0]
    spend = attack.calibration.spend
    # Error rates of the best test at mu, had there been infinitely many runs.
    mu = float(spend.bound.mu_squared) ** 0.5
    from scipy.special import ndtr

    errors = round(1e9 * ndtr(-mu / 2))
    proved = prove_epsilon(errors, errors, 10**9, spend, 0.5)
    assert proved == pytest.approx(gaussian_epsilon(mu, DELTA), rel=1e-3)


def test_clopper_pearson_limits_are_the_textbook_ones():
    assert highest_rate(0, 100, 0.05) == pytest.approx(1 - 0.05 ** (1 / 100))
    assert highest_rate(100, 100, 0.05) == 1.0
