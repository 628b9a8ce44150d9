"""Notices to publish where a release was corrected or withdrawn.

In: bundles, and why. Out: a notice, as Markdown or as a page, for the place where the bundle was
published. A bundle that is out cannot be taken back: whoever has it keeps it, so what was spent
stays spent, and the notice says so. Nothing is charged, and no answer is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike

from discreet.choices import PlainDict, PlainMapping
from discreet.errors import BadUsage
from discreet.html import write_page
from discreet.publishing.verification import check_bundle
from discreet.report.statement import list_identity
from discreet.text import markdown_table, markdown_text
from discreet.words import Language, speak, translate_record


@dataclass(frozen=True)
class ReleaseNotice:
    """What a notice says.

    Attributes
    ----------
    title, paragraphs
        Its words.
    releases
        A heading, or none, and the facts of each release that it is about.
    words
        Of the language that it is in.
    """

    title: str
    paragraphs: tuple[str, ...]
    releases: tuple[tuple[str, dict[str, str]], ...]
    words: Language

    def write(self, *, page: bool) -> str:
        """Return the notice as a page, or as Markdown."""
        if page:
            body = {"title": self.title, "paragraphs": self.paragraphs, "releases": self.releases}
            return write_page("notice.html", {**body, "tell": self.words}, scripts=())
        parts = [f"# {markdown_text(self.title)}", *map(markdown_text, self.paragraphs)]
        for heading, facts in self.releases:
            parts += [f"## {heading}"] if heading else []
            parts.append(markdown_table(("", ""), facts.items()))
        return "\n\n".join(parts) + "\n"


def withdrawal_notice(
    bundle: str | PathLike[str], reason: str, *, language: str | None = None, page: bool = False
) -> str:
    """Return the notice that a release is withdrawn.

    Parameters
    ----------
    bundle
        The folder of the release, which must be whole.
    reason
        Why, in one or a few sentences.
    language
        Of the notice; by default that of the release.
    page
        As an HTML page instead of Markdown.

    Examples
    --------
    >>> import tempfile
    >>> import discreet
    >>> answers, items = discreet.datasets.lsat(), ["Item1", "Item2", "Item3"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     released = discreet.release(answers, epsilon=1.0, items=items, out=folder + "/out")
    ...     notice = discreet.withdrawal_notice(folder + "/out", "Item2 was printed wrongly.")
    >>> notice.splitlines()[0]
    '# Withdrawn: difficulties of 3 items'
    """
    record = _read_record(bundle, language)
    tell = speak(record)
    withdrawn = tell("This release was withdrawn on {date}.", date=_today())
    notice = ReleaseNotice(
        title=tell("Withdrawn: {name}", name=_name(record)),
        paragraphs=(
            f"{withdrawn} {_check_reason(reason)}",
            f"{tell('Its numbers should not be used any more.')} {_stays_spent(record)}",
        ),
        releases=(("", _list_facts(record)),),
        words=tell,
    )
    return notice.write(page=page)


def correction_notice(
    bundle: str | PathLike[str],
    by: str | PathLike[str],
    reason: str = "",
    *,
    language: str | None = None,
    page: bool = False,
) -> str:
    """Return the notice that a release was corrected by a later one.

    Parameters
    ----------
    bundle, by
        The folders of the earlier and of the later release, both whole.
    reason
        Why; by default what the later release says.
    language
        Of the notice; by default that of the earlier release.
    page
        As an HTML page instead of Markdown.

    Examples
    --------
    >>> import tempfile
    >>> import discreet
    >>> answers, items = discreet.datasets.lsat(), ["Item1", "Item2", "Item3"]
    >>> later = {"version": "2", "supersedes": "1", "reason": "Item2 was printed wrongly."}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number, about in (("1", {"version": "1"}), ("2", later)):
    ...         released = discreet.release(answers, epsilon=1.0, items=items, about=about)
    ...         released.save(f"{folder}/{number}")
    ...     notice = discreet.correction_notice(folder + "/1", folder + "/2")
    >>> notice.splitlines()[0]
    '# Corrected: difficulties of 3 items, version 1'
    """
    old = _read_record(bundle, language)
    tell = speak(old)
    new = _read_record(by, tell.language)
    _check_pair(old, new)
    identity = new["identity"]
    corrected = tell(
        "This release was corrected on {date} by {name}.",
        date=identity.get("date", _today()),
        name=_name(new),
    )
    later = tell(
        "Use the later numbers. Both have noise of their own, so that they differ also where "
        "nothing was corrected."
    )
    notice = ReleaseNotice(
        title=tell("Corrected: {name}", name=_name(old)),
        paragraphs=(
            f"{corrected} {_check_reason(reason or identity['reason'])}",
            f"{later} {_stays_spent(old)}",
            *_list_changes(old, new),
        ),
        releases=(
            (tell("The earlier release"), _list_facts(old)),
            (tell("The later release"), _list_facts(new)),
        ),
        words=tell,
    )
    return notice.write(page=page)


def _read_record(bundle: str | PathLike[str], language: str | None) -> PlainDict:
    """Return the record of a bundle that is whole, in its own language or another."""
    record = check_bundle(bundle)
    return record if language is None else translate_record(record, language)


def _list_changes(old: PlainMapping, new: PlainMapping) -> list[str]:
    """Name the items that one of two releases has and the other has not."""
    tell = speak(old)
    gone = ", ".join(item for item in old["items"] if item not in new["items"])
    added = ", ".join(item for item in new["items"] if item not in old["items"])
    sentences = [tell("No longer in the release: {names}.", names=gone)] if gone else []
    return sentences + ([tell("New in the release: {names}.", names=added)] if added else [])


def _check_pair(old: PlainMapping, new: PlainMapping) -> None:
    identity, before = new.get("identity", {}), old.get("identity", {})
    if old.get("record_sha256") == new.get("record_sha256"):
        raise BadUsage("a release cannot be corrected by itself; both folders hold the same one")
    if "supersedes" not in identity:
        raise BadUsage(
            "the later release does not say that it takes the place of another one; a correction "
            "is released with supersedes= and reason= in its file (--about, --spec)"
        )
    if before.get("version", identity["supersedes"]) != identity["supersedes"]:
        raise BadUsage(
            f"the later release takes the place of version {identity['supersedes']!r}, and the "
            f"earlier one is version {before['version']!r}"
        )


def _check_reason(reason: str) -> str:
    if not reason.strip():
        raise BadUsage("a notice must say why (reason=, --reason)")
    return " ".join(reason.split())


def _stays_spent(record: PlainMapping) -> str:
    tell = speak(record)
    return tell.of(
        "What was published stays known to whoever has read it, so that the privacy budget that "
        "was spent on it stays spent, and is counted in every later release about the same "
        "{persons}."
    )


def _name(record: PlainMapping) -> str:
    identity, tell = record.get("identity", {}), speak(record)
    count = len(record["items"])
    title = identity.get("title") or tell.of("{numbers} of {count} {items}", count=count)
    if "version" not in identity:
        return str(title)
    return tell("{name}, version {version}", name=title, version=identity["version"])


def _list_facts(record: PlainMapping) -> dict[str, str]:
    guarantee, tell = record["guarantee"], speak(record)
    digest = record.get("record_sha256") or tell("none: schema version 1")
    return {
        **list_identity(record),
        tell("epsilon"): f"{guarantee['epsilon']:g}",
        tell("delta"): f"{guarantee['delta']:g}",
        tell("mechanism"): record["mechanism"],
        tell("record"): f"SHA-256 {digest}",
    }


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
