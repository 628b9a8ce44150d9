"""The page Plan: the library's numbers from what was typed, and nothing of an opened file."""

import re
import shlex
from html import unescape

import pytest
from test_studio import ORIGIN, enter

from commandline import discreet as run
from discreet.errors import BadUsage
from discreet.planning.plan import plan
from discreet.studio.forms import read_whole
from discreet.studio.kept_files import Home, Recent
from discreet.studio.pages.plan import FIELDS
from discreet.studio.session import StudioSession

STUDY = {"persons": "2,000", "items": "40", "answers": "20", "epsilon": "1,5", "delta": "0.000001"}


@pytest.fixture
def session(tmp_path):
    (tmp_path / "private").mkdir()
    return StudioSession(
        tmp_path / "private",
        Recent(tmp_path / "studio.json"),
        home=Home(tmp_path / "home"),
        books=Recent(tmp_path / "ledgers.json"),
    )


@pytest.fixture
def browser(session):
    client = enter(session)
    client.follow_redirects = True
    return client


def ask(browser, **said):
    return browser.get("/plan", params=said)


def words(answer):
    return unescape(re.sub(r"<[^>]+>", "", answer.text))


def test_the_page_shows_what_the_library_predicts(browser):
    shown = ask(browser, **STUDY, top="5")
    made = plan(2000, 40, 20, 1.5)
    assert shown.status_code == 200
    for said in (
        f"{made.rmse:.3f} logits",
        f"{made.rmse_without_privacy:.3f} logits",
        f"± {made.half_width:.2f} logits",
        f"{made.equivalent_persons:,} of 2,000 persons",
        f"{made.clear_gap:.2f} logits",
        f"hardest items are found{made.top_overlap(5):.0%}",
    ):
        assert said in words(shown)
    assert all(f"{one.rmse:.3f}" in shown.text for one in made.compare().values())


def test_a_first_visit_has_numbers_and_says_in_colour_and_words_that_it_is_public(browser):
    first = browser.get("/plan").text
    assert '<p class="secrecy public" role="note"><b>Public</b>' in first
    assert f"{plan(1000, 30, epsilon=1.0).rmse:.3f} logits" in first


def test_every_field_has_its_label_and_its_help(browser):
    page = browser.get("/plan").text
    for one in FIELDS:
        assert f'<label for="field-{one.name}">' in page
        assert f'aria-describedby="help-{one.name}"' in page
        assert unescape(one.help) in unescape(page)


def test_nothing_of_an_opened_file_reaches_the_page(session, browser, tmp_path):
    before = browser.get("/plan").content
    table = tmp_path / "secret-name.csv"
    table.write_text("person,q1,q2\n" + "".join(f"p{n},{n % 2},1\n" for n in range(77)))
    work = session.open(table)
    session.recent.add(table)
    session.jobs.start("Reading", abs, progress=work)
    assert browser.get("/plan").content == before
    session.jobs.end()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"persons": "many"}, "Persons: 'many' is no whole number"),
        ({"persons": "-5"}, "'-5' is no whole number"),
        ({"persons": "2.5"}, "'2.5' is no whole number"),
        ({"persons": "1"}, "persons must lie between 2 and"),
        ({"persons": "9" * 5000}, "is no whole number"),
        ({"persons": "99999999999"}, "Persons: This page plans up to 1,000,000,000, found"),
        ({"items": "20000"}, "Items: This page plans up to 1,000, found 20,000"),
        ({"answers": "41"}, "must lie between 2 and the 40 items"),
        ({"epsilon": "0"}, "epsilon must be a finite number above 0"),
        ({"epsilon": "nan"}, "epsilon must be a finite number above 0"),
        ({"epsilon": "one"}, "Epsilon: 'one' is no number"),
        ({"epsilon": ""}, "Epsilon: nothing was typed"),
        ({"delta": "2"}, "delta must be 0 or lie between"),
        ({"delta": "0"}, "no pure guarantee"),
        ({"steps": "99"}, "is not one of its choices"),
        ({"mechanism": "magic"}, "is not one of its choices"),
        ({"steps": "4", "design": "booklets"}, "leave out the design"),
        ({"steps": "4", "mechanism": "margins"}, "steps"),
        ({"top": "40"}, "top must lie between 1 and 39"),
        ({"difficulty_spread": "inf"}, "difficulty_spread must lie between 0.001 and 5"),
        ({"target_rmse": "0.1"}, "leave out exactly one"),
    ],
)
def test_bad_numbers_are_explained_and_stay_in_their_fields(browser, said, why):
    answer = ask(browser, **{**STUDY, **said})
    assert answer.status_code == 400
    assert why in words(answer)
    typed = said.get("persons", STUDY["persons"])
    assert f'name="persons" id="field-persons" value="{typed}"' in answer.text
    assert "Typical error" not in answer.text


