"""Exceptions with their exit codes on the command line, warnings, and the logger.

::

    DiscreetError                  1
    ├── BadUsage                   2   a wrong argument, a file that is not there
    │   ├── MissingExtra           2   an optional dependency is not installed
    │   ├── BadBudget              2   an epsilon, delta or cap that means nothing
    │   ├── NotAllowed             2   the ledger's policy or approvals do not allow the release
    │   └── OutOfReach             2   a computation that cannot be done where the answers are
    ├── BadResponses               3   the answers cannot be used as they are
    ├── BudgetExceeded             4   the ledger has less left than was asked for
    ├── LedgerError                1   the ledger itself cannot be used
    ├── DisconnectedItems          5   the answers do not determine what was asked
    └── NotConverged               1   a solver stopped without an answer it can vouch for

    UserWarning
    └── DiscreetWarning                something to know about the answers or the result
        ├── AssumedReading             how a table is read that nobody stated
        ├── ItemsLeftOut               items without a number, or that took no part
        └── NoStandardErrors           items with a number whose standard error is not known

Every message says what was found, where, why it matters and what to do. Messages repeat names from
files, so each passes through :func:`hide_passwords` and :func:`escape_controls`.

A warning of a result is a :class:`FitWarning`: a string, so that it prints, joins and goes into
JSON as its sentence. Code that must know what was said asks for the kind, never for words of the
sentence. Of a release nothing is warned: what its public list names is in it.

Examples
--------
>>> issubclass(BadUsage, DiscreetError), BadUsage.exit_code
(True, 2)
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import unicodedata
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, cached_property
from itertools import islice
from string import Formatter
from types import FrameType
from typing import Any, Self, TypeVar

from discreet.choices import PlainMapping

# A user and a password before a host, and the words that name a password in other addresses. Too
# much is hidden rather than too little: a password may hold any sign.
_BEFORE_HOST = re.compile(r"(/[^\s/@:'\"]*):[^\n]*@")
_NAMED = re.compile(
    r"(?i)((?:password|passwd|passphrase|pwd|secret|token)\s*=\s*)"
    r"('[^'\n]*'|\"[^\"\n]*\"|\{[^}\n]*\}|[^\s;&'\"]+)"
)
_ADDRESS = re.compile(
    r"(?!\s*[a-z]:[/\\])(\s*[a-z][\w+.-]*:[/\\]|\s*jdbc:|.*:.*@)"  # C:\data is a path
    r"|.*\b(password|passwd|passphrase|pwd|secret|token)\s*=",
    re.IGNORECASE | re.DOTALL,
)


def hide_passwords(text: str) -> str:
    """Return a message without the passwords of the addresses in it.

    Examples
    --------
    >>> hide_passwords("no file 'mysql://ann:secret@host/db', host=h password=secret")
    "no file 'mysql://ann:***@host/db', host=h password=***"
    """
    return _NAMED.sub(r"\1***", _BEFORE_HOST.sub(r"\1:***@", text))


#: The marks that we put around names in scripts that run from right to left.
ISOLATES = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"
_JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"


def escape_controls(text: str) -> str:
    r"""Return text in one line that no terminal obeys: control characters as their escapes.

    Line breaks, control characters, direction marks and other invisible characters are written as
    Python writes them. Kept are blanks of any width, joiners inside words of scripts that need
    them, and pairs of isolates, which keep a name from reordering its neighbours.

    Examples
    --------
    >>> print(escape_controls("Q1" + chr(27) + "[2K" + chr(10) + "epsilon 0.1"))
    Q1\x1b[2K\nepsilon 0.1
    """
    if text.isprintable():
        return text
    allowed = ISOLATES if _has_paired_isolates(text) else ()
    return "".join(
        sign
        if sign.isprintable() or sign in allowed or _is_blank_or_joiner(text, index)
        else sign.encode("unicode_escape").decode("ascii")
        for index, sign in enumerate(text)
    )


#: Characters of a message: names in files may have millions.
LONGEST_LINE = 4_000


def write_line(message: str) -> str:
    """Return a message as it is printed: without passwords and controls, the middle cut if long.

    Examples
    --------
    >>> len(write_line("no item " + "x" * 9_000 + ", check its name"))
    4037
    """
    line = escape_controls(hide_passwords(message))
    beyond = len(line) - LONGEST_LINE
    if beyond <= 0:
        return line
    half = LONGEST_LINE // 2
    return f"{line[:half]} ... ({beyond:,} characters left out) ... {line[-half:]}"


def escape_json(document: str) -> str:
    """Return a JSON text whose strings hold no character that a terminal obeys.

    Its own line breaks stay. Whoever parses it reads the same values.
    """
    if document.isprintable():
        return document
    return "".join(
        sign
        if sign.isprintable() or sign == "\n" or unicodedata.category(sign) == "Zs"
        else json.dumps(sign)[1:-1]
        for sign in document
    )


def _has_paired_isolates(text: str) -> bool:
    depth = 0
    for sign in text:
        depth += (sign == ISOLATES[0]) - (sign == ISOLATES[1])
        if depth < 0:
            return False
    return depth == 0


def _is_blank_or_joiner(text: str, index: int) -> bool:
    around = text[index - 1 : index] + text[index + 1 : index + 2]
    if text[index] in _JOINERS:
        return len(around) == 2 and around.isprintable() and not any(map(str.isascii, around))
    return unicodedata.category(text[index]) == "Zs"


def looks_like_address(source: object) -> bool:
    """Say whether a path that leads nowhere may be an address, which must not be repeated."""
    if not isinstance(source, str | os.PathLike):
        return False
    text = os.fspath(source)
    return isinstance(text, str) and bool(_ADDRESS.match(text)) and not os.path.lexists(text)


@dataclass(frozen=True)
class Remedy:
    """What may put an error right.

    Attributes
    ----------
    words
        What to do, as it stands in the message.
    options
        Keywords of the function that refused, and their values; empty where something else is to
        be done.
    asks
        A keyword whose value only the user knows.
    change
        The same for a page: without keywords and options. Empty where the words have none.
    """

    words: str
    options: PlainMapping = field(default_factory=dict)
    asks: str = ""
    change: str = ""

    @property
    def label(self) -> str:
        """What a button says that does it."""
        words = (self.change or self.words).removeprefix("if ")
        return f"{words[:1].upper()}{words[1:]}"


def _list_places(frame: FrameType | None) -> Iterator[str]:
    """Yield the functions of the library that are running, the innermost first."""
    while frame is not None:
        module, function = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        if module.startswith("discreet.") and not function.startswith("<"):
            yield f"{module.removeprefix('discreet.')}.{function}"
        frame = frame.f_back


def _clean(word: object) -> object:
    """Return a part of a message as it may be shown; every message passes here."""
    return write_line(word) if isinstance(word, str) else word


# Codes and facts: which raise statement made an error, and what its sentence names.
#
# `messages.txt` lists every raise statement with its code, where it stands and its sentence,
# written by ``python -m tools.messages`` from the source. A reworded sentence keeps its code.

#: What stands before and behind the sentence of a statement that does not write the whole message.
BESIDE = "_"


@dataclass(frozen=True)
class Sentence:
    """What one raise statement says.

    Examples
    --------
    >>> sentence = Sentence("no_such_item", "tests.find", "no item {name!r} among {count}")
    >>> sentence.read("no item 'q9' among 12")
    {'name': 'q9', 'count': '12'}
    """

    code: str
    place: str
    text: str

    @cached_property
    def words(self) -> int:
        """How many characters the message has of its own."""
        return sum(len(constant) for constant, *_ in Formatter().parse(self.text))

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """What messages of this sentence look like."""
        parts: list[str] = []
        for constant, name, _, _ in Formatter().parse(self.text):
            parts.append(re.escape(constant))
            if name is not None:
                parts.append(".*?" if name == BESIDE else f"(?P<{name}>.*?)")
        return re.compile("".join(parts), re.DOTALL)

    def read(self, message: str) -> dict[str, object] | None:
        """Return the facts of a message; None if it says something else."""
        found = self.pattern.fullmatch(message)
        if found is None:
            return None
        quoted = {name for _, name, _, shown in Formatter().parse(self.text) if shown == "r"}
        return {
            name: _unquote(text) if name in quoted else text
            for name, text in found.groupdict().items()
        }


def _unquote(text: str) -> object:
    import ast

    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def read_sentences(document: str) -> list[Sentence]:
    """Return the sentences of a list as `messages.txt` has them: code and place, then the text."""
    lines = document.splitlines()
    heads = (line.split() for line in lines[::2])
    return [
        Sentence(code, place, text.strip())
        for (code, place), text in zip(heads, lines[1::2], strict=True)
    ]


@cache
def list_sentences() -> Mapping[str, list[Sentence]]:
    """Return all sentences by the function that says them, the longest first."""
    from importlib.resources import files

    document = files("discreet").joinpath("messages.txt").read_text(encoding="utf-8")
    by_place = defaultdict(list)
    for sentence in sorted(read_sentences(document), key=lambda one: -one.words):
        by_place[sentence.place].append(sentence)
    return by_place


def find_code(places: Iterable[str], message: str) -> tuple[str, dict[str, object]] | None:
    """Return code and facts of a message that one of these functions wrote."""
    for place in places:
        for sentence in list_sentences().get(place, ()):
            facts = sentence.read(message)
            if facts is not None:
                return sentence.code, facts
    return None


#: Callers of an error that are looked at to find out which statement made it.
CALLERS = 4


class DiscreetError(Exception):
    """Root of every error that this library raises on purpose."""

    exit_code = 1
    remedies: tuple[Remedy, ...] = ()

    def __init__(self, *words: object) -> None:
        super().__init__(*map(_clean, words))
        self.places = tuple(islice(_list_places(sys._getframe(1)), CALLERS))

    @property
    def code(self) -> str:
        """A stable word for what went wrong, which stays when the message is reworded."""
        return self._explain()[0]

    @property
    def facts(self) -> dict[str, object]:
        """What the message names, as it shows it: the column, the file, how many there are."""
        return self._explain()[1]

    def _explain(self) -> tuple[str, dict[str, object]]:
        found = find_code(self.places, str(self))
        if found is not None:
            return found
        cause = self.__cause__ or self.__context__
        if isinstance(cause, DiscreetError):
            return cause._explain()
        return re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower(), {}

    def offering(self, *remedies: Remedy) -> Self:
        """Return this error with what may put it right, the likeliest first."""
        self.remedies = remedies
        return self


class BadUsage(DiscreetError, ValueError):
    """An argument, option or path is wrong; the data was not looked at."""

    exit_code = 2


class MissingExtra(BadUsage):
    """A feature needs an optional dependency that is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs the optional dependency group '{extra}', which is not installed. "
            f"Install it with: {spell_install(extra)}"
        )


