"""Ratings in the studio: one row for each, columns for every rater, a row for each rater."""

import csv
import io
import re
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

import discreet
from discreet.studio.kept_files import Recent
from discreet.studio.safety import Keys
from discreet.studio.server import build_app
from discreet.studio.session import StudioSession
from studio_tasks import InPlace

TABLES = Path(__file__).parent.parent / "data" / "tables"
HOST = "127.0.0.1:8765"
ORIGIN = {"Origin": f"http://{HOST}"}
RATERS, CRITERIA = ("Ann", "Bob", "Cara", "Dan"), ("content", "style", "grammar")
SEVERITY = np.array([-0.8, -0.1, 0.2, 0.7])


@pytest.fixture(scope="module")
def visit(tmp_path_factory):
    place = tmp_path_factory.mktemp("ratings")
    session = StudioSession(place, Recent(place / "studio.json"))
    session.__dict__["jobs"] = InPlace(session.folder)
    keys = Keys(8765)
    client = TestClient(build_app(session, keys), base_url=f"http://{HOST}", follow_redirects=False)
    assert client.get(f"/enter?token={keys.token}").status_code == 200
    return client


def draw_scores():
    """Return scores from 1 to 4 of 60 persons by two of four raters on three criteria."""
    rng = np.random.default_rng(3)
    ability = rng.normal(0, 1.2, 60)
    scores = {}
    for person in range(60):
        for rater in (person % 4, (person + 1) % 4):
            for item, hard in enumerate((-0.4, 0.0, 0.4)):
                logit = ability[person] - SEVERITY[rater] - hard
                chances = np.exp(np.cumsum([0, logit + 1, logit, logit - 1]))
                scores[person, rater, item] = 1 + int(rng.choice(4, p=chances / chances.sum()))
    return scores


def write_long(scores):
    rows = [f"p{p},{CRITERIA[i]},{RATERS[r]},{s}" for (p, r, i), s in scores.items()]
    return "\n".join(["student,criterion,rater,score", *rows, ""])


def write_rows(scores):
    cells = {}
    for (person, rater, _), score in scores.items():
        cells.setdefault((person, rater), []).append(score)
    rows = [f"p{p},{RATERS[r]},{','.join(map(str, row))}" for (p, r), row in cells.items()]
    return "\n".join(["student,rater,content,style,grammar", *rows, ""])


def write_columns(scores):
    heads = [f"{criterion} - Rater {n}" for n in range(1, 5) for criterion in CRITERIA]
    rows = [
        ",".join([f"p{p}", *(str(scores.get((p, r, i), "")) for r in range(4) for i in range(3))])
        for p in range(60)
    ]
    return "\n".join([",".join(["student", *heads]), *rows, ""])


def bring(visit, name, content):
    """Bring a file; return its page of data and its address."""
    sent = visit.post("/upload", files=[("file", (name, content))], headers=ORIGIN)
    address = sent.headers["location"]
    visit.get(address)
    return unescape(visit.get(address).text), address


def calibrate(visit, name, content):
    """Say that scores are those of raters, and calibrate; return the address of the report."""
    page, address = bring(visit, name, content)
    look = re.search(r'name="look" value="([^"]+)"', page)[1]
    marked = dict(re.findall(r'name="(answer:[0-9]+)" value="(0)"[^>]* checked', page))
    rated = r'name="(answer:[0-9]+)" value="([0-9]+)"[^>]*> These are raters'
    marked |= dict(re.findall(rated, page))
    visit.post(address, data={"look": look, **marked}, headers=ORIGIN)
    visit.get(address)
    page = unescape(visit.get(address).text)
    assert "Calibrate these answers" in page, re.sub(r"<[^>]+>|\s+", " ", page)
    begun = visit.post(address.replace("data", "calibrate"), data={}, headers=ORIGIN)
    return page, begun.headers["location"]


def raters_of(visit, address):
    text = visit.get(f"{address}/files/raters.confidential.csv").text
    return {row[next(iter(row))]: row for row in csv.DictReader(io.StringIO(text))}


@pytest.mark.parametrize("write", [write_long, write_columns, write_rows])
def test_ratings_in_any_layout_come_to_the_severities_of_the_library(visit, tmp_path, write):
    scores = draw_scores()
    page, address = calibrate(visit, "essays.csv", write(scores))
    assert "60 persons" in page
    assert "4 raters, 4 categories" in page, re.sub(r"<[^>]+>|\s+", " ", page)[:3000]
    (tmp_path / "long.csv").write_text(write_long(scores))
    ratings = discreet.read_ratings(
        tmp_path / "long.csv", facets=["rater"], person="student", item="criterion"
    )
    facet = discreet.fit(ratings, facets=["rater"]).facets["rater"]
    shown = raters_of(visit, address)
    for name, measure, error in zip(facet.levels, facet.measure, facet.se, strict=True):
        row = shown.get(name) or shown[f"Rater {RATERS.index(name) + 1}"]
        assert float(row["measure"]) == pytest.approx(measure, abs=1e-6)
        assert float(row["se"]) == pytest.approx(error, abs=1e-6)
        mean = np.mean([s for (_, r, _), s in scores.items() if RATERS[r] == name])
        assert float(row["observed"]) == pytest.approx(mean)


def test_the_report_of_ratings_says_what_equal_work_gets(visit):
    scores = draw_scores()
    _, address = calibrate(visit, "essays.csv", write_long(scores))
    report = unescape(visit.get(address).text)
    verdict = re.search(r'class="verdict">([^<]+)<', report)[1]
    assert re.match(r"For equal work, Dan gives \d\.\d points on average and Ann gives", verdict)
    persons = re.search(r'<h2 id="people">.*?</table>', report, re.S)[0]
    rows = re.findall(r'<th scope="row">(p\d+)</th>(.*?)</tr>', persons, re.S)
    cells = {name: re.findall(r">([^<>]+)</td>", row) for name, row in rows}
    own = [score for (person, _, _), score in scores.items() if person == 7]
    assert float(cells["p7"][1]) == pytest.approx(np.mean(own), abs=0.005)
    assert visit.get(f"{address}/files/report.confidential.html").status_code == 200
    assert "--rater" not in report.partition("For programmers")[0]


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("kept/Aufsatzbewertung.csv", "3 raters"),
        ("exports/writing rubric.csv", "2 raters"),
        ("exports/speaking test marks.csv", "2 raters"),
    ],
)
def test_columns_of_several_raters_are_ratings_once_somebody_says_so(visit, name, size):
    content = (TABLES / name).read_bytes()
    page, _ = bring(visit, Path(name).name, content)
    assert "come again for each of" in page
    assert "Calibrate these answers" not in page
    page, address = calibrate(visit, Path(name).name, content)
    assert size in page
    assert "For equal work" in visit.get(address).text


def test_a_column_can_be_said_to_hold_the_raters(visit):
    first = {(p, i): (r, s) for (p, r, i), s in draw_scores().items()}
    once = {(p, r, i): s for (p, i), (r, s) in first.items()}
    page, address = bring(visit, "once.csv", write_long(once))
    look = re.search(r'name="look" value="([^"]+)"', page)[1]
    visit.post(address, data={"look": look, "answer:0": "0", "role:2": "rater"}, headers=ORIGIN)
    visit.get(address)
    assert "4 raters" in unescape(visit.get(address).text)
