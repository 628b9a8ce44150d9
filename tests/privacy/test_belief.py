"""How sure somebody can become: the sentences that a release publishes are true by brute force."""

import html
import math
import re
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import exp
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.privacy.accounting import (
    Budget,
    Guarantee,
    Neighbours,
    best_guess,
    bound_group,
    surest_belief,
)
from discreet.privacy.accounting.additive_noise import (
    bound_sensitivity,
    calibrate_counts,
    counts_bound,
)
from discreet.privacy.accounting.spend import GaussianBound, largest_mu, tail_probability
from discreet.privacy.mechanisms.response import RandomizedResponse
from discreet.privacy.noise import ExactNoise
from discreet.report.public import write_public_page
from discreet.report.statement import explain_belief, write_statement
from discreet.secure import SeededSource
from discreet.text import show_chance, show_probability_bound
from discreet.words import speak

ROOT = Path(__file__).parents[2]
PLANNING = (ROOT / "docs" / "planning.md").read_text(encoding="utf-8")
PLANNING = PLANNING.partition("## Choosing epsilon")[2].partition("\nFor `sparse-pairs`")[0]
REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE


def gaussian(mu):
    return GaussianBound(Fraction(mu) ** 2)


def normal_tail(x):
    return math.erfc(x / math.sqrt(2)) / 2


# --- the numbers ------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "loss", "claimed"), [(1.0, 20, 52), (0.1, 149, 393)])
def test_the_exception_is_many_times_delta(epsilon, loss, claimed):
    """Neither the privacy loss nor a belief exceeds epsilon with probability delta only."""
    delta = 1e-6
    mu = largest_mu(epsilon, delta)
    assert round(normal_tail(epsilon / mu - mu / 2) / delta) == loss
    assert round(tail_probability(gaussian(mu), epsilon, REPLACE) / delta) == claimed


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), (0.1, 1e-6), (5, 1e-9), (0.01, 1e-30)])
def test_the_exception_solves_its_equation_to_many_digits(relation, epsilon, delta):
    """p = Phi(Phi^-1(p e^-epsilon) + mu), with 2 epsilon and 2 mu under add-remove."""
    mu, steps = largest_mu(epsilon, delta), 1 + (relation is ADD)
    found = tail_probability(gaussian(mu), epsilon, relation)
    with mpmath.workdps(60):
        # In the place of p its upper quantile z: Phi(-z) e^(-steps epsilon) = Phi(-z - steps mu).
        def off(z):
            return mpmath.log(mpmath.ncdf(-z) / mpmath.ncdf(-z - steps * mu)) - steps * epsilon

        start = float(mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(found)))
        truth = mpmath.ncdf(-mpmath.findroot(off, start))
        assert truth <= found <= truth * (1 + mpmath.mpf(1e-6))


def test_one_bit_of_the_release_reaches_the_bound():
    """A coarse look at the output: is it above a threshold? No smaller number would be true."""
    epsilon, mu = 1.0, largest_mu(1.0, 1e-6)
    claimed = tail_probability(gaussian(mu), epsilon, REPLACE)
    low, high = -10.0, 10.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        surer = normal_tail(middle - mu) > math.exp(epsilon) * normal_tail(middle)
        low, high = (low, middle) if surer else (middle, high)
    assert 0.999 * claimed < normal_tail(high - mu) <= claimed
    assert normal_tail(high - mu) > 2.5 * normal_tail(epsilon / mu - mu / 2)


def test_slack_of_the_curve_makes_the_exception_larger():
    mu = largest_mu(1.0, 1e-6)
    plain = tail_probability(gaussian(mu), 1.0, REPLACE)
    for slack in (
        {"eta": Fraction(1, 100)},
        {"exponent": Fraction(1, 100), "eta": Fraction(1, 50)},
    ):
        assert tail_probability(replace(gaussian(mu), **slack), 1.0, REPLACE) > 1.01 * plain
    extra = replace(gaussian(mu), extra_delta=Fraction(1, 10**5))
    assert tail_probability(extra, 1.0, REPLACE) > plain + 1e-5
    assert tail_probability(gaussian(20.0), 0.1, REPLACE) > 0.99


# --- by brute force ---------------------------------------------------------------------------


