"""Keep the list of what errors say: every raise statement with its code and its sentence.

::

    python -m tools.messages            writes src/discreet/messages.txt anew
    python -m tools.messages --check    says whether it is current

In: the raise statements of the library, read and never run. Out: for each a code, the function it
stands in and its sentence, with the names of the values in it. A statement keeps its code when its
sentence is reworded or when it moves; a new one is named after its first words. A code may be
changed in the list by hand.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from string import Formatter

from discreet.errors import Sentence, read_sentences
from tools.structure import SOURCE, Module, read_package

__all__ = ["LIST", "list_messages", "main", "write_messages"]

LIST = SOURCE / "messages.txt"
ROOT_CLASS = "DiscreetError"
#: Words of a sentence that say nothing about what is wrong.
SMALL_WORDS = """
a an and are as at be been but by can does for from has have in is it its of on only or so that the
there this to was were which with
"""
SMALL = frozenset(SMALL_WORDS.split())
WORDS_OF_A_CODE = 4
#: A sentence with this share of the old one is the same statement, reworded.
ALIKE = 0.5


@dataclass(frozen=True)
class Site:
    """A statement that makes an error: the function it is in, and its sentence."""

    place: str
    text: str


def find_error_classes(modules: Iterable[Module]) -> set[str]:
    """Return the names of all classes of errors."""
    bases = {
        node.name: {ast.unparse(base) for base in node.bases}
        for module in modules
        for node in module.tree.body
        if isinstance(node, ast.ClassDef)
    }
    known = {ROOT_CLASS}
    while more := {name for name, above in bases.items() if above & known} - known:
        known |= more
    return known


def list_sites() -> list[Site]:
    """Return every statement that makes an error, in the order of files and lines."""
    modules = list(read_package().modules.values())
    classes = find_error_classes(modules)
    sites = (site for module in modules for site in find_sites(module, classes))
    return list(dict.fromkeys(site for site in sites if has_words(site.text)))


def find_sites(module: Module, classes: set[str]) -> Iterator[Site]:
    """Yield the statements of one module."""
    for function, node in walk_functions(module.tree):
        place = f"{module.name}.{function.name}"
        for text in list_texts(node, function, classes):
            yield Site(place, text)


def walk_functions(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, ast.AST]]:
    """Yield every node with the innermost function around it."""
    stack: list[tuple[ast.FunctionDef | None, ast.AST]] = [(None, tree)]
    while stack:
        function, node = stack.pop()
        inner = node if isinstance(node, ast.FunctionDef) else function
        stack += [(inner, child) for child in reversed(list(ast.iter_child_nodes(node)))]
        if inner is not None:
            yield inner, node


def list_texts(node: ast.AST, function: ast.FunctionDef, classes: set[str]) -> Iterator[str]:
    """Yield what a node says if it makes an error: as a class, or in a function that makes one."""
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        if name in classes or (name == "super().__init__" and function.name == "__init__"):
            for argument in node.args[:1]:
                yield from spell(argument, function)
    elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        name = ast.unparse(node.exc.func)
        if name not in classes and not name.lstrip("_")[:1].isupper():
            for argument in [*node.exc.args, *(word.value for word in node.exc.keywords)]:
                for text in spell(argument, function):
                    before, behind = ("" if text[end] in "{}" else "{_}" for end in (0, -1))
                    yield f"{before}{text}{behind}"


def spell(node: ast.expr, function: ast.FunctionDef) -> list[str]:
    """Return the sentences that an expression may be, with values by name."""
    if isinstance(node, ast.IfExp):
        return spell(node.body, function) + spell(node.orelse, function)
    if isinstance(node, ast.Name):
        return [
            text
            for statement in ast.walk(function)
            if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == node.id
            for text in spell_parts(statement.value)
        ]
    return spell_parts(node)


def spell_parts(node: ast.expr) -> list[str]:
    """Return the sentence that constants and values make, in a list; none if there is none."""
    names: Counter[str] = Counter()
    text = "".join(
        part if value is None else name_value(part, value, names) for part, value in cut(node)
    )
    return [text] if has_words(text) else []


def cut(node: ast.expr) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield constants, and values with how they are shown."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value.replace("\n", "\\n").replace("{", "{{").replace("}", "}}"), None
    elif isinstance(node, ast.JoinedStr):
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                yield "!r" if part.conversion == ord("r") else "", part.value
            else:
                yield from cut(part)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from cut(node.left)
        yield from cut(node.right)
    else:
        yield "", node


def name_value(shown: str, value: ast.expr, names: Counter[str]) -> str:
    """Return a value as a sentence of the list has it: by the last name in it."""
    text = ast.unparse(value)
    words = [
        word
        for word in re.findall(r"(?<![\w'\"])[a-zA-Z_]\w*(?![\w'\"(])", text)
        if word.strip("_") and word not in ("if", "else", "for", "in", "not", "and", "or", "self")
    ]
    name = (words[-1] if words else "value").strip("_").lower()
    name = f"n_{name}" if text.startswith("len(") else name
    names[name] += 1
    return f"{{{name if names[name] == 1 else f'{name}_{names[name]}'}{shown}}}"


def has_words(text: str) -> bool:
    """Say whether a sentence has two words of its own."""
    return len(list_words(text)) >= 2


def list_words(text: str) -> list[str]:
    """Return the words that a sentence has of its own."""
    constants = " ".join(constant for constant, *_ in Formatter().parse(text))
    return re.findall(r"[a-z]{2,}", constants.lower())


def list_messages(sites: Iterable[Site], before: Iterable[Sentence]) -> list[Sentence]:
    """Give every statement its code: the one it had, or a new one.

    Examples
    --------
    >>> old = [Sentence("no_item", "tests.find", "no item {name!r}")]
    >>> list_messages([Site("tests.find", "no item is called {name!r}")], old)[0].code
    'no_item'
    """
    sites, left = list(sites), list(before)
    codes: dict[Site, str] = {}
    for fits in (_is_same, _has_moved, _is_reworded):
        for site in sites:
            found = next((one for one in left if fits(site, one)), None)
            if site not in codes and found is not None:
                codes[site] = found.code
                left.remove(found)
    taken = set(codes.values())
    for site in sites:
        if site not in codes:
            codes[site] = invent_code(site, taken)
            taken.add(codes[site])
    return [Sentence(codes[site], site.place, site.text) for site in sites]


def _is_same(site: Site, old: Sentence) -> bool:
    return (site.place, site.text) == (old.place, old.text)


def _has_moved(site: Site, old: Sentence) -> bool:
    return site.text == old.text


def _is_reworded(site: Site, old: Sentence) -> bool:
    is_near = site.place == old.place
    return is_near and SequenceMatcher(None, site.text, old.text, False).ratio() >= ALIKE


def invent_code(site: Site, taken: set[str]) -> str:
    """Name a statement after its first words, then after more of them."""
    words = [word for word in list_words(site.text) if word not in SMALL] or list_words(site.text)
    for count in range(WORDS_OF_A_CODE, len(words) + 1):
        if (code := "_".join(words[:count])) not in taken:
            return code
    start = "_".join([*words[:WORDS_OF_A_CODE], site.place.rpartition(".")[2].strip("_")])
    return next(code for n in range(1, 99) if (code := f"{start}{n if n > 1 else ''}") not in taken)


def write_messages() -> str:
    """Return the list as it has to be."""
    before = read_sentences(LIST.read_text(encoding="utf-8")) if LIST.exists() else []
    sentences = list_messages(list_sites(), before)
    return "".join(f"{one.code} {one.place}\n    {one.text}\n" for one in sentences)


def main(arguments: list[str]) -> None:
    """Write the list, or say whether it is current."""
    text = write_messages()
    if arguments == ["--check"]:
        if text != LIST.read_text(encoding="utf-8"):
            sys.exit("messages.txt is not current: run python -m tools.messages")
        return
    LIST.write_text(text, encoding="utf-8")
    places = defaultdict(list)
    for one in read_sentences(text):
        places[one.place].append(one)
    print(f"{text.count(chr(10)) // 2} sentences of {len(places)} functions")


if __name__ == "__main__":
    main(sys.argv[1:])
