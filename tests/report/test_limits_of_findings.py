"""Every finding, just below its limit and just beyond it, from numbers that are made up."""

from dataclasses import replace

import numpy as np
import pytest

from discreet.errors import FitWarning, WarningKind
from discreet.items.abilities import AbilitySummary
from discreet.items.curves import BinnedAnswers
from discreet.items.cutoffs import ItemLimits, SmallChances
from discreet.items.dependence import Dependence
from discreet.items.dif import DifTable
from discreet.items.dimensionality import Alpha, Dimensionality
from discreet.items.distractors import Distractors
from discreet.items.fit import CategoryFit, ItemFit, Reliability
from discreet.items.likelihood_ratios import AndersenTest, StepModelTest
from discreet.items.martin_loef import MartinLoefTest
from discreet.items.mislabelled import Mislabelled
from discreet.items.raters import BiasTable, LevelFit, RatedPersons, RatingStudy
from discreet.items.raters.judging import Misfit
from discreet.items.study import Study
from discreet.persons.measures import HalvesTest
from discreet.report.diagnosis import list_tests
from discreet.report.findings import find_limits, find_problems, fit_remarks, remarks_on_items
from discreet.report.model_findings import Severity, list_disordered, say_reliability, say_test
from discreet.report.raters import find_rater_problems
from discreet.results.estimate import Estimate, Solution, Status
from discreet.results.facets import FacetLevels, ItemEffectTest, LevelStatus
from discreet.results.thresholds import Thresholds

ITEMS = tuple("abcdefghij")
ALARM, SERIOUS, LOOK = Severity.ALARM, Severity.SERIOUS, Severity.LOOK
NONE = None


def make_estimate(**changes):
    """Ten items that nothing is wrong with."""
    return Estimate(
        **{
            "items": ITEMS,
            "difficulty": np.linspace(-1, 1, 10),
            "se": np.full(10, 0.2),
            "status": (Status.ESTIMATED,) * 10,
            "method": "conditional",
            "solution": Solution("made for a test", 0, 0.0),
            "answers": np.full(10, 400),
            "right": np.full(10, 200),
            "persons": 400,
        }
        | changes
    )


FIT = ("infit", "infit_t", "outfit", "outfit_t", "point_measure", "outfit_without_one")
SOUND = {
    "ability_mean": 0.0,
    "measured": 400,
    "extreme": 0,
    "answered": 10.0,
    "matching": None,
    "misfitting": 0,
    "reliability": 0.9,
    **dict.fromkeys(("infit", "outfit", "outfit_without_one"), (1.0,) * 10),
    **dict.fromkeys(("infit_t", "outfit_t"), (0.0,) * 10),
    "point_measure": (0.5,) * 10,
    "infit_low": (0.85,) * 10,
    "infit_high": (1.15,) * 10,
    "outfit_low": (0.75,) * 10,
    "outfit_high": (1.25,) * 10,
    "replications": 199,
    "dependent": (),
    "dependencies": (0,) * 10,
}


def make_answers(items=ITEMS, **changes):
    """Return the study of a sound test, with limits that were simulated, but for these numbers."""
    told = SOUND | changes
    number = len(items)
    columns = {name: np.array(told[name], dtype=float) for name in FIT}
    rest = ("point_measure_expected", "discrimination")
    bands = (
        np.array([told[f"{name}_low"], told[f"{name}_high"]], dtype=float).T
        for name in ("infit", "outfit")
    )
    reliability = told["reliability"]
    return Study(
        abilities=AbilitySummary(
            starts=(-1.0, 0.0), counts=(200, 200), mean=told["ability_mean"], sd=1.0,
            measured=told["measured"], extreme=told["extreme"], empty=0,
            unexpected=told["misfitting"], answered=told["answered"], matching=told["matching"],
        ),
        halves=HalvesTest(*told["halves"]) if "halves" in told else None,
        fit=ItemFit(
            items=tuple(items), answers=np.full(number, 400), status=("measured",) * number,
            **columns, **dict.fromkeys(rest, np.ones(number)),
            conditional_infit=columns["infit"], conditional_outfit=columns["outfit"],
        ),
        reliability=Reliability(0, 0) if reliability is None else Reliability(1, 1 - reliability),
        item_reliability=Reliability(1, 0.1),
        alpha=Alpha(0.9, 400, number),
        observed=BinnedAnswers((), np.zeros((1, 0)), np.zeros((1, 0, 2), dtype=np.int64)),
        limits=ItemLimits(*bands, told["replications"]) if told["replications"] else None,
        dependence=None if told["dependent"] is None
        else Dependence(told["dependent"], told["dependencies"]),
        **{name: told[name] for name in
           ("andersen", "martin_loef", "step_models", "dimensionality", "distractors",
            "mislabelled", "differences", "categories", "small_chances") if name in told},
    )  # fmt: skip


