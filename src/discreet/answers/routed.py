"""Multistage tests: modules, and the scores that lead from one to the next.

In: a stated design, and answers. Out: the same answers with the path of every person. Whoever looks
at routed answers conditions on the path too; what cannot is refused. Confidential.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.answers.pack import store_codes
from discreet.answers.survey import refuse_weights
from discreet.checking import checked
from discreet.choices import Skipped
from discreet.counts.planes import AnswerStore
from discreet.errors import BadResponses, BadUsage
from discreet.hints import check_choice_name
from discreet.text import count_of, name_some
from discreet.types import BoolArray, IndexArray, Int8Array, Int64Array

if TYPE_CHECKING:
    from discreet.answers.responses import Responses

#: A module of a path, with the lowest and the highest score that belong to the path.
Stage = tuple[str, int, int]


@dataclass(frozen=True)
class RoutingDesign:
    """Modules of a multistage test, and which scores led to which.

    Attributes
    ----------
    modules
        By name, the items of each module.
    paths
        By name, the modules of each path in their order, each with the lowest and the highest score
        of who took this path: ``{"low": [("first", 0, 3), ("easy", 0, 8)]}``. A last module has
        all its scores.
    cumulated
        Whether these are scores on all modules so far, not on the module alone.
    skipped
        What a missing answer in a module that decided the path was: ``"wrong"``, and then it counts
        as wrong, or ``"refuse"``.

    Examples
    --------
    >>> design = RoutingDesign(
    ...     {"first": ["a", "b"], "easy": ["c", "d"], "hard": ["e", "f"]},
    ...     {"low": [("first", 0, 0), ("easy", 0, 2)], "high": [("first", 1, 2), ("hard", 0, 2)]},
    ... )
    >>> design.list_items("high")
    ('a', 'b', 'e', 'f')
    """

    modules: Mapping[str, Sequence[str]]
    paths: Mapping[str, Sequence[Stage]]
    cumulated: bool = False
    skipped: Skipped = "refuse"

    def __post_init__(self) -> None:
        check_choice_name("skipped", self.skipped, ("refuse", "wrong"))
        if not self.paths:
            raise BadUsage("a routed test has paths; state at least one")
        for path, stages in self.paths.items():
            for module, low, high in stages:
                if module not in self.modules:
                    raise BadUsage(
                        f"path {path!r} has the module {module!r}, whose items are not stated; "
                        f"there are {', '.join(self.modules)}"
                    )
                if low > high:
                    raise BadUsage(
                        f"path {path!r} takes scores from {low} to {high} in module {module!r}; "
                        "state the lower one first"
                    )
            items = self.list_items(path)
            twice = sorted({item for item in items if items.count(item) > 1})
            if twice:
                raise BadUsage(
                    f"path {path!r} has item {twice[0]!r} twice; an item is answered once on a path"
                )

    def list_items(self, path: str) -> tuple[str, ...]:
        """Return the items of a path in their order."""
        return tuple(item for module, *_ in self.paths[path] for item in self.modules[module])

    def list_deciding(self, path: str, steps: Mapping[str, int]) -> list[str]:
        """Return the items whose scores decided that somebody took a path."""
        stages = self.paths[path]
        highest = [sum(steps[item] for item in self.modules[module]) for module, *_ in stages]
        if self.cumulated:
            highest = list(accumulate(highest))
        binds = [
            low > 0 or high < most for (_, low, high), most in zip(stages, highest, strict=True)
        ]
        if self.cumulated:
            binds = [any(binds[place:]) for place in range(len(binds))]
        modules = [stage[0] for stage, bound in zip(stages, binds, strict=True) if bound]
        return [item for module in modules for item in self.modules[module]]

    def allow(self, path: str, score: Any) -> BoolArray:
        """Say which scores of the modules, ``[..., module]``, belong to a path."""
        low, high = np.array([stage[1:] for stage in self.paths[path]]).T
        told = np.cumsum(score, axis=-1) if self.cumulated else np.asarray(score)
        return np.asarray(((told >= low) & (told <= high)).all(axis=-1))


@dataclass(frozen=True, eq=False)
class RoutedPersons:
    """The design of a routed test, and the path of every person: its position in the design.

    ``deciding`` are the items that decided a path. Without one of them nothing can be said.
    """

    design: RoutingDesign
    path: IndexArray
    deciding: frozenset[str]

    def take(self, persons: Any) -> RoutedPersons:
        """Return some of the persons."""
        return RoutedPersons(self.design, self.path[persons], self.deciding)

    def check_items(self, items: Sequence[str]) -> None:
        """Refuse answers without an item that decided a path."""
        lost = sorted(self.deciding - {*items})
        if lost:
            raise BadUsage(
                f"the answers to {name_some(lost)} decided which items followed; routed answers "
                "cannot be looked at without them"
            )

    def place_modules(self, items: Sequence[str]) -> IndexArray:
        """Return which module of each path an item is in, ``[path, item]``; -1 for none."""
        rows = []
        for stages in self.design.paths.values():
            modules = [self.design.modules[module] for module, *_ in stages]
            place_of = {item: place for place, own in enumerate(modules) for item in own}
            rows.append([place_of.get(item, -1) for item in items])
        return np.array(rows)


@checked
def route_answers(responses: Responses, design: RoutingDesign) -> tuple[AnswerStore, RoutedPersons]:
    """Return the answers, those that count as wrong filled in, and the path of every person."""
    refuse_weights(responses.sample, "routing", "paths and weights together are not known here")
    if responses.lowest != 0:
        raise BadUsage(
            f"routing rules count points from 0, and these answers begin with {responses.lowest}"
        )
    steps = dict(zip(responses.items, responses.steps, strict=True))
    _check_names(design, steps)
    deciding = {path: design.list_deciding(path, steps) for path in design.paths}
    every = RoutedPersons(design, np.zeros(0, np.intp), frozenset().union(*deciding.values()))
    cells = responses.to_array()
    place = every.place_modules(responses.items)
    path = _find_paths(responses, design, cells, place)
    decides = np.array([[item in own for item in responses.items] for own in deciding.values()])
    skipped = decides[path] & (cells < 0)
    if skipped.any() and design.skipped == "refuse":
        person, item = np.argwhere(skipped)[0]
        raise BadResponses(
            f"{count_of(int(skipped.any(axis=1).sum()), 'person')} left out an answer that decided "
            f"the path (person {responses.persons[person]!r}, item {responses.items[item]!r}). If "
            "it counted as wrong there, say skipped='wrong' (--skipped wrong)"
        )
    filled = store_codes(np.where(skipped, 0, cells), responses.steps)
    store = filled if skipped.any() else responses.store
    return store, RoutedPersons(design, path, every.deciding)


def _check_names(design: RoutingDesign, steps: Mapping[str, int]) -> None:
    stated = {item for path in design.paths for item in design.list_items(path)}
    for item in sorted(stated ^ steps.keys()):
        why = "is in no module of a path" if item in steps else "is in a module, but not answered"
        raise BadUsage(
            f"item {item!r} {why}; modules name the items of the answers, and all of them"
        )


def _find_paths(
    responses: Responses, design: RoutingDesign, cells: Int8Array, place: IndexArray
) -> IndexArray:
    """Return the one path that the answers of each person fit."""
    fits = np.empty((len(design.paths), len(cells)), dtype=bool)
    for number, (path, stages) in enumerate(design.paths.items()):
        answered, score = sum_modules(cells, place[number], len(stages))
        outside = (cells >= 0) & (place[number] < 0)
        fits[number] = ~outside.any(axis=1) & (answered > 0).all(axis=1)
        fits[number] &= design.allow(path, score)
    wrong = np.flatnonzero(fits.sum(axis=0) != 1)
    if len(wrong):
        own = [path for path, fit in zip(design.paths, fits[:, wrong[0]], strict=True) if fit]
        raise BadResponses(
            f"the answers of {count_of(len(wrong), 'person')} do not fit exactly one path (person "
            f"{responses.persons[wrong[0]]!r} fits {' and '.join(own) or 'none'}): a path fits "
            "who answered something in each of its modules, nothing else, and has its scores. "
            "State a path for those who stopped, or leave them out"
        )
    return np.asarray(np.argmax(fits, axis=0))


def sum_modules(cells: Int8Array, place: IndexArray, modules: int) -> tuple[Int64Array, Int64Array]:
    """Return numbers of answers and scores, ``[person, module]``; places are those of the items."""
    inside = (place[:, None] == np.arange(modules)).astype(np.int64)
    points = np.stack([cells >= 0, np.maximum(cells, 0)]).astype(np.int64)
    sums: Int64Array = points @ inside
    return sums[0], sums[1]
