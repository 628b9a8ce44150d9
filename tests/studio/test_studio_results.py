"""What the studio says of answers before any model: questions, persons, the page of one person."""

import csv
import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from discreet.datasets import lsat
from discreet.studio.calibration import calibrate as fit_answers
from discreet.studio.jobs import TaskProgress, keep
from discreet.studio.kept_files import Recent
from discreet.studio.safety import Keys
from discreet.studio.server import build_app
from discreet.studio.session import StudioSession
from studio_tasks import InPlace

TABLES = Path(__file__).parent.parent / "data" / "tables"
HOST = "127.0.0.1:8765"
ORIGIN = {"Origin": f"http://{HOST}"}
KEY = "CABDDBACABDC"


@pytest.fixture(scope="module")
def visit(tmp_path_factory):
    """Return a browser of a studio whose jobs are done in this process."""
    place = tmp_path_factory.mktemp("results")
    session = StudioSession(place, Recent(place / "studio.json"))
    session.__dict__["jobs"] = InPlace(session.folder)
    keys = Keys(8765)
    client = TestClient(build_app(session, keys), base_url=f"http://{HOST}", follow_redirects=False)
    assert client.get(f"/enter?token={keys.token}").status_code == 200
    return client


def calibrate(visit, name, content=None, **said):
    """Bring a file, say what a form would, calibrate; return the address of the report."""
    content = (TABLES / name).read_bytes() if content is None else content
    sent = visit.post("/upload", files=[("file", (name, content))], headers=ORIGIN)
    address = sent.headers["location"]
    for _ in range(2):
        visit.get(address)
        page = visit.get(address).text
        look = re.search(r'name="look" value="([^"]+)"', page)[1]
        marked = re.findall(r'name="(answer:[0-9]+)" value="(0)"[^>]* checked', page)
        visit.post(address, data={"look": look, **dict(marked), **said}, headers=ORIGIN)
    visit.get(address)
    begun = visit.post(address.replace("data", "calibrate"), data={}, headers=ORIGIN)
    assert begun.status_code == 303, begun.text
    return begun.headers["location"]


def page_of(visit, address):
    return unescape(visit.get(address).text)


def cards_of(page):
    """Return the questions of a report in order: name, share or mean, and answers with counts."""
    cards = {}
    for card in re.findall(r"<li><h3.*?</li>", page, re.S):
        name = re.search(r"<h3[^>]*>(?:<a[^>]*>)?([^<]+)", card)[1]
        share = re.search(r'class="share">\s*([^<]+?)\s*</p>', card)[1]
        told = re.findall(r'<span class="(\w+)">([^<]*?) *<b>([^<]+)</b>', card)
        cards[name] = share, [(kind, label.strip(), int(times)) for kind, label, times in told]
    return cards


@pytest.fixture(scope="module")
def quiz(visit):
    return calibrate(visit, "quiz export.csv", key=KEY)


def test_questions_come_from_the_hardest_with_their_wrong_answers_in_colour(visit, quiz):
    cards = cards_of(page_of(visit, quiz))
    assert [*cards][:3] == ["item12", "item10", "item11"]
    assert [cards[name][0] for name in [*cards][:3]] == ["14% right", "26% right", "29% right"]
    kinds = {label: (kind, times) for kind, label, times in cards["item12"][1]}
    assert kinds["B"] == ("strong", 11)
    assert kinds["C ✓"] == ("right", 5)
    assert kinds["A"][0] == "other"


def test_persons_are_listed_with_points_and_per_cent(visit, quiz):
    page = page_of(visit, quiz.replace("/report/", "/persons/"))
    row = re.search(r'<a href="[^"]+/4">20250148</a></th>(.*?)</tr>', page, re.S)[1]
    assert re.findall(r">([^<>]+)</td>", row) == ["3", "12", "25"]


def test_the_page_of_a_person_has_the_letters_that_were_chosen_and_the_right_ones(visit, quiz):
    page = page_of(visit, quiz.replace("/report/", "/persons/") + "/4")
    rows = dict(re.findall(r'<th scope="row">(item[0-9]+)</th>(.*?)</tr>', page, re.S)[:12])
    cells = {name: re.findall(r">([^<>]*)</td>", row) for name, row in rows.items()}
    assert cells["item01"] == ["B", "C", "0"]
    assert cells["item03"] == ["B", "B", "1"]
    assert list(cells) == [f"item{n:02}" for n in range(1, 13)]
    sheets = page_of(visit, quiz.replace("/report/", "/persons/") + "/print")
    assert sheets.count('<section class="sheet">') == 35


def test_the_report_to_take_away_is_the_page(visit, quiz):
    page = page_of(visit, quiz)
    taken = page_of(visit, f"{quiz}/files/report.confidential.html")
    assert cards_of(taken) == cards_of(page)
    verdict = r'<p class="verdict">([^<]+)</p>'
    assert re.search(verdict, taken)[1] == re.search(verdict, page)[1]
    titles = [re.findall(r"<h2[^>]*>([^<]+)</h2>", one) for one in (taken, page)]
    assert [one for one in titles[0] if one != "Persons"] == [
        one for one in titles[1] if not one.startswith("The same ")
    ]
    assert "20250148" in taken
    assert not re.search(r'(?:href|src|action)="/', taken)  # nothing that needs the studio


