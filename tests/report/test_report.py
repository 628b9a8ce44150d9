"""The confidential report: what it says, and that it works in a real browser."""

import json
import re
import sys
from dataclasses import replace
from html import escape

import numpy as np
import pytest

import discreet
from browser import needs_browser, visit
from commandline import discreet as run
from discreet.analysis import correlate_residuals
from discreet.answers.responses import Responses
from discreet.api.calibrating import fit
from discreet.datasets import lsat
from discreet.errors import FitWarning, WarningKind
from discreet.html import TEMPLATES, HtmlColumn, preview_table
from discreet.items.dif import list_differing
from discreet.items.study import diagnose
from discreet.models.methods import GIVEN_PATHS, METHOD_WORDS, METHODS
from discreet.report.diagnosis import diagnose_test
from discreet.report.findings import find_problems, remarks_on_items
from discreet.report.model_findings import Severity
from discreet.report.page import write_diagnosis
from discreet.report.sheet import round_ticks, shorten_label, text_width
from discreet.results.estimate import Status
from discreet.saving import read_value, write_value
from discreet.simulation import simulate
from discreet.text import name_some
from real_data import simulate_booklets

ROWS = "[...document.querySelectorAll('#items tbody tr')].filter(r => !r.hidden)"


def broken_answers():
    """400 persons, 26 items, and one of every fault that a test can have."""
    rng = np.random.default_rng(2)
    answers = simulate(400, 26, 0.7, rng=rng).responses.store.rows(0, 400).astype(float)
    answers[answers < 0] = np.nan
    answers[:, 20:] = np.nan
    answers[:, 3] = np.where(np.isnan(answers[:, 3]), np.nan, 1)  # always right
    answers[:, 4] = np.where(np.isnan(answers[:, 4]), np.nan, 0)  # always wrong
    answers[:40, :20] = np.nan
    answers[:40, 20:24] = rng.integers(0, 2, (40, 4))  # a form of its own
    answers[:, 7] = 1 - answers[:, 7]  # the key is wrong
    answers[50:, 9] = answers[50:, 8]  # says the same twice
    answers[50:60, 25] = np.arange(10) % 2  # few answers; nobody has item 24
    return Responses.from_array(answers, items=[f"<i{place}>" for place in range(26)])


@pytest.fixture(scope="module")
def broken():
    responses = broken_answers()
    estimate = fit(responses)
    return estimate, diagnose(responses, estimate)


