"""The studio in other languages: its words come from the catalogue, its numbers are the same."""

import json
import re
from html import unescape
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from starlette.testclient import TestClient

from catalogues import SENTENCES, Bracketed, english_in, outside, read_catalogue
from discreet.studio.kept_files import Home, Recent
from discreet.studio.language import COOKIE, prefer_language
from discreet.studio.messages import say_message
from discreet.studio.safety import Keys
from discreet.studio.server import build_app
from discreet.studio.session import StudioSession
from discreet.words import LANGUAGES, Language
from studio_tasks import InPlace

HOST = "127.0.0.1:8765"
ORIGIN = {"Origin": f"http://{HOST}"}
OTHERS = sorted({*LANGUAGES} - {"en"})
ITEMS = [f"Item{number}" for number in range(1, 6)]


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    """A studio in which everything was done once: read, calibrated, compared, planned, released."""
    place = tmp_path_factory.mktemp("languages")
    (place / "private").mkdir()
    session = StudioSession(
        place / "private",
        Recent(place / "studio.json"),
        Home(place / "home"),
        Recent(place / "ledgers.json"),
    )
    session.__dict__["jobs"] = InPlace(session.folder)
    keys = Keys(8765)
    client = TestClient(build_app(session, keys), base_url=f"http://{HOST}", follow_redirects=False)
    assert client.get(f"/enter?token={keys.token}").status_code == 200
    post(client, "/example", name="lsat.csv")
    client.get("/data/work-1")
    for method in ("refined", "conditional"):
        post(client, "/calibrate/work-1", method=method)
    letters = "id,q1,q2,q3\n" + "".join(f"{n},{'ABC'[n % 3]},{'BA'[n % 2]},C\n" for n in range(40))
    client.post("/upload", files={"file": ("letters.csv", letters)}, headers=ORIGIN)
    client.get("/data/work-2")
    post(client, "/example", name="wellbeing.csv")
    client.get("/data/work-3")
    post(client, "/calibrate/work-3")
    post(client, "/ledgers", name="Grade 8", epsilon="9", delta="1e-6", populations="north, south")
    (place / "items.txt").write_text("\n".join(ITEMS))
    terms = {"items_path": str(place / "items.txt"), "account": "ledger-1/everyone", "title": "T"}
    numbers = {"epsilon": "1", "delta": "1e-6", "persons": "1000"}
    for version in ("1", "2"):
        files = {"file": ("", b"")}
        data = {**terms, **numbers, "version": version}
        asked = client.post("/release/work-1", data=data, files=files, headers=ORIGIN)
        assert asked.status_code == 303, unescape(asked.text)
    post(client, asked.headers["location"], epsilon="1")
    client.ticket = next(one for one in session.tickets if session.tickets[one].job is None)
    client.bundle = next(iter(session.home.list_releases()))
    return client


def post(client, address, **said):
    answer = client.post(address, data=said, headers=ORIGIN)
    assert answer.status_code == 303, unescape(answer.text)
    return answer


def list_pages(client):
    """Return the address of a page of every kind."""
    runs = re.findall(r"/report/work-1/(job-\d+)", client.get("/calibrate/work-1").text)
    first, second = sorted({*runs})
    steps = re.search(r"/report/work-3/(job-\d+)", client.get("/calibrate/work-3").text)[1]
    report, persons = f"/report/work-1/{first}", f"/persons/work-1/{first}"
    return [
        *("/", "/data/work-1", "/data/work-2", "/data/work-3", "/calibrate/work-1"),
        *(report, f"{report}/items/1", persons, f"{persons}/3", f"/report/work-3/{steps}"),
        f"/compare/work-1?first={first}&second={second}",
        *("/plan", "/plan?persons=&items=20&epsilon=1&target_rmse=0.2&top=3", "/plan?persons=many"),
        *("/release", "/release/work-1", "/release/work-2", f"/releases/{client.ticket}"),
        *("/ledgers", "/ledgers/ledger-1", "/releases", f"/bundles/{client.bundle}", "/nowhere"),
    ]


