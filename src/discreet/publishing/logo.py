"""A logo: a small picture that an agency puts on its pages, checked before it is believed.

In: a file, PNG, JPEG or SVG. Out: the picture as a data address, which a page shows without asking
any network. It is shown as an image and so runs nothing; a drawing that holds a script, or fetches
something from elsewhere, is refused all the same, because the file is published.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

from discreet.errors import BadUsage

LOGO_BYTES = 100_000
"""Largest file: a page with its logo should open at once."""
BEGINNINGS = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}
_ADDRESS = re.compile(r"data:(image/(?:png|jpeg|svg\+xml));base64,([A-Za-z0-9+/]+={0,2})")
_ELSEWHERE = re.compile(r"url\(\s*['\"]?(?!#)|@import|javascript:", re.IGNORECASE)
RUNS = ("script", "foreignobject", "iframe", "object", "embed", "image", "handler")
"""Parts of a drawing that run, or hold another document."""


def read_logo(path: Path) -> str:
    """Return the picture of a file as a data address."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadUsage(f"the logo {path} cannot be read: {error.strerror}") from None
    kind = _check_picture(content, str(path))
    return f"data:{kind};base64,{b64encode(content).decode()}"


def check_logo(address: str) -> None:
    """Refuse a data address that :func:`read_logo` would not have made."""
    found = _ADDRESS.fullmatch(address)
    try:
        content = b64decode(found[2], validate=True) if found else b""
    except binascii.Error:
        content = b""
    if found is None or _check_picture(content, "the logo") != found[1]:
        raise BadUsage(f"the logo of a release is a file, PNG, JPEG or SVG, found {address[:40]!r}")


def _check_picture(content: bytes, where: str) -> str:
    """Return which kind of picture it is, or refuse it."""
    if len(content) > LOGO_BYTES:
        raise BadUsage(
            f"{where} has {len(content):,} bytes, and a logo has at most {LOGO_BYTES:,}; make it "
            "smaller"
        )
    for beginning, kind in BEGINNINGS.items():
        if content.startswith(beginning):
            return kind
    problem = next(_find_problems(content), None)
    if problem is not None:
        raise BadUsage(f"{where} cannot be a logo: {problem}")
    return "image/svg+xml"


def _find_problems(content: bytes) -> Iterator[str]:
    """Yield what keeps a drawing from being shown; nothing where it only draws."""
    try:
        text = content.decode("utf-8-sig")
        # Entities are what makes reading XML dangerous, so they are refused before it is read.
        if re.search(r"<!(DOCTYPE|ENTITY)|<\?xml-stylesheet", text, re.IGNORECASE):
            yield "it declares a document type, entities or a style sheet; save it as plain SVG"
            return
        drawing = ET.fromstring(text)  # noqa: S314 - no entities, as checked above
    except (UnicodeDecodeError, ET.ParseError):
        yield "it is neither PNG nor JPEG nor SVG"
        return
    if _bare(drawing.tag) != "svg":
        yield "it is neither PNG nor JPEG nor SVG"
    for part in drawing.iter():
        yield from _find_in(part)


def _find_in(part: ET.Element) -> Iterator[str]:
    name = _bare(part.tag)
    if name in RUNS:
        yield f"it holds <{name}>, and a logo only draws"
    for key, value in part.attrib.items():
        if _bare(key).startswith("on"):
            yield f"it runs something ({_bare(key)})"
        if _bare(key) in ("href", "src") and not value.startswith("#"):
            yield f"it refers to something elsewhere ({value[:40]!r})"
    for text in (part.text or "", *part.attrib.values()):
        if _ELSEWHERE.search(text):
            yield f"it refers to something elsewhere ({text.strip()[:40]!r})"


def _bare(name: object) -> str:
    """Return a name without its namespace."""
    return str(name).rpartition("}")[2].lower()
