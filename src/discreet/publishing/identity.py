"""Identity of a release: title, version, population, what it replaces, who is responsible.

In: a small ``release.toml`` that is written once for a series of releases, and words for the one at
hand. Out: an :class:`Identity`, which goes into every file of a bundle. Nothing of it may be learnt
from the answers: that two releases are about the same data is stated by the steward, and never
found out by comparing the data, because that would tell the world exactly whether it changed.

A logo (PNG, JPEG or SVG) becomes a data address, which a page shows without asking any network. The
file is published, so it must be a picture and nothing else. A PNG must decode, a JPEG must have the
structure of one. Of SVG only elements, attributes and styles that draw are let through: what is not
on the lists below is refused, however it is spelt.
"""

from __future__ import annotations

import binascii
import json
import re
import tomllib
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, date, datetime
from difflib import get_close_matches
from itertools import accumulate
from os import PathLike
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree as ET

from discreet.errors import BadUsage
from discreet.privacy.ledger import EVERYONE
from discreet.schema import Count, NonNegative, Positive, SchemaError, read_as
from discreet.words import check_language, check_own

#: Largest file: a page with its logo should open at once.
LOGO_BYTES = 100_000
#: Largest side and area of a picture: a small file can unpack to gigabytes.
LOGO_SIDE, LOGO_PIXELS = 4_000, 8_000_000
PNG, JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
UNKNOWN = "it is neither PNG nor JPEG nor SVG"
_ADDRESS = re.compile(r"data:(image/(?:png|jpeg|svg\+xml));base64,([A-Za-z0-9+/]+={0,2})")


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
    match = _ADDRESS.fullmatch(address)
    try:
        content = b64decode(match[2], validate=True) if match else b""
    except binascii.Error:
        content = b""
    if match is None or _check_picture(content, "the logo") != match[1]:
        raise BadUsage(f"the logo of a release is a file, PNG, JPEG or SVG, found {address[:40]!r}")


def _check_picture(content: bytes, name: str) -> str:
    """Return which kind of picture it is, or refuse it."""
    if len(content) > LOGO_BYTES:
        raise BadUsage(
            f"{name} has {len(content):,} bytes, and a logo has at most {LOGO_BYTES:,}; make it "
            "smaller"
        )
    kind, problems = "image/svg+xml", _find_in_drawing
    if content.startswith(PNG):
        kind, problems = "image/png", _find_in_png
    elif content.startswith(JPEG):
        kind, problems = "image/jpeg", _find_in_jpeg
    problem = next(problems(content), None)
    if problem is not None:
        raise BadUsage(f"{name} cannot be a logo: {problem}")
    return kind


def _find_in_size(width: int, height: int) -> Iterator[str]:
    if not (1 <= width <= LOGO_SIDE and 1 <= height <= LOGO_SIDE):
        yield f"it has {width:,} x {height:,} pixels, and each side has 1 to {LOGO_SIDE:,}"
    elif width * height > LOGO_PIXELS:
        yield f"it has {width:,} x {height:,} pixels, more than {LOGO_PIXELS:,} in all"


# --- PNG (ISO/IEC 15948) --------------------------------------------------------------------------

DAMAGED = "it is a damaged PNG; save it again"
#: Samples of a pixel, by the type of colour.
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
#: Bits of a sample, by the type of colour.
DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
#: First column, columns apart, first row and rows apart of the passes of an interlaced picture.
PASSES = (
    (0, 8, 0, 8),
    (4, 8, 0, 8),
    (0, 4, 4, 8),
    (2, 4, 0, 4),
    (0, 2, 2, 4),
    (1, 2, 0, 2),
    (0, 1, 1, 2),
)


def _find_in_png(content: bytes) -> Iterator[str]:
    """Yield what keeps a PNG from being decoded."""
    chunks = [*_read_chunks(content)]
    names = [name for name, _ in chunks]
    if names[:1] != [b"IHDR"] or names[-1:] != [b"IEND"] or len(chunks[0][1]) != 13:
        yield DAMAGED
        return
    head = chunks[0][1]
    width, height = (int.from_bytes(head[place : place + 4]) for place in (0, 4))
    depth, colour, *methods = head[8:]
    yield from _find_in_size(width, height)
    is_known = depth in DEPTHS.get(colour, ()) and methods[:2] == [0, 0] and methods[2] in (0, 1)
    has_palette = colour != 3 or b"PLTE" in names
    others = {name for name in names if name[:1].isupper()} - {b"IHDR", b"PLTE", b"IDAT", b"IEND"}
    if not is_known or not has_palette or others or names.count(b"IHDR") > 1:
        yield DAMAGED
        return
    packed = b"".join(part for name, part in chunks if name == b"IDAT")
    lines = [*_list_lines(width, height, depth * CHANNELS[colour], is_interlaced=methods[2] == 1)]
    if not _unpacks_to(packed, lines):
        yield DAMAGED


