"""An agency's own text, logo and wording on its pages, without touching code."""

import re
import zlib

import pytest

import discreet
from commandline import LSAT_ITEMS
from commandline import discreet as typed
from discreet import Budget, Ledger
from discreet.errors import BadUsage
from discreet.privacy.ledger.request import Request
from discreet.publishing.identity import make_identity
from discreet.words import KINDS, NOUNS, SOURCE, is_fixed, is_published, read_entries

SENTENCES = read_entries(SOURCE.read_text("utf-8"), SOURCE.name)


def chunk(name, content):
    body = name + content
    return len(content).to_bytes(4) + body + zlib.crc32(body).to_bytes(4)


def png(width=3, height=2, *, depth=8, colour=6, interlaced=0, pixels=None, extra=b"", tail=b""):
    """Return a picture; by default of transparent pixels."""
    head = width.to_bytes(4) + height.to_bytes(4) + bytes([depth, colour, 0, 0, interlaced])
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}.get(colour, 1)
    line = bytes(1 + (width * depth * channels + 7) // 8)
    packed = zlib.compress(line * height if pixels is None else pixels)
    parts = [chunk(b"IHDR", head), extra, chunk(b"IDAT", packed[:5]), chunk(b"IDAT", packed[5:])]
    return b"\x89PNG\r\n\x1a\n" + b"".join([*parts, chunk(b"IEND", b""), tail])


PNG = png()
JPEG = (
    b"\xff\xd8\xff\xe0\x00\x04JF\xff\xc0\x00\x0b\x08\x00\x02\x00\x03\x01\x01\x11\x00"
    b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00\x12\xff\xd9"
)
"""The frame of 3 x 2 grey pixels."""
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><rect width="9" height="9"/></svg>'
OWN = 'msgid "What is promised"\nmsgstr "Was wir <b>versprechen</b>"\n'


def publish(tmp_path, lines, **files):
    """Release with this ``release.toml``, from another folder than the one it stands in."""
    folder = tmp_path / "series"
    folder.mkdir()
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_bytes(content)
    (folder / "release.toml").write_text("\n".join(lines), "utf-8")
    made = discreet.release(
        discreet.datasets.lsat(), Budget(1.0), items=LSAT_ITEMS, about=folder / "release.toml"
    )
    made.save(tmp_path / "out")
    discreet.verify(tmp_path / "out")
    return (tmp_path / "out" / "report.html").read_text("utf-8")


@pytest.mark.parametrize(("name", "content"), [("logo.png", PNG), ("logo.svg", SVG)])
def test_a_page_carries_the_logo_and_the_words_of_its_agency(name, content, tmp_path):
    lines = [f'logo = "{name}"', 'body = "Amt & Söhne"', 'introduction = "<b>Hier.</b>"']
    page = publish(tmp_path, [*lines, 'footer = "Impressum"'], **{name.replace(".", "_"): content})
    assert f'<img src="data:image/{"png" if name[-3:] == "png" else "svg+xml"};base64,' in page
    assert 'alt="Amt &amp; Söhne"' in page
    assert "&lt;b&gt;Hier.&lt;/b&gt;" in page
    assert '<footer class="note">Impressum</footer>' in page
    assert "; img-src data:;" in page
    assert not re.search(r'(?:src|href)="(?!data:|#)', page), "something from elsewhere"
    again = discreet.read_release(tmp_path / "out")
    again.save(tmp_path / "again")
    assert (tmp_path / "again" / "report.html").read_text("utf-8") == page


def test_a_page_without_a_logo_may_show_no_image(tmp_path):
    page = publish(tmp_path, ['title = "T"'])
    assert "img-src" not in page
    assert "<img" not in page


def test_an_agency_words_its_page_itself(tmp_path):
    lines = ['language = "de"', 'words = "own.po"']
    page = publish(tmp_path, lines, own_po=OWN.encode())
    assert "<h2>Was wir &lt;b&gt;versprechen&lt;/b&gt;</h2>" in page
    assert "Wie es berechnet wurde" in page
    # In another language its own words are kept, and not said.
    discreet.read_release(tmp_path / "out").save(tmp_path / "es", language="es")
    assert "Qué se promete" in (tmp_path / "es" / "report.html").read_text("utf-8")
    discreet.read_release(tmp_path / "es").save(tmp_path / "de", language="de")
    assert (tmp_path / "de" / "report.html").read_text("utf-8") == page


def test_an_agency_may_start_from_the_whole_list(tmp_path):
    source = SOURCE.read_text("utf-8")
    own = source.replace('msgid "Item table"\nmsgstr ""', 'msgid "Item table"\nmsgstr "Our items"')
    page = publish(tmp_path, ['words = "own.po"'], own_po=own.encode())
    assert 'aria-label="Our items"' in page


def test_the_nouns_of_the_kinds_are_known():
    assert all(set(kind.nouns) == NOUNS for kind in KINDS.values())


def test_what_is_said_of_the_promise_is_fixed():
    free = [one.sentence for one in SENTENCES if not is_fixed(one) and is_published(one)]
    fixed = [one.sentence for one in SENTENCES if is_fixed(one)]
    assert "What is promised" in free
    assert "{Number} in logits; {scale} {items} lie further right" in " ".join(free)
    for word in ("sure of it", "differential privacy", "Not private", "stays spent", "Charged to"):
        assert any(word in one for one in fixed)
        assert not any(word in one for one in free), word


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ('msgid "Charged to ledger {ledger}."\nmsgstr "x {ledger}"', "part of the promise"),
        ('msgid "Privacy loss"\nmsgstr "None"', "part of the promise"),
        ('msgid "Whatever"\nmsgstr "x"', "no page says 'Whatever'"),
        ('msgid "Calibrate these answers"\nmsgstr "x"', "no page says"),  # the studio does
        ('msgid "All {items}"\nmsgstr "x"', "no page says"),
        ('msgctxt "answers"\nmsgid "All {items}"\nmsgstr "{answers}"', "other names in braces"),
        ('msgid "{low} to {high}"\nmsgstr "{low}"', "other names in braces"),
        ('msgid "{low} to {high}"\nmsgstr "{low} {high.real}"', "other names in braces"),
        ('msgid "{low} to {high}"\nmsgstr "{low} {high!r}"', "more than a name"),
        ('msgid "{low} to {high}"\nmsgstr "{low"', "brace"),
        ('#, fuzzy\nmsgid "First"\nmsgstr "x"', "fuzzy"),
        ('msgid ""\nmsgstr "Language: es\\n"\n\nmsgid "First"\nmsgstr "x"', "speaks 'de'"),
        ("\x00", "no line of a catalogue"),
    ],
)
def test_own_words_that_cannot_be_said_are_refused_before_anything_is_spent(own, message, tmp_path):
    (tmp_path / "own.po").write_text(own + "\n", "utf-8")
    book = Ledger.create(tmp_path / "spent.db", 3.0)
    about = {"language": "de", "words": tmp_path / "own.po"}
    with pytest.raises(BadUsage, match=message):
        discreet.release("no such file", Budget(1.0), items=LSAT_ITEMS, ledger=book, about=about)
    assert book.spent()[0] == 0


