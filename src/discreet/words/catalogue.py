"""Catalogues of sentences: the text files that translators and agencies edit.

In: a ``.po`` file, as every gettext tool writes it. Out: its entries, checked, or the
translations as a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from string import Formatter

from discreet.errors import BadUsage

_LINE = re.compile(r'(?:(msgctxt|msgid|msgid_plural|msgstr(?:\[\d\])?)\s+)?("(?:[^"\\]|\\.)*")')
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
        """By what it is found."""
        return self.context, self.sentence


@dataclass
class _Lines:
    """The lines of one entry, as they are read."""

    parts: dict[str, str] = field(default_factory=dict)
    places: list[str] = field(default_factory=list)
    is_fuzzy: bool = False

    def finish(self) -> CatalogueEntry:
        translations = [text for name, text in self.parts.items() if name.startswith("msgstr")]
        return CatalogueEntry(
            self.parts["msgid"],
            self.parts.get("msgid_plural", ""),
            self.parts.get("msgctxt", ""),
            tuple(translations),
            tuple(self.places),
            self.is_fuzzy,
        )


def read_entries(text: str, source_name: str) -> list[CatalogueEntry]:
    """Return the entries of a catalogue, its header left out, or say in which line it is none."""
    return [entry for entry in _read_all(text, source_name) if entry.sentence]


def read_language(text: str, source_name: str) -> str:
    """Return the language that a catalogue's header names; empty where it names none."""
    headers = [entry.said[0] for entry in _read_all(text, source_name) if not entry.sentence]
    language_line = re.search(r"^Language:\s*(\S+)", "".join(headers), re.MULTILINE)
    return language_line[1] if language_line else ""


def _read_all(text: str, source_name: str) -> Iterator[CatalogueEntry]:
    lines, name = _Lines(), ""
    for number, line in enumerate(map(str.strip, [*text.splitlines(), ""]), start=1):
        starts = not line or line.startswith(("#", "msgctxt")) or line.startswith("msgid ")
        if starts and any(part.startswith("msgstr") for part in lines.parts):
            yield lines.finish()
            lines = _Lines()
        if line.startswith("#"):
            lines.places += line[2:].split() if line.startswith("#:") else []
            lines.is_fuzzy |= line.startswith("#,") and "fuzzy" in line
        elif line:
            match = _LINE.fullmatch(line)
            name = (match and match[1]) or name
            if match is None or not name or (name != "msgctxt" and not _follows(name, lines)):
                raise BadUsage(
                    f"{source_name}, line {number}: this is no line of a catalogue, which has "
                    f'msgid "..." and msgstr "...", found {line[:40]!r}'
                )
            lines.parts[name] = lines.parts.get(name, "") + _unescape(match[2][1:-1])
    if lines.parts:
        raise BadUsage(f"{source_name}: the last sentence has no msgstr")


def _follows(name: str, lines: _Lines) -> bool:
    """Say whether a part may stand where it stands: a translation follows what it translates."""
    return name == "msgid" or "msgid" in lines.parts


def write_entries(entries: Iterable[CatalogueEntry], language: str = "") -> str:
    """Return a catalogue as text, in the order that it was given."""
    header = [f"Language: {language}", *HEADER, PLURALS] if language else [*HEADER, PLURALS]
    parts = [_write_entry(CatalogueEntry("", said=("".join(f"{line}\n" for line in header),)))]
    return "\n".join([*parts, *map(_write_entry, entries)])


def _write_entry(entry: CatalogueEntry) -> str:
    lines = [f"#: {place}" for place in entry.places]
    lines += _write_part("msgctxt", entry.context) if entry.context else []
    lines += _write_part("msgid", entry.sentence)
    if not entry.plural:
        return "\n".join([*lines, *_write_part("msgstr", entry.said[0])]) + "\n"
    lines += _write_part("msgid_plural", entry.plural)
    for number in range(2):
        translation = entry.said[number] if number < len(entry.said) else ""
        lines += _write_part(f"msgstr[{number}]", translation)
    return "\n".join(lines) + "\n"


def _write_part(name: str, text: str) -> list[str]:
    pieces = re.findall(r"(?:\S+\s*|\s+)", text)
    rows = [""]
    for piece in pieces:
        if rows[-1] and (len(rows[-1]) + len(piece.rstrip()) > 92 or rows[-1].endswith("\n")):
            rows.append("")
        rows[-1] += piece
    quoted = ['"' + _escape(row) + '"' for row in rows]
    short = len(rows) == 1 and len(name) + len(quoted[0]) < 100
    return [f"{name} {quoted[0]}"] if short else [f'{name} ""', *quoted]


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), text)


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
        raise BadUsage(f"{text[:40]!r} has a brace without its other half ({error})") from None
    if any(form or conversion for _, _, form, conversion in parts):
        raise BadUsage(f"{text[:40]!r} has more than a name in braces")
    return {name for _, name, _, _ in parts if name is not None}
