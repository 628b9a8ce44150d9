"""The specification of a release: everything that is settled before anybody looks at the data.

In: what was stated, by keywords of Python, options, a form of the studio, a file or a signed
request. Out: one :class:`ReleaseSpec`, which checking, preview and release take, or a refusal. Only
its public parameters and its budget reach the wall. Nothing here opens a file of answers.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import index
from os import PathLike
from pathlib import Path
from typing import SupportsIndex, cast, get_args

from discreet.answers.survey import RAKED
from discreet.checking import check_arguments
from discreet.choices import MODELS, Design, Estimator, PlainDict, PlainMapping, ScaleModel
from discreet.coding.keys import Key
from discreet.coding.reading import DESIGN_WORDS, READING_DEFAULTS, Reading
from discreet.coding.steps import list_scale
from discreet.errors import BadUsage
from discreet.hints import check_choice_name
from discreet.models.noisy.released import check_estimator
from discreet.names import name_id
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.ledger import EVERYONE, AnyLedger, Ledger, as_ledger
from discreet.privacy.ledger.request import (
    Request,
    RightAnswers,
    as_request,
    pack,
    unpack,
    write_decimal,
)
from discreet.privacy.mechanisms import check_mechanism, choose_mechanism
from discreet.privacy.mechanisms.group_means import GroupScores
from discreet.privacy.protocol import NOISE_AWARE, PUBLIC, Mechanism, Public, freeze_value
from discreet.publishing.centre import list_centred, open_centre, read_centre
from discreet.publishing.identity import (
    About,
    AuditSource,
    Identity,
    make_identity,
    read_audit,
    read_word_file,
    refuse_unknown,
)
from discreet.readers.comparisons import read_comparisons
from discreet.schema import read_as
from discreet.tables.columns import RATED
from discreet.tables.lists import read_form_list, read_items, read_list, state_reading
from discreet.words import KINDS

#: A list of items, or each with its number of steps.
ItemList = Sequence[str] | Mapping[str, int]
#: A list of items, or the file of one.
Items = ItemList | PathLike[str]
#: Lists of items, by the name of their form or without, or the file of such lists.
Forms = Mapping[str, Sequence[str]] | Sequence[Sequence[str]] | PathLike[str]
#: The column that says of which group a person is, and the groups that are compared.
Groups = Mapping[str, Sequence[str]]
#: Keywords of a reader.
Words = PlainMapping


#: Keywords of a specification that stand in a request as they are.
REQUESTED = (
    *("kind", "lowest", "forms", "design", "model", "max_answers", "persons", "mechanism"),
    *("population", "estimator", "looked"),
)


#: What stands in a request as the public parameters have it.
AROUND = ("centre", "centre_from", "group_column", "groups")


@dataclass(frozen=True)
class ReleaseSpec:
    """What shall be released.

    Attributes
    ----------
    public
        Items with their steps, cap, stated number of persons, design, forms, mechanism, estimator.
    budget
        Epsilon, delta and the neighbouring relation.
    reading
        How the file is read: keywords of :func:`discreet.read_responses`, or of
        :func:`discreet.read_comparisons`.
    identity
        Whom it is about, and the texts that it publishes about itself.
    """

    public: Public
    budget: Budget
    reading: Words = field(default_factory=dict)
    identity: Identity = field(default_factory=Identity)

    def __post_init__(self) -> None:
        if isinstance(self.public.mechanism, str):
            check_mechanism(self.public.mechanism, self.public.kind)
        if self.public.estimator != NOISE_AWARE:
            chosen, _ = choose_mechanism(self.public)
            check_estimator(chosen.name, self.public.estimator)

    def name_mechanism(self) -> ReleaseSpec:
        """Return the specification with the mechanism that ``"auto"`` stands for, by its name."""
        if not isinstance(self.public.mechanism, str):
            raise BadUsage(
                "a request names its mechanism; one with settings of its own cannot be asked"
            )
        name, chooser = choose_mechanism(self.public)[0].name, self.public.chooser
        return replace(self, public=replace(self.public, mechanism=name, chosen_by=chooser))

    def to_dict(self) -> PlainDict:
        """Return plain values without floating-point numbers: what a request signs."""
        public, identity = self.name_mechanism().public, self.identity
        if public.roster:
            raise BadUsage("a request names the number of persons, found a list of ids")
        about = {"identity": identity.to_dict(), "audit": identity.audit}
        plain = public.to_dict()
        del plain["is_fixed"]
        return {
            **plain,
            "kind": public.kind,
            "model": public.model if public.has_steps else "rasch",
            "reading": _pack_reading(public, self.reading),
            "epsilon": write_decimal(self.budget.epsilon),
            "delta": write_decimal(self.budget.delta),
            "mechanism": public.mechanism,
            "population": identity.population,
            "about": pack({name: part for name, part in about.items() if part}),
            "estimator": public.estimator,
            "chosen_by": public.chooser,
            "looked": identity.looked,
        }

    @classmethod
    def from_dict(cls, values: PlainMapping) -> ReleaseSpec:
        """Rebuild a specification from `to_dict`."""
        items, steps = values["items"], values["steps"]
        if len(set(items)) < len(items) or len(steps) != len(items):
            raise BadUsage("the request names an item twice, or not as many steps as items")
        about = unpack(values["about"])
        # The keywords of a request, for the reader of its kind.
        words = dict(unpack(values["reading"]))
        _check_names(values["kind"], words)
        if "key" in words:  # words come back as the tuples that they were
            key = read_as(RightAnswers, words["key"], "the key")
            words["key"] = Key(dict(key.by_item), key.in_order)
        spec = make_spec(
            Budget(float(values["epsilon"]), float(values["delta"]), values["neighbours"]),
            items=dict(zip(items, steps, strict=True)),
            **{name: values[name] for name in REQUESTED},
            about=about.get("identity"),
            reading=words,
        )
        more = {name: freeze_value(values[name]) for name in AROUND}
        public = replace(spec.public, chosen_by=values["chosen_by"], **more)
        identity = replace(spec.identity, audit=about.get("audit"))
        return replace(spec, public=public, identity=identity)


def make_spec(
    budget: Budget,
    *,
    items: Items,
    kind: str = "answers",
    lowest: int = 0,
    forms: Forms | None = None,
    design: str = "unknown",
    model: str = "auto",
    max_answers: int | None = None,
    persons: int | Iterable[object] | None = None,
    mechanism: str | Mechanism = "auto",
    estimator: Estimator = NOISE_AWARE,
    population: str = EVERYONE,
    about: About = None,
    audit: AuditSource | None = None,
    looked: bool = False,
    centre: object = None,
    groups: Groups | None = None,
    reference: str | None = None,
    reading: Words | None = None,
) -> ReleaseSpec:
    """Check what was stated, and return the specification; see :func:`discreet.release`."""
    if not isinstance(budget, Budget):
        raise BadUsage(
            f"a release needs a budget: epsilon=1.0, or Budget(epsilon=1.0); found {budget!r}"
        )
    refuse_reading({} if reading is None else reading)
    names, steps = _list_items(items, kind)
    if isinstance(lowest, bool) or not isinstance(lowest, int):
        raise BadUsage(f"lowest must be a whole number, found {lowest!r}")
    stated, roster = _read_persons(persons, kind)
    known, known_from = read_centre(centre, names)
    is_compared = not getattr(mechanism, "compares_groups", False)
    column, compared = read_groups(groups, reference, fewest=1 + is_compared)
    public = PUBLIC[kind](
        items=names,
        max_answers=len(names) if max_answers is None else max_answers,
        neighbours=budget.neighbours,
        persons=stated,
        is_fixed=stated is not None,
        steps=steps,
        forms=_list_forms(forms),
        design=cast(Design, design),
        lowest=lowest,
        model=_check_model(model, has_steps=any(step > 1 for step in steps)),
        mechanism=mechanism,
        estimator=estimator,
        centre=known,
        centre_from=known_from,
        group_column=column,
        groups=compared,
        roster=roster,
    )
    facts = None if audit is None else read_audit(audit)
    identity = make_identity(about)
    identity = replace(identity, population=population, looked=bool(looked), audit=facts)
    return ReleaseSpec(public, budget, reading or {}, identity)


def word_means(
    calibration: object, groups: Groups, *, items: Items | None = None, least: int = 100
) -> PlainDict:
    """Return the words of a release of group means around a calibration."""
    calibration = open_centre(calibration)
    return {
        "items": list_centred(calibration) if items is None else items,
        "centre": calibration,
        "groups": groups,
        "design": "complete",
        "mechanism": GroupScores(least=least),
    }


def read_groups(
    groups: Groups | None, reference: str | None, *, fewest: int = 2
) -> tuple[str, tuple[str, ...]]:
    """Return the column of groups and their names, the reference first; nothing where none are."""
    if groups is None:
        return "", ()
    if len(groups) != 1:
        raise BadUsage(f"groups names one column and its groups, found {len(groups)} columns")
    ((column, names),) = groups.items()
    listed = tuple(map(str, names))
    is_repeated = len({"", *listed}) <= len(listed)  # or is no name: who has no group has ""
    if isinstance(names, str) or len(listed) < fewest or is_repeated:
        number = "at least two" if fewest > 1 else "a list of"
        raise BadUsage(f"groups of {column!r} must be {number} different names, found {names!r}")
    first = listed[0] if reference is None else str(reference)
    if first not in listed:
        raise BadUsage(f"the reference {first!r} is none of the groups {', '.join(listed)}")
    return column, (first, *(name for name in listed if name != first))


def make_budget(
    budget: Budget | None, epsilon: float | None, delta: float | None, neighbours: str | None
) -> Budget:
    """Return a budget that was given whole, or by its numbers; never both."""
    if budget is None and epsilon is not None:
        relation = Neighbours.REPLACE_ONE if neighbours is None else cast(Neighbours, neighbours)
        return Budget(epsilon, 1e-6 if delta is None else delta, relation)
    if (epsilon, delta, neighbours) != (None, None, None):
        raise BadUsage(
            "a release has one budget: give budget=Budget(...) alone, or epsilon= with, if need "
            "be, delta= and neighbours="
        )
    return cast(Budget, budget)


def read_spec(words: Words, *, kind: str = "answers", file: Path | None = None) -> ReleaseSpec:
    """Return the specification that these words state, and a file where they say nothing.

    Parameters
    ----------
    words
        Keywords of :func:`discreet.release`, or of :func:`discreet.release_comparisons`.
    kind
        ``"answers"`` or ``"comparisons"``.
    file
        TOML or JSON with the same keywords, and the tables ``about`` and ``reading``. Paths in it
        begin at its folder.
    """
    stated = {**({} if file is None else _read_spec_file(file, kind)), **words}
    called = {KINDS[kind].cap: "max_answers", KINDS[kind].persons: "persons"}
    stated = {called.get(name, name): value for name, value in stated.items()}
    stated = check_arguments(make_spec, stated, "of a release" if file is None else f"in {file}")
    if stated.get("epsilon") is None:
        raise BadUsage("Missing option '--epsilon'. Only a release with --request can do without.")
    numbers = [stated.pop(name, None) for name in ("epsilon", "delta", "neighbours")]
    return make_spec(make_budget(None, *numbers), kind=kind, **stated)


def _read_spec_file(path: Path, kind: str) -> PlainDict:
    """Return the keywords of a specification file."""
    words = read_word_file(path)
    own_names = {"max_answers": KINDS[kind].cap, "persons": KINDS[kind].persons}
    names = [own_names.get(name, name) for name in (*SPEC_NAMES, *BUDGET_NAMES)]
    refuse_unknown(words, names, f"{path}: ")
    for name in ("items", "forms", "audit", "about", "centre"):
        if isinstance(words.get(name), str):
            words[name] = path.parent / words[name]
    if isinstance(words.get("about"), dict):
        words["about"] = make_identity(words["about"])
    return words


SPEC_NAMES = tuple(
    name for name in inspect.signature(make_spec).parameters if name not in ("budget", "kind")
)
#: What a specification file may say.
BUDGET_NAMES = ("epsilon", "delta", "neighbours")


def read_request(
    request: Request | str | PathLike[str], ledger: AnyLedger | None = None
) -> tuple[ReleaseSpec, Ledger, Request]:
    """Return what a request asks for, the ledger that it is for, and the request itself.

    Whether it is the right ledger is checked with the signatures, before the data is opened.
    """
    proposal = as_request(request)
    if proposal.body["purpose"] != "release":
        raise BadUsage(
            "this request is about an approver: enter it with 'discreet ledger approver LEDGER "
            "--request FILE'"
        )
    book = as_ledger(proposal.body["ledger_file"] if ledger is None else ledger)
    return ReleaseSpec.from_dict(proposal.body), book, proposal


def _list_items(items: object, kind: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the names of listed items, and how many steps each has."""
    if isinstance(items, PathLike):
        items = read_items(Path(items)) if kind == "answers" else read_list(Path(items))
    if isinstance(items, str) or not isinstance(items, Iterable):
        type_name = "one string" if isinstance(items, str) else type(items).__name__
        raise BadUsage(f"items must be a list of item names, found {type_name}")
    names = tuple(map(name_id, items))
    steps = tuple(items.values()) if isinstance(items, Mapping) else (1,) * len(names)
    for item, step in zip(names, steps, strict=True):
        if not isinstance(step, int) or isinstance(step, bool):
            raise BadUsage(f"the steps of item {item!r} must be a whole number, found {step!r}")
    return names, steps