class Spoken(HTMLParser):
    """What a page says itself: without parts in English or in a release's language, and names."""

    VOID = ("meta", "link", "input", "br")
    SKIPPED = ("script", "style", "pre", "code")

    def __init__(self, text):
        super().__init__()
        self.parts, self.skipped = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag not in self.VOID and (
            self.skipped or tag in self.SKIPPED or self.is_other(tag, found)
        ):
            self.skipped.append(tag)
        if not self.skipped:
            said = [
                found[name] for name in ("aria-label", "title", "data-shown") if found.get(name)
            ]
            self.parts += said

    def is_other(self, tag, attributes):
        return tag != "html" and "lang" in attributes

    def handle_endtag(self, tag):
        if self.skipped and self.skipped[-1] == tag:
            self.skipped.pop()

    def handle_data(self, text):
        if not self.skipped:
            self.parts.append(text)


with (files("discreet") / "data" / "wellbeing.csv").open() as table:
    COLUMNS = re.findall(r"\w+", next(table))
NAMES = {
    *(word for column in COLUMNS for word in column.split("_")),
    # The program, files, columns, mechanisms and what was typed.
    *(
        "discreet",
        "studio",
        "lsat",
        "csv",
        "letters",
        "steps",
        "txt",
        "items",
        "json",
        "Item",
        "zip",
    ),
    *(
        "north",
        "south",
        "Grade",
        "id",
        "gender",
        "person",
        "margins",
        "pairs",
        "laplace",
        "sparse",
        "residuals",
    ),
    *("randomized", "response", "totals", "rasch", "refined", "conditional", "partial", "credit"),
    *(
        "residuals",
        "home",
        "ann",
        "answers",
        "xlsx",
        "srv",
        "office",
        "spent",
        "db",
        "DISCREET",
        "STUDIO",
    ),
    *(
        "RECENT",
        "private",
        "releases",
        "put",
        "away",
        "ledgers",
        "release",
        "md",
        "html",
        "spending",
    ),
    *("estimated", "wellbeing", "policy", "toml", "key", "many", "below"),
    *("Deutsch", "Español", "gaussian"),
    # Remarks on items, which the report makes in English.
    *("disordered", "differs", "by"),
}


def check_words(text):
    said = unescape(" ".join(Spoken(text).parts)).replace("40 and above", "")
    said = re.sub(r"(/[\w.-]+){3,}|[\w-]+-[0-9a-f]{8}\b|\b\S+\.(csv|txt|db|json)\b", " ", said)
    return {word for word in outside(said) if not re.fullmatch(r"[0-9a-f]{2,}|UTC|T", word)} - NAMES


class Known(Bracketed):
    """A bracketed language in which names and numbers, which are not listed, stay as they are."""

    def get(self, key, default):
        return super().get(key, default) if key[:2] in SENTENCES else default


@pytest.fixture
def bracketed(monkeypatch):
    spoken = Language("de", Known())
    say_message.cache_clear()
    for module in ("studio.language", "studio.messages", "report.spending"):
        monkeypatch.setattr(f"discreet.{module}.load_words", lambda _: spoken)
    yield
    say_message.cache_clear()


@pytest.mark.usefixtures("bracketed")
def test_every_word_of_the_pages_comes_from_the_catalogue(studio):
    left = {page: check_words(studio.get(page).text) for page in list_pages(studio)}
    found = {page: words for page, words in left.items() if words}
    assert found == {}, found


@pytest.mark.usefixtures("bracketed")
def test_refusals_come_from_the_catalogue(studio):
    for address, said in (
        ("/ledgers", {"name": "x", "epsilon": "many"}),
        ("/ledgers", {"name": ""}),
        ("/ledgers", {"name": "a/b", "epsilon": "1", "delta": "0"}),
        ("/open", {"path": ""}),
        ("/open", {"path": "answers.csv"}),
        ("/calibrate/work-2", {}),
        (f"/releases/{studio.ticket}", {"epsilon": "7"}),
    ):
        refused = studio.post(address, data=said, headers=ORIGIN)
        assert refused.status_code == 400
        assert check_words(refused.text) - {"nothing", "csv", "answers"} == set(), address


