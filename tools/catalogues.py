"""Catalogues of sentences: text files that translators edit, and what the library reads of them.

In: ``words.pot`` and the ``.po`` files beside it. Out: their entries, and text again; the
translations alone as JSON, by context and English sentence, which is what the library loads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from string import Formatter

from discreet.words import FOLDER, KINDS

#: Every sentence, without a translation.
SOURCE = FOLDER / "words.pot"
#: What a sentence with nouns of its kind is about: it is translated once for each.
CONTEXTS = tuple(KINDS)

_LINE = re.compile(r'(?:(msgctxt|msgid|msgid_plural|msgstr(?:\[\d\])?)\s+)?("(?:[^"\\]|\\.)*")')
_LETTERS = {"n": "\n", "t": "\t"}
HEADER = ("MIME-Version: 1.0", "Content-Type: text/plain; charset=UTF-8")
PLURALS = "Plural-Forms: nplurals=2; plural=(n != 1);"


@dataclass(frozen=True)
class CatalogueEntry:
    """One sentence, as the source has it and as a language says it.

    Attributes
    ----------
    sentence, plural
        In English, for one and for many; no plural where nothing is counted.
    context
        What it is about, where the same words are translated differently.
    said
        The translation, in as many forms as there are numbers; empty strings where it is missing.
    places
        The files that say it.
    is_fuzzy
        Whether a translator's tool guessed it.
    """

    sentence: str
    plural: str = ""
    context: str = ""
    said: tuple[str, ...] = ("",)
    places: tuple[str, ...] = ()
    is_fuzzy: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """Key of a sentence in a catalogue."""
        return self.context, self.sentence


def read_entries(text: str, source_name: str) -> list[CatalogueEntry]:
    """Return the entries of a catalogue, its header left out, or say in which line it is none."""
    return [entry for entry in _read_all(text, source_name) if entry.sentence]


def read_language(text: str, source_name: str) -> str:
    """Return the language that a catalogue's header names; empty where it names none."""
    headers = [entry.said[0] for entry in _read_all(text, source_name) if not entry.sentence]
    language_line = re.search(r"^Language:\s*(\S+)", "".join(headers), re.MULTILINE)
    return language_line[1] if language_line else ""


def _read_all(text: str, source_name: str) -> Iterator[CatalogueEntry]:
    parts: dict[str, str] = {}
    places: list[str] = []
    name, is_fuzzy = "", False
    for number, line in enumerate(map(str.strip, [*text.splitlines(), ""]), start=1):
        starts = not line or line.startswith(("#", "msgctxt", "msgid "))
        said = tuple(part for key, part in parts.items() if key.startswith("msgstr"))
        if starts and said:
            plural, context = parts.get("msgid_plural", ""), parts.get("msgctxt", "")
            yield CatalogueEntry(parts["msgid"], plural, context, said, tuple(places), is_fuzzy)
            parts, places, is_fuzzy = {}, [], False
        if line.startswith("#"):
            places += line[2:].split() if line.startswith("#:") else []
            is_fuzzy |= line.startswith("#,") and "fuzzy" in line
        elif line:
            match = _LINE.fullmatch(line)
            name = (match and match[1]) or name
            # A translation follows what it translates.
            follows = name in ("msgctxt", "msgid") or "msgid" in parts
            if match is None or not name or not follows:
                raise ValueError(
                    f"{source_name}, line {number}: this is no line of a catalogue, which has "
                    f'msgid "..." and msgstr "...", found {line[:40]!r}'
                )
            plain = re.sub(r"\\(.)", lambda m: _LETTERS.get(m[1], m[1]), match[2][1:-1])
            parts[name] = parts.get(name, "") + plain
    if parts:
        raise ValueError(f"{source_name}: the last sentence has no msgstr")


def write_entries(entries: Iterable[CatalogueEntry], language: str = "") -> str:
    """Return a catalogue as text, in the order that it was given."""
    header = [f"Language: {language}", *HEADER, PLURALS] if language else [*HEADER, PLURALS]
    parts = [_write_entry(CatalogueEntry("", said=("".join(f"{line}\n" for line in header),)))]
    return "\n".join([*parts, *map(_write_entry, entries)])


def _write_entry(entry: CatalogueEntry) -> str:
    lines = [f"#: {place}" for place in entry.places]
    lines += _write_part("msgctxt", entry.context) if entry.context else []
    lines += _write_part("msgid", entry.sentence)
    if entry.plural:
        lines += _write_part("msgid_plural", entry.plural)
    forms = ("msgstr[0]", "msgstr[1]") if entry.plural else ("msgstr",)
    for name, text in zip_longest(forms, entry.said[: len(forms)], fillvalue=""):
        lines += _write_part(name, text)
    return "\n".join(lines) + "\n"


def _write_part(name: str, text: str) -> list[str]:
    rows = [""]
    for piece in re.findall(r"(?:\S+\s*|\s+)", text):
        if rows[-1] and (len(rows[-1]) + len(piece.rstrip()) > 92 or rows[-1].endswith("\n")):
            rows.append("")
        rows[-1] += piece
    escaped = (row.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for row in rows)
    quoted = [f'"{row}"' for row in escaped]
    short = len(rows) == 1 and len(name) + len(quoted[0]) < 100
    return [f"{name} {quoted[0]}"] if short else [f'{name} ""', *quoted]


def list_texts(entries: Iterable[CatalogueEntry]) -> dict[tuple[str, str, int], str]:
    """Return translations by context, English sentence and form: 0 for one, 1 for many."""
    return {(*entry.key, form): text for entry in entries for form, text in enumerate(entry.said)}


def placeholders(text: str) -> set[str]:
    """Return the names in braces.

    Examples
    --------
    >>> sorted(placeholders("{count} of {total} items, {{as they are}}"))
    ['count', 'total']
    """
    try:
        parts = [*Formatter().parse(text)]
    except ValueError as error:
        raise ValueError(f"{text[:40]!r} has a brace without its other half ({error})") from None
    if any(form or conversion for _, _, form, conversion in parts):
        raise ValueError(f"{text[:40]!r} has more than a name in braces")
    return {name for _, name, _, _ in parts if name is not None}


def write_texts(entries: Iterable[CatalogueEntry]) -> str:
    """Return the translations as JSON, a line for each sentence."""
    said: dict[str, dict[str, tuple[str, ...]]] = {}
    for entry in entries:
        said.setdefault(entry.context, {})[entry.sentence] = entry.said
    return json.dumps(said, ensure_ascii=False, indent=0) + "\n"
