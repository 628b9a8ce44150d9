"""Publish: data and a budget in, what may be published out.

The order is fixed: public parameters, the place to write, the exact counts, the ledger, the noise,
the safe, the estimate, the bundle. Whatever can be refused is refused before the ledger is
charged; noise is drawn after it, once; and what was paid for can be delivered whatever happens
in between. Nothing after the wall sees an answer, a comparison or a count. Answers of persons and
comparisons of judges take the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TypedDict, Unpack, cast

from discreet.answers.comparisons import Comparisons
from discreet.answers.protocol import Answers
from discreet.choices import (
    AnswerMechanism,
    ComparisonMechanism,
    Design,
    Engine,
    Estimator,
    Model,
    PlainDict,
    Relation,
)
from discreet.coding.reading import ListedWords
from discreet.counts import PairCounts
from discreet.errors import BadUsage
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.ledger import EVERYONE, AnyLedger, Ledger
from discreet.privacy.ledger.balance import LedgerEntry
from discreet.privacy.ledger.request import Request
from discreet.privacy.mechanisms import make_order
from discreet.privacy.mechanisms.base import CompleteMechanism
from discreet.privacy.noise import ExactNoise, Noise
from discreet.privacy.protocol import Order
from discreet.publishing.bundle import Published, PublishedRanking, describe_software
from discreet.publishing.delivery import (
    DataSource,
    DeliveryTerms,
    check_spec,
    propose_spec,
    release_spec,
)
from discreet.publishing.group_differences import PrivateDif
from discreet.publishing.group_means import PrivateMeans
from discreet.publishing.identity import About, AuditSource
from discreet.publishing.spec import (
    Forms,
    Groups,
    Items,
    ReleaseSpec,
    Words,
    make_budget,
    make_spec,
    read_request,
    record_reading,
    word_means,
)
from discreet.readers.comparisons import ComparisonWords
from discreet.words import KINDS


def release(
    source: object,
    budget: Budget | None = None,
    *,
    items: Items,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Relation | None = None,
    lowest: int = 0,
    forms: Forms | None = None,
    design: Design = "unknown",
    model: Model = "auto",
    max_answers: int | None = None,
    persons: int | Iterable[object] | None = None,
    mechanism: AnswerMechanism | CompleteMechanism = "auto",
    centre: object = None,
    groups: Groups | None = None,
    reference: str | None = None,
    estimator: Estimator = "noise-aware",
    ledger: AnyLedger | None = None,
    population: str = EVERYONE,
    about: About = None,
    audit: AuditSource | None = None,
    looked: bool = False,
    engine: Engine = "auto",
    noise: Noise | None = None,
    out: str | PathLike[str] | None = None,
    force: bool = False,
    reservation: str | None = None,
    **reading: Unpack[ListedWords],
) -> Published:
    """Release item difficulties under differential privacy.

    Everything but ``source`` must be chosen without looking at the answers.

    Parameters
    ----------
    source
        Answers, a data frame or an array of them, or where they are: a file, folder or pattern, a
        DuckDB database (``"file.duckdb::table"``) or a query, of any size; see
        :func:`discreet.count_pairs`. Columns and rows of other items than the listed ones are
        ignored; a person who answered none of the listed items still counts.
    budget
        Epsilon, delta and the neighbouring relation; or these three by their names.
    items
        The public item list; the release keeps its order. Items that nobody answered are fine.
        Never the data's own list, which names an item that only one person answered. With steps
        (rating scales, points) each item with its number of steps: ``{"Q1": 4, "Q2": 4}``.
    epsilon, delta, neighbours
        In the place of ``budget``: delta is 1e-6 and the relation ``"replace-one"`` by default.
    lowest
        The lowest category as the data has it, 0 or 1 mostly. A release never looks for it.
    forms
        The sets of items of which every person was given one, where there are several.
    design
        Who answered what: ``"complete"``, everybody all items of a form; ``"random"``, a part that
        does not depend on ability; ``"unknown"``. The mechanisms ``"totals"`` and ``"residuals"``
        use it.
    model
        With steps: ``"partial-credit"`` (also ``"auto"``), or ``"rating-scale"``, whose items have
        their steps at the same distances.
    max_answers
        The public cap: a person with more answers keeps that many, chosen at random. By
        default every listed item.
    persons
        Under replace-one the public number of persons, fixed in advance, or a list of their ids;
        persons without any row are counted in, and more persons than that (or others) are refused.
        By default the number of persons in the data is published, which does not hide whether
        somebody is in the data at all.
    mechanism
        A name, or a mechanism with settings of its own. ``"auto"`` takes the one that is more
        accurate for these public parameters, and ``record["choice"]`` says which and why.
    centre
        Public difficulties around which the mechanism ``"residuals"`` looks at answers: an earlier
        release or its folder, a bank that carries a guarantee, or a mapping of items to logits that
        are public for another reason. Anything else is refused. Without, a first round finds them.
    groups, reference
        As for :func:`discreet.release_dif`, which compares them; whoever is in none of them is left
        out of everything that is released.
    estimator
        How the released values become difficulties. ``"noise-aware"``: a fit that knows its noise.
        ``"spectral"``: the paper's Algorithm 2, for ``pairs``, ``sparse-pairs`` and
        ``laplace-pairs``; its error is larger, and where its floor raises more than 2% of the
        counts it has no standard errors (docs/paper.md). It is no privacy parameter: the noisy
        values and the charge are the same, and :func:`discreet.refit` changes it later.
    ledger
        Where the spend is recorded and limited; ``None`` is allowed and said in the guarantee.
    population
        Whom this data is about, as declared in the ledger (``ledger.declare``); "everyone", the
        default, contains every population.
    about
        Who the release is: a mapping with ``title``, ``version``, ``date``, ``body``, ``contact``,
        ``supersedes`` and ``reason``, ``note``, ``introduction``, ``footer``, ``language``
        (of page and statement: ``"en"``, ``"de"`` or ``"es"``), or the path of a TOML file with
        them.
    audit
        What ``discreet audit --json`` found of this mechanism, to be published: its file, or a
        mapping.
    looked
        Whether somebody looked at the answers, or at results of them, before the list, the cap,
        the budget and the mechanism were set. The statement then says so.
    engine
        Where answers are counted, as for :func:`discreet.count_pairs`: in memory if they fit, and
        otherwise where they are, with bounded memory. The guarantee is the same.
    noise
        Where noise comes from; by default the exact sampler on secure randomness.
    out, force
        Where to write the bundle at once, as :meth:`Published.save` does. The place is tried and
        held, with room for the bundle, before the ledger is charged.
    reservation
        A name for the charge, from ``Ledger.name_reservation()``: whatever happens, a ledger is
        charged once under one name. By default a new one.
    reading
        ``person=``, ``item=``, ``response=`` and the other keywords of
        :func:`discreet.read_responses`, for sources that have columns.

    Examples
    --------
    >>> import discreet
    >>> answers = discreet.datasets.lsat()
    >>> items = ["Item1", "Item2", "Item3", "Item4", "Item5"]
    >>> released = discreet.release(answers, epsilon=1.0, delta=1e-6, items=items)
    >>> released.guarantee.epsilon, released.difficulty.shape
    (1.0, (5,))
    """
    spec = make_spec(
        make_budget(budget, epsilon, delta, neighbours),
        items=items,
        lowest=lowest,
        forms=forms,
        design=design,
        model=model,
        max_answers=max_answers,
        persons=persons,
        mechanism=mechanism,
        centre=centre,
        groups=groups,
        reference=reference,
        estimator=estimator,
        population=population,
        about=about,
        audit=audit,
        looked=looked,
        reading=reading,
    )
    terms = DeliveryTerms(ledger, noise or ExactNoise(), out, force, reservation=reservation)
    return release_spec(DataSource(source, engine), spec, terms)


class GroupListedWords(ListedWords, total=False):
    """Keywords that releases about groups share with :func:`release`."""

    epsilon: float | None
    delta: float | None
    neighbours: Relation | None
    persons: int | None
    ledger: AnyLedger | None
    population: str
    looked: bool
    engine: Engine
    noise: Noise | None
    out: str | PathLike[str] | None
    force: bool


def release_dif(
    source: object,
    budget: Budget | None = None,
    *,
    groups: Groups,
    items: Items,
    reference: str | None = None,
    design: Design = "unknown",
    max_answers: int | None = None,
    centre: object = None,
    **words: Unpack[GroupListedWords],
) -> PrivateDif:
    """Release which items are harder for one group than for another, under differential privacy.

    Everything but ``source`` must be chosen without looking at the answers. The release holds the
    difficulties of all persons in these groups too.

    Parameters
    ----------
    source
        Answers with a column of groups, or where they are.
    groups
        The column and its groups: ``{"language": ["de", "fr"]}``. A person without a value there,
        or with another one, adds nothing. How many are in each group is not published exactly.
    reference
        The group that the others are compared with; by default the first.
    budget, epsilon, delta, neighbours, items, design, max_answers, persons, centre, ledger
    population, looked, engine, noise, out, force, reading
        As for :func:`discreet.release`; answers must fit into memory. The bundle in ``out`` holds
        the comparison too, and ``read_release(out).compare_groups()`` makes it again.

    Examples
    --------
    >>> import numpy as np
    >>> import discreet
    >>> X = np.random.default_rng(1).integers(0, 2, (4000, 3))
    >>> answers = discreet.Responses.from_array(X, items=["a", "b", "c"])
    >>> language = ["de", "fr"] * 2000
    >>> answers = discreet.Responses(
    ...     answers.items, answers.persons, answers.store, {"language": language}
    ... )
    >>> dif = discreet.release_dif(
    ...     answers, epsilon=1.0, items=["a", "b", "c"], groups={"language": ["de", "fr"]}
    ... )
    >>> dif.reference, dif.groups, dif.difference.shape
    ('de', ('fr',), (3, 1))
    """
    words.setdefault("engine", "memory")
    released = release(
        source,
        budget,
        items=items,
        design=design,
        max_answers=max_answers,
        mechanism="residuals",
        centre=centre,
        groups=groups,
        reference=reference,
        **words,
    )
    return released.compare_groups()


def release_means(
    source: object,
    calibration: object,
    budget: Budget | None = None,
    *,
    groups: Groups,
    least: int = 100,
    items: Items | None = None,
    forms: Forms | None = None,
    **words: Unpack[GroupListedWords],
) -> PrivateMeans:
    """Release mean abilities of groups around published difficulties, with a privacy guarantee.

    Everything but ``source`` must be chosen without looking at the answers. Everybody must have
    answered every item, or with ``forms`` every item of one of them.

    Parameters
    ----------
    source
        Answers with a column of groups, or where they are; they must fit into memory.
    calibration
        Public difficulties, taken as they are: a release or its folder, a bank that carries a
        guarantee, or a mapping of items to logits that are public for another reason.
    groups
        The column and its groups: ``{"school": ["a", "b", "c"]}``. A person without a value there,
        or with another one, adds nothing.
    least
        Groups with fewer persons than this, by the noisy number, get no mean.
    items
        The items, by default those of the calibration.
    budget, epsilon, delta, neighbours, forms, persons, ledger, population, looked, engine
    noise, out, force, reading
        As for :func:`discreet.release`; ``read_release(out).measure_groups()`` makes the means
        again.

    Examples
    --------
    >>> import numpy as np
    >>> import discreet
    >>> X = np.random.default_rng(1).integers(0, 2, (4000, 3))
    >>> answers = discreet.Responses.from_array(X, items=["a", "b", "c"])
    >>> answers = discreet.Responses(
    ...     answers.items, answers.persons, answers.store, {"school": ["x", "y"] * 2000}
    ... )
    >>> published = {"a": -0.5, "b": 0.0, "c": 0.5}
    >>> means = discreet.release_means(
    ...     answers, published, epsilon=1.0, groups={"school": ["x", "y"]}
    ... )
    >>> means.groups, means.mean.shape
    (('x', 'y'), (2,))
    """
    words.setdefault("engine", "memory")
    means = word_means(calibration, groups, items=items, least=least)
    return release(source, budget, forms=forms, **means, **words).measure_groups()


def release_comparisons(
    data: object,
    budget: Budget | None = None,
    *,
    items: Sequence[str],
    max_comparisons: int,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Relation | None = None,
    judges: int | Iterable[object] | None = None,
    mechanism: ComparisonMechanism | CompleteMechanism = "auto",
    ledger: AnyLedger | None = None,
    population: str = EVERYONE,
    about: About = None,
    audit: AuditSource | None = None,
    looked: bool = False,
    noise: Noise | None = None,
    out: str | PathLike[str] | None = None,
    force: bool = False,
    **reading: Unpack[ComparisonWords],
) -> PublishedRanking:
    """Release the strengths of objects under differential privacy for each judge.

    Everything but ``data`` must be chosen without looking at the comparisons.

    Parameters
    ----------
    data
        Comparisons, or a file or data frame with them. Comparisons of objects that are not on the
        list are ignored; a judge with no others still counts.
    budget, epsilon, delta, neighbours
        Epsilon, delta and the neighbouring relation, as for :func:`discreet.release`.
    items
        The public list of objects; the release keeps its order. Objects that nobody compared
        are fine. Never the data's own list, which names an object that only one judge saw.
    max_comparisons
        The public cap: a judge with more comparisons keeps that many, chosen at random.
    judges
        Under replace-one the public number of judges, fixed in advance, or a list of their ids; as
        ``persons`` of :func:`discreet.release`.
    mechanism
        ``"net-wins"``, ``"win-pairs"``, or one of them with settings of its own. ``"auto"`` takes
        the one with less noise for these public parameters, and ``record["choice"]`` says which.
    ledger
        Where the spend is recorded and limited; ``None`` is allowed and said in the guarantee.
    population
        Whom this data is about, as declared in the ledger (``ledger.declare``); "everyone", the
        default, contains every population.
    about, audit, looked
        Who the release is, what attacks on its mechanism found, and whether somebody looked at the
        comparisons before; as for `discreet.release`.
    noise
        Where noise comes from; by default the exact sampler on secure randomness.
    out, force
        Where to write the bundle at once, as :meth:`PublishedRanking.save` does. The place is
        tried and held, with room for the bundle, before the ledger is charged.
    reading
        The keywords of :func:`discreet.read_comparisons`, for a file or data frame. ``unit="vote"``
        releases votes without judges: it protects one vote, and a person with v votes has v times
        epsilon. ``ties="drop"`` leaves ties out; no release counts them.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet import simulate_comparisons
    >>> votes = simulate_comparisons(500, 10, 5, rng=np.random.default_rng(1)).comparisons
    >>> objects = [f"object {number}" for number in range(10)]
    >>> released = release_comparisons(votes, epsilon=1.0, items=objects, max_comparisons=5)
    >>> released.guarantee.unit
    "one judge's whole set of comparisons"
    """
    spec = make_spec(
        make_budget(budget, epsilon, delta, neighbours),
        kind="comparisons",
        items=items,
        max_answers=max_comparisons,
        persons=judges,
        mechanism=mechanism,
        population=population,
        about=about,
        audit=audit,
        looked=looked,
        reading=reading,
    )
    terms = DeliveryTerms(ledger, noise or ExactNoise(), out, force)
    return cast(PublishedRanking, release_spec(DataSource(data), spec, terms))


class ProposedWords(TypedDict, total=False):
    """The keywords of a proposal: those of a release, and how its file will be read."""

    lowest: int
    forms: Forms | None
    design: Design
    model: Model
    max_answers: int | None
    persons: int | None
    mechanism: AnswerMechanism | ComparisonMechanism
    centre: object
    estimator: Estimator
    population: str
    about: About
    audit: AuditSource | None
    looked: bool
    kind: str
    reading: Words | None


def propose(
    budget: Budget | None = None,
    *,
    items: Items,
    ledger: AnyLedger,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Relation | None = None,
    **words: Unpack[ProposedWords],
) -> Request:
    """Write a request for a release that others approve; no data is touched.

    Parameters
    ----------
    budget, items, epsilon, delta, neighbours, lowest, forms, design, model, max_answers, persons
    population, about, audit, looked
        As for :func:`discreet.release`; of comparisons, ``max_answers`` is the cap on comparisons
        and ``persons`` the number of judges.
    ledger
        The ledger that shall be charged; the request is good for no other.
    mechanism
        A name; ``"auto"`` is settled here, so that approvers see which it is.
    centre, estimator
        As for :func:`discreet.release`.
    kind
        ``"answers"``, or ``"comparisons"`` for :func:`discreet.release_comparisons`.
    reading
        How the file will be read: keywords of :func:`discreet.read_responses` (but for those about
        steps, which stand in the list of items) or of :func:`discreet.read_comparisons`, such as
        ``{"at_least": 3, "missing": 9}``. The release reads it so and not otherwise.

    Returns
    -------
    Request
        With ``save``, ``load`` and ``sign``; see :func:`discreet.approve`.

    Examples
    --------
    >>> import tempfile
    >>> import discreet
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = discreet.Ledger.create(folder.name + "/spent.db", epsilon=1.0)
    >>> request = discreet.propose(discreet.Budget(0.5), items=["a", "b", "c"], ledger=ledger)
    >>> request.body["epsilon"], request.body["mechanism"]
    ('0.5', 'pairs')
    >>> folder.cleanup()
    """
    spec = make_spec(make_budget(budget, epsilon, delta, neighbours), items=items, **words)
    return propose_spec(spec, ledger)


def release_request(
    source: object,
    request: Request | str | PathLike[str],
    *,
    ledger: AnyLedger | None = None,
    engine: Engine = "auto",
    noise: Noise | None = None,
    out: str | PathLike[str] | None = None,
    force: bool = False,
) -> Published:
    """Make the release that an approved request describes, and no other.

    Parameters
    ----------
    source
        Answers or comparisons, as for :func:`discreet.release`. A table is read as the request
        says; what was read already is taken as it is.
    request
        What was approved, or the file that holds it.
    ledger
        The ledger that it is for; by default the file that was named when it was proposed.
    engine, noise, out, force
        As for :func:`discreet.release`; none of them is a public parameter of the release.

    Raises
    ------
    NotAllowed
        Where the request is for another ledger, was used before, was changed after it was signed,
        or is not signed by as many approvers of the ledger as it asks for.

    Examples
    --------
    >>> import tempfile
    >>> import discreet
    >>> answers, items = discreet.datasets.lsat(), ["Item1", "Item2", "Item3"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = discreet.Ledger.create(folder + "/spent.db", epsilon=1.0)
    ...     request = discreet.propose(epsilon=0.5, items=items, ledger=ledger)
    ...     discreet.release_request(answers, request).guarantee.epsilon
    0.5
    """
    spec, book, proposal = read_request(request, ledger)
    if isinstance(source, Answers | PairCounts | Comparisons):
        spec = replace(spec, reading={})
    terms = DeliveryTerms(book, noise or ExactNoise(), out, force, request=proposal)
    return release_spec(DataSource(source, engine), spec, terms)


# -- what it will be, before it is made --------------------------------------------------------

#: Stands for a number of persons that is published and not known yet.
COUNTED = "as counted in the data"


@dataclass(frozen=True)
class Preview:
    """A release to come.

    Attributes
    ----------
    order
        What is asked for: public parameters, the mechanism, its noise.
    record
        What ``privacy.json`` will hold, but for what the noise decides, and for whether there is
        a column of ids where none is stated.
    left
        The epsilon that is left for the population after it.
    """

    order: Order
    record: PlainDict
    left: float


def preview_release(spec: ReleaseSpec, book: Ledger | None, people: int) -> Preview:
    """Return what a release will say, word for word, before anything is spent.

    No answer is opened, and the ledger is not charged; what the release would be refused for is
    refused here.

    Parameters
    ----------
    spec, book
        As for the release.
    people
        How many persons (or judges) there will be, about; never counted in the data.
    """
    if book is None:
        raise BadUsage("a preview says what will be spent, so it needs the ledger")
    check_spec(spec, book)
    is_counted = spec.budget.neighbours is Neighbours.REPLACE_ONE
    public, identity = replace(spec.public, persons=people if is_counted else None), spec.identity
    source, population = ExactNoise().source, identity.population
    reading = record_reading(public, spec.reading)
    person_is = "id" if reading.keys() & {"person", "judge"} else None
    person_is = "vote" if reading.get("unit") == "vote" else person_is
    about = {**identity.describe(), "reading": reading, "person_is": person_is}
    order = make_order(public, spec.budget, source, about, looked=identity.looked)
    history, spend = book.history(), order.calibration.spend
    # The fingerprint of the answers is nobody's yet, so only the limit and the relation count.
    history.check(spend, "", population)
    entry = LedgerEntry(len(history.entries) + 1, "", population, "", spend, "", "")
    after = replace(history, entries=(*history.entries, entry))
    is_unknown = is_counted and not public.is_fixed
    record = {
        **order.describe(order.promise(ledger=book.id, is_private=True)),
        **describe_software(),
        **({KINDS[public.kind].persons: COUNTED} if is_unknown else {}),
        **about,
        "account": after.describe_account(entry),
    }
    return Preview(order, record, after.left(population)[0])