def test_a_word_that_was_forgotten_is_found():
    page = '<html lang="de"><body><p>⟦said⟧ forgotten <b lang="en">other</b></p>'
    assert check_words(page + '<a aria-label="unsaid">⟦x⟧</a>') == {"forgotten", "unsaid"}


@pytest.mark.parametrize("language", OTHERS)
def test_every_page_is_served_in_its_language_without_an_english_sentence(studio, language):
    entries = read_catalogue(language)
    for page in list_pages(studio):
        answer = studio.get(page, headers={"Accept-Language": language})
        assert f'<html lang="{language}">' in answer.text
        said = " ".join(Spoken(answer.text).parts)
        assert english_in(said, entries) == [], page


def test_the_browser_chooses_and_a_choice_on_the_page_is_remembered(studio):
    def spoken(**headers):
        return re.search(r'<html lang="(\w+)">', studio.get("/plan", headers=headers).text)[1]

    assert spoken() == "en"
    assert spoken(**{"Accept-Language": "fr-CH, fr;q=0.9, es;q=0.8, en;q=0.7"}) == "es"
    try:
        chosen = studio.get("/plan?items=40&lang=de", headers={"Accept-Language": "es"})
        assert '<html lang="de">' in chosen.text
        assert 'value="40"' in chosen.text
        assert "HttpOnly" in chosen.headers["set-cookie"]
        assert spoken(**{"Accept-Language": "es"}) == "de"
        assert "set-cookie" not in studio.get("/plan?lang=tlh").headers
        assert spoken() == "de"
    finally:
        studio.cookies.delete(COOKIE)


@pytest.mark.parametrize(
    ("header", "language"),
    [("de", "de"), ("DE-at", "de"), ("en;q=0.1, de;q=0.9", "de"), ("de;q=0, es;q=0.1", "es"),
     ("*", "en"), ("q=;;,,", "en"), ("zh-Hans-CN, en-GB;q=0.8, de;q=0.8", "en")],
)  # fmt: skip
def test_a_wish_for_a_language_is_understood(header, language):
    assert prefer_language(header) == language


def numbers_of(text):
    """Return the numbers that cells sort by, and what pictures are drawn from."""
    return re.findall(r'data-value="([^"]*)"', text), re.findall(
        r' (?:cx|cy|d|x|y)="([^"]*)"', text
    )


@pytest.mark.parametrize("language", OTHERS)
def test_numbers_files_and_json_are_the_same_in_every_language(studio, language):
    wish = {"Accept-Language": language}
    pages = list_pages(studio)
    for page in pages:
        assert numbers_of(studio.get(page).text) == numbers_of(studio.get(page, headers=wish).text)
    report = next(page for page in pages if page.startswith("/report/work-1"))
    files = re.findall(r'href="([^"]+/files/[^"]+\.(?:csv|html))"', studio.get(report).text)
    assert len(files) > 5
    (taken,) = [file for file in files if file.endswith("report.confidential.html")]
    in_both = [studio.get(taken, headers=one).text for one in ({}, wish)]
    assert numbers_of(in_both[0]) == numbers_of(in_both[1])  # it is the page, in its language
    for file in [*files, "/ledgers/ledger-1/spending.json"]:
        if file == taken:
            continue
        assert studio.get(file).content == studio.get(file, headers=wish).content
    job = json.loads(studio.get("/jobs/job-1", headers=wish).text)
    assert {**json.loads(studio.get("/jobs/job-1").text), "label": job["label"]} == job


def test_names_in_a_sentence_with_a_link_are_never_markup(studio):
    name = "<img src=x>.csv"
    studio.post("/upload", files={"file": (name, "a,b\n1,0\n")}, headers=ORIGIN)
    for language in LANGUAGES:
        wish = {"Accept-Language": language}
        for page in ("/", "/releases", "/release?persons=<b>"):
            assert "<img" not in studio.get(page, headers=wish).text