@pytest.fixture(scope="module")
def page(broken, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.confidential.html"
    path.write_text(write_diagnosis(diagnose_test(*broken), title="a <test>"))
    return path


def titles(estimate, study):
    return " | ".join(finding.title for finding in find_problems(estimate, study)[0])


# ---- what it says


def test_every_planted_fault_is_found(broken):
    said = titles(*broken)
    for words in (
        "4 items are not linked",
        "1 item always answered right",
        "1 item never answered right",
        "1 item nobody answered",
        "answered less predictably",
        "1 item looks mislabelled",
        "of items depends on each other",
        "known only roughly",
    ):
        assert words in said


def test_findings_name_the_items_and_say_what_to_do(broken):
    findings, _ = find_problems(*broken)
    by_title = {finding.title: finding for finding in findings}
    assert "<i20>, <i21>, <i22>, <i23>" in by_title["4 items are not linked to the rest"].found
    assert all(finding.advice for finding in findings)
    severities = [finding.severity for finding in findings]
    assert severities == sorted(severities)
    assert severities[0] is Severity.SERIOUS


def test_a_sound_test_has_no_findings():
    sound = simulate(2000, 40, rng=np.random.default_rng(0)).responses
    estimate = fit(sound)
    findings, fine = find_problems(estimate, diagnose(sound, estimate))
    assert findings == []
    assert {"item fit", "reliability", "dependent items", "targeting"} <= set(fine)
    assert "Nothing wrong was found" in write_diagnosis(
        diagnose_test(estimate, diagnose(sound, estimate))
    )


def test_an_adaptive_test_is_called_routed():
    responses = simulate(500, 60, 0.25, design="adaptive", rng=np.random.default_rng(1)).responses
    estimate = fit(responses)
    assert "looks routed" in titles(estimate, diagnose(responses, estimate))
    marginal = fit(responses, method="marginal")
    assert "routed" not in titles(marginal, diagnose(responses, marginal))


def test_booklets_given_at_random_are_not_called_routed():
    responses = simulate(800, 60, 0.3, design="booklets", rng=np.random.default_rng(1)).responses
    estimate = fit(responses)
    study = diagnose(responses, estimate)
    assert abs(study.abilities.matching) < 0.2
    assert "harder items" not in titles(estimate, study)


@pytest.mark.parametrize(("shift", "word"), [(1.6, "too easy"), (-1.6, "too hard")])
def test_a_test_off_target_is_called_so(shift, word):
    rng = np.random.default_rng(4)
    responses = simulate(1000, 30, ability=rng.normal(shift, 1, 1000), rng=rng).responses
    estimate = fit(responses)
    assert word in titles(estimate, diagnose(responses, estimate))


def with_groups(difference):
    """Two groups of 500, and one item that is harder for the second."""
    rng = np.random.default_rng(5)
    b, group = rng.normal(size=20), np.arange(1000) % 2
    ability = rng.normal(size=1000)
    harder = np.outer(group, np.arange(20) == 6) * difference
    right = rng.random((1000, 20)) < 1 / (1 + np.exp(b + harder - ability[:, None]))
    made = Responses.from_array(right.astype(float))
    sex = np.where(group, "girl", "boy").astype(object)
    school = np.arange(1000).astype(str).astype(object)
    groups = {"sex": sex, "school": school}
    return Responses(made.items, made.persons, made.store, groups=groups)


def test_an_item_that_is_harder_for_a_group_is_found():
    responses = with_groups(1.2)
    estimate = fit(responses)
    study = diagnose(responses, estimate)
    ((item, column, group, _, size, letter),) = list_differing(study.differences)
    assert (item, column, letter) == ("6", "sex", "C")
    assert (size > 0) == (group == "girl")
    assert "1 item works differently" in titles(estimate, study)
    assert "differs by sex" in remarks_on_items(estimate, study)[6]
    assert "1000 groups are too many" in write_diagnosis(diagnose_test(estimate, study))


def test_groups_that_do_not_differ_are_called_in_order():
    responses = with_groups(0.0)
    estimate = fit(responses)
    assert "groups" in find_problems(estimate, diagnose(responses, estimate))[1]


def test_too_few_items_are_called_unreliable():
    answers = lsat()
    estimate = fit(answers)
    said = titles(estimate, diagnose(answers, estimate))
    assert "Low person reliability" in said
    assert "everything right or everything wrong" in said


def test_warnings_of_the_fit_reach_the_first_screen():
    estimate = replace(
        fit(lsat()), warnings=(FitWarning(WarningKind.FLAT_ABILITIES, "something odd"),)
    )
    assert "The estimation says" in titles(estimate, None)


def test_what_could_not_be_checked_is_said():
    page = write_diagnosis(diagnose_test(fit(lsat())))
    assert "Not checked, because the answers were not at hand" in page
    assert "item fit" not in page.split("Not checked")[0].split("Checked, nothing found")[1]


def test_remarks_stand_beside_the_items_they_are_about(broken):
    estimate, _ = broken
    remarks = dict(zip(estimate.items, remarks_on_items(*broken), strict=True))
    assert remarks["<i3>"] == ["always right"]
    assert remarks["<i20>"] == ["not linked"]
    assert remarks["<i24>"] == ["no answers"]
    assert "mislabelled?" in remarks["<i7>"]
    assert "dependent" in remarks["<i8>"]
    assert "few answers" in remarks["<i25>"]
    assert remarks["<i0>"] == []


def test_all_dependent_pairs_count_however_many_are_listed():
    answers = lsat().to_array().astype(float)
    rng = np.random.default_rng(1)
    # 40 items that say one of four things: 4 * 10 * 9 / 2 pairs, far more than are listed.
    copies = np.hstack([answers[:, [k]].repeat(10, axis=1) for k in range(4)])
    spoilt = np.where(rng.random(copies.shape) < 0.1, 1 - copies, copies)
    responses = Responses.from_array(spoilt)
    estimate = fit(responses)
    study = diagnose(responses, estimate)
    residuals = correlate_residuals(responses, estimate, method="warm")
    excess = residuals.q3[np.triu_indices(40, 1)] - residuals.mean
    count = int((excess > 0.2).sum())
    assert count > 2 * len(study.dependence.pairs)
    assert f"{count} pairs of items depend on each other" in titles(estimate, study)
    page = write_diagnosis(diagnose_test(estimate, study))
    assert f"by more than 0.1 and more than chance for {count} pairs of items" in page
    assert all("dependent" in remarks for remarks in remarks_on_items(estimate, study))
    assert read_value(write_value(study)) == study


def test_the_methods_text_has_the_numbers_of_the_estimate(broken):
    estimate, _ = broken
    page = write_diagnosis(diagnose_test(*broken))
    text = page.split('id="methods-text" lang="en">')[1].split("</blockquote>")[0]
    assert f"{int(estimate.answers.sum()):,} answers of 400 persons to 26 items" in text
    assert "7 of the 26 items had no estimable difficulty" in text
    assert "estimated by conditional maximum likelihood" in text
    assert estimate.choice in page


def test_the_report_says_that_it_is_confidential_first(page):
    text = page.read_text()
    assert "<title>Confidential: " in text
    assert text.index('<p class="alarm">Confidential') < text.index("<h1>")
    assert "confidential" in page.name


def test_names_are_escaped_and_nothing_is_nan(page):
    text = page.read_text()
    assert "<i3>" not in text
    assert "&lt;i3&gt;" in text
    assert "a &lt;test&gt;" in text
    assert ">nan<" not in text.lower()
    assert "None<" not in text


def test_numbers_that_do_not_exist_are_dashes_and_sort_as_nothing():
    columns = [HtmlColumn("item", ["a", "b", "c"]), HtmlColumn("x", [np.nan, None, -0.0004], 2)]
    table = preview_table(columns, caption="")
    assert table.count('<td data-value="">–</td>') == 2
    assert '<td data-value="-0.0004">0.00</td>' in table


def test_cells_and_headings_of_rows_are_escaped_once():
    columns = [HtmlColumn("item", ["<a> & 'b'"]), HtmlColumn("word", ['<b> "c"'])]
    table = preview_table(columns, caption="")
    assert ">&lt;a&gt; &amp; &#x27;b&#x27;</th>" in table
    assert ">&lt;b&gt; &quot;c&quot;</td>" in table
    assert preview_table(columns[:1], caption="").count("</th>") == 2


# ---- study


def test_a_study_survives_a_trip_through_json(broken):
    plain = write_value(broken[1])
    assert read_value(json.loads(json.dumps(plain))) == broken[1]


def test_every_person_is_in_the_histogram_or_has_no_answers(broken):
    estimate, study = broken
    who = study.abilities
    counted = who.measured + who.extreme
    assert sum(who.counts) == counted
    assert f"Abilities of {counted} persons" in write_diagnosis(diagnose_test(estimate, study))
    assert counted + who.empty == estimate.persons


def test_very_many_persons_are_sampled_and_the_report_says_so(monkeypatch):
    monkeypatch.setattr("discreet.items.study.CELL_LIMIT", 2000)
    answers = lsat()
    estimate = fit(answers)
    study = diagnose(answers, estimate)
    third = Responses.from_array(
        answers.store.rows(0, 1000)[::3].astype(float), answers.items, answers.persons[::3]
    )
    assert study.sampled == third.n_persons == 334
    monkeypatch.undo()
    assert replace(study, sampled=None) == diagnose(third, estimate)
    assert "334 evenly chosen persons" in write_diagnosis(diagnose_test(estimate, study))


def test_doubts_about_a_link_are_not_called_the_estimation():
    estimate = fit(lsat())
    doubt = FitWarning(WarningKind.WEAK_LINK, "only 2 common items")
    assert titles(replace(estimate, warnings=(doubt,)), None) == "The link between the scales"


def test_a_file_with_a_sample_of_the_persons_is_named_so(monkeypatch, tmp_path):
    path = tmp_path / "answers.csv"
    rows = lsat().store.rows(0, 1000).tolist()
    path.write_text("a,b,c,d,e\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    out = tmp_path / "out"
    assert run("fit", path, "--out", out).code == 0
    assert len((out / "persons.confidential.csv").read_text().splitlines()) == 1001
    monkeypatch.setattr("discreet.items.study.CELL_LIMIT", 2000)
    ended = run("fit", path, "--out", out, "--force")
    assert "334 evenly chosen of 1,000 persons" in ended.err
    assert not (out / "persons.confidential.csv").exists()
    assert len((out / "persons_sample.confidential.csv").read_text().splitlines()) == 335


@pytest.mark.parametrize("ends", [(-3.2, 3.1), (0.0, 0.5), (-0.01, 0.013), (2, 90)])
def test_ticks_are_round_and_inside(ends):
    ticks = round_ticks(*ends)
    assert 3 <= len(ticks) <= 8
    assert ends[0] <= ticks[0]
    assert ticks[-1] <= ends[1]


# ---- the command


@pytest.fixture
def answers(tmp_path):
    path = tmp_path / "answers.csv"
    assert run("simulate", "--persons", 400, "--items", 12, "--seed", 1, "--out", path).code == 0
    return path


def test_every_method_has_its_own_words_for_a_paper(broken):
    assert {*METHODS, GIVEN_PATHS, "noise-aware", "winsteps"} == set(METHOD_WORDS)
    estimate, study = broken
    for name, words in METHOD_WORDS.items():
        page = write_diagnosis(diagnose_test(replace(estimate, method=name, se_method=""), study))
        assert escape(words.how) in page
        assert words.errors in page


def test_a_report_says_which_persons_standard_errors_are_from(broken):
    estimate, study = broken
    assert estimate.se_method
    assert escape(estimate.se_method) in write_diagnosis(diagnose_test(estimate, study))


def test_a_method_of_another_maker_is_named_and_its_errors_are_called_unknown(broken):
    page = write_diagnosis(
        diagnose_test(replace(broken[0], method="their own", se_method=""), broken[1])
    )
    assert "a method called their own" in page
    assert "standard errors were estimated is not known here" in page


def test_a_report_is_made_from_answers(answers, tmp_path):
    ended = run("result", "report", answers, "--out", tmp_path / "out")
    assert ended.code == 0, ended.err
    path = tmp_path / "out" / "report.confidential.html"
    assert f"Wrote {path} (confidential)" in ended.out
    assert "Calibration of answers.csv" in path.read_text()


def test_the_report_of_a_folder_is_the_one_that_fit_wrote(answers, tmp_path):
    out = tmp_path / "out"
    assert run("fit", answers, "--out", out).code == 0
    first = (out / "report.confidential.html").read_text()
    ended = run("result", "report", out)
    assert ended.code == 0, ended.err
    second = (out / "report.confidential.html").read_text()
    assert second == first


def test_the_headline_can_be_chosen_and_stays_with_the_calibration(answers, tmp_path):
    out = tmp_path / "out"
    assert run("fit", answers, "--out", out, "--title", "Spring & autumn").code == 0
    page = out / "report.confidential.html"
    assert "<h1>Spring &amp; autumn</h1>" in page.read_text()
    assert run("result", "report", out).code == 0
    assert "<title>Confidential: Spring &amp; autumn</title>" in page.read_text()
    assert run("result", "report", out, "--title", "Another").code == 0
    assert "<h1>Another</h1>" in page.read_text()
    ended = run("result", "report", answers, "--out", tmp_path / "other", "--title", "From answers")
    assert ended.code == 0, ended.err
    assert "<h1>From answers</h1>" in (tmp_path / "other" / page.name).read_text()


def test_a_headline_without_a_report_is_refused(answers):
    ended = run("fit", answers, "--title", "Spring")
    assert ended.code == 2
    assert "add --out DIR" in ended.err


def test_a_linked_report_says_what_was_linked_to_what_and_by_how_much(answers, tmp_path):
    for name in ("spring", "autumn"):
        assert run("fit", answers, "--out", tmp_path / name).code == 0
    out = tmp_path / "linked"
    ended = run("link", tmp_path / "spring", tmp_path / "autumn", "--out", out)
    assert ended.code == 0, ended.err
    page = (out / "report.confidential.html").read_text()
    assert "<h1>Calibration of autumn on the scale of spring</h1>" in page
    assert "put on the scale of spring through 12 common items: +0.000 logits" in page
    assert "mean zero" not in page.split('id="methods-text" lang="en">')[1]
    assert run("result", "report", out).code == 0
    assert (out / "report.confidential.html").read_text() == page
    again = run(
        *("link", tmp_path / "spring", tmp_path / "autumn", "--out", out),
        *("--force", "--title", "Both terms"),
    )
    assert again.code == 0, again.err
    assert "<h1>Both terms</h1>" in (out / "report.confidential.html").read_text()


def test_the_report_of_a_folder_tells_the_warnings_of_the_fit_once(tmp_path):
    rng = np.random.default_rng(3)
    cells = [(p, i, 1 if i == 5 else rng.integers(2)) for p in range(80) for i in range(6)]
    answers, out = tmp_path / "answers.csv", tmp_path / "out"
    lines = [f"p{person},i{item},{right}" for person, item, right in cells]
    answers.write_text("\n".join(["person,item,correct", *lines]))
    assert run("fit", answers, "--out", out).code == 0
    first = (out / "report.confidential.html").read_text()
    assert "1 item always answered right" in first
    assert "The estimation says" not in first
    assert run("result", "report", out).code == 0
    second = (out / "report.confidential.html").read_text()
    assert second == first


def test_a_release_gets_its_public_page_again(answers, tmp_path):
    items = tmp_path / "items.txt"
    items.write_text("\n".join(map(str, range(12))))
    run("ledger", "create", tmp_path / "spent.db", "--epsilon", 2)
    made = run(
        *("release", answers, "--items", items, "--epsilon", 1),
        *("--ledger", tmp_path / "spent.db", "--out", tmp_path / "release"),
    )
    assert made.code == 0, made.err
    page = tmp_path / "release" / "report.html"
    before = page.read_text()
    ended = run("result", "report", tmp_path / "release")
    assert ended.code == 0, ended.err
    assert "may be published" in ended.out
    assert "onfidential" not in page.read_text()
    after = page.read_text()
    assert after == before


def test_somebody_elses_file_is_not_overwritten(answers, tmp_path):
    out = tmp_path / "out"
    run("fit", answers, "--out", out)
    mine = out / "report.confidential.html"
    mine.write_text("my notes")
    assert run("result", "report", out).code == 2
    assert mine.read_text() == "my notes"
    assert run("result", "report", answers, "--out", out).code == 2
    assert run("result", "report", out, "--force").code == 0


def test_a_report_needs_no_matplotlib(broken, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert write_diagnosis(diagnose_test(*broken)).count("<svg") == 17


def test_a_missing_file_is_wrong_usage(tmp_path):
    ended = run("result", "report", tmp_path / "nothing.csv")
    assert ended.code == 2
    assert "nothing.csv" in ended.err


def test_a_calibration_without_a_study_still_gets_a_report(answers, tmp_path):
    out = tmp_path / "out"
    run("fit", answers, "--out", out)
    file = out / "calibration.confidential.json"
    document = json.loads(file.read_text())
    document["study"] = None
    file.write_text(json.dumps(document))
    ended = run("result", "report", out)
    assert ended.code == 0, ended.err
    assert "without the answers" in ended.err


# ---- notebooks


def test_a_notebook_shows_the_first_items_and_whether_they_are_confidential():
    many = fit(simulate(200, 30, rng=np.random.default_rng(0)).responses)
    shown = many._repr_html_()
    assert shown.count("<tr>") == 13
    assert "18 more" in shown
    assert "confidential" in shown
    answers = lsat()
    published = discreet.release(answers, discreet.Budget(1.0, 1e-6), items=answers.items)
    assert "epsilon 1, delta 1e-06, replace-one" in published._repr_html_()
    assert "confidential" not in published._repr_html_()


# ---- in a browser


@needs_browser
def test_the_report_opens_without_errors_and_without_a_network(page, tmp_path):
    _, _, console = visit(page, tmp_path)
    assert console == ""
    text = page.read_text()
    assert "src=" not in text
    assert "http://" not in text
    assert "https://" not in text
    assert "default-src 'none'" in text
    assert "unsafe-inline" not in text


@needs_browser
def test_headings_sort_and_items_without_a_number_stay_last(page, broken, tmp_path):
    estimate, _ = broken
    script = (
        f"const names = () => {ROWS}.map(r => r.cells[0].textContent), seen = [];"
        "const button = document.querySelectorAll('#items th button')[1];"
        "for (const time of [1, 2]) { button.click();"
        " seen.push([document.querySelector('[aria-sort]').ariaSort, names()]); }"
        "return JSON.stringify(seen);"
    )
    known = np.flatnonzero(estimate.estimated)
    order = [estimate.items[i] for i in known[np.argsort(estimate.difficulty[known])]]
    (first, up), (second, down) = json.loads(visit(page, tmp_path, script)[0])
    assert (first, second) == ("ascending", "descending")
    assert up[: len(order)] == order
    assert down[: len(order)] == order[::-1]


@needs_browser
def test_filters_by_name_and_kind_work_together(page, broken, tmp_path):
    estimate, _ = broken
    script = (
        f"const names = () => {ROWS}.map(r => r.cells[0].textContent), seen = [];"
        "const set = (id, value, event) => { const e = document.getElementById(id);"
        " e.value = value; e.dispatchEvent(new Event(event)); seen.push(names()); };"
        "set('kind', 'none', 'change'); set('filter', ' I24', 'input');"
        "seen.push(document.getElementById('shown').textContent);"
        "return JSON.stringify(seen);"
    )
    by_kind, by_both, said = json.loads(visit(page, tmp_path, script)[0])
    pairs = zip(estimate.items, estimate.status, strict=True)
    assert by_kind == [name for name, status in pairs if status != Status.ESTIMATED]
    assert by_both == ["<i24>"]
    assert said == "1 of 26 items"


STRANGE = (
    "x" * 120,
    "Reading comprehension, text 4, question b, as revised for the second form",
    "מה בירת צרפת?",
    "次の文章を読んで質問に答えなさい、それから次の問題に進みなさい",
    "عاصمة فرنسا",
    "\N{FAMILY}\N{ZERO WIDTH JOINER}\N{GIRL} W@MWMW%",
)


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """Many items with long, broad and right-to-left names, and more that crowd the middle."""
    rng = np.random.default_rng(6)
    b = np.concatenate([np.linspace(-2, 2, len(STRANGE)), rng.normal(0, 0.6, 240)])
    names = [*STRANGE, *(f"RC{number:03d}" for number in range(240))]
    answers = simulate(120, len(b), difficulty=b, rng=rng).responses.to_array().astype(float)
    answers[:, 30:60] = 1 - answers[:, 30:60]
    responses = Responses.from_array(answers, items=names)
    estimate = fit(responses, method="refined")
    path = tmp_path_factory.mktemp("crowded") / "report.confidential.html"
    path.write_text(
        write_diagnosis(diagnose_test(estimate, diagnose(responses, estimate)), title="y" * 300)
    )
    return path


@needs_browser
@pytest.mark.parametrize("which", ["page", "crowded"])
@pytest.mark.parametrize("width", [400, 1000])
def test_nothing_overflows_a_phone_or_a_desk(request, tmp_path, which, width):
    page = request.getfixturevalue(which)
    script = (
        "const far = [...document.querySelectorAll('main > *, figure, main svg, main p, li')]"
        ".filter(e => e.getBoundingClientRect().right > innerWidth + 0.5);"
        "return JSON.stringify([innerWidth,"
        " document.documentElement.scrollWidth - document.documentElement.clientWidth,"
        " far.length]);"
    )
    title, _, _ = visit(page, tmp_path, script, width)
    assert json.loads(title) == [width, 0, 0]


OVERLAPS = """
const over = [], outside = [];
let count = 0;
for (const svg of document.querySelectorAll('svg')) {
  const all = svg.viewBox.baseVal;
  const marks = [...svg.querySelectorAll('text')].map(t => [t.firstChild.data, t.getBBox()]);
  count += marks.length;
  marks.forEach(([name, a], place) => {
    if (a.x < -1 || a.x + a.width > all.width + 1 || a.y + a.height > all.height + 2)
      outside.push(name);
    for (const [other, b] of marks.slice(place + 1)) {
      const across = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x);
      const down = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y);
      // Boxes have room above and below the letters.
      if (across > 0 && down > 4) over.push([name, other]);
    }
  });
}
return JSON.stringify([over, outside, count > 20]);
"""


@needs_browser
@pytest.mark.parametrize("which", ["page", "crowded"])
def test_no_words_of_a_picture_overlap_or_leave_it(request, tmp_path, which):
    found, _, _ = visit(request.getfixturevalue(which), tmp_path, OVERLAPS)
    assert json.loads(found) == [[], [], True]


def test_names_are_cut_to_their_room_and_broad_letters_count_as_such():
    for name in (*STRANGE, "M07", "ii", "WW"):
        assert text_width(shorten_label(name, 60)) <= 60
    assert shorten_label("M07", 60) == "M07"
    assert shorten_label("x" * 120, 60).endswith("x…")
    assert text_width("次の") > text_width("ab") > text_width("il")
    assert text_width("e\N{COMBINING ACUTE ACCENT}") == text_width("e")


def test_names_from_right_to_left_keep_to_themselves():
    assert (
        name_some(["a", "אב", "c"]) == "a, \N{FIRST STRONG ISOLATE}אב\N{POP DIRECTIONAL ISOLATE}, c"
    )


@needs_browser
def test_a_crowded_fit_picture_names_few_items_and_only_outliers(crowded, tmp_path):
    script = (
        "return JSON.stringify([...document.querySelectorAll('figure')]"
        ".filter(f => /^(In|Out)fit/.test(f.textContent))"
        ".map(f => [...f.querySelectorAll('text.name')].map(t => t.textContent)));"
    )
    for names in json.loads(visit(crowded, tmp_path, script)[0]):
        assert 1 <= len(names) <= 12
        assert {int(name[2:]) for name in names} <= set(range(24, 54))


@needs_browser
def test_a_printed_page_repeats_headings_and_splits_no_picture(page, tmp_path):
    # What is said for print is applied to the screen, where it can be asked for.
    script = (
        "const rules = [...document.styleSheets[0].cssRules]"
        ".filter(r => r.media && r.media.mediaText === 'print');"
        "rules.forEach(r => { r.media.mediaText = 'screen'; });"
        "const styles = (name, what) => [...new Set([...document.querySelectorAll(what)]"
        ".map(e => getComputedStyle(e)[name]))].join();"
        "return JSON.stringify([styles('display', 'thead'), styles('display', 'thead button'),"
        " styles('breakInside', 'figure, tr, .findings li, blockquote'),"
        " styles('breakAfter', 'h1, h2, h3, figcaption'), styles('overflowY', '.tall'),"
        " styles('display', '.tools, .screen, button.copy')]);"
    )
    wanted = ["table-header-group", "contents", "avoid", "avoid", "visible", "none"]
    assert json.loads(visit(page, tmp_path, script)[0]) == wanted


def luminance(colour):
    parts = [int(c, 16) / 255 for c in re.findall("..", colour if len(colour) == 6 else 2 * colour)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_words_stand_out_from_what_is_behind_them(mode):
    style = (TEMPLATES / "style.css").read_text()
    colours = dict(re.findall(r"--([\w-]+): #(\w+);", style.split("* {")[0].split("@media")[mode]))
    pairs = [
        *((words, "paper") for words in ("ink", "quiet", "accent", "second", "alarm", "fine")),
        *((words, "tint") for words in ("ink", "quiet")),
        *(("ink", "alarm-tint"), ("alarm", "alarm-tint")),
        *(("ink", "look-tint"), ("look", "look-tint"), ("paper", "alarm")),
    ]
    for words, behind in pairs:
        high, low = sorted((luminance(colours[words]), luminance(colours[behind])), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, (words, behind)  # WCAG 2, level AA


@needs_browser
def test_everything_has_a_name_for_a_screen_reader(page, tmp_path):
    script = (
        "const bare = [...document.querySelectorAll('svg, [role=region]')]"
        ".filter(e => !e.ariaLabel)"
        ".concat([...document.querySelectorAll('input, select')].filter(e => !e.labels.length))"
        ".concat([...document.querySelectorAll('button')].filter(e => !e.textContent.trim()))"
        ".concat([...document.querySelectorAll('th')].filter(e => !e.scope))"
        ".concat([...document.querySelectorAll('table')].filter(e => !e.caption));"
        "return bare.length;"
    )
    bare, _, _ = visit(page, tmp_path, script)
    assert bare == "0"


@needs_browser
def test_the_report_of_a_large_test_is_small_and_opens(tmp_path):
    ended = run("result", "report", simulate_booklets(tmp_path), "--out", tmp_path)
    assert ended.code == 0, ended.err
    path = tmp_path / "report.confidential.html"
    assert path.stat().st_size < 3_000_000
    rows, _, console = visit(path, tmp_path, f"return {ROWS}.length;")
    assert (rows, console) == ("174", "")


@needs_browser
def test_pictures_answer_to_keys_a_pointer_and_a_finger(tmp_path):
    answers = discreet.datasets.lsat()
    page = tmp_path / "report.html"
    estimate = fit(answers)
    page.write_text(write_diagnosis(diagnose_test(estimate, diagnose(answers, estimate))))
    script = """
    const tells = title => title.textContent.startsWith('Item3: infit');
    const picture = [...document.querySelectorAll('svg')].find(
      one => [...one.querySelectorAll('circle > title')].some(tells));
    const marks = [...picture.children].filter(mark => mark.querySelector(':scope > title'));
    const said = [], told = () => document.querySelector('.told').textContent;
    const chosen = () => document.querySelector('tr.chosen')?.cells[0].textContent ?? null;
    const press = key => picture.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
    const point = (mark, type, pointerType) => mark.dispatchEvent(
      new PointerEvent(type, {bubbles: true, pointerType}));
    press('ArrowRight'); said.push(told());
    press('ArrowLeft'); said.push(told());
    press('Enter'); said.push(chosen());
    press('Escape'); said.push(told());
    point(marks[1], 'pointerover', 'mouse'); said.push(told());
    point(picture, 'pointerleave', 'mouse'); said.push(told());
    point(marks[1], 'pointerover', 'touch'); point(marks[1], 'click', 'touch');
    said.push(told(), chosen());
    point(marks[1], 'click', 'touch'); said.push(chosen());
    return JSON.stringify([marks.length, picture.tabIndex, ...said]);
    """
    found, _, console = visit(page, tmp_path, script)
    marks, stop, first, last, row, gone, pointed, left, touched, kept, led = json.loads(found)
    assert marks == 5
    assert stop == 0, "one stop for the tab key, however many marks"
    assert re.fullmatch(r"Item\d: infit \d\.\d\d", first)
    assert re.fullmatch(r"Item\d: infit \d\.\d\d", last)
    assert row == last.partition(":")[0] != first.partition(":")[0]
    assert gone == left == ""
    assert touched == pointed
    assert kept == row, "the first touch only tells"
    assert led == pointed.partition(":")[0] != row
    assert not console