def drawn(inside, outside="", attributes=""):
    return f'{outside}<svg xmlns="http://www.w3.org/2000/svg"{attributes}>{inside}</svg>'.encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"GIF89a" + bytes(40), "neither PNG nor JPEG nor SVG"),
        (b"<html></html>", "neither PNG nor JPEG nor SVG"),
        (b"", "neither PNG nor JPEG nor SVG"),
        (PNG + bytes(100_000), "make it smaller"),
        (b"\x89PNG\r\n\x1a\n" + bytes(40), "damaged PNG"),
        (b"\x89PNG\r\n\x1a\n<script>alert(1)</script>", "damaged PNG"),
        (PNG[:-1] + b"\0", "damaged PNG"),
        (PNG[:-12], "damaged PNG"),
        (png(tail=b"<script>"), "damaged PNG"),
        (png(tail=chunk(b"tEXt", b"after the end")), "damaged PNG"),
        (png(pixels=bytes(10)), "damaged PNG"),
        (png(pixels=bytes(27)), "damaged PNG"),
        (png(pixels=b"\x05" + bytes(25)), "damaged PNG"),
        (png(pixels=bytes(13) + b"\x07" + bytes(12)), "damaged PNG"),
        (png(depth=4), "damaged PNG"),
        (png(colour=5), "damaged PNG"),
        (png(colour=3), "damaged PNG"),
        (png(extra=chunk(b"ABCD", b"")), "damaged PNG"),
        (png(0, 0), "each side has 1 to 4,000"),
        (png(4001, 1), "each side has 1 to 4,000"),
        (png(4000, 4000, pixels=b""), "more than 8,000,000"),
        (png(2000, 2000, pixels=bytes(30_000_000)), "damaged PNG"),
        (b"\xff\xd8\xff" + bytes(40), "damaged JPEG"),
        (b"\xff\xd8\xff<script>alert(1)</script>\xff\xd9", "damaged JPEG"),
        (JPEG + b"<script>", "damaged JPEG"),
        (JPEG.replace(b"\x00\x02\x00\x03", b"\xff\xff\xff\xff"), "each side has 1 to 4,000"),
        (JPEG.replace(b"\xff\xc0", b"\xff\xc3"), "damaged JPEG"),
        (drawn("<script>alert(1)</script>"), "<script>"),
        (drawn("<foreignObject/>"), "<foreignObject>"),
        (drawn("", attributes=' onload="alert(1)"'), "onload"),
        (drawn('<use href="https://example.org/x.svg#a"/>'), "elsewhere"),
        (drawn('<use xmlns:x="http://www.w3.org/1999/xlink" x:href="x.svg#a"/>'), "elsewhere"),
        (drawn("<style>@import 'x.css';</style>"), "more than plain rules"),
        (drawn('<rect fill="url(https://example.org/x)"/>'), "elsewhere"),
        (drawn("", outside='<!DOCTYPE svg [<!ENTITY a "b">]>'), "document type"),
        (drawn("", outside='<?xml-stylesheet href="x.css"?>'), "style sheet"),
        (drawn("").decode().encode("utf-16"), "neither PNG nor JPEG nor SVG"),
        (drawn("", outside='<?xml version="1.0" encoding="utf-7"?>'), "says that it is in 'utf-7'"),
        (drawn("", outside="<?php x ?>"), "style sheet"),
        (b"<svg><rect/></svg>", "neither PNG nor JPEG nor SVG"),
    ],
)
def test_a_file_that_is_no_harmless_picture_is_refused_before_anything_is_spent(
    content, message, tmp_path
):
    (tmp_path / "logo").write_bytes(content)
    book = Ledger.create(tmp_path / "spent.db", 3.0)
    about = {"logo": tmp_path / "logo"}
    with pytest.raises(BadUsage, match=message):
        discreet.release("no such file", Budget(1.0), items=LSAT_ITEMS, ledger=book, about=about)
    assert book.spent()[0] == 0