def andersen(*numbers):
    nothing = np.zeros((2, 0))
    test = AndersenTest(*numbers, ("a", "b"), (200, 200), (), nothing, (), 0.0, (0.0, 0.0))
    return {"andersen": replace(test, split="mean score")}


def martin_loef(*numbers):
    return {"martin_loef": MartinLoefTest(*numbers, (), (), np.zeros(0), np.zeros(0), 400, ())}


def step_models(*numbers):
    return {"step_models": StepModelTest(*numbers, (), (), (), ())}


def suspects(*rows):
    """Items, discriminations, their errors and the probabilities that these are negative."""
    items, *columns = zip(*rows, strict=True) if rows else ((),) * 4
    slope, se, probability = map(np.array, columns)
    every = np.ones(len(items), dtype=bool)
    return {"mislabelled": Mislabelled(items, every * 400, slope, se, probability, every, 0, 0.05)}


def differing(*rows):
    """Items, differences of girls from boys, ETS classes; all of them confirmed."""
    items, size, ets = zip(*rows, strict=True) if rows else ((),) * 3
    some, every = np.array(size), np.ones(len(items), dtype=bool)
    table = DifTable(
        items, ("f",) * len(items), "m", *(some,) * 7, every, every, ets, every,
        ("compared",) * len(items), "none", 0.05, {},
    )  # fmt: skip
    return {"differences": {"sex": table}}


def at(place, value, others=1.0):
    """Ten numbers of which one is of interest."""
    return tuple(value if item == place else others for item in range(10))


def find(words, estimate=None, **changes):
    """Return the finding whose title has these words; None where there is none."""
    estimate = make_estimate() if estimate is None else estimate
    findings, _ = find_problems(estimate, make_answers(**changes))
    found = [finding for finding in findings if words in finding.title]
    assert len(found) < 2
    return found[0] if found else None


def severity(words, estimate=None, **changes):
    found = find(words, estimate, **changes)
    return found and found.severity


def test_a_sound_test_has_no_findings_and_every_check_that_was_made_is_named():
    findings, fine = find_problems(make_estimate(), make_answers())
    assert findings == []
    assert {"item fit", "targeting", "reliability", "extreme persons"} <= set(fine)
    assert not {"dimensionality", "groups", "wrong options", "order of thresholds"} & set(fine)


# -- persons and the test as a whole -----------------------------------------------------------


def dimensions(value, expected, limit, correlation=0.9):
    return {
        "dimensionality": Dimensionality(
            (value,), (expected,), (limit,), (0.01,), ITEMS, (0.0,) * 10,
            (0.6, 0.5, 0.4, 0.3, 0.2, 0.1, -0.1, -0.3, -0.4, -0.5), correlation, 400, 99,
        )
    }  # fmt: skip