def spell_install(extra: str) -> str:
    """Return the command that adds an extra to the package, the way it was installed."""
    from importlib.metadata import PackageNotFoundError, distribution
    from importlib.util import find_spec
    from pathlib import Path
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        record = distribution("discreet").read_text("direct_url.json")
    except PackageNotFoundError:  # the source alone, on the path
        record = None
    origin = json.loads(record or "{}")
    address = origin.get("url", "")
    what = f"discreet[{extra}]"
    if address.startswith("file:"):
        what = f"{url2pathname(urlsplit(address).path)}[{extra}]"
    elif "vcs_info" in origin:
        what = f"{what} @ {origin['vcs_info']['vcs']}+{address}"
    prefix = Path(sys.prefix)
    if (prefix / "uv-receipt.toml").exists():
        return f'uv tool install --force "{what}"'
    if (prefix / "pipx_metadata.json").exists():
        return f'pipx install --force "{what}"'
    editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
    python = sys.executable or "python"
    if find_spec("pip") is None:
        return f'uv pip install --python "{python}" {editable}"{what}"'
    return f'"{python}" -m pip install {editable}"{what}"'


class BadBudget(BadUsage):
    """A privacy parameter is outside the range where the guarantee means something."""


class NotAllowed(BadUsage):
    """The ledger's policy, or the approvals that it asks for, do not allow the release."""


