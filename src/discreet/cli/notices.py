"""``discreet correct`` and ``discreet withdraw``: the later life of a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from discreet.atomic import write_text
from discreet.cli.options import Force, Language, argument, flag, option
from discreet.cli.output import check_writable, note, say_lines
from discreet.errors import BadUsage

Notice = Annotated[
    Path | None,
    option("FILE", "Where the notice goes: .md for Markdown, .html for a page.", "--out"),
]
Spoken = Annotated[Language | None, flag("Of the notice. Default: that of the release.")]


def correct(
    bundle: Annotated[Path, argument("DIR", "The earlier release.")],
    *,
    by: Annotated[Path, option("DIR", "The later release, which says that it supersedes it.")],
    because: Annotated[str, option("TEXT", "Why. Default: what the later release says.")] = "",
    language: Spoken = None,
    out: Notice = None,
    force: Force = False,
) -> None:
    """Write the notice that a release was corrected by a later one."""
    from discreet.publishing.notices import correction_notice

    made = correction_notice(bundle, by, because, language=language, page=_is_page(out))
    _show(made, out, force=force)


def withdraw(
    bundle: Annotated[Path, argument("DIR", "The release.")],
    *,
    because: Annotated[str, option("TEXT", "Why it is withdrawn.")],
    language: Spoken = None,
    out: Notice = None,
    force: Force = False,
) -> None:
    """Write the notice that a release is withdrawn. What was spent stays spent."""
    from discreet.publishing.notices import withdrawal_notice

    made = withdrawal_notice(bundle, because, language=language, page=_is_page(out))
    _show(made, out, force=force)


def _is_page(out: Path | None) -> bool:
    """Say whether a notice is written as a page; refuse an ending that is neither."""
    if out is not None and out.suffix not in (".md", ".html"):
        raise BadUsage(f"{out}: a notice is written as .md or .html; name one.")
    return out is not None and out.suffix == ".html"


def _show(text: str, out: Path | None, *, force: bool) -> None:
    if out is None:
        say_lines(text)
        return
    check_writable(out.parent, [out.name], force=force)
    write_text(out, text, private=False)
    note(f"Wrote {out} (may be published)")