def _read_persons(persons: object, kind: str) -> tuple[int | None, tuple[str, ...]]:
    """Return the stated number of persons, and their ids where those were listed."""
    if persons is None:
        return None, ()
    if isinstance(persons, Iterable) and not isinstance(persons, str):
        roster = tuple(map(str, persons))
        return len(roster), roster
    if isinstance(persons, SupportsIndex) and not isinstance(persons, bool):
        return index(persons), ()
    word = KINDS[kind].persons
    raise BadUsage(f"{word} must be a whole number or a list of ids, found {persons!r}")


def _check_model(model: str, *, has_steps: bool) -> ScaleModel:
    check_choice_name("model", model, ("auto", *MODELS))
    if has_steps and model == "rasch":
        raise BadUsage("model='rasch' is for right and wrong answers, and the list names steps")
    if not has_steps and model in get_args(ScaleModel):
        raise BadUsage(
            f"the model {model!r} is for items with steps, and the list names none. Name them with "
            "the list: in Python items={'Q1': 4}, in a file the columns item and steps"
        )
    return "rating-scale" if model == "rating-scale" else "partial-credit"


def _list_forms(forms: object) -> tuple[tuple[str, ...], ...]:
    if forms is None:
        return ()
    if isinstance(forms, PathLike):
        forms = read_form_list(Path(forms))
    if isinstance(forms, str) or not isinstance(forms, Iterable):
        raise BadUsage("forms must be lists of items, or lists of items by the name of the form")
    listed = forms.values() if isinstance(forms, Mapping) else forms
    if any(isinstance(form, str) for form in listed):
        raise BadUsage("a form must be a list of items, found one string")
    return tuple(tuple(map(name_id, form)) for form in listed)


