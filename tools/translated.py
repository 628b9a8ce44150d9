"""Measure how much of the studio's pages is translated: ``python -m tools.translated [-v]``.

In: the pages Data and Report of a class test and of a questionnaire, in German and Spanish. Out: of
the words of visible text and labels that do not come from the file, the share that no translated
sentence says: of the page as it opens, and with everything unfolded; ``-v`` lists the sentences.

Every translation is marked word by word before pages are made, so what bears no mark was never
translated. Code that is meant to be copied does not count.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

from starlette.testclient import TestClient

from discreet import words
from discreet.studio.jobs import JobTable, StudioJob, run_task
from discreet.studio.kept_files import Recent
from discreet.studio.safety import Keys
from discreet.studio.server import build_app
from discreet.studio.session import StudioSession

__all__ = ["PageTexts", "list_pages", "main", "measure"]

TABLES = Path(__file__).parents[1] / "tests" / "data" / "tables"
FILES = {"quiz export.csv": {"key": "CABDDBACABDC"}, "Umfrage.csv": {}}
HOST = "127.0.0.1:8765"
MARK = "\N{REFERENCE MARK}"
_WORD = re.compile(r"[^\W\d_]{2,}")
_HIDDEN = {"script", "style", "pre", "code", "head"}
_VOID = {"meta", "link", "input", "br", "img", "rect", "line", "circle", "path", "polyline"}
#: Names of languages and of the program, which are the same everywhere.
NAMES = {"discreet", "studio", "english", "deutsch", "español"}


class InPlace(JobTable):
    """Does a job at once and in this process, where translations are marked."""

    def start(self, title, task, /, **arguments):  # type: ignore[no-untyped-def]
        """Do a task."""
        name = f"job-{len(self._jobs) + 1}"
        folder = self.folder / name
        folder.mkdir()
        process = SimpleNamespace(exitcode=0, kill=lambda: None, join=lambda: None)
        job = self._jobs[name] = StudioJob(name, title, folder, process)  # type: ignore[arg-type]
        run_task(folder, task, arguments, None)
        return job


def mark_language(code: str) -> words.Language:
    """Return a language whose words bear a mark, but for names of values in braces."""
    language = words.Language(code, dict(words.load_words(code).catalogue))
    marked = {
        key: re.sub(
            r"\{\w*\}|[^\W\d_]{2,}", lambda m: m[0] if m[0][0] == "{" else MARK + m[0], text
        )
        for key, text in language.catalogue.items()
    }
    return words.Language(code, marked)


class PageTexts(HTMLParser):
    """Collects the texts and labels of a page; whether each is seen before anything is unfolded."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[tuple[str, bool]] = []
        self._open: list[tuple[str, bool]] = []  # tags, and whether they fold what is in them
        self._in_summary = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        for name in ("aria-label", "title", "placeholder", "alt"):
            self._add(given.get(name) or "")
        if tag not in _VOID:
            self._open.append((tag, tag == "details" and "open" not in given))

    def handle_endtag(self, tag: str) -> None:
        if tag in [one for one, _ in self._open]:
            while self._open.pop()[0] != tag:
                pass

    def handle_data(self, data: str) -> None:
        self._add(data)

    def _add(self, text: str) -> None:
        tags = [tag for tag, _ in self._open]
        if not _HIDDEN.intersection(tags):
            folds = sum(folds for _, folds in self._open)
            shown = folds == 0 or (folds == 1 and "summary" in tags)
            self.texts.append((text, shown))


def list_pages(code: str) -> Iterator[tuple[str, str, set[str]]]:
    """Yield the name of each page, its HTML in a language, and the words of its file."""
    usual = words.load_words(code)
    words.load_words.cache_clear()
    marked = mark_language(code)
    from discreet.studio import language, messages

    def load_marked(one: str) -> words.Language:
        return marked if one == code else usual

    real = words.load_words
    language.load_words = messages.load_words = load_marked  # type: ignore[assignment]
    messages.say_message.cache_clear()
    try:
        with tempfile.TemporaryDirectory() as folder:
            session = StudioSession(Path(folder), Recent(None))
            session.__dict__["jobs"] = InPlace(session.folder)
            keys = Keys(8765)
            client = TestClient(
                build_app(session, keys), base_url=f"http://{HOST}", follow_redirects=False
            )
            client.get(f"/enter?token={keys.token}&lang={code}")
            client.get(f"/?lang={code}")
            for name, said in FILES.items():
                content = (TABLES / name).read_bytes()
                own = {*_WORD.findall(content.decode("utf-8", "replace").lower())}
                own |= {*_WORD.findall(name.lower())}
                for page, html in _walk(client, name, content, said):
                    yield f"{name}: {page}", html, own
    finally:
        language.load_words = messages.load_words = real
        messages.say_message.cache_clear()


def _walk(
    client: TestClient, name: str, content: bytes, said: dict[str, str]
) -> Iterator[tuple[str, str]]:
    origin = {"Origin": f"http://{HOST}"}
    sent = client.post("/upload", files=[("file", (name, content))], headers=origin)
    address = sent.headers["location"]
    client.get(address)
    page = client.get(address).text
    yield "data, with questions", page
    look = re.search(r'name="look" value="([^"]+)"', page)
    marked = dict(re.findall(r'name="(answer:[0-9]+)" value="(0)"[^>]* checked', page))
    client.post(address, data={"look": look and look[1], **marked, **said}, headers=origin)
    client.get(address)
    yield "data", client.get(address).text
    begun = client.post(address.replace("data", "calibrate"), data={}, headers=origin)
    report = begun.headers["location"]
    yield "report", client.get(report).text
    yield "item", client.get(f"{report}/items/1").text
    yield "persons", client.get(report.replace("report", "persons")).text


def measure(html: str, own: set[str]) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Return how many words are translated and not: as it opens, unfolded; and what is not."""
    parser = PageTexts()
    parser.feed(html)
    opened, unfolded, left = Counter[str](), Counter[str](), Counter[str]()
    for text, is_shown in parser.texts:
        plain = []
        for mark, word in re.findall(rf"({MARK}?)([^\W\d_]{{2,}})", text):
            if not mark and (word.lower() in own or word.lower() in NAMES):
                continue
            kind = "translated" if mark else "not"
            unfolded[kind] += 1
            opened[kind] += is_shown
            plain += [] if mark else [word]
        if plain:
            left[("  " if is_shown else "~ ") + " ".join(text.split())[:130]] += len(plain)
    return opened, unfolded, left


def main() -> None:
    """Print the table."""
    left: Counter[str] = Counter()
    print(f"{'':42}{'as it opens':>14}{'unfolded':>14}")
    for code in ("de", "es"):
        total = [Counter[str](), Counter[str]()]
        for name, html, own in list_pages(code):
            opened, unfolded, plain = measure(html, own)
            left += plain
            print(f"{code} {name:39}{_share(opened):>14}{_share(unfolded):>14}")
            total[0] += opened
            total[1] += unfolded
        print(f"{code} {'all':39}{_share(total[0]):>14}{_share(total[1]):>14}")
    if "-v" in sys.argv:
        for text, times in left.most_common(250):
            print(times, text)


def _share(counts: Counter[str]) -> str:
    words_in_all = sum(counts.values())
    return f"{100 * counts['not'] / max(words_in_all, 1):.0f}% of {words_in_all}"


if __name__ == "__main__":
    main()