ELSEWHERE = {
    "an escaped rule": r"<style>@\69mport 'http://x/y.css';</style>",
    "an escaped function": r"<style>a{fill:u\72l(http://x/y)}</style>",
    "an escape in an attribute": r'<rect fill="u\72l(http://x/y)"/>',
    "a set of images": "<style>a{fill:image-set('http://x/y' 1x)}</style>",
    "a source": "<style>a{fill:src('http://x/y')}</style>",
    "a style of its own": '<rect style="background:url(http://x/y)"/>',
    "a style with a comment": '<rect style="fill:url/**/(http://x/y)"/>',
    "text after a child": "<style><g/>@import 'http://x/y.css';</style>",
    "an animation": '<rect><animate attributeName="href" values="http://x/y"/></rect>',
    "a link that is set": '<rect><set attributeName="href" to="java&#9;script:1"/></rect>',
    "a picture": '<image href="data:image/png;base64,AAAA"/>',
    "a picture in a filter": '<filter><feImage href="http://x/y"/></filter>',
    "another base": '<g xml:base="http://x/"><use href="#a"/></g>',
    "another document": '<h:img xmlns:h="http://www.w3.org/1999/xhtml" src="http://x/y"/>',
    "a font": "<style>@font-face{font-family:a;fill:url(http://x/y)}</style>",
    "an address for a colour": '<rect fill="http://x/y"/>',
    "an event": '<rect onclick="alert(1)"/>',
    "an event in capitals": '<rect onCLICK="alert(1)"/>',
    "a cursor": '<rect cursor="url(http://x/y)"/>',
    "a reference with a host": '<use href="//x/y#a"/>',
}