def sum_law(moved, sigma):
    reach = math.ceil(12 * sigma)
    noise = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    law = np.ones(1)
    for _ in range(moved):
        law = np.convolve(law, noise / noise.sum())
    return law


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize(("moved", "sigma"), [(1, 2), (2, 3), (8, 5), (8, 2)])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.5])
def test_no_event_of_discrete_noise_exceeds_the_exception(moved, sigma, epsilon, relation):
    """Every event: by Neyman and Pearson the tails of the sum are the worst for their size."""
    steps = 1 + (relation is ADD)
    claimed = tail_probability(counts_bound(moved, Fraction(sigma)), epsilon, relation)
    law, pad = sum_law(steps * moved, sigma), np.zeros(steps * moved)
    true = np.cumsum(np.r_[pad, law][::-1])
    false = np.cumsum(np.r_[law, pad][::-1])
    surer = true > math.exp(steps * epsilon) * false * (1 + 1e-9)
    assert true[surer].max(initial=0) <= claimed


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.3, 0.8, 1.5]), st.sampled_from([2, 3]))
def test_facts_that_mix_answers_and_coarse_looks_are_covered(seed, epsilon, sigma):
    """Two noisy counts, random beliefs about where they lie, a random blur of the output."""
    rng = np.random.default_rng(seed)
    reach = 12 * sigma
    place = np.arange(-reach, reach + 1)
    centres = [(a, b) for a in range(3) for b in range(3)]  # any two differ by at most 2 each

    def law(centre):
        parts = [np.exp(-((place - c) ** 2) / (2 * sigma**2)) for c in centre]
        return np.outer(parts[0] / parts[0].sum(), parts[1] / parts[1].sum()).ravel()

    laws = np.array([law(centre) for centre in centres])
    prior = rng.dirichlet(np.full(len(centres), 0.2), size=2)
    true, false = prior @ laws
    if rng.random() < 0.7:
        cells = rng.integers(0, rng.integers(2, 2000), size=true.size)
        if rng.random() < 0.5:  # cells that follow the evidence blur worst
            order = np.argsort(np.log(true / false))
            cells[order] = np.sort(cells)
        true, false = np.bincount(cells, true), np.bincount(cells, false)
    surer = true > math.exp(epsilon) * false * (1 + 1e-9)
    bound = bound_sensitivity([[(8, Fraction(sigma))]], coordinates=2)
    claimed = tail_probability(bound, epsilon, REPLACE)
    assert true[surer].sum() <= claimed
    assert false[surer].sum() <= claimed * math.exp(-epsilon)


def random_mechanism(rng, relation):
    """Laws of the output for each set of answers, and every two neighbouring laws."""
    laws = rng.dirichlet(np.full(6, rng.uniform(0.3, 5)), size=5)
    if relation is REPLACE:
        return laws, [(p, q) for p in laws for q in laws]
    absent = rng.dirichlet(np.full(6, 3.0))
    return laws, [pair for p in laws for pair in ((p, absent), (absent, p))]


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.01, 3), st.sampled_from(list(Neighbours)))
def test_no_guess_is_right_more_often_than_said_whatever_the_mechanism(seed, epsilon, relation):
    rng = np.random.default_rng(seed)
    laws, neighbours = random_mechanism(rng, relation)
    delta = max(np.maximum(p - math.exp(epsilon) * q, 0).sum() for p, q in neighbours)
    true, false = rng.dirichlet(np.full(len(laws), 0.2), size=2) @ laws
    right = np.maximum(true, false).sum() / 2
    assert right <= best_guess(epsilon, delta, relation) + 1e-12


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(list(Neighbours)))
def test_pure_epsilon_has_no_exception(seed, relation):
    rng = np.random.default_rng(seed)
    laws, neighbours = random_mechanism(rng, relation)
    epsilon = max(np.log(p / q).max() for p, q in neighbours)
    true, false = rng.dirichlet(np.full(len(laws), 0.2), size=2) @ laws
    assert np.all(true / (true + false) <= surest_belief(epsilon, relation) + 1e-12)


def test_under_add_remove_a_fact_about_answers_costs_twice_epsilon():
    """Two sets of answers that are both e times as likely as absence, on different outputs."""
    epsilon = 1.0
    share = 1 / (2 + 2 * math.e)
    first = np.array([math.e * share * 2, share * 2 / math.e, 0])
    second = np.array([share * 2 / math.e, math.e * share * 2, 0])
    absent = np.array([share * 2, share * 2, 0])
    for law in (first, second, absent):
        law[2] = 1 - law.sum()
    worst = max(np.abs(np.log(law / absent)).max() for law in (first, second))
    sure = (first / (first + second)).max()
    assert worst <= epsilon + 1e-12
    assert surest_belief(epsilon, REPLACE) < sure <= surest_belief(epsilon, ADD) + 1e-12


# --- the sentences ----------------------------------------------------------------------------

WHO = (
    "Somebody who knows everybody else's answers, and for whom a fact about one person's answers "
    "is as likely as not,"
)
ITEMS = ["Item1", "Item2", "Item3", "Item4", "Item5"]


