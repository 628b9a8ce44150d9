"""The catalogues of sentences, for tests of pages: which words come from them, and which do not."""

import html
import json
import re

from tools.catalogues import SOURCE, read_entries

from discreet.words import KINDS

SENTENCES = {one.key: one for one in read_entries(SOURCE.read_text("utf-8"), SOURCE.name)}


class Bracketed(dict):
    """A language that says everything in English, between brackets: what is outside is no word.

    It knows no sentence that is not listed.
    """

    def get(self, key, default):
        context, sentence, form = key
        entry = SENTENCES[context, sentence]
        assert default == (entry.plural if form else sentence)
        return f"⟦{default}⟧"


def outside(text):
    """Return the words of a text that no brackets hold."""
    scripts = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.S)
    spoken = [sentence for one in scripts for sentence in json.loads(one)["words"].values()]
    bare = re.sub(r"<(style|script)\b.*?</(style|script)>", "", text, flags=re.S)
    text = "\n".join([html.unescape(bare), *spoken])
    while "⟦" in text:
        text, former = re.sub(r"⟦[^⟦⟧]*⟧", "", text), text
        assert text != former, "a bracket without its other half"
    shown = re.sub(r"<[^>]*>", " ", text)
    named = re.findall(r'(?:aria-label|title|alt|data-shown)="([^"]*)"', text)
    return set(re.findall(r"[A-Za-zÀ-ÿ]{2,}", " ".join([shown, *named])))


def read_catalogue(language):
    path = SOURCE.with_name(f"{language}.po")
    return read_entries(path.read_text("utf-8"), path.name)


def english_in(text, entries):
    """Return the English sentences that a text in another language holds."""
    text = re.sub(r"<[^>]*>", " ", html.unescape(text))
    return [
        entry.sentence
        for entry in entries
        for form in (entry.sentence, entry.plural)
        if len(re.sub(r"\{\w+\}", "", form).split()) > 2
        and form not in entry.said
        and re.search(_as_pattern(form, entry), text)
    ]


def _as_pattern(form, entry):
    """Return what finds a sentence whatever stands in its braces, but for the nouns of its kind."""
    nouns = KINDS[entry.context].nouns if entry.context else {}
    parts = re.split(r"\{(\w+)\}", form)
    texts = [
        (re.escape(nouns[part]) if part in nouns else ".{1,80}?") if place % 2 else re.escape(part)
        for place, part in enumerate(parts)
    ]
    return "".join(texts)