def options(*flags):
    rows = len(flags)
    return {
        "distractors": Distractors(
            ("a",) * rows, tuple("ABCD"[:rows]), (True, *(False,) * (rows - 1)), (10,) * rows,
            (0.25,) * rows, (0.0,) * rows, (0.1,) * rows, flags, ((),) * rows,
        )
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "changes", "expected"),
    [
        ("A description of", {"measured": 30}, NONE),
        ("A description of", {"measured": 29}, Severity.NOTE),
        ("too easy", {"ability_mean": 1.0}, NONE),
        ("too easy", {"ability_mean": 1.01}, LOOK),
        ("too easy", {"ability_mean": 2.0}, LOOK),
        ("too easy", {"ability_mean": 2.01}, SERIOUS),
        ("too hard", {"ability_mean": -1.0}, NONE),
        ("too hard", {"ability_mean": -1.01}, LOOK),
        ("too hard", {"ability_mean": -2.01}, SERIOUS),
        ("person reliability", {"reliability": 0.8}, NONE),
        ("Moderate person reliability", {"reliability": 0.799}, LOOK),
        ("Moderate person reliability", {"reliability": 0.5}, LOOK),
        ("Low person reliability", {"reliability": 0.499}, SERIOUS),
        ("person reliability", {"reliability": None}, NONE),
        ("of the persons have", {"measured": 900, "extreme": 100}, NONE),
        ("of the persons have", {"measured": 899, "extreme": 101}, LOOK),
        ("got harder items", {"matching": 0.25}, NONE),
        ("got harder items", {"matching": 0.251}, LOOK),
        ("low and with high scores", andersen(30.0, 9, 0.01), NONE),
        ("low and with high scores", andersen(30.0, 9, 0.0099), LOOK),
        ("easier and the harder half", martin_loef(30.0, 9, 0.01), NONE),
        ("easier and the harder half", martin_loef(30.0, 9, 0.0099), LOOK),
        ("abilities is distorted", {"halves": (3.0, 0.01, 1.1)}, NONE),
        ("abilities is distorted", {"halves": (3.0, 0.0099, 1.19)}, LOOK),
        ("abilities are too small", {"halves": (3.0, 0.0099, 1.2)}, SERIOUS),
        ("abilities are too small", {"halves": (3.0, 0.01, 1.9)}, NONE),
        ("answered unexpectedly", {"small_chances": SmallChances(0.02, 0.05, 0.02, 0.05)}, NONE),
        ("answered unexpectedly", {"small_chances": SmallChances(0.02, 0.051, 0.02, 0.05)}, LOOK),
        ("answered unexpectedly", {"misfitting": 20}, NONE),
        ("answered unexpectedly", {"misfitting": 21}, LOOK),
        ("attract", options("", ""), NONE),
        ("1 wrong option attracts", options("", "attracts abler persons"), SERIOUS),
        ("depend", {"dependencies": (0,) * 10}, NONE),
        ("1 pair of items depends",
         {"dependencies": (*at(0, 1, 0)[:9], 1), "dependent": (("a", "j", 0.3, 400),)}, LOOK),
        ("depend", {"dependencies": (*at(0, 1, 0)[:9], 1), "dependent": None}, NONE),
        ("differently in groups", differing(), NONE),
        ("1 item works differently",
         differing(("a", 0.5, "B")), LOOK),
        ("2 items work differently",
         differing(("a", 0.5, "B"), ("b", -0.7, "C")),
         SERIOUS),
        ("mislabelled", suspects(), NONE),
        ("1 item looks mislabelled", suspects(("a", -0.5, 0.2, 0.97)), SERIOUS),
    ],
)  # fmt: skip
def test_findings_about_the_test_begin_beyond_their_limits(words, changes, expected):
    assert severity(words, **changes) is expected


@pytest.mark.parametrize(
    ("value", "expected", "correlation", "found"),
    [
        (1.50, 1.00, 0.9, NONE),  # not above the 95% point, which is 1.5
        (1.51, 1.40, 0.9, LOOK),
        (1.99, 1.00, 0.9, LOOK),
        (4.00, 1.00, 0.9, LOOK),  # what the ends share says more than the size
        (1.99, 1.00, None, LOOK),
        (2.00, 1.00, None, SERIOUS),
        (3.99, 1.00, None, SERIOUS),
        (4.00, 1.00, None, ALARM),
        # The correlation of the ends is believed from 1.3 times chance on.
        (1.94, 1.50, 0.1, LOOK),
        (1.95, 1.50, 0.7, LOOK),
        (1.95, 1.50, 0.699, SERIOUS),
        (1.95, 1.50, 0.3, SERIOUS),
        (1.95, 1.50, 0.299, ALARM),
        (1.95, 1.50, None, LOOK),
    ],
)
def test_a_component_matters_by_its_size_and_by_what_its_ends_share(
    value, expected, correlation, found
):
    words = {ALARM: "do not measure one thing", SERIOUS: "more than one thing",
             LOOK: "share more than the ability", NONE: "ability"}[found]  # fmt: skip
    assert severity(words, **dimensions(value, expected, 1.5, correlation)) is found


@pytest.mark.parametrize("correlation", [0.71, 0.69])
def test_the_correlation_of_the_ends_decides_whether_one_score_will_do(correlation):
    finding = find("share more" if correlation > 0.7 else "more than one thing",
                   **dimensions(2.0, 1.0, 1.5, correlation))  # fmt: skip
    assert ("One score will do" in finding.advice) is (correlation > 0.7)
    assert ("report them apart" in finding.advice) is (correlation < 0.7)


@pytest.mark.parametrize(("value", "small"), [(1.649, True), (1.651, False)])
def test_a_component_below_a_tenth_beyond_chance_is_called_small(value, small):
    finding = find("share more than the ability", **dimensions(value, 1.5, 1.6))
    assert ("beyond chance, but small" in finding.found) is small
    assert "Read what a, b, c have in common and how j, i, h differ" in finding.advice


@pytest.mark.parametrize(
    ("reliability", "answered", "words"),
    [
        # Spearman and Brown: .8 / .2 times (1 - r) / r as many items.
        (0.5, 10.0, "about 40 items for 0.8"),
        (0.7, 10.0, "about 18 items for 0.8"),  # 17.1
        (0.6, 12.0, "about 32 items for 0.8"),
        (0.2858, 7.0, "about 70 items for 0.8"),  # just below ten times
        (0.2856, 7.0, "many more items"),
        (-0.1, 10.0, "many more items"),
    ],
)
def test_the_items_that_would_be_reliable_are_those_of_spearman_and_brown(
    reliability, answered, words
):
    advice = find("person reliability", reliability=reliability, answered=answered).advice
    assert words in advice


