"""Numbers compare as numbers wherever answers are numbers: 0.5, .5, 0,50, 0.50 and 5e-1 are one."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet
from discreet import Responses, read_responses
from discreet.coding.values import ValueScoring as Scoring
from discreet.coding.values import as_number, spell, write_cell
from discreet.errors import BadResponses
from discreet.tables.cells import make_column, score_array
from refusals import refused


@st.composite
def spellings(draw, numbers=None):
    """Draw a number and one of its spellings."""
    plain = st.decimals(-999, 999, places=4) if numbers is None else st.sampled_from(numbers)
    number = draw(plain)
    text = f"{number:f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    whole, _, part = digits.partition(".")
    form = draw(st.sampled_from(["zeros", "comma", "exponent", "point", "plus", "blanks"]))
    if form == "zeros":
        digits = f"{'0' * draw(st.integers(0, 3))}{whole}.{part}{'0' * draw(st.integers(0, 3))}"
    elif form == "comma":
        part = part.ljust(draw(st.sampled_from([1, 2, 4])), "0")
        digits = f"{whole},{part}" if len(part) != 3 else f"{whole}.{part}"
    elif form == "exponent":
        shift = draw(st.integers(-5, 5))
        digits = f"{Decimal(digits).scaleb(-shift):f}{draw(st.sampled_from('eE'))}{shift}"
    elif form == "point" and whole == "0" and part:
        digits = f".{part}"
    elif form == "plus":
        sign = sign or "+"
    elif form == "blanks":
        digits = f"{digits}  "
    return number, f"{sign}{digits}"


@given(spellings())
def test_every_spelling_of_a_number_is_spelt_alike(drawn):
    number, text = drawn
    assert spell(text) == spell(number) == spell(float(number)) == spell(write_cell(number))
    assert as_number(text) == number
    least = Scoring(at_least=float(number))
    assert score_array(pa.array([text, str(number - 1)]), least).tolist() == [1, 0]
    codes = Scoring(codes={spell(number): 3}, missing=(spell(number + 1),))
    assert score_array(pa.array([text, f"{number + 1}0" * 1]), codes)[0] == 3


HALVES = ("0", "0.5", "1")


@given(st.lists(st.tuples(*[spellings([*map(Decimal, HALVES)])] * 2), min_size=6, max_size=12))
def test_answers_are_read_alike_however_they_are_spelt(drawn):
    rows = [[number for number, _ in row] for row in drawn]
    frames = [{f"q{n}": [str(row[n]) for row in rows] for n in (0, 1)}]
    frames += [{f"q{n}": [row[n][1] for row in drawn] for n in (0, 1)}]
    frames += [{f"q{n}": [float(row[n]) for row in rows] for n in (0, 1)}]
    plain, spelt, floats = (Responses.from_dataframe(one, categories=HALVES) for one in frames)
    expected = (2 * np.array(rows, dtype=float)).tolist()
    for answers in (plain, spelt, floats):
        assert answers.to_array().tolist() == expected


@given(st.lists(st.one_of(st.none(), st.floats(), st.integers(-(2**70), 2**70)), max_size=6))
def test_a_column_of_numbers_is_read_as_their_texts(cells):
    """Whether another cell holds a text, and all are texts, changes no answer."""
    for kind in (int, float):
        numbers = [cell for cell in cells if isinstance(cell, kind | None)]
        typed, texts = make_column(numbers), pa.array(map(write_cell, numbers), pa.string())
        for scoring in (
            Scoring(),
            Scoring(missing=("9", "1")),
            Scoring(at_least=0.5),
            Scoring(at_least=float(next(filter(None, numbers), 2.0**54))) if numbers else Scoring(),
            Scoring(codes={"0": 0, "1": 1, "2": 2}),
            Scoring(right=frozenset({"1", "2.5"})),
        ):
            assert score_array(typed, scoring).tolist() == score_array(texts, scoring).tolist()


def write_halves(path, form, sign=","):
    points = np.random.default_rng(5).choice([0, 0.5, 1], (40, 4)).tolist()
    rows = [sign.join([f"p{n}", *map(form, row)]) for n, row in enumerate(points)]
    path.write_text("\n".join([sign.join(["id", "a", "b", "c", "d"]), *rows, ""]))
    return path


@pytest.mark.parametrize("sign", [",", ";"])
@pytest.mark.parametrize("form", ["{:g}", "{:.2f}", "{:.1e}", "{:+.3f}"])
def test_half_points_are_fitted_however_a_file_writes_them(form, sign, tmp_path):
    def spell_one(value):
        text = form.format(value).replace("0.5", ".5" if form == "{:+.3f}" else "0.5")
        return text.replace(".", ",") if sign == ";" and form == "{:.2f}" else text

    path = write_halves(tmp_path / "points.csv", spell_one, sign)
    with pytest.warns(UserWarning, match="half point"):
        found = discreet.fit(path)
    plain = write_halves(tmp_path / "plain.csv", "{:g}".format)
    with pytest.warns(UserWarning, match="half point"):
        expected = discreet.fit(plain)
    assert found.difficulty.tolist() == expected.difficulty.tolist()


def test_a_value_beside_half_points_is_refused_with_its_place(tmp_path):
    path = write_halves(tmp_path / "points.csv", "{:.2f}".format)
    lines = path.read_text().splitlines()
    lines[8] = "p7,0.25,1.00,0.00,1.00"
    path.write_text("\n".join(lines))
    with refused(
        BadResponses, "bad_answer", where="points.csv, line 9", column="a", value="'0.25'"
    ):
        read_responses(path, categories=HALVES)