def statement(mechanism, relation=REPLACE):
    budget = discreet.Budget(1.0, 1e-6, relation)
    made = discreet.release(discreet.datasets.lsat(), budget, items=ITEMS, mechanism=mechanism)
    return write_statement(made.record)


@pytest.mark.parametrize("mechanism", ["pairs", "margins"])
def test_gaussian_releases_say_how_often_somebody_becomes_surer(mechanism):
    text = statement(mechanism)
    sentence = f"{WHO} can become at most about 73% sure of it by reading this release, except"
    assert f"{sentence} with probability at most 5." in text
    assert "probability 1e-06" not in text


def test_under_add_remove_the_sentence_has_the_doubled_bound():
    assert "at most about 88% sure of it by reading this release, except with" in statement(
        "pairs", ADD
    )
    assert "at most about 88% sure of it by reading this release.\n" in statement(
        "laplace-pairs", ADD
    )


@pytest.mark.parametrize("mechanism", ["laplace-pairs", "randomized-response"])
def test_pure_releases_have_no_exception(mechanism):
    text = statement(mechanism)
    assert f"{WHO} can become at most about 73% sure of it by reading this release.\n" in text
    assert "except" not in text


@pytest.mark.parametrize("mechanism", ["sparse-pairs", RandomizedResponse(shuffler="trusted")])
def test_random_graphs_and_shuffling_claim_no_tail(mechanism):
    text = statement(mechanism)
    assert f"{WHO} guesses it right with a probability of at most about 73%" in text
    assert "sure of it" not in text
    assert "except" not in text


def test_a_record_of_an_earlier_version_claims_no_tail():
    made = discreet.release(
        discreet.datasets.lsat(), discreet.Budget(1.0), items=ITEMS, mechanism="pairs"
    )
    old = {name: value for name, value in made.guarantee.to_dict().items() if name != "tail"}
    assert "guesses it right" in write_statement({**made.record, "guarantee": old})


def test_noise_for_tests_promises_nothing():
    guarantee = Guarantee(1.0, 1e-6, None, REPLACE, "pairs", is_private=False, tail=1e-5)
    record = {"guarantee": guarantee.to_dict(), "items": ["a"], "mechanism": "pairs"}
    record |= {"max_answers": 2, "persons": 3, "looked": False, "reading": {}}
    text = write_statement(record)
    assert "NOT PRIVATE" in text
    assert "differential privacy" not in text
    assert "sure of it" not in text


FIRST = {
    "en": "Nobody's answers are on this page",
    "de": "Auf dieser Seite stehen niemandes Antworten",
    "es": "En esta página no están las respuestas de nadie",
}


@pytest.mark.parametrize("language", FIRST)
@pytest.mark.parametrize("relation", list(Neighbours))
def test_a_page_opens_in_everyday_words_and_the_exact_statement_follows(language, relation):
    budget = Budget(1.0, 1e-6, relation)
    made = discreet.release(discreet.datasets.lsat(), budget, items=ITEMS, mechanism="pairs")
    record = {**made.record, "identity": {"language": language}}
    page = write_public_page(made.estimate, record)
    body = html.unescape(page).partition("<h1>")[2]
    paragraphs = re.findall(r"<p[^>]*>(.*?)</p>", body, re.S)
    assert paragraphs[0].startswith(FIRST[language])
    ratio = math.exp(1.0 if relation is REPLACE else 2.0)
    assert re.findall(r"\d+", paragraphs[0]) == ["50", f"{100 * ratio / (1 + ratio):.0f}"]
    exact = explain_belief(made.guarantee, speak(record))
    assert paragraphs[1] == exact


def test_a_page_with_noise_for_tests_does_not_say_that_persons_are_protected():
    noise = ExactNoise(SeededSource(1))
    made = discreet.release(discreet.datasets.lsat(), Budget(1.0), items=ITEMS, noise=noise)
    page = write_public_page(made.estimate, made.record)
    assert "Nobody" not in page
    assert "can be drawn again" in page


def test_the_calibrated_exception_is_what_the_guarantee_carries():
    _, spend = calibrate_counts(12, Budget(1.0, 1e-6))
    promise = spend.guarantee(is_private=True)
    assert promise.tail == tail_probability(spend.bound, 1.0, REPLACE)
    assert Guarantee.from_dict(promise.to_dict()) == promise
    assert show_chance(promise.tail) in explain_belief(promise)