def test_numbers_in_findings_are_written_as_they_are_meant():
    assert say_reliability(np.nan) == "–"
    assert say_reliability(0.0) == "0.00"
    assert say_reliability(-0.01) == "0 (errors exceed the differences)"
    written = [say_test(step_models(12.34, 5, p)["step_models"]) for p in (1e-4, 9e-5)]
    assert written[0].endswith("12.3 with 5 degrees of freedom, p 0.0001")
    assert written[1].endswith("p below 0.0001")
    rows = suspects(("a", -0.5, 0.2, 0.9), ("b", -0.4, 0.2, 0.6))
    found = find("2 items look mislabelled", **rows).found
    assert "Expected false alarms: 0.5." in found
    pairs = tuple((first, second, 0.3, 400) for first, second in ("ab", "cd", "ef", "gh"))
    found = find("4 pairs of items depend", dependent=pairs, dependencies=(1,) * 8 + (0, 0)).found
    assert "e with f (0.30) and 1 more." in found
    assert "more than 0.1 above the mean" in found


# -- items -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "changes", "expected"),
    [
        ("known only roughly", {"se": np.array(at(3, 0.5, 0.2))}, NONE),
        ("1 item known only roughly", {"se": np.array(at(3, 0.501, 0.2))}, LOOK),
        ("not linked", {"status": at(3, Status.NOT_CONNECTED, Status.ESTIMATED)}, SERIOUS),
        ("always answered right", {"status": at(3, Status.ALWAYS_RIGHT, Status.ESTIMATED)}, LOOK),
        ("never answered right", {"status": at(3, Status.ALWAYS_WRONG, Status.ESTIMATED)}, SERIOUS),
        ("nobody answered", {"status": at(3, Status.NO_ANSWERS, Status.ESTIMATED)}, LOOK),
        ("looks routed", {"warnings": (FitWarning(WarningKind.ROUTED, "x"),)}, SERIOUS),
        ("The link between", {"warnings": (FitWarning(WarningKind.WEAK_LINK, "x"),)}, LOOK),
        ("estimation says", {"warnings": (FitWarning(WarningKind.REGULARISED, "x"),)}, LOOK),
        ("estimation says", {"warnings": (FitWarning(WarningKind.LEFT_OUT, "x"),)}, NONE),
    ],
)  # fmt: skip
def test_findings_about_the_estimate_begin_beyond_their_limits(words, changes, expected):
    assert severity(words, make_estimate(**changes)) is expected


@pytest.mark.parametrize(
    ("words", "changes", "expected"),
    [
        ("less predictably", {"infit": at(2, 1.15)}, NONE),
        ("less predictably", {"infit": at(2, 1.151)}, LOOK),
        ("less predictably", {"infit": at(2, 1.5)}, LOOK),
        ("less predictably", {"infit": at(2, 1.501)}, SERIOUS),
        ("less predictably", {"outfit": at(2, 1.25)}, NONE),
        ("more predictably", {"infit": at(2, 0.85)}, NONE),
        ("more predictably", {"infit": at(2, 0.849)}, LOOK),
        ("more predictably", {"outfit": at(2, 0.749)}, LOOK),
        # Rules of thumb need a t-value beyond chance as well.
        ("less predictably",
         {"infit": at(2, 1.301), "infit_t": at(2, 2.01, 0.0), "replications": 0}, LOOK),
        ("less predictably",
         {"infit": at(2, 1.301), "infit_t": at(2, 2.0, 0.0), "replications": 0}, NONE),
        ("less predictably",
         {"infit": at(2, 1.3), "infit_t": at(2, 2.01, 0.0), "replications": 0}, NONE),
        ("more predictably",
         {"infit": at(2, 0.699), "infit_t": at(2, -2.01, 0.0), "replications": 0}, LOOK),
        ("more predictably",
         {"infit": at(2, 0.7), "infit_t": at(2, -2.01, 0.0), "replications": 0}, NONE),
        # An outfit that is within its limits without one person is that person's.
        ("less predictably", {"outfit": at(2, 1.6), "outfit_without_one": at(2, 1.25)}, NONE),
        ("less predictably", {"outfit": at(2, 1.6), "outfit_without_one": at(2, 1.251)}, SERIOUS),
        # One answer that hardly moves it is not what makes it large.
        ("less predictably", {"outfit": at(2, 1.34), "outfit_without_one": at(2, 1.245)}, LOOK),
        ("less predictably", {"outfit": at(2, 1.35), "outfit_without_one": at(2, 1.245)}, NONE),
        ("less predictably",
         {"outfit": at(2, 1.4), "infit": at(2, 1.16), "outfit_without_one": at(2, 1.0)}, LOOK),
        ("hardly tell", {"point_measure": at(4, 0.1, 0.5)}, NONE),
        ("1 item hardly tells", {"point_measure": at(4, 0.099, 0.5)}, LOOK),
        ("1 item hardly tells", {"point_measure": at(4, -0.001, 0.5)}, SERIOUS),
        # 400 answers: two standard errors of a correlation are 0.1.
        ("1 item hardly tells", {"point_measure": at(4, -0.1, 0.5)}, SERIOUS),
        ("runs against", {"point_measure": at(4, -0.1, 0.5)}, NONE),
        ("1 item runs against", {"point_measure": at(4, -0.101, 0.5)}, SERIOUS),
        ("runs against",
         {"point_measure": at(4, -0.3, 0.5), **suspects(("e", -0.5, 0.2, 0.97))}, NONE),
    ],
)  # fmt: skip
def test_findings_about_items_begin_beyond_their_limits(words, changes, expected):
    assert severity(words, **changes) is expected


