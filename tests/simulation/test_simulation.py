"""Simulated answers follow the model and the design that was asked for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.api.calibrating import fit
from discreet.counts.planes import BitPlanes, SparseRows
from discreet.errors import BadUsage
from discreet.simulation import BLOCK_PERSONS, simulate
from discreet.simulation.designs import DESIGNS
from refusals import refused


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def answers_of(simulation) -> np.ndarray:
    return simulation.responses.store.rows(0, simulation.responses.n_persons)


@settings(max_examples=60)
@given(
    design=st.sampled_from(sorted(DESIGNS)),
    persons=st.integers(1, 60),
    items=st.integers(4, 40),
    answered=st.floats(0.5, 1.0),
    seed=st.integers(0, 2**32),
)
def test_every_design_gives_each_person_the_share_that_was_asked_for(
    design, persons, items, answered, seed
):
    simulation = simulate(persons, items, answered, design=design, rng=rng(seed))
    given_items = (answers_of(simulation) >= 0).sum(axis=1)
    assert simulation.responses.n_persons == persons
    assert simulation.responses.n_items == items
    if design == "uniform":
        assert given_items.max() <= items
    else:
        assert (given_items == round(answered * items)).all()


@pytest.mark.parametrize("design", sorted(DESIGNS))
def test_the_same_seed_gives_the_same_answers_and_another_seed_others(design):
    first, again, other = (
        simulate(200, 12, 0.5, design=design, rng=rng(seed)) for seed in (5, 5, 6)
    )
    assert np.array_equal(answers_of(first), answers_of(again))
    assert np.array_equal(first.difficulty, again.difficulty)
    assert not np.array_equal(answers_of(first), answers_of(other))


def test_without_a_generator_two_simulations_differ():
    assert not np.array_equal(simulate(50, 10).ability, simulate(50, 10).ability)


def test_drawn_difficulties_have_mean_zero_and_given_ones_stay():
    assert simulate(5, 30, rng=rng()).difficulty.mean() == pytest.approx(0, abs=1e-12)
    given_difficulty = [1.0, 2.0, 4.0]
    assert simulate(5, 3, difficulty=given_difficulty).difficulty.tolist() == given_difficulty


def test_given_arrays_are_copied_and_the_result_cannot_be_changed():
    ability = np.zeros(5)
    simulation = simulate(5, 3, ability=ability)
    ability[0] = 9
    assert simulation.ability[0] == 0
    assert not simulation.difficulty.flags.writeable


@pytest.mark.parametrize("design", sorted(DESIGNS))
def test_answers_follow_the_model_given_ability_and_difficulty(design):
    # Adaptive choice looks at earlier answers only, so residuals have mean zero in every design.
    n = 20_000
    simulation = simulate(n, 20, 0.5, design=design, rng=rng(1))
    answers = answers_of(simulation)
    given_cells = answers >= 0
    p = 1 / (1 + np.exp(-(simulation.ability[:, None] - simulation.difficulty)))
    residual = np.where(given_cells, answers - p, 0).sum(axis=0)
    spread = np.sqrt(np.where(given_cells, p * (1 - p), 0).sum(axis=0))
    assert np.abs(residual / spread).max() < 4.5


def test_uniform_cells_are_answered_independently_with_the_given_probability():
    cells = answers_of(simulate(20_000, 10, 0.3, rng=rng(2))) >= 0
    assert cells.mean() == pytest.approx(0.3, abs=0.005)
    together = np.cov(cells.T)
    np.fill_diagonal(together, 0)
    assert np.abs(together).max() < 5 * 0.3 * 0.7 / np.sqrt(20_000)


def test_uniform_cells_are_right_over_many_draws_of_the_gaps():
    sparse = simulate(3000, 1000, 0.004, rng=rng(3)).responses
    assert isinstance(sparse.store, SparseRows)
    answered = sparse.store.person_totals()[0]
    assert answered.mean() == pytest.approx(4, abs=0.2)
    assert answered.var() == pytest.approx(4, rel=0.15)


def test_booklets_are_runs_of_neighbouring_items_and_neighbours_overlap():
    simulation = simulate(500, 24, 0.25, design="booklets", rng=rng())
    booklets = {tuple(np.flatnonzero(row >= 0)) for row in answers_of(simulation)}
    assert len(booklets) == 8
    for booklet in booklets:
        steps = np.diff(np.append(booklet, booklet[0] + 24))
        assert sorted(steps)[:-1] == [1] * 5
    assert all(sum(bool(set(a) & set(b)) for b in booklets) == 3 for a in booklets)


def test_targeted_persons_get_items_near_their_ability():
    simulation = simulate(2000, 60, 0.2, design="targeted", rng=rng())
    given_items = answers_of(simulation) >= 0
    mean = (given_items * simulation.difficulty).sum(axis=1) / given_items.sum(axis=1)
    assert np.corrcoef(mean, simulation.ability)[0, 1] > 0.8


def test_adaptive_items_follow_the_answers():
    simulation = simulate(2000, 200, 0.1, design="adaptive", rng=rng())
    answers = answers_of(simulation)
    given_items = answers >= 0
    mean = (given_items * simulation.difficulty).sum(axis=1) / given_items.sum(axis=1)
    assert np.corrcoef(mean, simulation.ability)[0, 1] > 0.8
    # A well targeted test is answered half right by everyone.
    assert np.where(given_items, answers, 0).sum(axis=1).std() < 0.6 * np.sqrt(20)


def test_two_stage_routes_by_the_score_on_the_common_items():
    difficulty = np.linspace(-2, 2, 40)
    simulation = simulate(1000, 40, 0.5, design="two-stage", difficulty=difficulty, rng=rng())
    answers = answers_of(simulation)
    common = (answers >= 0).all(axis=0)
    assert common.sum() == 10
    score = np.where(answers[:, common] == 1, 1, 0).sum(axis=1)
    later = (answers[:, ~common] >= 0) * difficulty[~common]
    assert later[score >= 5].sum(axis=1).min() > later[score < 5].sum(axis=1).max()


def test_answers_of_many_persons_are_packed_in_full_blocks():
    n = BLOCK_PERSONS + 100
    simulation = simulate(n, 3, rng=rng())
    store = simulation.responses.store
    assert isinstance(store, BitPlanes)
    assert store.right.shape[0] == 2
    assert simulation.responses.n_answers == 3 * n
    assert (store.rows(n - 1, n) >= 0).all()


def test_item_names_are_the_default_ones():
    assert simulate(4, 3, rng=rng()).responses.items == ("0", "1", "2")


@pytest.mark.parametrize(
    ("arguments", "code", "facts"),
    [
        ({"persons": 0}, "must_whole_number_least_found", {"name": "persons", "value": 0}),
        ({"persons": 2.5}, "must_found_nothing_read", {"place": "persons="}),
        ({"persons": True}, "must_found_nothing_read", {"place": "persons="}),
        ({"items": -1}, "must_whole_number_least_found", {"name": "items", "value": -1}),
        ({"answered": 0}, "answered_must_lie_found", {"answered": 0}),
        ({"answered": 30}, "answered_must_lie_found", {"answered": 30}),
        ({"answered": float("nan")}, "answered_must_lie_found", {}),
        ({"answered": "half"}, "must_found_nothing_read", {"place": "answered="}),
        ({"design": "latin"}, "no_design_choose_one", {"design": "latin"}),
        ({"answered": 0.2, "design": "booklets"}, "answered_items_gives_every", {"each": "1"}),
        ({"difficulty": [0.0]}, "must_hold_numbers_found", {"name": "difficulty", "size": "5"}),
        (
            {"persons": 2, "ability": [0.0, np.inf]},
            "every_entry_must_finite",
            {"name": "ability", "index": "1"},
        ),
        (
            {"persons": 2, "ability": ["a", "b"]},
            "must_hold_numbers_parameters",
            {"name": "ability", "size": "2"},
        ),
    ],
)
def test_nonsense_arguments_are_refused_with_a_reason(arguments, code, facts):
    with refused(BadUsage, code, **facts):
        discreet.simulate(**{"persons": 5, "items": 5, **arguments})


@pytest.mark.parametrize("method", ["spectral", "refined"])
@pytest.mark.parametrize(
    ("design", "lowest", "highest"),
    [
        ("uniform", 0.93, 1.07),
        ("booklets", 0.93, 1.07),
        ("targeted", 0.93, 1.07),
        ("two-stage", 1.1, 1.5),
        ("adaptive", 1.3, 2.5),
    ],
)
def test_pairs_are_sound_only_where_items_were_assigned_before_the_answers(
    design, lowest, highest, method
):
    simulation = simulate(4000, 40, 1 / 3, design=design, rng=rng(8))
    truth = simulation.difficulty
    found = fit(simulation.responses, method=method, standard_errors=False).difficulty
    assert lowest < found @ truth / (truth @ truth) < highest


# -- items with steps --------------------------------------------------------------------------


def chances_of(simulation) -> np.ndarray:
    """Return the chance of every category, ``[person, item, category]``, term by term."""
    n, (m, most) = len(simulation.ability), simulation.thresholds.shape
    odds = np.zeros((n, m, most + 1))
    for step in range(most):
        threshold = np.where(
            np.isnan(simulation.thresholds[:, step]), np.inf, simulation.thresholds[:, step]
        )
        odds[:, :, step + 1] = odds[:, :, step] + simulation.ability[:, None] - threshold
    share = np.exp(odds)
    return share / share.sum(axis=2, keepdims=True)


@pytest.mark.parametrize("design", sorted(DESIGNS))
@pytest.mark.parametrize("answered", [0.5, 0.04])
def test_answers_with_steps_follow_the_model_in_every_design(design, answered):
    steps = [1 + item % 4 for item in range(100)]
    simulation = simulate(4000, 100, answered, design=design, steps=steps, rng=rng(1))
    codes, chance = answers_of(simulation), chances_of(simulation)
    for category in range(5):
        expected = np.where(codes >= 0, chance[:, :, category], 0)
        away = ((codes == category) - expected).sum(axis=0)
        spread = np.sqrt((expected * (1 - chance[:, :, category])).sum(axis=0))
        some = spread > 2
        assert np.abs(away[some] / spread[some]).max() < 4.5
    assert simulation.responses.steps == tuple(steps)
    assert (codes <= np.array(steps)).all()


@pytest.mark.parametrize("design", sorted(DESIGNS))
def test_one_step_is_right_and_wrong_with_the_same_draws(design):
    plain = simulate(300, 30, 0.4, design=design, rng=rng(3))
    one = simulate(300, 30, 0.4, design=design, steps=1, rng=rng(3))
    assert np.array_equal(answers_of(plain), answers_of(one))
    assert plain.thresholds.tolist() == plain.difficulty[:, None].tolist()


def test_drawn_thresholds_lie_around_the_location_evenly_in_a_rating_scale():
    scale = simulate(5, 30, steps=4, model="rating-scale", rng=rng())
    credit = simulate(5, 30, steps=4, rng=rng())
    for drawn in (scale, credit):
        assert drawn.difficulty.mean() == pytest.approx(0, abs=1e-12)
        assert np.allclose(drawn.thresholds.mean(axis=1), drawn.difficulty)
    away = scale.thresholds - scale.difficulty[:, None]
    assert np.allclose(away, [-1.2, -0.4, 0.4, 1.2])
    assert (credit.thresholds - credit.difficulty[:, None]).std(axis=0).min() > 0.1


def test_given_thresholds_are_used_as_given():
    simulation = simulate(6, 2, thresholds=[[0.5], [-1.0, 2.0]], rng=rng())
    assert simulation.difficulty.tolist() == [0.5, 0.5]
    assert simulation.responses.steps == (1, 2)
    assert np.isnan(simulation.thresholds[0, 1])


def test_thresholds_are_found_again():
    simulation = simulate(6000, 12, 0.6, steps=3, rng=rng(4))
    found = fit(simulation.responses, method="refined")
    z = (found.thresholds - simulation.thresholds) / found.threshold_se
    assert np.abs(z).max() < 4
    assert 0.7 < z.std() < 1.3


def test_steps_of_many_persons_are_packed_in_full_blocks_and_few_answers_as_rows():
    n = BLOCK_PERSONS + 70
    store = simulate(n, 3, steps=2, rng=rng()).responses.store
    assert isinstance(store.nodes, BitPlanes)
    assert (store.rows(n - 1, n) >= 0).all()
    assert isinstance(
        simulate(500, 400, 0.01, steps=2, rng=rng()).responses.store.nodes, SparseRows
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"steps": 0}, "steps_must_whole_number"),
        ({"steps": 12}, "steps_must_whole_number"),
        ({"steps": 2.5}, "steps_must_whole_number"),
        ({"steps": [2, 2]}, "steps_must_whole_number"),
        ({"steps": 3, "model": "rasch"}, "model_rasch_right_wrong_answers_items"),
        ({"steps": [1, 2, 1, 2, 1], "model": "rating-scale"}, "rating_scale_all_items_same"),
        ({"steps": 3, "model": "graded"}, "no_called_one_check_choice_name"),
        ({"thresholds": [[0.0]] * 4}, "thresholds_must_hold_row_numbers"),
        ({"thresholds": [[0.0, np.nan, 1.0]] * 5}, "thresholds_item_finite_thresholds"),
        ({"thresholds": [[np.inf]] * 5}, "thresholds_item_finite_thresholds"),
        ({"thresholds": "abcde"}, "thresholds_must_hold_row"),
        ({"thresholds": [[0.0]] * 5, "steps": 2}, "thresholds_other_steps_than"),
        ({"thresholds": [[0.0]] * 5, "difficulty": [0.0] * 5}, "thresholds_says_where_all"),
    ],
)
def test_nonsense_about_steps_is_refused_with_a_reason(arguments, code):
    with refused(BadUsage, code):
        simulate(5, 5, **arguments)
