"""How public functions open what they are given.

In: a function of the engine, whose arguments are declared as :class:`Responses` and calibrations.
Out: the function for users. Where the engine takes answers, it takes anything that
:func:`discreet.read_responses` reads, with its keywords; where the engine takes a calibration, also
a data frame of items and difficulties.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, Protocol, TypeVar, Unpack, cast

from discreet.answers.protocol import Answers
from discreet.choices import PlainDict, PlainMapping
from discreet.coding.agreement import list_items
from discreet.coding.reading import FitWords, ReadingWords
from discreet.errors import BadUsage
from discreet.items.groups import SCORE_SPLITS
from discreet.readers.calibrations import read_calibration
from discreet.readers.opening import load_answers, name_model
from discreet.readers.testlets import read_testlets

Result = TypeVar("Result", covariant=True)


class Opening(Protocol[Result]):
    """A function that opens its first argument, or reads a table with the keywords of reading."""

    __name__: str

    def __call__(self, responses: object, /, *arguments: object, **keywords: object) -> Result: ...


def opens(function: Callable[..., Result]) -> Opening[Result]:
    """Return a function of answers or calibrations in memory as one that opens them first.

    ``groups`` and ``regress`` may name columns, which are then read as groups; ``testlet`` may name
    a column of a long table.
    """
    declared = signature(function)
    own = declared.parameters
    calibrations = [name for name in own if str(own[name].annotation).startswith("Calibration")]
    takes_answers = "responses" in own
    words = FitWords if "model" in own else ReadingWords

    @wraps(function)
    def call(*arguments: object, **keywords: object) -> Result:
        reading = {name: value for name, value in keywords.items() if name not in own}
        options = {name: value for name, value in keywords.items() if name in own}
        bound = declared.bind(*arguments, **options, **({} if takes_answers else reading))
        for name in calibrations:
            bound.arguments[name] = read_calibration(bound.arguments.get(name))
        rated = [n for n in calibrations if getattr(bound.arguments[n], "facets", None)]
        if takes_answers and rated:
            _open_ratings(bound.arguments, reading, rated[0])
        elif takes_answers:
            _open_answers(bound.arguments, reading, function.__name__)
        return function(*bound.args, **bound.kwargs)

    call.__signature__ = _declare(declared, words if takes_answers else None)  # type: ignore[attr-defined]
    return call


def _open_ratings(arguments: PlainDict, reading: PlainDict, name: str) -> None:
    """Put ratings and what is known of items and raters as answers and their calibration."""
    from discreet.items.raters.crossing import cross_ratings  # loads numba
    from discreet.readers.ratings import read_rated

    estimate = arguments[name]
    ratings = read_rated(arguments["responses"], estimate, reading)
    arguments["responses"], arguments[name] = cross_ratings(ratings, estimate)


def _open_answers(arguments: PlainDict, reading: PlainDict, name: str) -> None:
    """Put answers in memory in the place of what holds them, and testlets of their column."""
    source = arguments["responses"]
    if hasattr(source, "to_responses"):
        source = source.to_responses()
    if hasattr(source, "difficulty") and not isinstance(source, Answers):
        raise BadUsage(
            f"{name} takes the answers first and the calibration second; found a calibration "
            f"({type(source).__name__}) first. Call {name}(answers, calibration)."
        )
    if isinstance(arguments.get("testlet"), str) and not isinstance(source, Answers):
        item = str(reading.get("item") or "item")
        arguments["testlet"] = read_testlets(source, arguments["testlet"], item)
    words = name_model(source, arguments.get("model", "auto"), cast(FitWords, reading))
    given = (arguments.get(name) for name in ("calibration", "estimate", "anchors"))
    like = next((one for one in given if one is not None), None)
    items = list_items(like)
    arguments["responses"] = load_answers(
        source, words, group=_name_columns(arguments), like=like, items=items
    )
    if arguments.get("past") is not None:
        arguments["past"] = load_answers(arguments["past"], words, like=like)


def _declare(declared: Signature, words: type | None) -> Signature:
    """Return a signature that takes anything as answers or calibrations, and words of reading."""
    kinds = ("Responses", "Calibration")
    parameters = [
        one.replace(annotation=Any) if str(one.annotation).startswith(kinds) else one
        for one in declared.parameters.values()
    ]
    if words is not None:
        kind = Unpack[words]
        parameters.append(Parameter("reading", Parameter.VAR_KEYWORD, annotation=kind))
    return declared.replace(parameters=parameters)


def _name_columns(arguments: PlainMapping) -> list[str]:
    """Return the columns that arguments name; labels of persons name none."""
    groups, regress = arguments.get("groups"), arguments.get("regress", ())
    is_column = isinstance(groups, str) and groups not in SCORE_SPLITS
    terms = [regress] if isinstance(regress, str) else regress
    return [*([groups] if is_column else []), *(() if isinstance(terms, Mapping) else terms)]