@pytest.mark.parametrize(
    ("answers", "correlation", "expected"),
    [(29, -0.5, NONE), (30, -0.5, SERIOUS), (100, -0.2, NONE), (100, -0.201, SERIOUS)],
)
def test_items_run_against_the_others_by_the_number_of_their_answers(
    answers, correlation, expected
):
    estimate = make_estimate(answers=np.array(at(4, answers, 400)))
    changes = {"point_measure": at(4, correlation, 0.5)}
    assert severity("runs against", estimate, **changes) is expected


def test_without_numbers_of_answers_those_of_the_persons_count():
    estimate = make_estimate(answers=None, right=None)
    for persons, expected in ((399, NONE), (401, SERIOUS)):
        changes = {"point_measure": at(4, -0.1, 0.5), "measured": persons}
        assert severity("runs against", estimate, **changes) is expected


def test_items_against_the_others_explain_other_findings_from_a_tenth_of_the_items_on():
    for items, folds in ((10, True), (11, False)):
        estimate = make_estimate(
            items=tuple("abcdefghijk"[:items]), difficulty=np.zeros(items), se=np.full(items, 0.2),
            status=(Status.ESTIMATED,) * items, answers=np.full(items, 400), right=None,
        )  # fmt: skip
        columns = ("infit", "infit_t", "outfit", "outfit_t", "outfit_without_one", "infit_low",
                   "infit_high", "outfit_low", "outfit_high")  # fmt: skip
        longer = {name: (SOUND[name] * 2)[:items] for name in columns}
        turned = (-0.3, *(0.5,) * (items - 1))
        study = make_answers(estimate.items, reliability=0.4, point_measure=turned, **longer)
        first, *others = find_problems(estimate, study)[0]
        assert "runs against" in first.title
        assert ["reliability" in one.title for one in first.consequences] == [True] * folds
        assert len(others) == 1 - folds


def test_remarks_are_those_of_the_limits():
    estimate = make_estimate(se=np.array(at(0, 0.501, 0.5)))
    study = make_answers(
        infit=at(1, 1.151), outfit=(1.0, 1.0, 0.749, 1.36, *(1.0,) * 6),
        outfit_without_one=at(3, 1.25), point_measure=(0.5,) * 4 + (0.099, -0.001, *(0.5,) * 4),
        dependencies=(0,) * 6 + (1, 1, 0, 0),
    )  # fmt: skip
    assert remarks_on_items(estimate, study) == [
        ["few answers"], ["noisy"], ["too predictable"], ["noisy by few persons"],
        ["hardly discriminates"], ["wrong direction?"], ["dependent"], ["dependent"], [], [],
    ]  # fmt: skip
    assert fit_remarks(study, 3) == ["noisy by few persons"]
    assert find_limits(study, "outfit", 3) == (0.75, 1.25)
    assert find_limits(replace(study, limits=None), "outfit", 3) == (0.7, 1.3)


# -- steps -------------------------------------------------------------------------------------


def make_steps(value, model="partial-credit", covariance=None, categories=None, se=None):
    """Ten items with three categories; the first has these two thresholds."""
    thresholds = np.tile([-0.5, 0.5], (10, 1))
    thresholds[0] = value
    ladder = Thresholds(
        thresholds,
        np.full((10, 2), 0.1) if se is None else se,
        ((Status.ESTIMATED,) * 2,) * 10,
        covariance,
        np.full((10, 3), 100) if categories is None else categories,
    )
    return make_estimate(ladder=ladder, steps=(2,) * 10, model=model)


