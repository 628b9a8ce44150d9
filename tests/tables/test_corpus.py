"""Tables as people export them, and what becomes of each once its owner has answered.

The files are below tests/data/tables; expected.json beside them says what each should become, and
what only its owner knows. Those in `kept` were written with the others, and not looked at while
the rules were made.
"""

import random

import pytest
from owners import (
    FOLDERS,
    KEPT,
    MOST_PRESSES,
    TABLES,
    answer_all,
    is_as_expected,
    load_expectations,
    read_answered,
)

from discreet import inspect_table, read_responses
from discreet.errors import BadResponses, BadUsage, DiscreetError
from discreet.tables.findings import merge_options
from discreet.tables.inspection.rules import RULES
from refusals import refused

pytestmark = pytest.mark.filterwarnings("ignore")

CORPUS = {
    f"{folder}/{name}".lstrip("/"): entry
    for folder, path in FOLDERS.items()
    for name, entry in load_expectations(path).items()
}
READABLE = {name: entry for name, entry in CORPUS.items() if "cannot" not in entry}
CHECKED = load_expectations(KEPT)


def test_the_corpus_is_large_and_hardly_a_table_cannot_be_read():
    assert len(CORPUS) >= 85
    assert len(CORPUS) - len(READABLE) <= 5


@pytest.mark.parametrize("name", READABLE)
def test_a_table_is_read_right_once_its_owner_has_answered(name):
    entry = READABLE[name]
    asked = {finding.field for finding in inspect_table(TABLES / name).questions}
    assert asked <= set(entry.get("asks", []))
    _, presses, answers = read_answered(TABLES / name, entry)
    assert answers is not None
    assert is_as_expected(answers, entry)
    assert presses <= MOST_PRESSES


@pytest.mark.parametrize("name", sorted(CORPUS.keys() - READABLE.keys()))
def test_what_cannot_be_read_is_asked_about(name):
    seen, _, answers = read_answered(TABLES / name, CORPUS[name])
    assert answers is None
    assert seen.questions
    with refused(BadResponses, "not_clear_refuse_questions"):
        read_responses(TABLES / name, reading=seen.proposal)


def test_tables_that_were_kept_are_right_or_asked_about_and_no_dead_end():
    silent, stuck = [], []
    for name, entry in CHECKED.items():
        try:
            is_sure = inspect_table(KEPT / name).is_sure
            _, _, answers = read_answered(KEPT / name, entry)
        except DiscreetError:
            stuck.append(name)
            continue
        is_right = answers is not None and is_as_expected(answers, entry)
        if not is_right:
            (silent if is_sure else stuck).append(name)
    assert len(CHECKED) == 16
    assert (silent, stuck) == ([], [])


def describe_look(path):
    """Return what is asked about a table, what is proposed and what is said, in any order."""
    try:
        seen = inspect_table(path)
    except DiscreetError as error:
        return str(error)
    options = {
        name: sorted(map(str, value)) if isinstance(value, list) else value
        for name, value in seen.options.items()
    }
    return sorted((one.field, *one.cells) for one in seen.questions), options, {*seen.notes}


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_rule_goes_where_no_table_needs_it(name, monkeypatch):
    needs = RULES[name]
    with_rule = describe_look(TABLES / needs)
    monkeypatch.delitem(RULES, name)
    assert describe_look(TABLES / needs) != with_rule


def test_one_table_justifies_three_rules_at_most():
    needed = [*RULES.values()]
    assert max(map(needed.count, needed)) <= 3
    assert {*needed} <= CORPUS.keys()


# -- every refusal leads on ------------------------------------------------------------------------


def press(seen, refusal, entry, rng):
    """Return the options after one press of anything that is offered; None where nothing is."""
    truth = {**entry.get("supply", {}), **entry.get("truth", {})}
    offers = []
    for question in seen.questions:
        for number, answer in enumerate(question.answers):
            if answer.asks in truth:
                offers.append(seen.answer(question, number, truth[answer.asks]))
            elif answer.options and not answer.asks:
                offers.append(seen.answer(question, number))
    offers += [
        merge_options(seen.options, remedy.options)
        for remedy in (refusal.remedies if refusal and not seen.questions else ())
        if remedy.options and not remedy.asks
    ]
    return rng.choice(offers) if offers else None


def walk(path, entry, seed):
    """Press what is offered until the table can be read; return how many presses that took."""
    rng, options = random.Random(seed), {}
    for presses in range(MOST_PRESSES + 1):
        seen, refusal = inspect_table(path, **options), None
        if not seen.questions:
            try:
                read_responses(path, reading=seen.proposal)
            except (BadResponses, BadUsage) as error:
                refusal = error
            else:
                return presses
        options = press(seen, refusal, entry, rng)
        if options is None:
            return None
    return None


@pytest.mark.parametrize("name", READABLE)
def test_whoever_presses_what_is_offered_gets_on(name):
    walks = [walk(TABLES / name, READABLE[name], seed) for seed in range(3)]
    assert None not in walks


def test_after_a_wrong_answer_the_question_comes_back():
    path = TABLES / "exports" / "arm comparison.csv"
    (question,) = inspect_table(path).questions
    assert inspect_table(path, ignore=["q1"]).questions[0].cells == question.cells
    with refused(
        BadResponses,
        "not_clear_refuse_questions",
        listed="(1) What is intensive (0 to 1)? The items are 'q1' to 'q9' (0 to 1).",
    ):
        read_responses(path, reading=inspect_table(path).proposal)
    seen, presses = answer_all(path, CORPUS["exports/arm comparison.csv"])
    assert (presses, seen.questions) == (1, ())