def test_a_class_has_names_in_every_table_and_file(visit):
    address = calibrate(visit, "Klassenarbeit 7a.xlsx")
    page = page_of(visit, address)
    assert "One group of 24 persons: enough to see which questions were hard" in page
    assert 'class="hero plain"' in page
    assert "A description of 24" in page.partition('class="experts"')[2]
    assert "A description" not in page.partition('class="experts"')[0]
    persons = address.replace("/report/", "/persons/")
    assert "Ida Albrecht" in page_of(visit, persons)
    assert "Ida Albrecht" in page_of(visit, f"{address}/files/report.confidential.html")
    table = visit.get(f"{address}/files/persons.confidential.csv").text.splitlines()
    (row,) = [one for one in csv.DictReader(table) if one["name"] == "Ida Albrecht"]
    assert float(row["percent"]) == pytest.approx(100 * int(row["score"]) / int(row["answered"]))


def test_a_questionnaire_keeps_its_codes_and_says_what_is_reversed(visit):
    address = calibrate(visit, "Umfrage.csv")
    page = page_of(visit, address)
    cards = cards_of(page)
    assert [*cards] == [f"f{n:02}" for n in range(1, 13)]
    assert [one[1:] for one in cards["f02"][1]] == [
        ("1", 20), ("2", 15), ("3", 21), ("4", 13), ("5", 7),
    ]  # fmt: skip
    mean = (20 + 2 * 15 + 3 * 21 + 4 * 13 + 5 * 7) / 76
    assert cards["f02"][0] == f"mean {mean:.2f}"
    turned = re.findall(r">(f[0-9]+)</a> <span class=\"badge\">reversed", page)
    assert turned == ["f02", "f05", "f09"]
    item = page_of(visit, f"{address}/items/1")
    assert "For the points they were turned round" in item
    choices = re.search(r'<p class="choices">(.*?)</p>', item, re.S)[1]
    assert re.findall(r"<span[^>]*>([^<]+?) <b>([0-9]+)</b>", choices) == [
        ("1", "20"), ("2", "15"), ("3", "21"), ("4", "13"), ("5", "7"),
    ]  # fmt: skip


def test_words_of_a_questionnaire_are_its_categories(visit):
    order = ["never", "sometimes", "often"]
    rows = [",".join(order[(n * k + n // 7) % 3] for k in (1, 2, 4)) for n in range(60)]
    content = "q1,q2,q3\n" + "\n".join(rows) + "\n"
    address = calibrate(visit, "words.csv", content, categories=" < ".join(order))
    cards = cards_of(page_of(visit, address))
    assert [label for _, label, _ in cards["q1"][1]] == order
    chosen = page_of(visit, address.replace("/report/", "/persons/") + "/0")
    assert re.search(r'<th scope="row">q2</th><td class="words">never</td>', chosen)


def test_a_calibration_says_how_much_of_its_longest_part_is_done(tmp_path):
    class Told(TaskProgress):
        def count(self, done, total):
            told.append((self.label, done, total))

    told = []
    keep(tmp_path / "answers", lsat())
    fit_answers(Told(tmp_path), tmp_path / "answers", "LSAT", {})
    assert {(label, total) for label, _, total in told} == {
        ("Measuring persons, testing fit, groups and dimensions", 999)
    }
    assert [done for _, done, _ in told] == [*range(1, 1000)]


def draw_scores():
    """Return the scores of 60 persons on three items with two steps."""
    rng = np.random.default_rng(5)
    return (rng.normal(size=(60, 1, 1)) > rng.logistic(size=(60, 3, 2))).sum(axis=2)


def test_half_points_are_points_of_a_test_as_the_file_has_them(visit):
    rows = (draw_scores() / 2).tolist()
    content = "name;a;b;c\n" + "".join(
        f"P{n};{';'.join(f'{x:g}'.replace('.', ',') for x in row)}\n" for n, row in enumerate(rows)
    )
    address = calibrate(visit, "halves.csv", content)
    page = page_of(visit, address)
    assert "Hardest: " in page
    share = 100 * sum(row[0] for row in rows) / len(rows)
    assert cards_of(page)["a"][0] == f"{share:.0f}% of the points"
    persons = page_of(visit, address.replace("/report/", "/persons/"))
    points = re.findall(r'>(P[0-9]+)</a></th><td data-value="([0-9.]+)"[^>]*>([0-9.]+)<', persons)
    assert [(name, float(value)) for name, value, _ in points] == [
        (f"P{n}", sum(row)) for n, row in enumerate(rows)
    ]
    assert points[5][2] == f"{sum(rows[5]):.1f}"
    person = page_of(visit, address.replace("/report/", "/persons/") + "/5")
    assert f"<dd>{sum(rows[5]):.1f}</dd>" in person


def test_pictures_and_verdict_call_items_by_their_short_labels(visit):
    names = [f"How often do you [{words}]" for words in ("walk to school", "eat", "read a book")]
    rows = [",".join(map(str, row)) for row in draw_scores().tolist()]
    content = ",".join(f'"{name}"' for name in names) + "\n" + "\n".join(rows) + "\n"
    page = page_of(visit, calibrate(visit, "survey.csv", content))
    assert re.search(r"Answered highest: (walk to school|eat|read a book)\.", page)
    drawn = re.search(r'<figure class="map">(.*?)</figure>', page, re.S)[1]
    assert "walk to school" in drawn
    assert "How often do you" not in drawn
