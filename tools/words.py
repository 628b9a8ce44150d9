"""Every sentence of pages and statements, found where it is said; catalogues kept up to date.

``python -m tools.words`` writes ``words.pot`` anew and every ``.po`` with it: what is translated
stays, what nobody says any more goes, what is new is empty until somebody translates it. The
translations are written as JSON too, which the library reads.

Found are ``tell("...")``, ``tell.of("...")`` and ``tell.count(number, "...", "...")`` in
modules and templates, what ``mark`` and ``mark_of`` mark in tables of sentences, refusals of the
studio, the texts of its fields, sentences of the library that it shows, and what each mechanism
says of itself.
"""

import ast
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from jinja2 import nodes

from discreet.html import TEMPLATES, _templates
from discreet.privacy.mechanisms import mechanisms_for
from discreet.words import FOLDER
from tools.catalogues import (
    CONTEXTS,
    SOURCE,
    CatalogueEntry,
    read_entries,
    write_entries,
    write_texts,
)

PACKAGE = TEMPLATES.parent
CALLS = dict.fromkeys(("tell", "mark", "mark_of", "refuse", "not_found"), (0, 1))
CALLS |= {"tell.of": (0, 1), "tell.count": (1, 3)}
"""Which arguments of a call are sentences."""
FIELDS, MECHANISMS = TEMPLATES / "studio" / "fields.toml", PACKAGE / "privacy" / "mechanisms"
MESSAGES = TEMPLATES / "studio" / "messages.toml"
"""Where sentences are said without a call."""
OF_KIND = ("mark_of", "tell.of")


def find_sentences() -> list[CatalogueEntry]:
    """Return every sentence once, in the order of the files, with the files that say it."""
    found: dict[tuple[str, str], CatalogueEntry] = {}
    for path in sorted(
        [
            *PACKAGE.rglob("*.py"),
            *PACKAGE.rglob("*.html"),
            *PACKAGE.rglob("*.md"),
            FIELDS,
            MESSAGES,
            MECHANISMS,
        ]
    ):
        place = path.relative_to(PACKAGE).as_posix()
        for call, texts in _find_calls(path):
            for context in CONTEXTS if call in OF_KIND else ("",):
                plural = texts[1] if len(texts) > 1 else ""
                entry = CatalogueEntry(texts[0], plural, context, said=("",) * len(texts))
                former = found.get(entry.key, entry)
                places = tuple(dict.fromkeys([*former.places, place]))
                found[entry.key] = replace(entry, places=places)
    return [*found.values()]


def _find_calls(path: Path) -> Iterator[tuple[str, list[str]]]:
    if path == MECHANISMS:
        yield from (("mark", [one.help]) for one in mechanisms_for("answers").values())
        return
    if path == MESSAGES:
        said = tomllib.loads(path.read_text("utf-8"))
        yield from (("mark", [text]) for text in (*said["sentences"], *said["terms"]))
        return
    if path == FIELDS:
        yield from (
            ("mark", [text]) for text in _list_texts(tomllib.loads(path.read_text("utf-8")))
        )
        return
    text = path.read_text("utf-8")
    read = _read_module(text) if path.suffix == ".py" else _read_template(text)
    for line, call, arguments in sorted(read, key=lambda one: one[0]):
        texts = arguments[slice(*CALLS[call])] if call in CALLS else []
        if any(isinstance(one, ast.JoinedStr | ast.BinOp | nodes.Concat) for one in texts):
            raise ValueError(f"{path}:{line}: {call} needs its sentence as it stands")
        found = [one.value for one in texts if isinstance(one, ast.Constant | nodes.Const)]
        if found:  # else a sentence that is marked where it is written down
            yield call, found


def _list_texts(part: Mapping[str, Any]) -> Iterator[str]:
    for value in part.values():
        if isinstance(value, Mapping):
            yield from _list_texts(value)
        elif isinstance(value, str):
            yield value


def _read_module(text: str) -> Iterator[tuple[int, str, list[Any]]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            yield node.lineno, ast.unparse(node.func), node.args


def _read_template(text: str) -> Iterator[tuple[int, str, list[Any]]]:
    for node in _templates().parse(text).find_all(nodes.Call):
        yield node.lineno, _name_call(node.node), node.args


def _name_call(called: Any) -> str:
    if isinstance(called, nodes.Getattr):
        return f"{_name_call(called.node)}.{called.attr}"
    return getattr(called, "name", "")


def update_catalogues() -> None:
    """Write the list of sentences, and bring every language in line with it."""
    found = find_sentences()
    SOURCE.write_text(write_entries(found), "utf-8")
    for path in sorted(FOLDER.glob("*.po")):
        said = {one.key: one.said for one in read_entries(path.read_text("utf-8"), path.name)}
        entries = [replace(one, said=said.get(one.key, one.said)) for one in found]
        path.write_text(write_entries(entries, path.stem), "utf-8")
        path.with_suffix(".json").write_text(write_texts(entries), "utf-8")
        missing = sum(not all(one.said) for one in entries)
        print(f"{path.name}: {len(entries)} sentences, {missing} without a translation")


if __name__ == "__main__":
    update_catalogues()