def test_thresholds_are_in_the_wrong_order_where_the_next_one_is_lower():
    assert severity("wrong order", make_steps([0.2, 0.2])) is NONE
    assert severity("1 item with thresholds", make_steps([0.2, 0.19])) is Severity.NOTE
    assert severity("of the rating scale", make_steps([0.2, 0.19], "rating-scale")) is Severity.NOTE


@pytest.mark.parametrize(("fall", "sure"), [(0.39, False), (0.41, True)])
def test_a_wrong_order_is_beyond_chance_from_two_errors_of_the_difference_on(fall, sure):
    """Errors 0.1 and 0.3 with a covariance of 0.03: the difference has 0.2."""
    covariance = np.diag(np.full(20, 0.01))
    covariance[1, 1], covariance[0, 1], covariance[1, 0] = 0.09, 0.03, 0.03
    ((item, category, apart, beyond),) = list_disordered(
        make_steps([fall, 0.0], covariance=covariance)
    )
    assert (item, category, apart, beyond) == (0, 1, pytest.approx(fall), sure)
    words = "That is beyond chance." if sure else "That is not beyond chance."
    assert words in find("wrong order", make_steps([fall, 0.0], covariance=covariance)).found


@pytest.mark.parametrize(("fall", "sure"), [(0.999, False), (1.001, True)])
def test_without_a_covariance_neighbouring_thresholds_count_as_independent(fall, sure):
    se = np.tile([0.3, 0.4], (10, 1))  # of the difference 0.5
    assert list_disordered(make_steps([fall, 0.0], se=se))[0][3] is sure


@pytest.mark.parametrize(("count", "expected"), [(10, NONE), (9, LOOK)])
def test_a_category_is_rare_below_ten_answers(count, expected):
    categories = np.full((10, 3), 100)
    categories[4, 2] = count
    estimate = make_steps([-0.5, 0.5], categories=categories)
    assert severity("fewer than 10 answers", estimate) is expected
    assert ("wrong order" in str(find_problems(estimate, None)[0])) is False


@pytest.mark.parametrize(
    ("means", "answers", "expected"),
    [
        ((-1.0, 0.1, 0.11), (50, 50, 50), NONE),
        ((-1.0, 0.1, 0.1), (50, 50, 50), SERIOUS),  # as able as those one category lower
        ((-1.0, 0.1, 0.09), (50, 10, 10), SERIOUS),
        ((-1.0, 0.1, 0.09), (50, 10, 9), LOOK),
        ((-1.0, 0.1, 0.09), (50, 9, 10), LOOK),
        ((-1.0, None, 0.1), (50, 0, 50), NONE),
        ((0.3, None, 0.1), (50, 0, 50), SERIOUS),
    ],
)
def test_mean_abilities_fall_where_they_do_not_rise(means, answers, expected):
    # The first category of another item is not compared with the last of this one.
    mean = np.array([*means, -3.0], dtype=float)
    count = np.array([*answers, 50])
    table = CategoryFit(
        ("a", "a", "a", "b"), np.array([0, 1, 2, 0]), count, mean, mean, *(mean,) * 5, count
    )
    found = severity("no abler than", make_steps([-0.5, 0.5]), categories=table)
    assert found is expected


@pytest.mark.parametrize(("p", "expected"), [(0.01, NONE), (0.0099, LOOK)])
def test_a_rating_scale_does_not_share_its_distances_below_one_percent(p, expected):
    changes = step_models(40.0, 9, p)
    scale = make_steps([-0.5, 0.5], "rating-scale")
    assert severity("do not share the distances", scale, **changes) is expected
    assert severity("do not share the distances", make_steps([-0.5, 0.5]), **changes) is NONE


# -- raters ------------------------------------------------------------------------------------


