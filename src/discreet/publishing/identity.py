"""Identity of a release: title, version, population, what it replaces, who is responsible.

In: a small ``release.toml`` that is written once for a series of releases, and words for the one at
hand. Out: an :class:`Identity`, which goes into every file of a bundle. Nothing of it may be learnt
from the answers: that two releases are about the same data is stated by the steward, and never
found out by comparing the data, because that would tell the world exactly whether it changed.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, date, datetime
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

from discreet.choices import PlainDict, PlainMapping
from discreet.errors import BadUsage
from discreet.privacy.ledger import EVERYONE
from discreet.schema import Count, NonNegative, Positive, SchemaError, read_as
from discreet.words import check_language

#: Longest text of one field; a page is no place for a report.
MOST_LETTERS = 2_000


@dataclass(frozen=True)
class Identity:
    """What a release says about itself, each part where it was given.

    Attributes
    ----------
    title, version, date
        Of this release; the date is that of publication, as ``2026-11-16``.
    body, contact
        Who answers for it, and how to reach them.
    supersedes, reason
        The version that it takes the place of, and why.
    note, introduction, footer
        An agency's own words, shown as they are: on the page and in the statement, above the
        numbers of the page, and at its end.
    language
        Of the page and the statement: ``"en"``, the default, ``"de"`` or ``"es"``.
    population
        Whom the data is about, as the ledger has it.
    looked
        Whether somebody looked at the data before the public parameters were set.
    audit
        What ``discreet audit --json`` found of the mechanism.
    """

    title: str = ""
    version: str = ""
    date: str = ""
    body: str = ""
    contact: str = ""
    supersedes: str = ""
    reason: str = ""
    note: str = ""
    introduction: str = ""
    footer: str = ""
    language: str = ""
    population: str = EVERYONE
    looked: bool = False
    audit: PlainMapping | None = None

    def __post_init__(self) -> None:
        for name in NAMES:
            value = getattr(self, name)
            is_line = isinstance(value, str) and len(value) <= MOST_LETTERS and value.isprintable()
            if not is_line:
                raise BadUsage(
                    f"the {name} of a release must be one line of text of at most {MOST_LETTERS:,} "
                    f"letters, found {str(value)[:40]!r}"
                )
        if self.date:
            _check_date(self.date)
        if self.language:
            check_language(self.language)
        if self.reason and not self.supersedes:
            raise BadUsage("a release that gives a reason must say which version it supersedes")
        if self.supersedes and not self.reason:
            raise BadUsage(f"a release that supersedes {self.supersedes!r} must say why (reason)")
        if self.supersedes and self.supersedes == self.version:
            raise BadUsage(f"a release cannot supersede itself: both are version {self.version!r}")

    def to_dict(self) -> dict[str, str]:
        """Return the published texts that were given; English is the language unless another is."""
        texts = {name: getattr(self, name) for name in NAMES if getattr(self, name)}
        return {name: text for name, text in texts.items() if (name, text) != ("language", "en")}

    def add(self, words: Mapping[str, str | None]) -> Identity:
        """Return the identity with further words, which count more than those it has."""
        texts: PlainDict = {name: text for name, text in words.items() if text}
        return replace(self, **texts)

    def describe(self) -> PlainDict:
        """Return what a release says about itself: dated texts, and an audit's result."""
        texts = self.to_dict()
        if texts and not self.date:
            texts = replace(self, date=datetime.now(UTC).date().isoformat()).to_dict()
        parts = {"identity": texts, "audit": self.audit}
        return {name: part for name, part in parts.items() if part}

    def check_audit(self, mechanism: str) -> None:
        """Refuse an audit of another mechanism, or one that refuted the promise."""
        if self.audit is None:
            return
        if self.audit["mechanism"] != mechanism:
            raise BadUsage(
                f"the audit is of the mechanism {self.audit['mechanism']}, and the release has "
                f"{mechanism}; attack that one, or leave the audit out"
            )
        if self.audit["lower_bound"] > self.audit["claimed_epsilon"]:
            raise BadUsage(
                "the audit refuted the promise of this mechanism; nothing may be released"
            )


#: What is no text of the identity; the record has it elsewhere.
UNPUBLISHED = ("population", "looked", "audit")
NAMES = tuple(part.name for part in fields(Identity) if part.name not in UNPUBLISHED)


def _check_date(text: str) -> None:
    try:
        is_plain = date.fromisoformat(text).isoformat() == text
    except ValueError:
        is_plain = False
    if not is_plain:
        raise BadUsage(f"the date of a release is written as 2026-11-16, found {text!r}")


#: Who a release is, in words or in a file.
About = Identity | PlainMapping | str | PathLike[str] | None


def make_identity(about: About) -> Identity:
    """Return an identity from words, or from a ``release.toml``."""
    if about is None or isinstance(about, Identity):
        return about or Identity()
    if isinstance(about, Mapping):
        words, prefix = dict(about), ""
    else:
        words, prefix = read_word_file(Path(about)), f"{about}: "
    refuse_unknown(words, NAMES, prefix)
    return Identity(**words)


def refuse_unknown(words: PlainMapping, names: Sequence[str], prefix: str = "") -> None:
    """Refuse a name that a release does not have, and name one that is spelt alike."""
    for name in words:
        if name not in names:
            alike = get_close_matches(str(name), names, 1)
            hint = f"did you mean {alike[0]}?" if alike else f"known are {', '.join(names)}"
            raise BadUsage(f"{prefix}a release has no {name!r}; {hint}")


def read_word_file(path: Path) -> PlainDict:
    """Return what a TOML file says, or a JSON file; dates as text."""
    if not path.is_file():
        raise BadUsage(f'{path} does not exist; it should hold lines such as title = "..."')
    is_json = path.suffix.lower() == ".json"
    try:
        text = path.read_text(encoding="utf-8")
        words = json.loads(text) if is_json else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadUsage(f"{path} is no {'JSON' if is_json else 'TOML'} file: {error}") from None
    if not isinstance(words, dict):
        raise BadUsage(f"{path} holds no names with values")
    return dict(_write_dates(words))


def _write_dates(value: object) -> Any:
    """Return values with dates, which TOML may have without quotes, as text."""
    if isinstance(value, dict):
        return {name: _write_dates(part) for name, part in value.items()}
    return str(value) if isinstance(value, date) else value


@dataclass(frozen=True)
class AuditFacts:
    """What a release tells of an audit."""

    mechanism: str
    claimed_epsilon: Positive
    lower_bound: NonNegative
    verdict: str
    runs: Count
    items: Count
    max_answers: Count


#: What ``discreet audit --json`` printed, or the file that it is in.
AuditSource = str | PathLike[str] | PlainMapping


def read_audit(source: AuditSource) -> PlainDict:
    """Return the facts that a release tells of an audit, from what its command printed."""
    try:
        printed: Any = source
        if not isinstance(source, Mapping):
            printed = json.loads(Path(source).read_text(encoding="utf-8"))
        names = {fact.name for fact in fields(AuditFacts)}
        facts = {name: printed[name] for name in printed if name in names}
        return asdict(read_as(AuditFacts, facts, "the audit"))
    except FileNotFoundError:
        raise BadUsage(
            f"{source} does not exist; write it with: discreet audit --json > {source}"
        ) from None
    except (OSError, ValueError, TypeError, RecursionError) as error:
        why = f" ({error})" if isinstance(error, SchemaError) else ""
        place = "the table audit" if isinstance(source, Mapping) else source
        raise BadUsage(f"{place} is not what 'discreet audit --json' prints{why}") from None
