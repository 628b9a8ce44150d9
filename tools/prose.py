"""Measure the documents: words, length of sentences, pictures.

``python -m tools.prose`` prints a table, ``python -m tools.prose --long PAGE`` the long sentences.
Words are those that a reader sees: all of a page but comments. For the length of sentences code,
tables and headings do not count, and proofs are exempt. What is generated does not count at all.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
LONG = 30
PROOFS = ("privacy-accounting.md",)
"""Pages of proofs."""
GENERATED = ("api.md",)
"""Pages that `tools.reference` writes as a whole; of ``cli.md`` it writes what follows a note."""
REST = re.compile(r"<!-- All that follows is written by .*", re.S)
EXEMPT = re.compile(r"<!-- proof -->.*?<!-- end of proof -->", re.S)
BLOCK = re.compile(r"^(```|~~~).*?^\1$", re.M | re.S)
MATH = re.compile(r"^ {4,}\S.*$|\$\$.*?\$\$", re.M | re.S)
COMMENT = re.compile(r"<!--.*?-->", re.S)
NOT_PROSE = re.compile(r"^(\||#|!\[|:::|\s*[-=]{3,}).*$", re.M)
PICTURE = re.compile(r"!\[.*?\]\((\S+?)\)")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
END = re.compile(r"(?<=[.!?:;])[\"'”)*_`]*\s+(?=[\"'“(*_`A-Z0-9])|\n\s*\n|\n\s*(?:[-*]|\d+\.)\s+")
WORD = re.compile(r"[A-Za-zÀ-ž0-9][\w.'’\-]*")


def list_pages() -> list[Path]:
    """Return the pages of the documentation that somebody wrote."""
    pages = [page for page in DOCS.rglob("*.md") if "decisions" not in page.parts]
    return sorted(page for page in pages if page.name not in GENERATED)


def read_page(page: Path) -> str:
    """Return what somebody wrote of a page."""
    return REST.sub("", page.read_text(encoding="utf-8"))


def count_words(page: Path) -> int:
    """Return the number of words of a page, without comments."""
    return len(WORD.findall(COMMENT.sub("", read_page(page))))


def split_sentences(page: Path) -> list[str]:
    """Return the sentences of a page that the limits are about; none of a page of proofs."""
    if page.name in PROOFS:
        return []
    text = EXEMPT.sub("", read_page(page))
    for pattern in (COMMENT, BLOCK, MATH, NOT_PROSE):
        text = pattern.sub("\n\n", text)
    sentences = END.split(LINK.sub(r"\1", text))
    return [" ".join(s.split()) for s in sentences if s and len(WORD.findall(s)) > 2]


def measure_prose() -> dict[str, float]:
    """Return the figures of all pages together."""
    pages = list_pages()
    lengths = [len(WORD.findall(s)) for page in pages for s in split_sentences(page)]
    pictures = {name for page in pages for name in PICTURE.findall(page.read_text())}
    return {
        "words in documents": sum(map(count_words, pages)),
        "words of a mean sentence": round(sum(lengths) / len(lengths), 1),
        "long sentences, percent": round(
            100 * sum(length > LONG for length in lengths) / len(lengths), 1
        ),
        "pictures in documents": len(pictures),
    }


def main() -> None:
    """Print the figures, or the long sentences of one page."""
    if sys.argv[1:2] == ["--long"]:
        for sentence in split_sentences(Path(sys.argv[2])):
            if len(WORD.findall(sentence)) > LONG:
                print(f"{len(WORD.findall(sentence)):4d}  {sentence}")
        return
    for page in list_pages():
        lengths = [len(WORD.findall(s)) for s in split_sentences(page)]
        mean = sum(lengths) / max(len(lengths), 1)
        share = 100 * sum(n > LONG for n in lengths) / max(len(lengths), 1)
        print(f"{page.relative_to(DOCS)!s:32}{count_words(page):8,}{mean:8.1f}{share:6.1f}%")
    for name, figure in measure_prose().items():
        print(f"{name:32}{figure:8,}")


if __name__ == "__main__":
    main()
