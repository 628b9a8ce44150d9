"""Sentences of the library in German and Spanish: each is still said, and pages are translated."""

import ast
import re
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from tools.catalogues import placeholders
from tools.translated import list_pages, measure

import discreet
from discreet.studio.frame import speak_number, speak_page, spell
from discreet.studio.language import speak_language
from discreet.studio.messages import MESSAGES, say_message
from discreet.words import load_words

PACKAGE = Path(discreet.__file__).parent


def list_runs(text):
    """Return pairs of words that follow each other; values part them."""
    for part in re.split(r"\{\w*\}", text.lower()):
        words = re.findall(r"[^\W\d_]+", part)
        yield from pairwise(words)


@cache
def said_by_the_library():
    """Return all pairs of words in the strings and templates of the library."""
    files = [*PACKAGE.glob("templates/*.html"), *PACKAGE.glob("report/*.toml")]
    files += PACKAGE.glob("items/*.toml")
    texts = [path.read_text("utf-8") for path in files]
    for path in PACKAGE.rglob("*.py"):
        if path.name == "messages.py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [p.value if isinstance(p, ast.Constant) else "{}" for p in node.values]
                texts.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return {run for text in texts for run in list_runs(text)}


def test_translated_sentences_are_those_that_the_library_says():
    """Parts of a sentence may be chosen by what was found, so that half of it must be there."""
    gone = []
    for message in MESSAGES:
        runs = [*list_runs(message)]
        there = sum(run in said_by_the_library() for run in runs)
        if there < len(runs) / 2:
            gone.append(message)
    assert not gone


@pytest.mark.parametrize("code", ["de", "es"])
def test_every_sentence_is_translated_with_its_values(code):
    words = load_words(code)
    assert len({*MESSAGES}) == len(MESSAGES)
    for message in MESSAGES:
        assert placeholders(words.term(message)) == placeholders(message)


def test_values_stay_and_get_a_decimal_comma():
    said = say_message("de", "Person reliability is 0.59 with 12 answers per person (median).")
    assert said == "Die Reliabilität der Personen ist 0,59 bei 12 Antworten je Person (Median)."
    kept = say_message("es", "Person reliability is 0.59 with 12 answers per person (median).")
    assert "0,59 con 12" in kept
    assert say_message("de", "Nobody translated this 1.5.") == "Nobody translated this 1.5."
    assert say_message("en", "Then the wording.") == "Then the wording."
    two = say_message("de", "Then the wording. Nobody translated this.")
    assert two == "Dann den Wortlaut. Nobody translated this."


def test_every_entry_of_a_list_is_said():
    listed = [
        f"category {n} of Q{n} ({'1 answer' if n == 1 else f'{n} answers'})" for n in (1, 2, 3)
    ]
    said = say_message("de", f"Few are in {', '.join(listed)} and 9 more.")
    entries = [
        "Kategorie 1 von Q1 (1 Antwort)",
        *(f"Kategorie {n} von Q{n} ({n} Antworten)" for n in (2, 3)),
    ]
    assert said == f"Wenige sind in {', '.join(entries)} und 9 weitere."
    asked = say_message("es", "What is x ('1')? The items are 'a b' to 'c' ('0', '1').")
    assert asked == "¿Qué es x ('1')? Los ítems son 'a b' a 'c' ('0', '1')."


def test_names_of_the_file_and_code_stay_as_they_are():
    page = '<pre>Then the wording.x = 0.5</pre><td data-value="1234.5">1,234.50</td><b>1.5</b>'
    try:
        speak_language("de")
        assert "<pre>Then the wording.x = 0.5</pre>" in speak_page(page)
        assert "1\N{NARROW NO-BREAK SPACE}234,50</td><b>1.5</b>" in speak_page(page)
        assert speak_page("<b>What to do:</b> Then the wording.<i>") == (
            "<b>Was zu tun ist:</b> Dann den Wortlaut.<i>"
        )
        escaped = speak_page("<p>category 1 of A &lt; B (1 answer)</p>")
        assert escaped == "<p>Kategorie 1 von A &lt; B (1 Antwort)</p>"
    finally:
        speak_language("en")
    assert speak_page(page) == page
    assert speak_number("−0.25") == "−0,25"


@pytest.mark.parametrize("code", ["de", "es"])
def test_at_most_a_tenth_of_the_words_of_data_and_report_are_untranslated(code):
    opened, unfolded = Counter(), Counter()
    for name, html, own in list_pages(code):
        first, every, _ = measure(html, own)
        opened, unfolded = opened + first, unfolded + every
        assert first["not"] <= 0.1 * first.total(), name
    assert opened["not"] <= 0.02 * opened.total()
    assert unfolded["not"] <= 0.1 * unfolded.total()


def test_what_readers_see_and_what_is_signed_is_quoted_word_for_word():
    quote = '<dl lang="en" translate="no"><dd>Then the wording.</dd><dd>0.5</dd></dl>'
    page = f"<p>Then the wording.</p>{quote}<p>Then the wording.</p>"
    try:
        speak_language("de")
        assert speak_page(page) == f"<p>Dann den Wortlaut.</p>{quote}<p>Dann den Wortlaut.</p>"
        assert (spell("%.2f", 0.053), spell("%g", 2.0)) == ("0,05", "2")
    finally:
        speak_language("en")
    assert (spell("%.2f", 0.053), speak_page(page)) == ("0.05", page)
