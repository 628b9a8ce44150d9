"""Ratings in tables with a column for every rater, or with a row for every person and rater.

In: a table, and what its inspection says of raters. Out: ratings, one row each, in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.answers.ratings import Ratings
from discreet.answers.responses import Responses
from discreet.choices import PlainDict, PlainMapping
from discreet.coding.reading import join_words
from discreet.errors import BadResponses
from discreet.readers.opening import open_memory
from discreet.readers.ratings import PERSON_NAMES
from discreet.tables.columns import plain_name
from discreet.tables.findings import merge_options
from discreet.tables.inspection import Inspection, look_at, simplify
from discreet.types import IndexArray

#: The facet of raters whose column has no name of its own.
RATER = "rater"

#: What may be stated of such a table.
CROSSED_WORDS = {"person", "missing", "lowest", "sheet", "delimiter", "header", "keep", "ignore"}

#: Who gave which scores: the column of raters in a table of single ratings; that column and the one
#: of persons, in a table with a row for both; by rater, the columns of each criterion.
Raters = str | list[str] | Mapping[str, Mapping[str, str]]


def find_raters(inspection: Inspection) -> Raters:
    """Return who gave the scores, if they are ratings."""
    raters = inspection.raters
    if not isinstance(raters, str) or "answer" in inspection.preview.roles:
        return raters
    offered = (answer.options for one in inspection.findings for answer in one.answers)
    persons = [options["person"] for options in offered if "person" in options]
    return (
        [raters, str(inspection.options.get("person", next(iter(persons), "")))] if raters else ""
    )


def read_crossed(
    source: Any, inspection: Inspection, raters: list[str] | Mapping[str, Mapping[str, str]]
) -> tuple[Responses, Ratings]:
    """Return the answers as they stand in the table, and the ratings that they are."""
    reading = inspection.take_sure() if inspection.is_sure else inspection.proposal
    if not isinstance(raters, list):
        answers = open_memory(source, reading)
        return answers, _join_columns(answers, raters)
    apart = [one for one in simplify(reading.stated).get("ignore", ()) if one not in raters]
    answers = open_memory(source, replace(reading, person=None, ignore=apart, group=raters))
    return answers, _join_rows(answers, raters)


def find_crossed(source: Any, facets: Sequence[str], words: PlainMapping) -> Ratings | None:
    """Return the ratings of a table that has no column of scores; None where it shows no raters."""
    stated = simplify(join_words(words).stated)
    if len(facets) != 1 or stated.keys() - CROSSED_WORDS:
        return None
    person = stated.pop("person", None)
    inspection = look_at(source, stated)
    raters = find_raters(inspection)
    if isinstance(raters, str) or (isinstance(raters, list) and raters[0] != facets[0]):
        return None
    if isinstance(raters, list):
        raters = [raters[0], person or raters[1] or _find_person(inspection, raters[0])]
        said: PlainDict = {"group": raters}
    else:
        every = [column for named in raters.values() for column in named.values()]
        said = {"keep": every} | ({"person": person} if person else {})
    inspection = look_at(source, merge_options(stated, said))
    if not inspection.is_sure:
        raise inspection.refuse()
    ratings = read_crossed(source, inspection, raters)[1]
    (levels,), (codes,) = ratings.facets.values(), ratings.codes.values()
    return replace(ratings, facets={facets[0]: levels}, codes={facets[0]: codes})


def _find_person(inspection: Inspection, rater: str) -> str:
    """Return the column that says whom a row of ratings is about."""
    names = [name for name in inspection.preview.names if name != rater]
    persons = [name for name in names if plain_name(name) in PERSON_NAMES]
    if len(persons) != 1:
        raise BadResponses(
            f"{inspection.source}: '{rater}' holds raters, and no column is known to say whom they "
            "rated. Name it with person=NAME (--person NAME)."
        )
    return persons[0]


def _join_columns(answers: Responses, raters: Mapping[str, Mapping[str, str]]) -> Ratings:
    """Return the ratings of a table with a column for every criterion of every rater."""
    items = [*dict.fromkeys(item for named in raters.values() for item in named)]
    number_of = {column: number for number, column in enumerate(answers.items)}
    place = [[number_of[named[item]] for item in items] for named in raters.values()]
    scores = answers.rows(0, answers.n_persons)[:, np.array(place)]
    person, rater, item = np.nonzero(scores >= 0)
    codes = (person, item, scores[scores >= 0], rater)
    return _make(answers, codes, answers.persons, items, (RATER, [*raters]))


def _join_rows(answers: Responses, columns: Sequence[str]) -> Ratings:
    """Return the ratings of a table with a row for every person and rater."""
    raters, person = columns
    scores = answers.rows(0, answers.n_persons)
    row, item = np.nonzero(scores >= 0)
    persons, person_of = np.unique(answers.groups[person], return_inverse=True)
    levels, rater_of = np.unique(answers.groups[raters], return_inverse=True)
    codes = (person_of[row], item, scores[scores >= 0], rater_of[row])
    return _make(answers, codes, persons, answers.items, (raters, levels))


def _make(
    answers: Responses,
    codes: tuple[IndexArray, IndexArray, Any, IndexArray],
    persons: Any,
    items: Sequence[str],
    facet: tuple[str, Any],
) -> Ratings:
    """Return ratings by codes of person, item, score and rater; without persons nobody rated."""
    person, item, score, rater = codes
    rated, person = np.unique(person, return_inverse=True)
    name, levels = facet
    return Ratings.from_codes(
        person,
        item,
        score,
        facets={name: rater},
        items=items,
        levels={name: [*map(str, levels)]},
        lowest=int(answers.reading.stated.get("lowest") or 0),
        ids=pa.array([str(persons[number]) for number in rated]),
    )