@pytest.mark.parametrize("how", ELSEWHERE)
def test_a_drawing_that_asks_for_something_elsewhere_is_refused_however_it_is_spelt(how, tmp_path):
    (tmp_path / "logo.svg").write_bytes(drawn(ELSEWHERE[how]))
    with pytest.raises(BadUsage, match="cannot be a logo"):
        make_identity({"logo": tmp_path / "logo.svg"})


@pytest.mark.parametrize(
    "content",
    [
        png(1, 1, depth=1, colour=0),
        png(5, 3, depth=16, colour=2),
        png(9, 1, depth=4, colour=3, extra=chunk(b"PLTE", bytes(3))),
        png(colour=4, extra=chunk(b"tEXt", b"Author\0A")),
        # Interlaced, 3 x 2: passes of 1 x 1, 1 x 1, 2 x 1 (columns x rows) and 3 x 1 pixels.
        png(interlaced=1, pixels=bytes(5 + 5 + 5 + 13)),
        JPEG,
        drawn('<g id="a" class="b"><path d="M0 0L1,1z" transform="rotate(4)"/></g>'),
        drawn('<style type="text/css">/* x */ .a{fill:#FFF;} .b, g { stroke : rgb(1, 2) }</style>'),
        drawn('<rect style="fill:#000;stroke:none;font-family:\'A B\'" xml:space="preserve"/>'),
        drawn("<title>An: office</title>", outside='<?xml version="1.0" encoding="UTF-8"?>'),
    ],
)  # fmt: skip
def test_pictures_of_common_programs_are_taken(content, tmp_path):
    (tmp_path / "logo").write_bytes(content)
    assert make_identity({"logo": tmp_path / "logo"}).logo.startswith("data:image/")


def test_a_drawing_may_refer_to_itself(tmp_path):
    parts = '<linearGradient id="a"/><rect fill="url(#a)"/><use href="#a"/>'
    (tmp_path / "logo.svg").write_bytes(drawn(parts))
    assert make_identity({"logo": tmp_path / "logo.svg"}).logo.startswith("data:image/svg+xml")


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"logo": "data:image/png;base64,AAAA"}, "neither PNG"),
        ({"logo": "data:text/html;base64,AAAA"}, "is a file"),
        ({"logo": "nowhere.png"}, "cannot be read"),
        ({"words": "nowhere.po"}, "cannot be read"),
        ({"logo": 3}, "is a file"),
        ({"introduction": "two\nlines"}, "one line of text"),
    ],
)
def test_what_an_agency_gives_is_checked(about, message):
    with pytest.raises(BadUsage, match=message):
        make_identity(about)


def test_approvers_sign_the_logo_and_the_words_too(tmp_path):
    (tmp_path / "logo.png").write_bytes(PNG)
    (tmp_path / "own.po").write_text(OWN, "utf-8")
    (tmp_path / "items.txt").write_text("\n".join(LSAT_ITEMS))
    lines = ['logo = "logo.png"', 'words = "own.po"', 'language = "de"', 'footer = "Impressum"']
    (tmp_path / "release.toml").write_text("\n".join(lines))
    assert typed("ledger", "create", tmp_path / "spent.db", "--epsilon", 3).code == 0
    asked = ["--items", tmp_path / "items.txt", "--epsilon", 1, "--ledger", tmp_path / "spent.db"]
    about = ["--about", tmp_path / "release.toml", "--out", tmp_path / "request.json"]
    shown = typed("steward", "propose", *asked, *about)
    assert shown.code == 0
    assert "logo: image/png, SHA-256 " in shown.out
    assert "Was wir <b>versprechen</b>" in shown.out
    request = Request.load(tmp_path / "request.json")
    made = discreet.release_request(discreet.datasets.lsat(), request, out=tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert '<img src="data:image/png;base64,' in page
    assert "Was wir &lt;b&gt;versprechen" in page
    assert made.record["identity"]["language"] == "de"