def _read_chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield name and content of every chunk; the name is empty where its checksum is wrong."""
    start = len(PNG)
    while start < len(content):
        end = start + 8 + int.from_bytes(content[start : start + 4])
        name, checksum = content[start + 4 : start + 8], content[end : end + 4]
        is_whole = checksum == zlib.crc32(content[start + 4 : end]).to_bytes(4)
        yield (name if is_whole else b""), content[start + 8 : end]
        start = end + 4


def _list_lines(width: int, height: int, bits: int, *, is_interlaced: bool) -> Iterator[int]:
    """Yield the bytes of every line of pixels, the byte with its filter included."""
    for left, across, top, down in PASSES if is_interlaced else [(0, 1, 0, 1)]:
        columns, rows = len(range(left, width, across)), len(range(top, height, down))
        if columns:
            yield from [1 + (columns * bits + 7) // 8] * rows


def _unpacks_to(packed: bytes, lines: list[int]) -> bool:
    """Say whether packed data hold exactly these lines, each with a filter that exists."""
    stream, total = zlib.decompressobj(), sum(lines)
    try:
        pixels = stream.decompress(packed, total + 1)
    except zlib.error:
        return False
    if len(pixels) != total or not stream.eof or stream.unused_data:
        return False
    return all(pixels[start] <= 4 for start in accumulate([0, *lines[:-1]]))


# --- JPEG (ITU-T T.81) ----------------------------------------------------------------------------

#: Markers of frames that browsers show: baseline, extended and progressive.
FRAMES = (0xC0, 0xC1, 0xC2)
SCAN, END = 0xDA, b"\xff\xd9"


def _find_in_jpeg(content: bytes) -> Iterator[str]:
    """Yield what is wrong with the structure of a JPEG; its pixels are not decoded."""
    segments = [*_read_segments(content)]
    frames = [body for marker, body in segments if marker in FRAMES]
    if len(frames) != 1 or len(frames[0]) < 6 or not content.endswith(END):
        yield "it is a damaged JPEG, or of a kind that browsers do not show; save it as PNG"
        return
    height, width = (int.from_bytes(frames[0][place : place + 2]) for place in (1, 3))
    yield from _find_in_size(width, height)


def _read_segments(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield marker and body of the segments up to the first scan; nothing of a broken chain."""
    segments, start = [], 2
    while content[start : start + 1] == b"\xff" and start + 4 <= len(content):
        if content[start + 1] == 0xFF:  # fills up
            start += 1
            continue
        marker, size = content[start + 1], int.from_bytes(content[start + 2 : start + 4])
        segments.append((marker, content[start + 4 : start + 2 + size]))
        start += 2 + size
        if marker == SCAN and size >= 2 and start < len(content):
            yield from segments
            return
        if size < 2:
            return


# --- SVG ------------------------------------------------------------------------------------------

NAMESPACE = "{http://www.w3.org/2000/svg}"
XML = "{http://www.w3.org/XML/1998/namespace}"
LINK = "{http://www.w3.org/1999/xlink}href"


