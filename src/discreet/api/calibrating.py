"""Fit: from whatever holds answers, ratings or counts to an estimate of every item's difficulty.

In: a path, a frame, an array, answers, counts, ratings. Out: an :class:`~discreet.Estimate`. The
estimate is confidential: nothing here protects the persons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Unpack, cast

from discreet.answers.matrices import MATRIX_WORDS, is_matrix, read_matrix
from discreet.answers.protocol import Answers
from discreet.answers.routed import RoutingDesign
from discreet.answers.survey import DesignWords, state_design
from discreet.choices import Ability, Engine, Method, Model, PlainDict, PlainMapping, Within
from discreet.coding.reading import FitWords, Reading, ReadingWords
from discreet.counts import PairCounts, holds_counts
from discreet.counts.matrix import NoRoom
from discreet.errors import LOG, BadResponses, BadUsage, OutOfReach, name_source
from discreet.models.calibrate import calibrate
from discreet.models.categories import RASCH
from discreet.models.methods import AUTO
from discreet.results.estimate import Estimate


def fit(
    data: Any,
    *,
    method: Method = "auto",
    model: Model = "auto",
    engine: Engine = "auto",
    standard_errors: bool = True,
    regularisation: float = 0.0,
    ability: Ability = "normal",
    anchors: Any = None,
    facets: str | Sequence[str] = (),
    structure: str | None = None,
    within: Within = "auto",
    features: PlainMapping | None = None,
    refits: int = 0,
    weight: str | None = None,
    strata: str | None = None,
    cluster: str | None = None,
    replicates: str | Sequence[str] | None = None,
    replication: str | None = None,
    keep_categories: bool = False,
    split: PlainMapping | None = None,
    routing: RoutingDesign | None = None,
    **reading: Unpack[FitWords],
) -> Estimate:
    """Estimate the difficulty of every item.

    Parameters
    ----------
    data
        Answers (:class:`Responses`, a data frame of any kind, an array ``[person, item]`` with
        NaN or -1 for missing, a path, a query; see :func:`discreet.count_pairs`), or
        :class:`PairCounts` (or the path of a file of them), which give standard errors where
        they have folds.
    method
        ``"auto"``: ``"conditional"`` (exact conditional likelihood, which other programs report)
        where that is less than about two seconds of work, wherever the answers are, else
        ``"refined"`` (pairwise conditional likelihood: about as precise, for any size); the
        estimate's ``choice`` says which and why. Or ``"spectral"`` (the paper's Algorithm 1), or
        ``"marginal"`` (for adaptive and routed tests, where the others are biased).
    model
        ``"rasch"`` for right and wrong answers; for answers with steps ``"partial-credit"``
        (every step has a threshold of its own) or ``"rating-scale"`` (thresholds are an item's
        location plus a distance that is the same for all items). ``"auto"`` takes rasch for
        right and wrong answers and partial credit otherwise.
    engine
        Which engine counts the pairs; the numbers of a method do not depend on it.
    standard_errors
        Whether to make the second pass over persons that standard errors of the pair methods
        need; without it they are NaN. It also looks for signs that the test was routed by the
        answers, and warns. Conditional and marginal likelihood need no such pass: their standard
        errors are there either way.
    regularisation
        Added to both directions of every compared pair, in persons. The default, none, leaves
        items without a number where the answers do not determine one. Pair methods only.
    ability
        What ``"marginal"`` assumes about the abilities: ``"normal"`` or ``"empirical"``.
    anchors
        Items whose difficulties are known and held; the others are estimated on their scale. A
        mapping from item to difficulty (with steps, to the list of its thresholds), or a table with
        these columns (item and difficulty; with steps item, step and threshold), whose items must
        all occur in the answers; or a calibration, a release or a bank, of which the items that
        occur are used. The answers are read into memory. Of ratings an earlier fit (or its folder),
        or a mapping such as ``{"rater": {"Ann": 0.3}, "item": {"style": [-1, 0, 1]}}``.
    facets
        Of ratings, a long table with one row per score: the columns of raters, tasks and other
        facets. The estimate's ``facets`` then hold their measures (docs/raters.md).
    structure
        Of ratings: what a threshold is the sum of, by default ``"item:step + rater"``;
        ``"item + step + rater"`` is a rating scale, ``+ rater:time`` lets severities change.
    within
        Of ratings: ``"item"`` compares ratings of the same person on the same item only, None all
        ratings of a person. ``"auto"`` takes the first where it links everything.
    features
        Of ratings: a table with the column ``item`` and features of items, whose weights take the
        place of item locations (the linear logistic test model).
    refits
        Of ratings: how many refits to drawn scores measure and remove the bias that very many
        raters of few ratings each cause (2 or 3 suffice).
    weight
        The column of sampling weights; zero means outside the domain. The estimate is then that of
        the whole population, and ``design_effect`` says what the design costs.
    strata, cluster
        With weights: the columns of strata and of primary sampling units (schools, say), for
        linearised standard errors. Without ``cluster`` every person is a unit. With
        ``repeats="sum"`` errors add up over the clusters of persons, and need no weights.
    replicates, replication
        With weights: the columns of replicate weights (``"repwt*"``), and how they were made:
        ``"jk1"``, ``"jk2"``, ``"brr"`` or ``"fay:0.5"``.
    keep_categories
        With steps: whether a category between others stays although nobody is in it (Winsteps'
        STKEEP). Of the steps around it only the sum is estimated. Conditional likelihood only.
    split
        Items with a difficulty of their own in every group, and the group column of each:
        ``{"Q4": "language"}`` has the items "Q4:de" and "Q4:fr" in the place of Q4. Instead of a
        column, one label for each person. :func:`discreet.analysis.split_items` has the answers.
    routing
        Of a multistage test: its modules, and which scores led to which. Conditional likelihood is
        then given the path too, and needs no distribution of abilities; see
        :meth:`Responses.route`, whose answers all analyses take.
    reading
        ``person=``, ``item=``, ``response=`` and the other keywords of
        :func:`discreet.read_responses`, for sources that have columns. ``repeats="sum"`` counts the
        right ones of several samples of a person on an item, whose number may differ. Their
        standard errors add up over persons, and hold where a person differs by item.

    Returns
    -------
    Estimate
        Difficulties in logits with mean zero (with anchors: on their scale), standard errors, a
        status for every item, and warnings about every item that was left out. With anchors
        ``displacement`` says how far each would move if only it were free; standard errors take
        the anchors as exactly known.

    Raises
    ------
    DisconnectedItems
        If fewer than two items are linked by the answers. That includes a single item: a
        difficulty is relative to other items.
    NotConverged
        If a solver cannot vouch for its answer.

    Examples
    --------
    >>> import numpy as np
    >>> answers = np.array([[1, 0], [1, 0], [0, 1], [1, 1]])
    >>> estimate = fit(answers)
    >>> float(np.round(estimate.difficulty[1] - estimate.difficulty[0], 6))
    0.693147
    >>> anchored = fit(answers, anchors={"0": 2.0})
    >>> float(np.round(anchored.difficulty[1], 6)), anchored.status[0].value
    (2.693147, 'anchored')
    """
    LOG.info("fitting items of %s, method %s", name_source(data), method)
    options: PlainDict = {"method": method, "model": model, "ability": ability}
    options |= {"standard_errors": standard_errors, "regularisation": regularisation}
    options["keep_categories"] = keep_categories
    if reading.get("repeats") == "sum":
        stated: PlainDict = {"anchors": anchors is not None, "facets": facets, "split": split}
        stated |= {"routing": routing is not None, "weight": weight, "strata": strata}
        stated |= {"replicates": replicates, "keep_categories": keep_categories}
        stated |= {"regularisation": regularisation, "ability": ability != "normal"}
        stated |= {"engine": engine not in (AUTO, "memory"), "model": model not in (AUTO, RASCH)}
        return _fit_samples(data, method, cluster, reading, [*filter(stated.get, stated)])
    design = state_design(weight, strata, cluster, replicates, replication)
    if routing is not None:
        if facets or split or design:
            raise BadUsage("routing= goes without facets=, split= and weight=; leave these out")
        from discreet.readers.opening import load_answers, name_model

        data = load_answers(data, name_model(data, model, reading), like=anchors).route(routing)
        reading = FitWords()
    if split:
        if facets:
            raise BadUsage("split= belongs to answers; with facets= leave split= out")
        data = _split_answers(data, split, model, reading, design, anchors)
        design, reading = DesignWords(), FitWords()
    if not (design or facets) and anchors is None and _is_open(data, engine, reading):
        return calibrate(_take_answers(data, model, reading), **options)
    # Ratings, and whoever reads tables, are loaded only where they are needed.
    from discreet.answers.ratings import Ratings, StoredRatings

    if facets or isinstance(data, Ratings | StoredRatings):
        if design:
            raise BadUsage(
                "weight= has no meaning for ratings: severities come from ratings of the same "
                "person, so that who was drawn how often does not move them. Leave weight= out, "
                "and weigh the persons' measures"
            )
        anchors = _read_rated_anchors(anchors)
        settings: PlainDict = {"method": method, "model": model, "anchors": anchors}
        settings |= {"standard_errors": standard_errors}
        settings |= {
            "structure": structure,
            "within": within,
            "features": features,
            "refits": refits,
        }
        return _fit_ratings(data, facets, engine, reading, settings)
    from discreet.readers.calibrations import read_anchors
    from discreet.readers.opening import load_answers, name_model, opened, plan_words, weigh_answers

    words = name_model(data, model, reading)
    if design:
        data, words = weigh_answers(data, design, words, like=anchors), ReadingWords()
    if isinstance(data, PairCounts) or holds_counts(data):
        counts = data if isinstance(data, PairCounts) else PairCounts.load(data)
        plan_words(counts, cast(ReadingWords, reading))
        return calibrate(counts, anchors=anchors, **options)
    if anchors is not None:
        answers = load_answers(data, words, like=anchors)
        known = read_anchors(anchors, has_steps=max(answers.steps, default=1) > 1)
        return calibrate(answers, anchors=known, **options)
    try:
        with opened(data, engine, words) as answers_anywhere:
            return calibrate(answers_anywhere, **options)
    except NoRoom as refusal:
        is_plain = method == AUTO and not regularisation and not isinstance(data, Answers)
        settings = {"model": model, "standard_errors": standard_errors}
        sparse = _fit_sparsely(data, engine, reading, settings) if is_plain else None
        if sparse is None:
            raise OutOfReach(str(refusal)) from None
        return sparse


def _fit_samples(
    data: Any, method: Method, cluster: str | None, reading: FitWords, stated: Sequence[str]
) -> Estimate:
    """Fit counts of right ones of several samples of a person on an item."""
    if stated:
        raise BadUsage(
            f"repeats='sum' counts right ones of several samples of an item, and {stated[0]}= is "
            f"for one answer of a person to an item. Leave {stated[0]}= out, or keep one answer "
            "with repeats='first' or repeats='last'"
        )
    if method == "marginal":
        raise BadUsage(
            "the method 'marginal' takes the samples of an item as answers to further items, so "
            "that its errors do not hold where a person differs by item. Take 'conditional', "
            "'refined' or 'spectral', whose errors add up over persons"
        )
    from discreet.models.repeated import fit_counts
    from discreet.readers.opening import name_model
    from discreet.readers.repeated import read_clusters, read_counts

    words = name_model(data, AUTO, reading)
    counts = read_counts(data, words)
    if cluster is not None:
        counts = counts.group(read_clusters(data, cluster, words, "person"))
    return fit_counts(counts, method)


def _read_rated_anchors(anchors: Any) -> Any:
    """Return the estimate in a file or folder, or the thresholds of a table; others as they are."""
    if isinstance(anchors, str | PathLike) and (
        Path(anchors).is_dir() or Path(anchors).suffix == ".json"
    ):
        from discreet.api.loading import load

        return load(anchors, Estimate)
    from discreet.readers.calibrations import read_anchors

    return read_anchors(anchors, has_steps=True)


def _split_answers(
    data: object,
    split: PlainMapping,
    model: Model,
    reading: FitWords,
    design: DesignWords,
    anchors: object,
) -> Answers:
    """Open answers with the columns that items are split by, and split them."""
    from discreet.items.resolving import split_items
    from discreet.readers.opening import load_answers, name_model, weigh_answers

    words = name_model(data, model, reading)
    if not (isinstance(data, Answers) or is_matrix(data)):
        listed = words.get("group") or ()
        columns = [listed] if isinstance(listed, str) else list(listed)
        columns += [column for column in split.values() if isinstance(column, str)]
        words = {**words, "group": list(dict.fromkeys(columns))}
    if design:
        return split_items(weigh_answers(data, design, words, like=anchors), split)
    return split_items(load_answers(data, words, like=anchors), split)


def _is_open(data: object, engine: Engine, reading: PlainMapping) -> bool:
    """Say whether nothing has to be opened: answers, or an array and words about its values."""
    if isinstance(data, Answers):
        return not reading and engine == "auto"
    return engine in ("auto", "memory") and is_matrix(data) and reading.keys() <= MATRIX_WORDS


def _take_answers(data: object, model: Model, reading: PlainMapping) -> Answers:
    if isinstance(data, Answers):
        return data
    words = dict(reading) if model == AUTO else {**reading, "model": model}
    return read_matrix(data, Reading(**words))


def _fit_ratings(
    data: object,
    facets: str | Sequence[str],
    engine: Engine,
    reading: PlainMapping,
    settings: PlainMapping,
) -> Estimate:
    """Open ratings and fit them."""
    from discreet.models.facets.fit import FacetRequest, fit_facets  # loads SciPy and numba
    from discreet.readers.ratings import open_ratings

    names = (facets,) if isinstance(facets, str) else tuple(facets)
    with open_ratings(data, names, reading, engine) as ratings:
        return fit_facets(ratings, FacetRequest(names, **settings))


def _fit_sparsely(
    data: object, engine: Engine, reading: PlainMapping, settings: PlainMapping
) -> Estimate | None:
    """Fit a long table by the pairs of answers that occur; None if it is none."""
    try:
        estimate = _fit_ratings(data, (), engine, reading, settings)
    except (BadUsage, BadResponses):
        return None
    choice = (
        f"Refined, with the sparse solver for ratings: the pairs of all {len(estimate.items):,} "
        "items would not fit into memory. Repeated answers all count."
    )
    return replace(estimate, choice=choice)