# -- how the data is read -----------------------------------------------------------------


#: Keywords that say which columns hold raters.
RATING_WORDS = frozenset({"facets", "rater"})


def refuse_reading(words: Words) -> None:
    """Refuse keywords about weights and raters, of which no release can be made."""
    if DESIGN_WORDS.intersection(words):
        raise BadUsage(f"a release is refused where persons have weights: {RAKED}")
    if RATING_WORDS.intersection(words):
        raise BadUsage(f"a release of ratings is refused: {RATED}")


def restrict_reading(public: Public, reading: Reading | None) -> Reading:
    """Return how to read answers of a release: as told, without looking at the values.

    Columns and rows outside the item list are ignored.
    """
    reading = reading or Reading()
    if public.groups:
        reading = replace(reading, group=(public.group_column,))
    coding, listed = reading.asked, frozenset(public.items)
    if coding.steps or coding.merge or coding.lowest is not None or coding.model is not None:
        raise BadUsage(
            "a release does not look for steps in the answers. State the steps in the item list "
            "(items={'Q1': 4}, in a file the columns item and steps), and the lowest category "
            "with lowest= (--lowest). Merge categories beforehand"
        )
    if not public.lowest and not public.has_steps:
        if coding.reverse:
            raise BadUsage("reverse= (--reverse) is for items with steps, and these have none")
        is_coded = reading.at_least is None
        return replace(reading, model="rasch" if is_coded else None, listed=listed)
    if reading.at_least is not None or reading.one_means == "wrong":
        raise BadUsage(
            "at_least= (--at-least) and one_means= (--one-means) make answers right and wrong, "
            "and the item list names steps. Leave out one or the other"
        )
    steps = dict(zip(public.items, public.steps, strict=True))
    unlisted = [item for item in coding.reverse if item not in steps]
    if unlisted:
        raise BadUsage(f"reverse= (--reverse) names {unlisted[0]!r}, which is not on the list")
    scale = list_scale(steps, public.lowest, coding.reverse)
    return replace(reading, reverse=(), scale=scale, listed=listed)