def make_study(
    effect=None, measure=0.0, se=0.1, status=LevelStatus.ESTIMATED, subset=1, misfits=(),
    persons=(0.01, 0.0, 0.0, 1.0), far_p=0.05, **fits
):  # fmt: skip
    """Four raters; the numbers are those of the third."""

    def four(value, others):
        return np.array([others, others, value, others])

    numbers = {"measure": 0.0, "se": 0.1, "ratings": 100, "observed": 2.0, "fair": 2.0,
               "infit": 1.0, "outfit": 1.0, "conditional_infit": 1.0, "conditional_outfit": 1.0,
               "surprise": 0.0, "far_p": 0.051, "agreement": 0.5, "expected": 0.5,
               "agreement_z": 0.0}  # fmt: skip
    own = numbers | {"measure": measure, "se": se, "far_p": far_p} | fits
    columns = {name: four(own[name], others) for name, others in numbers.items()}
    levels = ("Ann", "Bo", "Cy", "Di")
    facet = FacetLevels(
        "rater", levels, columns["measure"], columns["se"],
        (LevelStatus.ESTIMATED, LevelStatus.ESTIMATED, status, LevelStatus.ESTIMATED),
        four(subset, 1), np.full(4, 100), np.full(4, 50), np.full(4, 40),
    )  # fmt: skip
    test = None if effect is None else ItemEffectTest(2.0, (3, 100), effect, 0.8)
    estimate = make_estimate(facets={"rater": facet}, item_effect=test)
    ten = {name: np.ones(10) for name in numbers}
    fit = {
        "rater": LevelFit(name="rater", levels=levels, **columns),
        "item": LevelFit(name="item", levels=ITEMS, **ten | {"fair": np.full(10, 2.0)}),
    }
    rated = RatedPersons(*(np.zeros(1) for _ in range(9)))
    chances, nothing = SmallChances(*persons), (None, None)
    return RatingStudy(
        estimate, None, "", fit, rated, 0.0, (-2.8, 2.8), 199, misfits, chances, *nothing
    )


@pytest.mark.parametrize(
    ("words", "changes", "expected"),
    [
        ("differ by item", {"effect": 0.05}, NONE),
        ("differ by item", {"effect": 0.0499}, LOOK),
        ("severe", {"measure": 0.499}, NONE),
        ("Cy is 0.5 logits severe", {"measure": 0.5}, LOOK),
        ("Cy is 0.5 logits lenient", {"measure": -0.5}, LOOK),
        ("severe", {"measure": 0.6, "far_p": 0.0501}, NONE),
        ("severe", {"measure": np.nan, "far_p": np.nan}, NONE),
        ("Cy: ratings are erratic", {"misfits": (Misfit("rater", ("Cy",), 3.0, 1.4),)}, LOOK),
        ("Ann, Bo: ratings are erratic",
         {"misfits": (Misfit("rater", ("Ann", "Bo"), 3.0, 1.4),)}, LOOK),
        ("Cy: ratings are too predictable",
         {"misfits": (Misfit("rater", ("Cy",), -3.0, 0.6),)}, LOOK),
        ("unexpected ratings", {"persons": (0.01, 0.02, 0.01, 0.02)}, NONE),
        ("unexpected ratings", {"persons": (0.01, 0.0201, 0.01, 0.02)}, LOOK),
        ("too much agreement", {"agreement": 0.551, "agreement_z": 4.0}, NONE),
        ("too much agreement", {"agreement": 0.55, "agreement_z": 4.01}, NONE),
        ("Cy: too much agreement", {"agreement": 0.551, "agreement_z": 4.01}, LOOK),
        ("never meet", {"status": LevelStatus.NOT_CONNECTED, "subset": 2}, SERIOUS),
        ("lowest score", {"status": LevelStatus.ALWAYS_LOWEST}, SERIOUS),
        ("highest score", {"status": LevelStatus.ALWAYS_HIGHEST}, SERIOUS),
        ("do not bound", {"status": LevelStatus.UNBOUNDED}, SERIOUS),
    ],
)  # fmt: skip
def test_findings_about_raters_begin_beyond_their_limits(words, changes, expected):
    found = [one for one in find_rater_problems(make_study(**changes)) if words in one.title]
    assert [one.severity for one in found] == ([] if expected is NONE else [expected])


ALONE = "Each by itself, 1 of 4 levels (25%) differs from the mean; of equal ones 5% would."


def test_a_severe_rater_costs_points_and_a_lenient_one_gives_them():
    (severe,) = find_rater_problems(make_study(measure=0.8, fair=1.7))
    told = "Rater Cy is 0.8 logits severe: what they rate lost 0.3 points."
    assert severe.found == f"{told} {ALONE}"
    (lenient,) = find_rater_problems(make_study(measure=-0.8, fair=2.4))
    assert (
        lenient.found
        == f"Rater Cy is 0.8 logits lenient: what they rate gained 0.4 points. {ALONE}"
    )


@pytest.mark.parametrize(("adjusted", "found"), [(0.0501, 0), (0.05, 1)])
def test_combinations_differ_up_to_five_percent_after_correction(adjusted, found):
    p = np.array([adjusted, 0.5, np.nan])
    table = BiasTable(
        ("rater", "item"), ("Ann", "Bo", "Cy"), ("a", "b", "a"), np.full(3, 20),
        np.array([0.4, 2.0, 3.0]), np.full(3, 0.1), p / 2, p,
    )  # fmt: skip
    findings = find_rater_problems(make_study(), [table])
    assert len(findings) == found
    assert all("1 combination of rater and item" in one.title for one in findings)
    assert all("Ann on a: +0.4 logits" in one.found for one in findings)