def _list_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Elements that draw, or say what is drawn.
ELEMENTS = _list_words(
    "svg g defs symbol use title desc style path rect circle ellipse line polyline polygon text "
    "tspan linearGradient radialGradient stop clipPath mask pattern"
)
#: Properties, as attributes and in styles.
STYLES = _list_words(
    "fill fill-opacity fill-rule clip-path clip-rule mask stroke stroke-width stroke-opacity "
    "stroke-linecap stroke-linejoin stroke-miterlimit stroke-dasharray stroke-dashoffset opacity "
    "color display visibility overflow isolation mix-blend-mode paint-order stop-color "
    "stop-opacity font-family font-size font-style font-weight font-stretch font-variant "
    "letter-spacing word-spacing text-anchor text-rendering shape-rendering color-interpolation "
    "dominant-baseline baseline-shift enable-background vector-effect"
)
ATTRIBUTES = STYLES | _list_words(
    "d points x y x1 y1 x2 y2 dx dy cx cy fx fy fr r rx ry width height offset "
    "transform viewBox preserveAspectRatio pathLength gradientUnits gradientTransform "
    "spreadMethod patternUnits patternContentUnits patternTransform clipPathUnits maskUnits "
    "maskContentUnits textLength lengthAdjust rotate aria-hidden type"
)
#: Attributes that are words and not drawn from.
TEXTS = {"aria-label", "role", "version", "baseProfile", "id", "class", f"{XML}space", f"{XML}lang"}
FUNCTIONS = _list_words("matrix translate scale rotate skewx skewy rgb rgba hsl hsla url")
_ENCODING = re.compile(r"<\?xml[^>]*?encoding\s*=\s*['\"]([^'\"]*)")
_VALUE = re.compile(r"[-\w\s.,#%()+*/'\"!]*")
_FUNCTION = re.compile(r"([-\w]*)\s*\(\s*([^()]*)\)?")
_INSIDE = re.compile(r"(['\"]?)#[-\w.]+\1\s*")
_RULE = re.compile(r"([-\w\s.,#*>]*)\{([^{}]*)\}\s*")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def _find_in_drawing(content: bytes) -> Iterator[str]:
    """Yield what keeps a drawing from being shown; nothing where it only draws."""
    try:
        text = content.decode("utf-8-sig")
        # Entities are what makes reading XML dangerous, so they are refused before it is read.
        if re.search(r"<!(DOCTYPE|ENTITY)|<\?(?!xml\s)", text, re.IGNORECASE):
            yield "it declares a document type, entities or a style sheet; save it as plain SVG"
            return
        declared = _ENCODING.match(text)
        if declared is not None and declared[1].lower() != "utf-8":
            yield f"it says that it is in {declared[1]!r}; save it as plain SVG in UTF-8"
            return
        drawing = ET.fromstring(text)  # noqa: S314 - no entities, as checked above
    except (UnicodeDecodeError, ET.ParseError):
        yield UNKNOWN
        return
    if drawing.tag != f"{NAMESPACE}svg":
        yield UNKNOWN
        return
    for part in drawing.iter():
        yield from _find_in_part(part)


def _find_in_part(part: ET.Element) -> Iterator[str]:
    """Yield what one element has that is on none of the lists."""
    name = str(part.tag).removeprefix(NAMESPACE)
    if name not in ELEMENTS:
        yield f"it holds <{_bare(name)}>, and a logo only draws; save it as plain SVG or as PNG"
    for key, value in part.attrib.items():
        if key in (LINK, "href"):
            if not _INSIDE.fullmatch(value):
                yield f"it refers to something elsewhere ({value[:40]!r})"
        elif key == "style":
            yield from _find_in_style(value)
        elif key in ATTRIBUTES:
            yield from _find_in_value(value)
        elif key not in TEXTS:
            yield f"<{_bare(name)}> has {_bare(key)}, which is not for drawing; save it as PNG"
    if name == "style":
        yield from _find_in_sheet(part)


def _find_in_sheet(part: ET.Element) -> Iterator[str]:
    """Yield what a style sheet has besides plain rules."""
    sheet = _COMMENT.sub(" ", part.text or "").strip()
    rules = [*_RULE.finditer(sheet)]
    if len(part) or "".join(rule[0] for rule in rules) != sheet:
        yield f"its style sheet has more than plain rules ({sheet[:40]!r}); save it as PNG"
    for rule in rules:
        yield from _find_in_style(rule[2])


def _find_in_style(text: str) -> Iterator[str]:
    """Yield what declarations have besides properties of :data:`STYLES`."""
    for declaration in filter(str.strip, text.split(";")):
        name, _, value = declaration.partition(":")
        if name.strip().lower() not in STYLES:
            yield f"its style sets {name.strip()[:40]!r}, which is not for drawing; save it as PNG"
        yield from _find_in_value(value)


def _find_in_value(value: str) -> Iterator[str]:
    """Yield what a value has besides numbers, words and functions of :data:`FUNCTIONS`."""
    calls = [*_FUNCTION.finditer(value)]
    is_known = all(call[1].lower() in FUNCTIONS for call in calls)
    inside = all(_INSIDE.fullmatch(call[2]) for call in calls if call[1].lower() == "url")
    if not (_VALUE.fullmatch(value) and is_known and inside):
        yield f"it refers to something elsewhere ({value.strip()[:40]!r})"


def _bare(name: str) -> str:
    """Return a name without its namespace."""
    return name.rpartition("}")[2]