class OutOfReach(BadUsage):
    """The answers are where what was asked of them cannot be computed."""


class BadResponses(DiscreetError, ValueError):
    """The answers contain something that cannot be read as right, wrong or missing."""

    exit_code = 3


class BudgetExceeded(DiscreetError):
    """A release would spend more than the ledger's limit allows."""

    exit_code = 4


class LedgerError(DiscreetError):
    """The ledger file is missing, damaged, locked or belongs to other data."""


class DisconnectedItems(DiscreetError):
    """The answers do not link the items, so no difficulty can be determined."""

    exit_code = 5


class NotConverged(DiscreetError):
    """A solver stopped without an answer whose accuracy it can vouch for."""


class DiscreetWarning(UserWarning):
    """Root of the warnings that repeat names from files."""

    def __init__(self, *words: object) -> None:
        super().__init__(*map(_clean, words))


class AssumedReading(DiscreetWarning):
    """How a table was read where nobody stated it; stating it ends the warning."""


class ItemsLeftOut(DiscreetWarning):
    """Items have no number, or took no part; the warnings of the result say which and why.

    It is shown once for each place in a program, and turned off or into an error as any warning:
    ``warnings.simplefilter("error", discreet.errors.ItemsLeftOut)``.
    """


class NoStandardErrors(DiscreetWarning):
    """Standard errors of some or all items are missing; the message says why and what to do."""