def test_what_is_typed_is_never_markup(browser):
    bad = '"><script>alert(1)</script>'
    answer = ask(browser, **{**STUDY, "persons": bad})
    assert "<script>alert" not in answer.text
    assert not re.search(r"<script(?! src)|\sstyle=|\son\w+=", answer.text)


def test_one_blank_field_is_computed_from_a_wanted_error(browser):
    answer = ask(browser, **{**STUDY, "persons": "", "target_rmse": "0.2"})
    made = plan(items=40, answers=20, epsilon=1.5, target_rmse=0.2)
    assert f"persons must be {made.persons:,}." in words(answer)


def test_a_hopeless_plan_is_called_so(browser):
    answer = ask(browser, persons="100", items="40", epsilon="0.01")
    assert "the release will say nothing about most items" in words(answer)
    assert "from a distance of" in words(answer)


def test_steps_show_the_error_of_thresholds(browser):
    made = plan(800, 12, epsilon=1.0, steps=4)
    answer = ask(browser, persons="800", items="12", epsilon="1", steps="4")
    assert f"The same of its thresholds{made.threshold_rmse:.3f} logits" in words(answer)


def test_without_delta_only_what_has_a_pure_guarantee_is_compared(browser):
    answer = ask(browser, **{**STUDY, "delta": "0", "mechanism": "laplace-pairs"})
    assert answer.status_code == 200
    compared = re.search(r"The mechanisms compared</caption>(.*?)</table>", answer.text, re.S)[1]
    rows = re.findall(r'<th scope="row">([^<]+)', compared)
    assert rows == ["laplace-margins", "laplace-pairs (taken)", "randomized-response"]


def test_the_same_in_python_and_on_the_command_line_do_the_same(browser):
    answer = ask(browser, **STUDY, top="5", neighbours="add-remove", ability_mean="-0.5").text
    made = plan(2000, 40, 20, 1.5, neighbours="add-remove", ability_mean=-0.5)
    code = unescape(re.search(r'id="same-python">(.*?)</pre>', answer, re.S)[1])
    held: dict = {}
    exec(code, held)  # noqa: S102
    assert held["study"] == made
    command = unescape(re.search(r'id="same-command">(.*?)</pre>', answer, re.S)[1])
    assert "--delta" not in command
    printed = run(*shlex.split(command)[1:]).out
    assert f"{made.rmse:.3f} logits" in printed
    assert "Of the 5 hardest items" in printed


def test_a_plan_is_carried_to_a_release_under_the_names_it_has_there(browser):
    answer = ask(browser, **STUDY, neighbours="add-remove").text
    link = unescape(re.search(r'href="(/release\?[^"]+)"', answer)[1])
    assert link == (
        "/release?epsilon=1.5&delta=1e-06&neighbours=add-remove&mechanism=margins&max_answers=20"
        "&persons=2000"
    )


def test_the_release_of_open_answers_takes_the_plan_over(session, browser, tmp_path):
    session.open(tmp_path / "a.csv")
    ledger = {"name": "Grade 8", "epsilon": "2", "delta": "1e-6"}
    assert browser.post("/ledgers", data=ledger, headers=ORIGIN).status_code == 200
    answer = ask(browser, **STUDY, neighbours="add-remove").text
    form = browser.get(unescape(re.search(r'href="(/release\?[^"]+)"', answer)[1])).text
    for name, value in (("epsilon", "1.5"), ("max_answers", "20"), ("persons", "2000")):
        assert re.search(f'name="{name}" id="[^"]*" value="{value}"', form)
    for chosen in ("add-remove", "margins"):
        assert f'<option value="{chosen}" selected>' in form


def test_thousands_may_be_parted_as_offices_do():
    for text in ("10000", "10,000", "10.000", "10 000", "10'000", "10\u202f000"):
        assert read_whole(text) == 10_000
    for text in ("1,00", "1,0000", "1e4", "\u0661\u0662", ""):
        with pytest.raises(BadUsage, match="no whole number"):
            read_whole(text)


def test_a_plan_goes_to_the_answers_that_are_open_or_asks_which(session, browser, tmp_path):
    def lead():
        return browser.get("/release?epsilon=2", follow_redirects=False)

    assert "No answers are open yet" in lead().text
    session.open(tmp_path / "a.csv")
    assert lead().headers["location"] == "/release/work-1?epsilon=2"
    session.open(tmp_path / "b.csv")
    asked = lead().text
    assert '<p class="secrecy confidential" role="note">' in asked
    assert 'href="/release/work-1?epsilon=2"' in asked
    assert 'href="/release/work-2?epsilon=2"' in asked


def test_an_address_that_leads_nowhere_says_so_in_the_frame(browser):
    for address, why in (("/nowhere", "nothing at this address"), ("/data/work-9", "restarted")):
        answer = browser.get(address)
        assert answer.status_code == 404
        assert why in words(answer)
        assert '<main id="main"' in answer.text
