"""``discreet table mislabelled``, ``table testlets``, ``score``, ``dif``: items, abilities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import discreet
from discreet.choices import Adjustment, DifTest, PlainDict, ScoreMethod
from discreet.cli.answers import (
    ReadingOptions,
    WeightOptions,
    list_rating_words,
    read_answers,
    read_weighted,
    split_names,
)
from discreet.cli.calibrations import (
    add_scaled,
    check_method,
    name_scale,
    read_calibration,
    read_wanted,
    stored_scale,
)
from discreet.cli.options import ResultOptions
from discreet.cli.output import (
    conclude,
    confidential,
    list_rows,
    note,
    print_columns,
    print_json,
    say,
    working,
)
from discreet.errors import BadUsage
from discreet.tabular import Columns

if TYPE_CHECKING:
    from discreet.choices import ScoreMethod
    from discreet.items.dif import DifTable
    from discreet.items.groups import GroupMeans
    from discreet.items.mislabelled import Mislabelled
    from discreet.items.resolving import ResolvedDif
    from discreet.persons.scoring import PersonScores
    from discreet.scales.reported import Scale


ABILITIES_FILE = "abilities.confidential.csv"
TABLE_FILE = "score_table.confidential.csv"
REGRESSION_FILE = "regression.confidential.csv"
MEANS_FILE = "group_means.confidential.csv"
DIF_FILE = "dif.confidential.csv"
OMNIBUS_FILE = "dif_omnibus.confidential.csv"
RESOLVED_FILE = "dif_resolved.confidential.csv"
RESOLVED_ITEMS_FILE = "dif_resolved_items.confidential.csv"
LABELS_FILE = "mislabelled.confidential.csv"


def mislabelled(
    file: str,
    *,
    level: float = 0.05,
    method: str = "refined",
    output: ResultOptions,
    reading: ReadingOptions,
) -> None:
    """Find items that abler persons get wrong: wrong keys, reversed items. Confidential."""
    check_method(method)
    output.check(LABELS_FILE)
    responses = read_answers(file, reading)
    from discreet.items.mislabelled import find_mislabelled

    with working("Looking for mislabelled items"):
        estimate = discreet.fit(
            responses, method=check_method(method), model=reading.model, standard_errors=False
        )
        screen = find_mislabelled(responses, estimate, level=level)
    columns = screen.to_dict()
    written = output.write({LABELS_FILE: confidential(columns)})
    about = {"share": screen.share, "level": screen.level, "suspects": list(screen.suspects)}
    output.show({**about, "items": list_rows(columns)}, lambda: _print_suspects(screen))
    conclude(estimate.warnings, written)


def _print_suspects(screen: Mislabelled) -> None:
    count = len(screen.suspects)
    verb = "looks" if count == 1 else "look"
    say(f"{count:,} of {len(screen.items):,} items {verb} mislabelled")
    if count:
        say()
        columns = {name: values[:count] for name, values in screen.to_dict().items()}
        print_columns(columns, ("item", "answers", "discrimination", "se", "probability"))


def score(
    file: str,
    *,
    calibration: Path,
    method: ScoreMethod | None = None,
    plausible: int = 0,
    regress: str = "",
    means: str | None = None,
    seed: int = 0,
    scale: str | None = None,
    output: ResultOptions,
    weights: WeightOptions,
    reading: ReadingOptions,
) -> None:
    """Estimate abilities with known difficulties. The results are about persons: confidential.

    FILE is read as the answers of the calibration were (--reverse, --merge, --missing, ...).
    """
    target = read_wanted(scale)
    output.check(ABILITIES_FILE, TABLE_FILE, REGRESSION_FILE, MEANS_FILE)
    item_parameters = read_calibration(calibration)
    columns = split_names(regress)
    groups = list(dict.fromkeys([*(reading.group or []), *columns, *([means] if means else [])]))
    grouped = replace(reading, group=groups or None)
    if has_raters := bool(getattr(item_parameters, "facets", None)):
        if groups or weights.stated:
            raise BadUsage(
                "--regress, --means, --group and --weight need a table with a row for each person; "
                "ratings have several. Score them first, and use the abilities."
            )
        from discreet.items.raters.crossing import cross_ratings
        from discreet.readers.ratings import read_rated

        ratings = read_rated(file, item_parameters, list_rating_words(reading))
        responses, item_parameters = cross_ratings(ratings, item_parameters)
    else:
        responses = read_weighted(file, grouped, weights, like=item_parameters)
    import numpy as np

    with working("Estimating abilities"):
        scores = discreet.score(
            responses,
            item_parameters,
            method=method,
            plausible=plausible,
            regress=columns,
            rng=np.random.default_rng(seed),
        )
    # Posterior means vary too little for the mean and SD of a scale.
    spread = scores.plausible.reshape(-1) if scores.plausible.size else scores.ability
    turned = stored_scale(calibration) if target is None else target.settle(spread)
    tables = {} if output.out is None else _list_tables(scores, item_parameters, turned)
    if has_raters:  # no complete test has every rater
        tables.pop(TABLE_FILE, None)
    document = _describe_scores(scores, turned)
    group_means = None
    if means is not None:
        from discreet.items.groups import find_group_means

        group_means = find_group_means(responses, item_parameters, means)
        tables[MEANS_FILE] = confidential(group_means.to_dict())
        test = vars(group_means.test)
        document["means"] = {"groups": list_rows(group_means.to_dict()), "equal": test}
    written = output.write(tables)
    output.show(document, lambda: _print_scores(scores, turned, group_means))
    if plausible and output.out is None and not output.as_json:
        note("The plausible values are in the table that --out DIR writes, and in --json.")
    conclude(scores.warnings, written)


def _list_tables(
    scores: PersonScores, item_parameters: Any, scale: Scale | None
) -> dict[str, Columns]:
    """Return the tables of a scoring by their files."""
    from discreet.persons.scoring import tabulate_scores

    tables = {ABILITIES_FILE: confidential(add_scaled(scores.to_dict(), scale))}
    if scores.regression is not None:
        tables[REGRESSION_FILE] = confidential(scores.regression.to_dict())
    if scores.regression is None or scores.prior is not None:
        # With groups a score stands for an ability in each of them.
        method = cast("ScoreMethod", scores.method)
        table = tabulate_scores(item_parameters, method=method, prior=scores.prior)
        tables[TABLE_FILE] = add_scaled(table.to_dict(), scale)
    return tables


def _describe_scores(scores: PersonScores, scale: Scale | None) -> PlainDict:
    prior, effects = scores.prior, scores.regression
    regression = {} if effects is None else {"regression": list_rows(effects.to_dict())}
    return {
        "method": scores.method,
        "items": list(scores.items),
        "prior": None if prior is None else {"mean": prior.mean, "sd": prior.sd},
        **regression,
        **name_scale(scale),
        "persons": list_rows(add_scaled(scores.to_dict(), scale)),
    }


def _print_scores(
    scores: PersonScores, scale: Scale | None, means: GroupMeans | None = None
) -> None:
    say(f"{len(scores.persons):,} persons, {len(scores.items):,} items, {scores.method}")
    if scores.prior is not None:
        say(f"Abilities: normal, mean {scores.prior.mean:.3f}, SD {scores.prior.sd:.3f}")
    elif scores.regression is not None:
        say(f"Abilities: normal; the columns explain {scores.regression.explained:.0%} of them")
        say()
        print_columns(scores.regression.to_dict(), ("term", "coefficient", "se"))
    if scale is not None:
        say(f"Scale: {scale}")
    if means is not None:
        say(f"Mean abilities of groups, in logits; p-value of equal means {means.test.p_value:.3f}")
        say()
        print_columns(means.to_dict(), ("group", "persons", "mean", "se", "lower", "upper"))
    say()
    scaled = ("scaled_ability", "scaled_se")
    names = ("person", "ability", "se", *scaled, "score", "answered", "status")
    digits = 3 if scale is None else scale.digits
    print_columns(add_scaled(scores.to_dict(), scale), names, digits)


@dataclass(frozen=True)
class DifOptions:
    """How groups are compared: keywords of :func:`discreet.find_dif`."""

    test: DifTest = "wald"
    anchors: str = ""
    reference: str | None = None
    adjustment: Adjustment = "benjamini-hochberg"
    level: float = 0.05
    by_step: bool = False
    keep_categories: bool = False
    method: str = "auto"


def dif(
    file: str,
    *,
    options: DifOptions,
    resolve: bool = False,
    output: ResultOptions,
    weights: WeightOptions,
    reading: ReadingOptions,
) -> None:
    """Compare groups of persons item by item. Needs one --group. Confidential."""
    groups = reading.group or []
    if len(groups) != 1:
        raise BadUsage(
            f"dif needs exactly one --group COL, the column with the groups, found {len(groups)}."
        )
    check_method(options.method)
    if resolve and options.by_step:
        raise BadUsage("--resolve splits whole items by group; leave --by-step out.")
    output.check(DIF_FILE, OMNIBUS_FILE, RESOLVED_FILE, RESOLVED_ITEMS_FILE)
    responses = read_weighted(file, reading, weights)
    from discreet.items.dif import find_dif
    from discreet.items.resolving import resolve_dif

    resolved = None
    with working("Comparing groups"):
        words: PlainDict = {**vars(options), "anchors": split_names(options.anchors) or None}
        if resolve:
            del words["by_step"]
            resolved = resolve_dif(responses, groups[0], **words, model=reading.model)
            table = resolved.found
        else:
            table = find_dif(responses, groups[0], **words, model=reading.model)
    tables = {DIF_FILE: confidential(table.to_dict())}
    if table.omnibus is not None:
        tables[OMNIBUS_FILE] = confidential(table.omnibus.to_dict())
    document = _describe_dif(groups[0], table)
    if resolved is not None:
        tables[RESOLVED_FILE] = confidential(resolved.to_dict())
        tables[RESOLVED_ITEMS_FILE] = confidential(resolved.estimate.to_dict())
        document["resolved"] = {
            "split": list(resolved.split),
            "anchors": resolved.left.name_anchors(),
            "comparison": list_rows(resolved.to_dict()),
            "items": list_rows(resolved.estimate.to_dict()),
        }
    written = output.write(tables)

    def show() -> None:
        _print_differences(groups[0], table)
        if resolved is not None:
            _print_resolved(resolved)

    output.show(document, show)
    conclude(table.warnings, written, choice=table.choice)


def _print_resolved(resolved: ResolvedDif) -> None:
    say()
    say(f"Resolved: {resolved.describe()[-1]}.")
    if not resolved.split:
        return
    say(f"Compared again; a{resolved.left.name_anchors()[1:]}.")
    columns = resolved.to_dict()
    rows = sorted(range(len(columns["split"])), key=lambda row: not columns["split"][row])
    shown = {name: [cells[i] for i in rows] for name, cells in columns.items()}
    shown["split"] = ["split" if one else "" for one in shown["split"]]
    print_columns(shown, ("item", "focal", "split", "before", "difference", "se", "p_adjusted"))
    say()
    say("Difficulties of the split items, calibrated together with the others:")
    items, parts = resolved.estimate.to_dict(), set(resolved.estimate.items)
    parts -= set(resolved.found.item)
    rows = [i for i, name in enumerate(items["item"]) if name in parts]
    print_columns(
        {name: [cells[i] for i in rows] for name, cells in items.items()},
        ("item", "difficulty", "se", "answers", "status"),
    )


def _describe_dif(group: str, table: DifTable) -> PlainDict:
    names = ("reference", "persons", "adjustment", "level", "method", "choice", "test")
    omnibus = [] if table.omnibus is None else list_rows(table.omnibus.to_dict())
    return {
        "group": group,
        **{name: getattr(table, name) for name in names},
        "largest": table.largest,
        "anchors": table.name_anchors(),
        "caveats": list(table.caveats),
        "omnibus": omnibus,
        "items": list_rows(table.to_dict()),
    }


def _print_differences(group: str, table: DifTable) -> None:
    sizes = ", ".join(f"{label} {number:,}" for label, number in table.persons.items())
    say(f"{group}: {sizes}; compared with {table.reference}")
    say("Positive: harder for the group than its ability explains. ETS class A small, C large.")
    if table.largest == table.largest:
        say(
            f"No item differs by more than {table.largest:.2f} logits, relative to the anchors "
            f"({1 - table.level:.0%}, all items together)."
        )
    say(f"A{table.name_anchors()[1:]}.")
    for caveat in table.caveats:
        note(caveat)
    say()
    flags = [
        "confirmed" if sure else "look" if seen else ""
        for seen, sure in zip(table.flagged.tolist(), table.confirmed.tolist(), strict=True)
    ]
    names = ("item", *(["step"] if table.step else []), "focal", "difference", "se", "z", "p_value")
    print_columns(
        {**table.to_dict(), "flag": flags}, (*names, "p_adjusted", "ets", "flag", "status")
    )
    if table.omnibus is not None and len(table.persons) > 2:
        say()
        say("All groups together:")
        print_columns(
            table.omnibus.to_dict(), ("item", "statistic", "degrees", "p_value", "p_adjusted")
        )


def compare_testlets(
    file: str, *, testlets: Path, as_json: bool = False, reading: ReadingOptions
) -> None:
    """Measure how much items that belong together overstate reliability. Confidential."""
    responses = read_answers(file, reading)
    from discreet.items.dimensionality import measure_testlets
    from discreet.tables.opener import read_columns

    rows = zip(*read_columns(testlets, ("item", "testlet"), "testlets"), strict=True)
    with working("Calibrating items and testlets"):
        comparison = measure_testlets(
            responses, {str(item): str(name) for item, name in rows if name}
        )
    if as_json:
        rows_by_kind = list_rows(comparison.to_dict())
        print_json({"overstated": comparison.overstated, "rows": rows_by_kind})
    else:
        say(f"Single items overstate the reliability by {comparison.overstated:.3f}.")
        say()
        print_columns(comparison.to_dict(), ("of", "items", "reliability", "alpha"))
    conclude(comparison.warnings, [])