class WarningKind(StrEnum):
    """What a warning is about."""

    LEFT_OUT = "left_out"  # items whose answers give no number
    NOT_LINKED = "not_linked"  # items that the answers do not link to the others
    SEVERAL_SETS = "several_sets"  # equally large sets of items that nothing links
    LINKED_BY_ASSUMPTION = "linked_by_assumption"
    FLAT_ABILITIES = "flat_abilities"
    REGULARISED = "regularised"
    NO_STANDARD_ERRORS = "no_standard_errors"
    COUNTED_TWICE = "counted_twice"  # persons in more than one of the counts that were added
    ROUTED = "routed"  # earlier answers seem to have chosen later items
    TRANSPOSED = "transposed"  # so few persons for so many items that rows may be items
    UNUSED_CATEGORY = "unused_category"  # categories of items with steps that nobody used
    KEPT_CATEGORY = "kept_category"  # of them, those that were kept
    NO_LABEL = "no_label"  # persons outside every group
    SMALL_GROUP = "small_group"  # too few persons to compare
    NOT_COMPARED = "not_compared"  # items that a comparison of groups had to leave out
    IGNORED = "ignored"  # items that a calibration does not know
    DRIFTED = "drifted"  # common items that two calibrations disagree about
    DISPLACED = "displaced"  # anchors that the answers disagree with
    WEAK_LINK = "weak_link"
    SAME_PERSONS = "same_persons"  # releases that are linked may be about the same persons
    WEAK_PLAN = "weak_plan"
    INCOMPLETE = "incomplete"  # persons left out because answers are missing
    ROUGH = "rough"  # a p-value from a law that holds for more persons
    UNDERSTATED_ERRORS = "understated_errors"  # standard errors of abilities that are too small
    DISTORTED_SCALE = "distorted_scale"  # easier and harder items disagree on abilities
    UNEQUAL_WEIGHTS = "unequal_weights"  # sampling weights of few persons outweigh the others
    INDEPENDENT = "independent"  # errors of very many items, taken as independent of each other
    RELATED = "related"  # models of one family, which err alike
    SAMPLED = "sampled"  # some persons only, because there are very many


#: Kinds of warnings about items that took no part.
DROPPED = (
    WarningKind.LEFT_OUT,
    WarningKind.NOT_LINKED,
    WarningKind.NOT_COMPARED,
    WarningKind.IGNORED,
)