#: What every keyword is where nobody says it.
_DEFAULTS: dict[str, PlainDict] = {
    "answers": dict(READING_DEFAULTS),
    "comparisons": {
        name: parameter.default
        for name, parameter in inspect.signature(read_comparisons).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    },
}


#: All that is published of a key: it would tell the right answers of a test that is used again.
SCORED = "scored with a key"


def record_reading(public: Public, words: Words) -> PlainDict:
    """Return how the data is read, as everybody may know it."""
    stated = _state_reading(public, words)
    return stated | ({"key": SCORED} if "key" in stated else {})


def _pack_reading(public: Public, words: Words) -> PlainDict:
    """Return the keywords as they stand in a request."""
    _check_names(public.kind, words)
    stated = _state_reading(public, words)
    return dict(pack(stated | ({"key": vars(stated["key"])} if "key" in stated else {})))


def _state_reading(public: Public, words: Words) -> PlainDict:
    """Return the keywords that differ from their defaults, each in its one form."""
    unsaid: tuple[object, ...] = (None, "", [], {}, ())
    said = {name: value for name, value in words.items() if value not in unsaid}
    if public.kind == "comparisons":
        defaults = _DEFAULTS[public.kind]
        return {name: one for name, one in said.items() if one != defaults[name]}
    reading = state_reading(said)
    restrict_reading(public, reading)
    return reading.stated


def _check_names(kind: str, words: Words) -> None:
    for name in words:
        if name not in _DEFAULTS[kind]:
            raise BadUsage(f"a request for {kind} does not say how they are read with {name!r}")
