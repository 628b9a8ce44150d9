"""What a summary counts as found: pairs, persons and groups, just below their limits and beyond."""

from dataclasses import astuple
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import discreet
from discreet.api.persons import score
from discreet.items.abilities import correlate_matching
from discreet.items.dependence import find_dependence
from discreet.items.dif import list_differing
from discreet.items.study import diagnose
from discreet.items.tables import flag_persons, tabulate_persons

ITEMS = ("a", "b", "c", "d")


def make_pairs(q3, persons=400, limit=None):
    """Return four items whose residual correlations are zero but for the first pair's."""
    table, together = np.zeros((4, 4)), np.full((4, 4), 400)
    table[0, 1] = table[1, 0] = q3
    together[0, 1] = together[1, 0] = persons
    pairs = SimpleNamespace(items=ITEMS, q3=table, mean=-0.1, together=together)
    cutoffs = None if limit is None else SimpleNamespace(q3=np.full((4, 4), limit))
    return pairs, cutoffs, ("d", "c", "b", "a")


@pytest.mark.parametrize(
    ("excess", "persons", "is_listed", "is_counted"),
    [(0.19, 400, True, False), (0.21, 400, True, True), (0.21, 50, False, False),
     (0.9, 50, True, True), (0.9, 49, False, False)],
)  # fmt: skip
def test_a_pair_counts_beyond_chance_and_what_matters(excess, persons, is_listed, is_counted):
    """Without simulated limits: Bonferroni of the six pairs, or of those enough persons share."""
    number = 6 if persons >= 50 else 5
    chance = stats.norm.isf(0.05 / number / 2) / np.sqrt(persons)
    assert (excess > chance and persons >= 50) == is_listed
    listed, within = astuple(find_dependence(*make_pairs(excess - 0.1, persons)))
    # The other pairs lie at zero, 0.1 above the mean: that is chance.
    assert [pair[:2] for pair in listed] == [("a", "b")] * is_listed
    assert within == ((0, 0, 1, 1) if is_counted else (0,) * 4)
    if is_listed:
        assert listed[0][2:] == (pytest.approx(excess), persons)


@pytest.mark.parametrize(("sign", "is_listed"), [(-1, False), (1, True)])
def test_chance_between_two_items_shrinks_with_the_root_of_their_persons(sign, is_listed):
    edge = stats.norm.isf(0.05 / 6 / 2) / np.sqrt(100)
    found = find_dependence(*make_pairs(edge + sign * 1e-6 - 0.1, 100))
    assert len(found.pairs) == is_listed


@pytest.mark.parametrize(
    ("q3", "limit", "is_listed", "is_counted"),
    [(0.05, 0.06, False, False), (0.07, 0.06, True, True), (-0.01, -0.02, True, False)],
)
def test_simulated_limits_take_the_place_of_rules_of_thumb(q3, limit, is_listed, is_counted):
    """What matters is then 0.1 above the mean, which is -0.1."""
    residuals, cutoffs, items = make_pairs(q3, 400, limit)
    residuals.q3[residuals.q3 == 0] = -0.3
    found = find_dependence(residuals, cutoffs, items)
    assert len(found.pairs) == is_listed
    assert found.count == is_counted
    assert sum(found.within) == 2 * is_counted


def make_persons(**columns):
    """Return scores and fit of one person with these numbers."""
    numbers = {"infit": 1.0, "infit_t": 0.0, "outfit": 1.0, "outfit_t": 0.0} | columns
    numbers |= {"conditional_infit": 1.0, "conditional_outfit": 1.0}
    fit = SimpleNamespace(**{name: np.array([value]) for name, value in numbers.items()})
    scores = SimpleNamespace(to_dict=lambda: {
        "person": ["p"], "ability": [0.1], "se": [0.5], "score": [2], "answered": [4],
    })  # fmt: skip
    return scores, fit


@pytest.mark.parametrize(
    ("columns", "flag"),
    [
        ({"infit": 1.301, "infit_t": 2.01}, "unexpected answers"),
        ({"infit": 1.3, "infit_t": 2.01}, ""),
        ({"infit": 1.301, "infit_t": 2.0}, ""),
        ({"outfit": 1.301, "outfit_t": 2.01}, "unexpected answers"),
        ({"outfit": 1.301, "outfit_t": 2.0}, ""),
        ({"infit": 1.301, "outfit_t": 2.01}, ""),
        ({"infit": np.nan, "infit_t": np.nan}, ""),
    ],
)
def test_persons_are_flagged_beyond_the_rules_of_thumb(columns, flag):
    scores, fit = make_persons(**columns)
    unexpected = flag_persons(fit, None)
    assert unexpected.tolist() == [flag == "unexpected answers"]
    table = tabulate_persons(scores, fit, unexpected, None, has_steps=False, sampled=False)
    assert table.columns["flag"] == [flag]


@pytest.mark.parametrize("persons", [174, 175])
def test_a_design_is_looked_for_from_so_many_persons_on(persons):
    """The correlation is that of ability and mean difficulty."""
    rng = np.random.default_rng(3)
    b = np.linspace(-2, 2, 10)
    ability = np.sort(rng.normal(size=persons))
    rows = (rng.random((persons, 10)) < 1 / (1 + np.exp(b - ability[:, None]))).astype(float)
    rows[: persons // 2, 6:] = rows[persons // 2 :, :4] = np.nan
    # Nobody is all right or all wrong, so that every ability counts.
    rows[:, 4], rows[:, 5] = 1, 0
    answers = discreet.Responses.from_array(rows)
    known = discreet.fit(answers, method="refined", regularisation=0.1)
    scores = score(answers, known)
    found = correlate_matching(answers, known, scores)
    if persons < 175:
        assert found is None
        return
    given = ~np.isnan(rows)
    mean = (given * known.difficulty).sum(axis=1) / given.sum(axis=1)
    assert found == pytest.approx(np.corrcoef(mean, scores.ability)[0, 1])
    assert abs(found) > 0.1


def test_differences_are_told_that_are_confirmed_and_not_negligible():
    table = SimpleNamespace(
        item=("a", "b", "c", "d"), focal=("f",) * 4, reference="m",
        confirmed=np.array([True, True, False, True]), ets=("B", "A", "C", "C"),
        difference=np.array([0.5, 0.2, 2.0, -0.9]),
    )  # fmt: skip
    rows = list_differing({"sex": table})
    assert [(row[0], row[4], row[5]) for row in rows] == [("d", -0.9, "C"), ("a", 0.5, "B")]
    answers = discreet.datasets.lsat()
    assert diagnose(answers, discreet.fit(answers)).differences is None