# -- verdicts ----------------------------------------------------------------------------------


def verdicts(estimate=None, **changes):
    estimate = make_estimate() if estimate is None else estimate
    return {test.name: test for test in list_tests(estimate, make_answers(**changes))}


@pytest.mark.parametrize(
    ("name", "changes", "verdict"),
    [
        ("Andersen", {}, "not tested"),
        ("Andersen", andersen(10.0, 9, 0.01), "holds"),
        ("Andersen", andersen(10.0, 9, 0.0099), "worth a look"),
        ("Martin-Löf", martin_loef(10.0, 9, 0.01), "holds"),
        ("Martin-Löf", martin_loef(10.0, 9, 0.0099), "worth a look"),
        ("dimensionality", dimensions(1.5, 1.0, 1.5), "holds"),
        ("dimensionality", dimensions(4.0, 1.0, 1.5, 0.2), "alarm"),
        ("dependence", {}, "holds"),
        ("dependence", {"dependent": None}, "not tested"),
        ("item fit", {"infit": at(2, 1.15)}, "holds"),
        ("item fit", {"infit": at(2, 1.501)}, "serious"),
        ("person fit", {"misfitting": 20}, "holds"),
        ("person fit", {"misfitting": 21}, "worth a look"),
        ("ability errors", {"halves": (2.0, 0.01, 1.0)}, "holds"),
        ("ability errors", {"halves": (2.0, 0.0099, 1.2)}, "serious"),
        ("groups", differing(), "holds"),
        ("groups", differing(("a", 0.5, "B")), "worth a look"),
        ("Andersen", {**andersen(10.0, 9, 0.5), "measured": 29}, "too few persons"),
        ("Andersen", {**andersen(10.0, 9, 0.5), "measured": 30}, "holds"),
        ("direction", {"point_measure": at(4, -0.101, 0.5)}, "serious"),
    ],
)
def test_verdicts_are_those_of_the_findings(name, changes, verdict):
    assert verdicts(**changes)[name].verdict == verdict


def test_verdicts_tell_the_numbers_that_they_rest_on():
    found = verdicts(
        **andersen(10.5, 9, 0.3), **martin_loef(20.5, 24, 0.6), misfitting=8, replications=0,
        halves=(1.5, 0.13, 1.07), infit=at(2, 1.31), outfit=at(3, 0.71),
        dependent=(("a", "b", 0.31, 400),), **differing(("a", 0.5, "B")),
    )  # fmt: skip
    numbers = {name: (test.statistic, test.degrees, test.p_value) for name, test in found.items()}
    assert numbers["Andersen"] == (10.5, 9, 0.3)
    assert numbers["Martin-Löf"] == (20.5, 24, 0.6)
    assert numbers["person fit"] == (0.02, None, None)
    assert numbers["ability errors"] == (1.5, None, 0.13)
    assert numbers["item fit"] == (1.31, None, None)
    assert numbers["dependence"] == (0.31, None, None)
    assert numbers["groups"] == (1.0, None, None)
    assert "8 of 400 persons (2.0%)" in found["person fit"].found
    assert "infit from 1.00 to 1.31, outfit from 0.71 to 1.00" in found["item fit"].found


@pytest.mark.parametrize(
    ("model", "p", "verdict"),
    [
        ("partial-credit", 0.01, "holds"),
        ("partial-credit", 0.0099, "partial credit needed"),
        ("rating-scale", 0.0099, "worth a look"),
    ],
)
def test_steps_need_partial_credit_below_one_percent(model, p, verdict):
    estimate = make_steps([-0.5, 0.5], model)
    assert verdicts(estimate, **step_models(40.0, 9, p))["steps"].verdict == verdict


def test_the_size_of_andersens_test_is_in_logits():
    """Halves differ by 0.3 and -0.1 logits: the root of the mean square is .2236."""
    test = andersen(30.0, 9, 0.001)["andersen"]
    test = replace(test, items=("a", "b"), difficulty=np.array([[0.1, -0.2], [0.4, -0.3]]))
    found = find("low and with high scores", andersen=test).found
    assert "differ by 0.22 logits" in found
    assert "at most by 0.30 (a)" in found


def test_few_persons_have_no_findings_of_the_answers():
    findings, fine = find_problems(make_estimate(), make_answers(measured=29, reliability=0.1))
    assert [finding.severity for finding in findings] == [Severity.NOTE]
    assert fine == []
