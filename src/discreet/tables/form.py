"""What the user said about a file itself, whatever it holds: sheet, delimiter, header."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.errors import BadUsage

_DELIMITERS = {
    "tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " ",
    "blank": " ",
}  # fmt: skip
"""Words for delimiters, which shells and people find hard to type."""


@dataclass(frozen=True)
class Form:
    """What the user said about the file itself, whatever it holds.

    Attributes
    ----------
    sheet
        Of a workbook; None takes the only one with data.
    delimiter
        Of a text file; None finds it out.
    header
        Whether the first row holds names.
    """

    sheet: str | None = None
    delimiter: str | None = None
    header: bool = True


def make_form(sheet: str | None, delimiter: str | None, header: bool) -> Form:
    """Check what was said about a file itself."""
    if delimiter is not None:
        delimiter = _DELIMITERS.get(delimiter.strip().lower(), delimiter)
        if len(delimiter) != 1 or delimiter in '"\r\n' or delimiter.isalnum():
            raise BadUsage(
                f"delimiter must be one sign that parts fields, such as ';' or ',' or '|', or the "
                f"word tab or space; found {delimiter!r}."
            )
    return Form(sheet, delimiter, header)
