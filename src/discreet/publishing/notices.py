"""The later life of a release: what to publish where it was corrected or withdrawn.

In: bundles, and why. Out: a notice as Markdown, for the place where the bundle was published. A
bundle that is out cannot be taken back: whoever has it keeps it, so what was spent stays spent, and
the notice says so. Nothing is charged, and no answer is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from os import PathLike
from typing import Any

from discreet.errors import BadUsage
from discreet.output.points import list_identity
from discreet.output.statement import as_cell
from discreet.publishing.verification import check_bundle
from discreet.results.kinds import find_kind

SPENT = (
    "What was published stays known to whoever has read it, so that the privacy budget that was "
    "spent on it stays spent, and is counted in every later release about the same {persons}."
)


def withdrawal_notice(bundle: str | PathLike[str], reason: str) -> str:
    """Return the notice that a release is withdrawn, as Markdown.

    Parameters
    ----------
    bundle
        The folder of the release, which must be whole.
    reason
        Why, in one or a few sentences.
    """
    record = check_bundle(bundle)
    parts = [
        f"# Withdrawn: {_name(record)}",
        f"This release was withdrawn on {_today()}. {_check_reason(reason)}",
        f"Its numbers should not be used any more. {_stays_spent(record)}",
        _list_facts(record),
    ]
    return "\n\n".join(parts) + "\n"


def correction_notice(
    bundle: str | PathLike[str], by: str | PathLike[str], reason: str = ""
) -> str:
    """Return the notice that a release was corrected by a later one, as Markdown.

    Parameters
    ----------
    bundle, by
        The folders of the earlier and of the later release, both whole.
    reason
        Why; by default what the later release says.
    """
    old, new = check_bundle(bundle), check_bundle(by)
    _check_pair(old, new)
    said = new["identity"]
    gone = [item for item in old["items"] if item not in new["items"]]
    added = [item for item in new["items"] if item not in old["items"]]
    parts = [
        f"# Corrected: {_name(old)}",
        f"This release was corrected on {said.get('date', _today())} by {_name(new)}. "
        f"{_check_reason(reason or said['reason'])}",
        "Use the later numbers. Both have noise of their own, so that they differ also where "
        f"nothing was corrected. {_stays_spent(old)}",
        *([f"No longer in the release: {', '.join(gone)}."] if gone else []),
        *([f"New in the release: {', '.join(added)}."] if added else []),
        "## The earlier release",
        _list_facts(old),
        "## The later release",
        _list_facts(new),
    ]
    return "\n\n".join(parts) + "\n"


def _check_pair(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    said, before = new.get("identity", {}), old.get("identity", {})
    if old.get("record_sha256") == new.get("record_sha256"):
        raise BadUsage("a release cannot be corrected by itself; both folders hold the same one")
    if "supersedes" not in said:
        raise BadUsage(
            "the later release does not say that it takes the place of another one; a correction "
            "is released with supersedes= and reason= (--supersedes VERSION --because TEXT)"
        )
    if before.get("version", said["supersedes"]) != said["supersedes"]:
        raise BadUsage(
            f"the later release takes the place of version {said['supersedes']!r}, and the earlier "
            f"one is version {before['version']!r}"
        )


def _check_reason(reason: str) -> str:
    if not reason.strip():
        raise BadUsage("a notice must say why (reason=, --because)")
    return reason.strip()


def _stays_spent(record: Mapping[str, Any]) -> str:
    return SPENT.format(persons=find_kind(record).persons)


def _name(record: Mapping[str, Any]) -> str:
    said, kind = record.get("identity", {}), find_kind(record)
    named = said.get("title", f"{kind.numbers} of {len(record['items'])} {kind.items}")
    return f"{named}, version {said['version']}" if "version" in said else str(named)


def _list_facts(record: Mapping[str, Any]) -> str:
    guarantee = record["guarantee"]
    facts = {
        **list_identity(record),
        "epsilon": f"{guarantee['epsilon']:g}",
        "delta": f"{guarantee['delta']:g}",
        "mechanism": record["mechanism"],
        "record": f"SHA-256 {record.get('record_sha256', 'none: schema version 1')}",
    }
    rows = [f"| {name} | {as_cell(value)} |" for name, value in facts.items()]
    return "\n".join(["| | |", "|---|---|", *rows])


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