class FitWarning(str):
    """A warning of a result.

    Attributes
    ----------
    kind
        What it is about.
    items
        The items concerned, all of them; the sentence names a few.

    Examples
    --------
    >>> sentence = "no difficulty for 1 item that nobody answered: q9"
    >>> notice = FitWarning(WarningKind.LEFT_OUT, sentence, ["q9"])
    >>> print(notice.kind, notice.items)
    left_out ('q9',)
    """

    kind: WarningKind
    items: tuple[str, ...]

    def __new__(cls, kind: WarningKind, sentence: str, items: Iterable[str] = ()) -> Self:
        self = super().__new__(cls, escape_controls(sentence))
        self.kind, self.items = kind, tuple(items)
        return self

    def __getnewargs__(self) -> tuple[WarningKind, str, tuple[str, ...]]:  # type: ignore[override]
        return self.kind, str(self), self.items


_untold = ContextVar("untold", default=False)


def warn_of_dropped(notices: Iterable[FitWarning]) -> None:
    """Warn of items that were left out."""
    _warn(notices, DROPPED, ItemsLeftOut)


def warn_of_missing_errors(notices: Iterable[FitWarning]) -> None:
    """Warn of standard errors that answers should have given."""
    _warn(notices, (WarningKind.NO_STANDARD_ERRORS,), NoStandardErrors)


def _warn(
    notices: Iterable[FitWarning], kinds: Collection[WarningKind], category: type[UserWarning]
) -> None:
    for notice in () if _untold.get() else notices:
        if notice.kind in kinds:
            warnings.warn(str(notice), category, stacklevel=_find_caller())


def _find_caller() -> int:
    """Return how many calls above :func:`_warn` the first program of others is."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("discreet."):
        level, frame = level + 1, frame.f_back
    return level


@contextmanager
def saying_it_otherwise() -> Iterator[None]:
    """Warn of nothing inside: whoever calls tells the items itself, in a table or in print."""
    before = _untold.set(True)
    try:
        yield
    finally:
        _untold.reset(before)


def refuse_address(path: object) -> None:
    """Refuse an address where a file is needed, without repeating it."""
    if looks_like_address(path):
        raise BadUsage(
            "There is no such file, and what was given looks like the address of a server (it is "
            "not repeated here, because it may hold a password). Answers are read from files and, "
            "by count_pairs, fit and release, from PostgreSQL as "
            "'postgresql://user@host:5432/database::table'; nothing else is read from or written "
            "to a server."
        )


# What is being done, for services: the logger "discreet" of the standard library.
#
# One line at the level INFO before and after reading, counting, fitting, scoring and releasing.
# Lines hold where answers come from (never a query or an address, which may hold data or a
# password) and how many persons, items and answers there were; those of a release hold public
# values only, the same whatever the answers are. Nothing is written unless the program asks for it,
# with ``logging.basicConfig(level="INFO")`` for instance.

LOG = logging.getLogger("discreet")
LOG.addHandler(logging.NullHandler())

Held = TypeVar("Held")

#: Without a colon, but for the letter of a drive.
_PATH = re.compile(r"([A-Za-z]:)?[^\s:]+")


def name_source(source: object) -> str:
    """Say what answers come from: the name of a file, else only the kind.

    Examples
    --------
    >>> name_source("logs/may.csv"), name_source("SELECT * FROM t WHERE person = 'ann'")
    ('logs/may.csv', 'a database or query')
    """
    if not isinstance(source, str | os.PathLike):
        return f"{type(source).__module__.partition('.')[0]} {type(source).__name__}"
    text = os.fspath(source)
    is_path = os.path.lexists(text) or (_PATH.fullmatch(text) and not looks_like_address(text))
    return escape_controls(str(text)) if is_path else "a database or query"


def log_answers(answers: Held) -> Held:
    """Say how many answers were read, and return them."""
    sized: Any = answers
    sizes = sized.n_persons, sized.n_items, sized.n_answers
    LOG.info("read %d persons, %d items, %d answers", *sizes)
    return answers
