"""What the answers are: right and wrong, steps, chosen options or texts, and codes for no answer.

In: the columns of answers, or a tally by item of a long table. Out: decisions and questions about
missing codes, the key, categories, the lowest value and items that run the other way round. Of
whole tables: how often every value of every item occurs; no person is looked at.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.coding.reading import Reading
from discreet.coding.remedies import TableFinding, make_remedy
from discreet.coding.steps import BadScale, CategoryScale, Tally, find_scale, make_asked
from discreet.coding.values import ANSWERS, MISSING_WORDS, spell
from discreet.errors import Remedy
from discreet.tables.cells import code_column, read_integers
from discreet.tables.columns import LongPlan
from discreet.tables.findings import Findings
from discreet.tables.ids import encode_ids
from discreet.tables.inspection.rules import rule
from discreet.tables.opener import Source, plan_source
from discreet.tables.vocabulary import (
    DONT_KNOW,
    LARGEST,
    LETTERS,
    NO_ANSWER,
    SCALES,
    Column,
    bound_number,
    drop_codes_above,
    find_unit,
    is_no_answer,
    order_codes,
    order_texts,
)  # fmt: skip
from discreet.text import count_of
from discreet.types import Int64Array

#: Correlation with the other items below which an item may be worded the other way round.
RUNS_AGAINST = -0.2
#: Points that a name tells: "Task 3 (4 pt)", "Q2 / 5".
_POINTS_OF = re.compile(
    r"(?:/ ?|\()(\d{1,2})(?:[.,]0+)?(?: ?(?:points?|punkte|pts?|pkt|p)\.?\)| ?)$", re.I
)
#: Share of all answers above which a value is never proposed as a missing answer.
OFTEN = 0.05


def judge_answers(
    items: Sequence[Column], findings: Findings, labels: Mapping[str, Mapping[str, str]]
) -> None:
    """Propose what values mean.

    Parameters
    ----------
    items
        The columns of answers, without rows that are no persons.
    findings
        Takes decisions and questions.
    labels
        By column, the labels that the file gives to values.
    """
    if not items:
        return
    tally = {column.label: column.spelt for column in items}
    _find_missing_words(tally, findings)
    stated = findings.stated
    gone = {str(code).lower() for code in findings.options.get("missing", ())}
    gone |= {str(code).lower() for code in _flat(stated.get("missing", ()))} | MISSING_WORDS
    clean = {
        item: {word: n for word, n in words.items() if word.lower() not in gone}
        for item, words in tally.items()
    }
    is_settled = any(name in stated for name in ("key", "key_row", "at_least", "one_means"))
    if is_settled or stated.get("invalid") == "missing":
        _tell_marks(items, findings)
        return
    if "blank" not in stated and _ask_blank(items, clean, findings):
        return
    if findings.options.keys() & {"key", "key_row"}:
        _tell_marks(items, findings)
        return
    if any(map(_is_beyond, clean.values())):
        return
    kind = Counter(column.kind for column in items).most_common(1)[0][0]
    if (ends := _order_ends(clean)) and "categories" not in stated:
        reason = f"Answers are numbers and texts of their ends: {' < '.join(ends)}."
        findings.note("categories", [ends], reason, ["the items"])
    elif kind == "letters":
        ask_key(findings, items)
    elif kind == "texts" and not _are_truths(clean):
        _order_categories(clean, findings, labels)
    elif kind in ("steps", "points"):
        _ask_strays(clean, findings, lambda word: word.lower() in ANSWERS or _is_number(word))
        _judge_numbers(clean, findings, labels)
    if kind in ("texts", "steps", "points") and len({len(column.cells) for column in items}) == 1:
        _find_reversed(items, findings)


_NOBODY_WRONG = Remedy("a missing answer: then nobody is wrong, and nothing can be told")


@rule("exports/Schwimmpass 2b.csv", otherwise=False)
def _ask_blank(items: Sequence[Column], tally: Tally, findings: Findings) -> bool:
    """Ask what blank cells or dashes are where all others are one sign; say whether they are."""
    counts = sum(map(Counter, tally.values()), Counter[str]())
    signs = [word for word in counts if not is_no_answer(word)]
    beside = {word: times for word, times in counts.items() if is_no_answer(word)}
    n_blank = sum(cell is None for column in items for cell in column.cells)
    if len(signs) != 1 or not (n_blank or beside) or len(items) < 2:
        return False
    (sign,) = signs
    key = ("" if len(sign) == 1 else ",").join([sign] * len(items))
    if beside:
        question = f"All answers are '{sign}', and others {_list_counts(beside)}. Are these wrong?"
        answer = make_remedy(f"'{sign}' is right, these are wrong:", {"key": key})
        findings.ask("key", question, [answer, _NOBODY_WRONG], marked=None)
        return True
    findings.ask(
        "blank",
        f"All answers are '{sign}', and {count_of(n_blank, 'cell')} are blank. Is a blank wrong?",
        [
            make_remedy(f"'{sign}' is right, a blank wrong:", {"blank": "wrong", "key": key}),
            _NOBODY_WRONG,
        ],
        marked=None,
    )
    return True


@rule("exports/mood diary.csv")
def _order_ends(tally: Tally) -> Sequence[str] | None:
    """Return the order where only the ends have words: "1 - never", 2, 3, "4 - always"."""
    answers = {word.lower() for words in tally.values() for word in words}
    is_mixed = 0 < sum(map(_is_number, answers)) < len(answers)
    return order_texts(answers) if is_mixed else None


def _is_beyond(words: Mapping[str, int]) -> bool:
    """Say whether an item has a number that the reader refuses: there is nothing to ask."""
    numbers = map(bound_number, words)
    return any(abs(number) == LARGEST for number in numbers if number is not None)


def _are_truths(tally: Tally) -> bool:
    """Say whether all answers are words for true and false, which the reader knows."""
    known = {"0", "1", *ANSWERS}
    return all(word.lower() in known for words in tally.values() for word in words)


def _flat(codes: Any) -> list[Any]:
    if isinstance(codes, Mapping):
        return [code for value in codes.values() for code in _flat(value)]
    return [codes] if isinstance(codes, str | int | float) else list(codes)


@rule("moodle grades.csv")
def _find_missing_words(tally: Tally, findings: Findings) -> None:
    """Propose words for "no answer" as missing codes; the reader knows some by itself."""
    times, answers = Counter[str](), set[str]()
    for words in tally.values():
        for word, count in words.items():
            if not is_no_answer(word):
                answers.add(word.lower())
            elif word.lower() not in MISSING_WORDS:
                times[word.lower()] += count
    n_cells = sum(sum(words.values()) for words in tally.values())
    is_other_half = len(answers) == 1 and times.total() > OFTEN * n_cells  # + and -
    if not times or is_other_half or "missing" in findings.stated:
        return
    unsure = DONT_KNOW.intersection(times)
    order = order_texts(answers) if unsure and len(answers) == 2 else None
    if order is None or not any(answers <= ranks.keys() for ranks in SCALES[:2]):
        findings.note("missing", [*times], f"{_list_counts(times)}: no answer.", ["the items"])
        return
    step = [order[0], *unsure, order[1]]
    findings.ask(
        "missing",
        f"Answers are {order[0]} and {order[1]}, and {_list_counts(times)}. Is that no answer?",
        [
            make_remedy("it is none:", {"missing": [*times]}),
            Remedy(
                f"it is a step of its own: state categories={step} and no missing=",
                change="it is a step of its own",
            ),
        ],
    )


def _list_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"'{word}' ({count_of(times, 'cell')})" for word, times in counts.items())


@rule("quiz export.csv")
def ask_key(findings: Findings, items: Sequence[Column]) -> None:
    """Ask for the right answers of a multiple-choice test, before everything else."""
    letters = sorted({word.upper() for c in items for word in c.words if len(word) == 1})
    question = (
        f"This looks like a multiple-choice test of {len(items):,} items with the options "
        f"{', '.join(letters)}. Which answers are right?"
    )
    findings.ask("key", question, [give_key()], [items[0].label, items[-1].label])
    findings.questions.insert(0, findings.questions.pop())


@rule("fresh/midterm item responses.csv", otherwise=False)
def ask_marks(items: Sequence[tuple[Column, str | None]], findings: Findings) -> bool:
    """Ask about a sign that stands where the answer of the key would; say whether one does."""
    lacking = [c.spelt for c, right in items if right and right not in c.spelt]
    if 2 * len(lacking) <= len(items) or "missing" in findings.stated:
        return False
    marks = {word for word in set(lacking[0]).intersection(*lacking) if not word.isalnum()}
    if not marks:
        return False
    times = {mark: sum(spelt[mark] for spelt in lacking) for mark in sorted(marks)}
    question = (
        f"Nobody gave the answer of the key to {len(lacking):,} of {len(items):,} items, and "
        f"{_list_counts(times)} occur. Do these stand for the right answer?"
    )
    answers = [
        Remedy("they do: write the letters of the key in these cells"),
        make_remedy("they are no answers:", {"missing": [*times]}),
    ]
    findings.ask("key", question, answers, [items[0][0].label, items[-1][0].label], None)
    return True


@rule("fresh/Antwortbögen Chemie.csv")
def _tell_marks(items: Sequence[Column], findings: Findings) -> None:
    """Say that signs such as * beside letters count as wrong, as two marks for one item do."""
    counts = sum((column.spelt for column in items if column.kind == "letters"), Counter[str]())
    marks = {w: n for w, n in counts.items() if not (is_no_answer(w) or w.lower() in MISSING_WORDS)}
    marks = {word: times for word, times in marks.items() if not LETTERS.fullmatch(word)}
    if marks and "missing" not in findings.stated:
        reason = f"{_list_counts(marks)} is none of the options and counts as wrong."
        undo = make_remedy("it is no answer:", {"missing": [*marks]})
        note = TableFinding("missing", reason, (undo,), ("the items",), is_open=False)
        findings.questions.append(note)


def give_key() -> Remedy:
    """Return what to do where answers are the options that persons chose."""
    return Remedy(
        "if these are the options that persons chose, say which are right with key= (--key BADC, "
        "one letter per item in the order of the columns, or --key key.csv, a table with the "
        "columns item and answer)",
        asks="key",
        change="these are the options that persons chose, say which are right",
    )


# -- texts -----------------------------------------------------------------------------------


def _order_categories(
    tally: Tally, findings: Findings, labels: Mapping[str, Mapping[str, str]]
) -> None:
    """Propose the order of texts: each list of those that items share."""
    if orders := findings.stated.get("categories"):
        known = {str(text).lower() for texts in orders for text in texts}
        known |= {*_find_misspelt(tally, findings)}
        _ask_strays(tally, findings, lambda word: word.lower() in known)
        return
    _ask_strays(tally, findings, lambda word: not _is_number(word))
    misspelt, lists = _find_misspelt(tally, findings), list[set[str]]()
    for item, words in tally.items():
        texts = {word.lower() for word in words if bound_number(word) is None} - {*misspelt}
        texts |= {code.lower() for code in labels.get(item, {}) if bound_number(code) is None}
        joined = [known for known in lists if known & texts and _order(known | texts, labels)]
        if joined:
            joined[0].update(texts)
        elif texts and not any(texts <= known for known in lists):
            lists.append(texts)
    ordered = [_order(texts, labels) for texts in lists]
    shown = "; ".join(" < ".join(texts) for texts in ordered if texts)
    if len(set().union(*lists)) < 2:
        return  # one text has no order: the reader refuses it, with its place
    if not all(ordered):
        _ask_order(lists[ordered.index(None)], findings)
    elif any(order_codes(texts) for texts in lists):
        turned = [texts[::-1] for texts in ordered if texts]
        findings.ask(
            "categories",
            f"Answers are codes: {shown}. Is this their order, from the lowest to the highest?",
            [
                make_remedy("it is:", {"categories": ordered}),
                make_remedy("it is the other way round:", {"categories": turned}),
            ],
        )
    elif unsure := [
        text for t in lists if t <= SCALES[1].keys() for text in t if SCALES[1][text] == 1
    ]:
        plain = [[text for text in texts if text not in unsure] for texts in ordered if texts]
        findings.ask(
            "categories",
            f"Answers are texts: {shown}. Is '{unsure[0]}' a step of its own, or no answer?",
            [
                make_remedy("it is a step:", {"categories": ordered}),
                make_remedy("it is no answer:", {"categories": plain, "missing": unsure}),
            ],
        )
    else:
        reason = f"Answers are texts, from the lowest to the highest: {shown}."
        findings.note("categories", ordered, reason, ["the items"])


def _order(texts: Collection[str], labels: Mapping[str, Mapping[str, str]]) -> Sequence[str] | None:
    """Return texts in the order of a known vocabulary, of their labels, or of their numbers."""
    order = order_texts(texts)
    if order is not None:
        return order
    for words in labels.values():
        by_label = {word.lower(): code.lower() for code, word in words.items()}
        if {*texts} <= {*by_label.values()}:
            known_order = order_texts(by_label) or list(by_label)
            return [by_label[word] for word in known_order if by_label[word] in texts]
    return order_codes({text.upper() for text in texts}) and sorted(
        texts, key=lambda text: (len(text), text)
    )


def _ask_order(texts: Collection[str], findings: Findings) -> None:
    listed = ", ".join(f"'{text}'" for text in sorted(texts)[:10])
    change = "give the order of the texts"
    words = f"{change} with categories= (--categories 'never,often,always')"
    answers = [Remedy(words, asks="categories", change=change), give_key()]
    question = f"Answers are texts: {listed}. What is their order, from the lowest to the highest?"
    if {*texts} in ({"f", "t"}, {"f", "v"}, {"f", "w"}):  # true and false are options
        question = f"Answers are {listed}. Which of them is right, for every item?"
        return findings.ask("key", question, answers[::-1], marked=None)
    return findings.ask("categories", question, answers, marked=None)


def _is_number(word: str) -> bool:
    return bound_number(word) is not None


@rule("more/staff survey.csv")
def _ask_strays(tally: Tally, findings: Findings, is_like: Callable[[str], bool]) -> None:
    """Ask about a few numbers among answers that are texts, or texts among numbers."""
    counts = sum((Counter(words) for words in tally.values()), Counter[str]())
    strays = [word for word in counts if not is_like(word)]
    is_rare = 5 * sum(counts[word] for word in strays) < counts.total()
    if strays and is_rare and not {"0", "1"} & {*strays}:
        is_likely = max(counts[word] for word in strays) <= OFTEN * counts.total()
        listed = _list_counts({word: counts[word] for word in strays[:6]})
        known = ", ".join(list(dict.fromkeys(word for word in counts if is_like(word)))[:5])
        reason = f"Answers are {known}, and {listed} is none of them."
        _ask_missing(reason, strays, findings, is_likely=is_likely)


def _ask_missing(
    reason: str, codes: Sequence[str], findings: Findings, *, is_likely: bool = True
) -> None:
    answers = [
        make_remedy("it stands for a missing answer:", {"missing": [*codes]}),
        Remedy("it is a mistake: correct the cells"),
    ]
    question = f"{reason} Does it stand for a missing answer?"
    if "missing" not in findings.stated:
        findings.ask("missing", question, answers, marked=0 if is_likely else None)


@rule("more/Fragebogen_final.csv", otherwise=frozenset())
def _find_misspelt(tally: Tally, findings: Findings) -> Collection[str]:
    """Return texts that are nearly others and much rarer; ask about them."""
    counts: Counter[str] = Counter()
    for words in tally.values():
        for word, times in words.items():
            counts[word.lower()] += times
    rare = {text for text, times in counts.items() if 50 * times < counts.total()}
    alike = {text for text in rare if get_close_matches(text, counts.keys() - rare, 1, 0.85)}
    alike -= {text for ranks in SCALES for text in ranks}
    if alike:
        listed = _list_counts({text: counts[text] for text in sorted(alike)})
        _ask_missing(f"{listed} looks misspelt.", sorted(alike), findings, is_likely=False)
    return alike


# -- numbers ---------------------------------------------------------------------------------


def _numbers(words: Mapping[str, int]) -> dict[int, int]:
    pairs = [
        (bound_number({"true": "1", "false": "0"}.get(w.lower(), w)), n) for w, n in words.items()
    ]
    return {int(value): n for value, n in pairs if value is not None and value == int(value)}


def _judge_numbers(
    tally: Tally, findings: Findings, labels: Mapping[str, Mapping[str, str]]
) -> None:
    """Ask about numbers that are no categories, and propose the lowest one."""
    by_item = {item: _numbers(words) for item, words in tally.items()}
    gone = _find_labelled(by_item, labels)
    if gone and "missing" not in findings.stated:
        code = str(min(gone))
        meaning = next(words[code] for words in labels.values() if code in words)
        reason = f"{', '.join(map(str, sorted(gone)))} is labelled '{meaning}': no answer."
        findings.note("missing", sorted(gone), reason, ["the items"])
    numbers = drop_codes_above(sorted({n for values in by_item.values() for n in values} - gone))
    halves = any(n % 1 for words in tally.values() for w in words if (n := bound_number(w)))
    if halves or find_unit([*map(Decimal, numbers)]) != 1:
        _list_points(tally, findings)
        return
    fields = ("model", "steps", "lowest", "merge", "carried")
    words = {name: findings.stated.get(name) for name in fields}
    asked = make_asked(**{name: value for name, value in words.items() if value is not None})
    for _ in range(2):  # without codes for missing answers there may be another doubt
        clean = {
            item: {str(value): n for value, n in values.items() if value not in gone}
            for item, values in by_item.items()
        }
        try:
            scale = find_scale(clean, asked, fewest=2)
            _find_lowest(clean, scale, findings)
            if scale is not None:
                _tell_unreached(scale, findings)
        except BadScale as doubt:
            findings.ask(doubt.field, doubt.reason, doubt.remedies, [*doubt.cells][:5])
            gone |= {value for values in doubt.cells.values() for value in values}
            if doubt.field == "missing":
                continue
        return


@rule("befragung.sav", otherwise=frozenset())
def _find_labelled(
    by_item: Mapping[str, Mapping[int, int]], labels: Mapping[str, Mapping[str, str]]
) -> set[int]:
    """Return the values that labels of the file call no answer."""
    return {
        value
        for item, values in by_item.items()
        for value in values
        if labels.get(item, {}).get(str(value), "").strip().lower() in NO_ANSWER
    }


def _find_lowest(tally: Tally, scale: CategoryScale | None, findings: Findings) -> None:
    """Propose the lowest category."""
    values = sorted({int(value) for counts in tally.values() for value in counts})
    if scale is not None and scale.lowest and not scale.is_binary:
        reason = f"Answers go from {values[0]} to {values[-1]}; {values[0]} is the lowest category."
        findings.decide("lowest", scale.lowest, reason)
    elif values == [1, 2]:
        findings.ask(
            "lowest",
            "Answers are 1 and 2. Is 2 the right answer, or the higher one?",
            [
                make_remedy("2 is right or higher:", {"lowest": 1}),
                make_remedy("1 is right, 2 is wrong:", {"lowest": 1, "reverse": [*tally]}),
            ],
        )


@rule("fresh/Physik 8a Punkte.csv")
def _tell_unreached(scale: CategoryScale, findings: Findings) -> None:
    """Count points that a name tells and nobody reached, and say so: "Task 3 (4 pt)"."""
    named = {item: int(match[1]) for item in scale.steps if (match := _POINTS_OF.search(item))}
    is_known = findings.stated.keys() & {"steps", "lowest", "model"} or scale.lowest
    if is_known or any(scale.steps[item] > top for item, top in named.items()):
        return
    lacking = {item: top for item, top in named.items() if scale.steps[item] < top}
    if lacking:
        listed = ", ".join(f"{top} in '{item}'" for item, top in lacking.items())
        reason = f"Nobody has {listed}; it counts as a category all the same."
        findings.note("steps", lacking, reason, [*lacking][:5])


@rule("exports/half points.csv")
def _list_points(tally: Tally, findings: Findings) -> None:
    """Propose points as categories: half points, or steps of five."""
    lists = set()
    counts = sum((Counter(words) for words in tally.values()), Counter[str]())
    points = drop_codes_above(sorted(int(n) for w in counts if (n := bound_number(w)) is not None))
    codes = [w for w in counts if (n := bound_number(w)) is not None and int(n) not in points]
    every = [n for w in counts if w not in codes and (n := bound_number(w)) is not None]
    unit = find_unit(every)
    if codes:
        listed = _list_counts({code: counts[code] for code in codes})
        _ask_missing(f"Answers are points, and {listed} is far outside.", codes, findings)
    for words in tally.values():
        numbers = [n for w in words if w not in codes and (n := bound_number(w)) is not None]
        step = 1 if unit < 1 and not any(number % 1 for number in numbers) else unit
        highest = int(max(numbers, default=0) / step)
        lists.add(tuple(f"{step * number:g}" for number in range(max(highest, 1) + 1)))
    if "categories" not in findings.stated:
        reason = "Answers are points; every half point is a step where half points occur."
        if unit * 2 != 1:
            reason = f"Answers are points, in steps of {unit}."
        findings.note("categories", sorted(map(list, lists), key=len), reason, ["the items"])


# -- items that run the other way round ------------------------------------------------------


@rule("Umfrage.csv")
def _find_reversed(items: Sequence[Column], findings: Findings) -> None:
    if "reverse" in findings.stated or len(items) < 4:
        return
    scores = _score(items, findings)
    if scores is None:
        return
    asked = {cell for one in findings.questions if one.field == "ignore" for cell in one.cells}
    turned = [items[number].label for number in find_reversed(scores)]
    turned = [label for label in turned if label not in asked]  # copies are asked about first
    if turned:
        listed = ", ".join(f"'{name}'" for name in turned)
        findings.ask(
            "reverse",
            f"{listed} correlate negatively with the other items. Are they worded the other way "
            "round?",
            [
                make_remedy("they are: reverse them:", {"reverse": turned}),
                Remedy(
                    "they are not: reverse=[] (--reverse none)",
                    {"reverse": []},
                    change="they are not",
                ),
            ],
            turned,
        )


def _score(items: Sequence[Column], findings: Findings) -> np.ndarray[Any, Any] | None:
    """Return ``[person, item]``, NaN where an answer is missing; None of right and wrong."""
    ranks: dict[str, float] = {}
    for texts in {**findings.stated, **findings.options}.get("categories", ()):
        ranks |= {text.lower(): float(rank) for rank, text in enumerate(texts)}
    gone = {str(code).lower() for code in findings.options.get("missing", ())}
    gone |= {str(code).lower() for code in _flat(findings.stated.get("missing", ()))}

    def score(cell: str | None) -> float:
        word = "" if cell is None else spell(cell).lower()
        number = bound_number(word)
        value = ranks.get(word, np.nan if number is None else float(number))
        return np.nan if word in gone else value

    known = {cell: score(cell) for cell in {cell for column in items for cell in column.cells}}
    scores = np.array([[known[cell] for cell in column.cells] for column in items]).T
    values = scores[np.isfinite(scores)]
    return scores if len(np.unique(values)) > 2 else None


def find_reversed(scores: np.ndarray[Any, Any]) -> list[int]:
    """Return the items that correlate negatively with the others, the smaller part of two.

    Parameters
    ----------
    scores
        ``[person, item]``, NaN where an answer is missing.
    """
    n_persons, n_items = scores.shape
    if n_persons < 20:
        return []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        centred = np.nan_to_num(scores - np.nanmean(scores, axis=0))
    spread = centred.std(axis=0)
    if (spread == 0).any():  # an item with one answer runs neither way
        varied = np.flatnonzero(spread)
        return varied[find_reversed(scores[:, varied])].tolist() if len(varied) > 1 else []
    correlation = np.corrcoef(centred.T)
    direction = np.linalg.eigh(correlation)[1][:, -1]
    sign = np.where(direction >= 0, 1.0, -1.0)
    sign *= 1.0 if (sign > 0).sum() * 2 >= n_items else -1.0
    # With the larger part alone: items of another scale go together without running against it.
    larger = (centred / spread)[:, sign > 0].sum(axis=1)
    against = []
    for item in np.flatnonzero(sign < 0).tolist():
        r = float(np.corrcoef(centred[:, item], larger)[0, 1])
        if r < RUNS_AGAINST and r * np.sqrt(n_persons) < -3:
            against.append(item)
    return against


# -- all answers -----------------------------------------------------------------------------

#: Items and answers that are numbers below these are counted in a table, without making words.
SMALL_ITEMS, SMALL_VALUES = 1 << 14, 16
#: Pairs of items and values that are counted in a table, however few rows there are.
TABLE = 1 << 16
#: Different values of an item from which on it is no scale, and nobody counts them.
MOST_VALUES = 50


class Tallied:
    """Values of items as they come in."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._small = np.zeros(0, dtype=np.int64)
        self.by_item: dict[str, dict[str, int]] = {}

    def take(self, sources: Iterator[Source]) -> dict[str, dict[str, int]]:
        """Go through all tables."""
        for source in sources:
            plan = plan_source(source, self._reading)
            if isinstance(plan, LongPlan):
                for items, answers in source.batches((plan.item, plan.response)):
                    self.add_long(items, answers)
            else:
                for batch in source.batches(plan.items):
                    for number, column in zip(plan.items, batch, strict=True):
                        self.add(source.names[number], column)
        for code in np.flatnonzero(self._small).tolist():
            item, value = divmod(code, SMALL_VALUES)
            self._count(str(item), value, int(self._small[code]))
        return self.by_item

    def add_long(self, items: object, answers: object) -> None:
        """Add the answers of a long table."""
        if self._add_numbers(items, answers):
            return
        names, (known_words, answer) = encode_ids(items), code_column(answers)
        item = read_integers(names.indices.fill_null(len(names.dictionary)))
        width = len(known_words) + 1
        listed = names.dictionary.to_pylist()
        pairs, times = _count_codes(item.astype(np.int64) * width + answer, width * len(listed))
        for pair, count in zip(pairs.tolist(), times.tolist(), strict=True):
            if pair // width < len(listed) and pair % width < len(known_words):
                self._count(listed[pair // width], known_words[pair % width], count)

    def _add_numbers(self, items: object, answers: object) -> bool:
        """Add answers that are small numbers to items that are numbers; say whether they are."""
        if not (_is_whole(items) and _is_whole(answers)):
            return False
        item, value = read_integers(items), read_integers(answers)
        if item.min(initial=0) < 0 or item.max(initial=0) >= SMALL_ITEMS:
            return False
        if value.min(initial=0) < 0 or value.max(initial=0) >= SMALL_VALUES:
            return False
        code = item.astype(np.int64) * SMALL_VALUES
        code += value.astype(np.int64, copy=False)
        times = np.bincount(code, minlength=len(self._small))
        times[: len(self._small)] += self._small
        self._small = times
        return True

    def add_counted(self, items: Any, answers: Any, times: Any) -> None:
        """Add values that were counted elsewhere; ``items`` is a dictionary of names."""
        names = items.dictionary.take(items.indices).to_pylist()
        counted = zip(names, answers.to_pylist(), times.to_pylist(), strict=True)
        for item, value, count in counted:
            self._count(str(item), value, count)

    def add(self, item: str, column: Any) -> None:
        """Add the answers to one item."""
        known_words, answer = code_column(column)
        times = np.bincount(answer, minlength=len(known_words) + 1)
        for word, count in zip(known_words, times.tolist(), strict=False):
            self._count(item, word, count)

    def _count(self, item: str, value: object, times: int) -> None:
        scoring = self._reading.scoring_of(item)
        word_counts = self.by_item.setdefault(item, {})
        word = spell(value).lower()
        no_answer = value is None or word in MISSING_WORDS or word in scoring.missing
        if no_answer or not times or scoring.right is not None or len(word_counts) > MOST_VALUES:
            return
        word_counts[word] = word_counts.get(word, 0) + times


def _is_whole(column: Any) -> bool:
    return bool(pa.types.is_integer(column.type)) and not column.null_count


def _count_codes(codes: Int64Array, size: int) -> tuple[Int64Array, Int64Array]:
    """Return the different codes, ascending, and how often each occurs."""
    if size > max(len(codes), TABLE):
        return np.unique(codes, return_counts=True)
    times = np.bincount(codes, minlength=size)
    distinct = np.flatnonzero(times)
    return distinct, times[distinct]