# --- identity -------------------------------------------------------------------------------------

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
    logo
        A picture for the page: a file (PNG, JPEG, SVG), which is kept as a data address.
    words
        Own wording of the page: a file with a catalogue, which is kept as its text. Sentences of
        the promise are fixed.
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
    logo: str = field(default="", repr=False)
    words: str = field(default="", repr=False)
    language: str = ""
    population: str = EVERYONE
    looked: bool = False
    audit: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for name in NAMES:
            value = getattr(self, name)
            is_line = isinstance(value, str) and len(value) <= MOST_LETTERS and value.isprintable()
            if not is_line and name not in FILES:
                raise BadUsage(
                    f"the {name} of a release must be one line of text of at most {MOST_LETTERS:,} "
                    f"letters, found {str(value)[:40]!r}"
                )
        if self.date:
            _check_date(self.date)
        if self.language:
            check_language(self.language)
        if self.logo:
            check_logo(self.logo)
        if self.words:
            check_own(self.words, self.language or "en")
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
        texts: dict[str, Any] = {name: text for name, text in words.items() if text}
        return replace(self, **texts)

    def describe(self) -> dict[str, Any]:
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
#: What is given as a file, and kept as what was in it.
FILES = ("logo", "words")


def _check_date(text: str) -> None:
    try:
        is_plain = date.fromisoformat(text).isoformat() == text
    except ValueError:
        is_plain = False
    if not is_plain:
        raise BadUsage(f"the date of a release is written as 2026-11-16, found {text!r}")


#: Who a release is, in words or in a file.
About = Identity | Mapping[str, Any] | str | PathLike[str] | None


def make_identity(about: About, *, folder: Path | None = None) -> Identity:
    """Return an identity from words, or from a ``release.toml``; files are sought in ``folder``."""
    if about is None or isinstance(about, Identity):
        return about or Identity()
    words, prefix, folder = about, "", folder or Path()
    if isinstance(about, str | PathLike):
        words, prefix, folder = read_word_file(Path(about)), f"{about}: ", Path(about).parent
    parts = _read_parts(cast("Mapping[str, Any]", words), folder)
    refuse_unknown(parts, NAMES, prefix)
    return Identity(**parts)


def refuse_unknown(words: Mapping[str, Any], names: Sequence[str], prefix: str = "") -> None:
    """Refuse a name that a release does not have, and name one that is spelt alike."""
    for name in words:
        if name not in names:
            alike = get_close_matches(str(name), names, 1)
            hint = f"did you mean {alike[0]}?" if alike else f"known are {', '.join(names)}"
            raise BadUsage(f"{prefix}a release has no {name!r}; {hint}")


def read_word_file(path: Path) -> dict[str, Any]:
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


def _write_dates(value: Any) -> Any:
    """Return values with dates, which TOML may have without quotes, as text."""
    if isinstance(value, dict):
        return {name: _write_dates(part) for name, part in value.items()}
    return str(value) if isinstance(value, date) else value


def _read_parts(words: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Put the content of files in the place of their names; what was read before stays."""
    parts = dict(words)
    for name in FILES:
        file = words.get(name)
        if file is not None and not (isinstance(file, str | PathLike) and str(file)):
            raise BadUsage(f"the {name} of a release is a file, found {str(file)[:40]!r}")
    logo, agency_words = (str(words.get(name, "")) for name in FILES)
    if logo and not logo.startswith("data:"):
        parts["logo"] = read_logo(folder / logo)
    if agency_words and "\n" not in agency_words:
        path, language = folder / agency_words, str(words.get("language") or "en")
        try:
            parts["words"] = check_own(path.read_text(encoding="utf-8"), language, str(path))
        except OSError as error:
            raise BadUsage(f"the words {path} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise BadUsage(f"the words {path} are no text in UTF-8") from None
    return parts


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


def read_audit(path: Path) -> dict[str, Any]:
    """Return the facts that a release tells of an audit, from what its command printed."""
    try:
        printed = json.loads(path.read_text(encoding="utf-8"))
        names = {fact.name for fact in fields(AuditFacts)}
        facts = {name: printed[name] for name in printed if name in names}
        return asdict(read_as(AuditFacts, facts, "the audit"))
    except FileNotFoundError:
        raise BadUsage(
            f"{path} does not exist; write it with: discreet audit --json > {path}"
        ) from None
    except (OSError, ValueError, TypeError, RecursionError) as error:
        why = f" ({error})" if isinstance(error, SchemaError) else ""
        raise BadUsage(f"{path} is not what 'discreet audit --json' prints{why}") from None