@pytest.mark.parametrize("row", re.findall(r"^\| ([\d.]+) \|.*$", PLANNING, re.M))
def test_the_planning_page_has_these_numbers(row):
    cells = re.search(rf"^\| {re.escape(row)} \| (.*) \|$", PLANNING, re.M)[1].split(" | ")
    epsilon, curve = float(row), gaussian(largest_mu(float(row), 1e-6))
    assert float(cells[0].replace(",", "")) == pytest.approx(math.exp(epsilon), rel=0.04)
    for relation, (sure, beyond) in zip(Neighbours, (cells[1:3], cells[3:5]), strict=True):
        assert beyond == show_chance(tail_probability(curve, epsilon, relation))
        digits = len(sure.rstrip("%").partition(".")[2])
        assert sure == f"{100 * surest_belief(epsilon, relation):.{digits}f}%"


def test_delta_is_nowhere_called_the_chance_that_epsilon_fails():
    wrong = re.compile(
        r"chance (that|with which) (the|that) bound|except with probability (δ|delta|\{delta)|"
        r"fails to hold|probability of failure|bound may fail"
    )
    texts = [*ROOT.glob("src/**/*.py"), *ROOT.glob("src/**/*.html"), *ROOT.glob("*.md")]
    texts += [*ROOT.glob("docs/**/*.md"), *ROOT.glob("experiments/*.py")]
    denials = (  # the page that says what delta is not, and the entry about older statements
        "not* the probability that ε fails to hold",
        'a sentence that is not true ("except with probability delta")',
    )
    found = []
    for path in texts:
        text = " ".join(path.read_text(encoding="utf-8").split())  # sentences run over lines
        for denial in denials:
            text = text.replace(denial, "")
        if wrong.search(text):
            found.append(path)
    assert len(texts) > 200
    assert found == []


@settings(max_examples=200, deadline=None)
@given(st.floats(1e-250, 1))
def test_a_small_probability_is_never_shown_smaller(chance):
    shown = float(show_chance(chance))
    assert chance * (1 - 1e-8) <= shown <= chance * 1.1 * (1 + 1e-8)


def test_shares_near_one_are_not_rounded_to_certainty():
    assert show_probability_bound(0.9995) == "more than 99.9%"
    assert show_probability_bound(surest_belief(3.0, REPLACE)) == "at most about 95%"


# --- groups -----------------------------------------------------------------------------------


def hockey_stick(first, second, epsilon):
    """Return the least delta of two laws on few outcomes: max over events, exactly."""
    return sum(
        max(one - exp(epsilon) * other, 0.0) for one, other in zip(first, second, strict=True)
    )


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 50), min_size=4, max_size=4), min_size=3, max_size=6),
    st.floats(0.05, 3.0),
)
def test_a_chain_of_neighbours_keeps_the_bound_of_a_group(counts, epsilon):
    """Any laws, one for each data set of a chain; delta is what their steps need."""
    laws = [[(one + 1) / (sum(row) + 4) for one in row] for row in counts]
    delta = max(hockey_stick(one, other, epsilon) for one, other in pairwise(laws))
    for members in range(1, len(laws)):
        group, bound = bound_group(epsilon, delta, members)
        assert group == pytest.approx(members * epsilon)
        for start in range(len(laws) - members):
            assert hockey_stick(laws[start], laws[start + members], group) <= bound + 1e-12


@pytest.mark.parametrize("members", [1, 2, 3, 5, 10])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_the_bound_of_a_group_is_attained_and_k_times_delta_is_not_enough(members, epsilon):
    """An event that each step makes as much likelier as it may, from probability 0 on."""
    delta, chances = 1e-7, [0.0]
    for _ in range(members):
        chances.append(exp(epsilon) * chances[-1] + delta)
    laws = [[chance, 1 - chance] for chance in reversed(chances)]
    for one, other in pairwise(laws):  # both ways, as neighbours are
        assert hockey_stick(one, other, epsilon) <= delta * (1 + 1e-6)
        assert hockey_stick(other, one, epsilon) <= delta
    reached = hockey_stick(laws[0], laws[-1], members * epsilon)
    assert reached == pytest.approx(bound_group(epsilon, delta, members)[1], rel=1e-6)
    if members > 1:
        assert reached > members * delta * (1 + 1e-3)


def test_the_bound_of_a_group_holds_for_exact_noise_and_never_exceeds_one():
    """Discrete Laplace counts of several persons: pure, so k epsilon and nothing else."""
    counts = np.arange(-400, 401)
    laws = [np.exp(-np.abs(counts - moved) / 2.0) for moved in range(4)]
    laws = [law / law.sum() for law in laws]
    for members in (1, 2, 3):
        epsilon, delta = bound_group(0.5, 0.0, members)
        assert (epsilon, delta) == (0.5 * members, 0.0)
        assert hockey_stick(laws[0], laws[members], epsilon) < 1e-12
    assert bound_group(800.0, 1e-6, 2) == (1600.0, 1.0)
    assert bound_group(5.0, 1e-6, 10) == (50.0, 1.0)
