"""What is wrong with a test: checks, and findings in plain words with what to do.

In: an estimate and, where the answers were at hand, its study. Out: findings, the most serious
first, and the checks that found nothing. Limits stand in ``results/limits.py``, texts in
``findings.toml``. To add a check: a generator of findings, its texts, and a line in
``ESTIMATE_CHECKS`` or ``ANSWER_CHECKS``, by what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import WarningKind
from discreet.items.dif import list_differing
from discreet.items.given_totals import judge_outfit
from discreet.models.methods import GIVEN_PATHS
from discreet.report import model_findings as model
from discreet.report.model_findings import (
    Finding,
    Severity,
    has_many_reversed,
    list_reversed,
    list_suspects,
    make_finding,
    say_reliability,
    weak_items,
    words_for,
)
from discreet.results import limits
from discreet.results.estimate import Estimate, Status
from discreet.text import minus, name_some, show_apart

if TYPE_CHECKING:
    from discreet.items.study import Study


def _check_missing(estimate: Estimate, *reasons: Status) -> Iterator[Finding]:
    for reason in reasons:
        pairs = zip(estimate.items, estimate.status, strict=True)
        names = [name for name, status in pairs if status == reason]
        if names:
            extreme = reason in (Status.ALWAYS_RIGHT, Status.ALWAYS_WRONG)
            text = "one-category" if extreme and estimate.has_steps else str(reason)
            yield make_finding(text, {"names": name_some(names, limits.NAMED)}, count=len(names))


def _check_precision(estimate: Estimate) -> Iterator[Finding]:
    rough = np.flatnonzero(estimate.se > limits.ROUGH_SE)
    if len(rough):
        worst = rough[np.argsort(-estimate.se[rough], kind="stable")]
        names = name_some([estimate.items[i] for i in worst], limits.NAMED)
        yield make_finding(
            "precision", {"rough": limits.ROUGH_SE, "names": names}, count=len(rough)
        )


def _check_warnings(estimate: Estimate) -> Iterator[Finding]:
    """Show the fit's own warnings, except those that another check tells."""
    for text in estimate.warnings:
        if text.kind not in (WarningKind.LEFT_OUT, WarningKind.NOT_LINKED, WarningKind.ROUTED):
            about_link = text.kind in (WarningKind.DRIFTED, WarningKind.WEAK_LINK)
            what = "The link between the scales" if about_link else "The estimation says"
            yield make_finding("estimation", {"what": what, "sentence": _sentence(text)})


def fit_remarks(study: Study, index: int) -> list[str]:
    """Say whether one item is noisy or too predictable, or made to look noisy by few answers."""
    beyond = _list_beyond(study, index)
    if any(value < 1 for value in beyond.values()):
        return ["too predictable"]
    if not beyond:
        return []
    return ["noisy by few persons" if _is_by_few(study, index) else "noisy"]


#: What the table says of items without a number.
WORDS = {
    Status.NOT_CONNECTED: "not linked",
    Status.ALWAYS_RIGHT: "always right",
    Status.ALWAYS_WRONG: "always wrong",
    Status.NO_ANSWERS: "no answers",
}


def remarks_on_items(estimate: Estimate, study: Study | None) -> list[list[str]]:
    """Say what is remarkable about each item, in few words; empty lists where nothing is."""
    turned = () if estimate.reading is None else estimate.reading.asked.reverse
    remarks = [["reversed"] if item in turned else [] for item in estimate.items]
    for index, status in enumerate(estimate.status):
        if status in WORDS:
            extreme = status in (Status.ALWAYS_RIGHT, Status.ALWAYS_WRONG)
            is_constant = extreme and estimate.has_steps
            remarks[index].append("always the same" if is_constant else WORDS[status])
        elif estimate.se[index] > limits.ROUGH_SE:
            remarks[index].append("few answers")
    for index in {item for item, *_ in model.list_disordered(estimate)}:
        remarks[index].append("disordered")
    if study is not None:
        for name, *_ in list_suspects(study):
            remarks[estimate.items.index(name)].append("mislabelled?")
        about_answers = [*_list_split_remarks(estimate, study)]
        for index, fit, _ in about_answers:
            remarks[index] += fit
        for index, value in weak_items(estimate, study).items():
            remarks[index].append("wrong direction?" if value < 0 else "hardly discriminates")
        for row in list_differing(study.differences or {}):
            remarks[estimate.items.index(row[0])].append(f"differs by {row[1]}")
        for index, _, dependent in about_answers:
            remarks[index] += dependent
    return [list(dict.fromkeys(words)) for words in remarks]


def _list_split_remarks(
    estimate: Estimate, study: Study
) -> Iterator[tuple[int, list[str], list[str]]]:
    """Yield what findings say of an item's fit and pairs: where items are split, of the parts."""
    split, place_of = study.resolved, {item: i for i, item in enumerate(estimate.items)}
    items = estimate.items if split is None else split.estimate.items
    chosen = study if split is None else split.study
    pairs = (0,) * len(items) if chosen.dependence is None else chosen.dependence.within
    for index, name in enumerate(items):
        item, group = (name, "") if name in place_of else name.rsplit(":", 1)
        fit, dependent = fit_remarks(chosen, index), ["dependent"] * (pairs[index] > 0)
        place = f" in {group}" if group else ""
        yield place_of[item], [word + place for word in fit], [word + place for word in dependent]


def find_limits(study: Study, statistic: str, index: int) -> tuple[float, float]:
    """Return from where on an infit or outfit of an item is a finding, downwards and upwards."""
    if study.limits is None:
        return limits.FIT_LOW, limits.FIT_HIGH
    low, high = getattr(study.limits, statistic)[index]
    return float(low), float(high)


def _list_beyond(study: Study, index: int) -> dict[str, float]:
    """Return the conditional mean squares of an item that lie beyond their limits."""
    beyond = {}
    for name in ("infit", "outfit"):
        columns = (f"conditional_{name}", f"{name}_t")
        value, t = (float(getattr(study.fit, one)[index]) for one in columns)
        low, high = find_limits(study, name, index)
        # Rules of thumb do not know how many persons there are.
        sure = study.limits is not None or abs(t) > limits.SURE_T
        if sure and (value < low or value > high):
            beyond[name] = value
    return beyond


def _is_by_few(study: Study, index: int) -> bool:
    """Say whether the answer of one person makes an outfit large, and nothing else is."""
    if [*_list_beyond(study, index)] != ["outfit"]:
        return False
    judged = judge_outfit(study.fit.conditional_outfit, study.fit.outfit_without_one)
    return bool(judged[index] <= find_limits(study, "outfit", index)[1])


def tell_few(estimate: Estimate, study: Study) -> str:
    """Say which outfits are large because of one person; empty where none is."""
    names = [
        f"{item} ({study.fit.conditional_outfit[i]:.2f}; {study.fit.outfit_without_one[i]:.2f} "
        "without 1 person)"
        for i, item in enumerate(estimate.items)
        if "noisy by few persons" in fit_remarks(study, i)
    ]
    if not names:
        return ""
    return (
        f" One answer makes the outfit large of {name_some(names, limits.NAMED)}: look at the "
        "person, not at the item."
    )


def say_limits(study: Study) -> str:
    """Say what mean squares are held against."""
    if study.limits is None:
        return f"Limits are rules of thumb ({limits.FIT_LOW:g} and {limits.FIT_HIGH:g})."
    return (
        f"Limits are those of {study.limits.replications:,} sets of answers simulated from the "
        "model: 5% of sound tests have any item, pair or person beyond its limit."
    )


def _name_beyond(estimate: Estimate, study: Study, index: int) -> str:
    """Name an item with the mean squares beyond their limits, and the limits."""
    parts = []
    for name, value in _list_beyond(study, index).items():
        low, high = find_limits(study, name, index)
        shown = show_apart(value, high if value > high else low)
        parts.append(f"{name} {shown[0]}, limit {shown[1]}")
    return f"{estimate.items[index]} ({'; '.join(parts)})"


def _check_fit(estimate: Estimate, study: Study) -> Iterator[Finding]:
    remarks = [fit_remarks(study, i) for i in range(len(estimate.items))]

    def distance(index: int) -> float:
        beyond = _list_beyond(study, index).values()
        return -max(abs(float(np.log(value))) for value in beyond)

    noisy, low = (
        sorted((i for i, words in enumerate(remarks) if word in words), key=distance)
        for word in ("noisy", "too predictable")
    )
    shown = {"limits": say_limits(study), "few": tell_few(estimate, study)}
    for name, some in (("noisy", noisy), ("predictable", low)):
        if some:
            names = name_some([_name_beyond(estimate, study, i) for i in some], limits.NAMED)
            worst = max(max(_list_beyond(study, i).values()) for i in some)
            severity = Severity.SERIOUS if worst > limits.FIT_BAD else Severity.LOOK
            about = {**vars(words_for(estimate)), **shown, "names": names}
            yield make_finding(name, about, severity, count=len(some))


def _check_direction(estimate: Estimate, study: Study) -> Iterator[Finding]:
    reversed_items = list_reversed(estimate, study)
    correlations = weak_items(estimate, study).items()
    weak = sorted((value, index) for index, value in correlations if index not in reversed_items)
    if not weak:
        return
    names = [f"{estimate.items[index]} ({minus(f'{value:.2f}')})" for value, index in weak]
    severity = Severity.SERIOUS if weak[0][0] < 0 else Severity.LOOK
    about = {"names": name_some(names, limits.NAMED), "direction": words_for(estimate).direction}
    weak_from = {"weak": limits.WEAK_CORRELATION}
    yield make_finding("weak", {**about, **weak_from}, severity, count=len(names))


def _check_routing(estimate: Estimate) -> Iterator[Finding]:
    for text in estimate.warnings:
        if text.kind is WarningKind.ROUTED:
            yield make_finding("routed", {"sentence": _sentence(text)})


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _check_design(estimate: Estimate, study: Study) -> Iterator[Finding]:
    value = study.abilities.matching
    routed = any(warning.kind is WarningKind.ROUTED for warning in estimate.warnings)
    is_safe = estimate.method in ("marginal", GIVEN_PATHS)
    if value is not None and value > limits.MATCHED and not routed and not is_safe:
        yield make_finding("design", {"value": value})


def _check_targeting(estimate: Estimate, study: Study) -> Iterator[Finding]:
    offset = study.abilities.mean - float(np.nanmean(estimate.difficulty))
    if abs(offset) <= limits.OFF_TARGET:
        return
    much, side, more = ("easy", "above", "harder") if offset > 0 else ("hard", "below", "easier")
    severity = Severity.SERIOUS if abs(offset) > 2 * limits.OFF_TARGET else Severity.LOOK
    about = {"much": much, "side": side, "more": more, "number": words_for(estimate).number}
    yield make_finding("targeting", {**about, "offset": abs(offset)}, severity)


def _check_reliability(estimate: Estimate, study: Study) -> Iterator[Finding]:
    value, answered = study.reliability.reliability, study.abilities.answered
    if not value < limits.RELIABILITY_GOOD:
        return
    poor = value < limits.RELIABILITY_LOW
    severity, size = (Severity.SERIOUS, "Low") if poor else (Severity.LOOK, "Moderate")
    about = {"value": say_reliability(value), "wanted": _wanted_answers(value, answered)}
    about["numbers"] = words_for(estimate).numbers.capitalize()
    yield make_finding("reliability", {**about, "size": size, "answered": answered}, severity)


def _wanted_answers(reliability: float, answered: float) -> str:
    """Say how many items reach a good reliability (Spearman and Brown 1910), if it says much."""
    good = limits.RELIABILITY_GOOD
    times = good * (1 - reliability) / (max(reliability, 1e-9) * (1 - good))
    if times > limits.MANY_TIMES:
        return "many more items"
    # Four times ten items are 40, not 41 by a rounding error.
    return f"about {ceil(round(times * answered, 6))} items for {good:g}"


def _check_extreme_persons(estimate: Estimate, study: Study) -> Iterator[Finding]:
    extreme = study.abilities.extreme
    total = study.abilities.measured + extreme
    share = extreme / max(total, 1)
    if share > limits.EXTREME_SHARE:
        about = {"extreme": extreme, "total": total, "share": share}
        words = {"extremes": words_for(estimate).extremes}
        yield make_finding("extreme-persons", {**about, **words})


def _check_dependence(_: Estimate, study: Study) -> Iterator[Finding]:
    count = 0 if study.dependence is None else study.dependence.count
    if study.dependence is None or not count:
        return
    worst = study.dependence.pairs[: min(count, 3)]
    names = [f"{first} with {second} ({excess:.2f})" for first, second, excess, _ in worst]
    more = f" and {count - 3:,} more" if count > 3 else ""
    about = {"names": ", ".join(names), "more": more, "limit": say_pair_limit(study)}
    yield make_finding("dependence", about, count=count, noun="pair")


def say_pair_limit(study: Study) -> str:
    """Say from which residual correlation on a pair counts as dependent."""
    least = limits.DEPENDENT if study.limits is None else limits.DEPENDENT_NEGLIGIBLE
    return f"A pair counts where it is beyond chance and more than {least:g} above the mean."


def _check_groups(_: Estimate, study: Study) -> Iterator[Finding]:
    rows = list_differing(study.differences or {})
    if not rows:
        return
    names = [
        f"{item} ({abs(size):.2f} logits {'harder' if size > 0 else 'easier'} for {group})"
        for item, _, group, _, size, _ in rows
    ]
    severity = Severity.SERIOUS if any(row[5] == "C" for row in rows) else Severity.LOOK
    items, shown = len({row[0] for row in rows}), name_some(names, limits.NAMED)
    yield make_finding("groups", {"names": shown}, severity, count=items)


def list_uneven(study: Study) -> list[tuple[str, str, int]]:
    """Return items whose difference between groups depends on ability: item, column, place."""
    return [
        (curves.item[i], column, int(i))
        for column, curves in study.group_curves.items()
        for i in np.flatnonzero(curves.p_adjusted < limits.UNEVEN_LEVEL)
    ]


def _check_curves(_: Estimate, study: Study) -> Iterator[Finding]:
    rows = list_uneven(study)
    if rows:
        names = [f"{item} (by {column})" for item, column, _ in rows]
        yield make_finding("curves", {"names": name_some(names, limits.NAMED)}, count=len(rows))


def _check_options(_: Estimate, study: Study) -> Iterator[Finding]:
    options = study.distractors
    if options is None or not options.flagged:
        return
    rows = [(options.option[row], options.item[row], options.share[row]) for row in options.flagged]
    names = [f"{option} of {item} (chosen by {share:.0%})" for option, item, share in rows]
    shown = name_some(names, limits.NAMED)
    yield make_finding("options", {"names": shown}, count=len(names), noun="wrong option")


ESTIMATE_CHECKS: dict[str, Callable[[Estimate], Iterable[Finding]]] = {
    "links between items": lambda estimate: _check_missing(estimate, Status.NOT_CONNECTED),
    "routing": _check_routing,
    "items always right or wrong": lambda estimate: _check_missing(
        estimate, Status.ALWAYS_RIGHT, Status.ALWAYS_WRONG
    ),
    "items without answers": lambda estimate: _check_missing(estimate, Status.NO_ANSWERS),
    "precision of items": _check_precision,
    "order of thresholds": model.check_threshold_order,
    "rare categories": model.check_rare,
    "warnings of the fit": _check_warnings,
}

ANSWER_CHECKS: dict[str, Callable[[Estimate, Study], Iterable[Finding]]] = {
    "reversed items": model.check_reversed,
    "item fit": _check_fit,
    "direction of items": _check_direction,
    "design": _check_design,
    "targeting": _check_targeting,
    "distances of steps": model.check_distances,
    "labels of items": model.check_labels,
    "dimensionality": model.check_dimensions,
    "errors of abilities": model.check_errors,
    "reliability": _check_reliability,
    "groups": _check_groups,
    "curves of groups": _check_curves,
    "wrong options": _check_options,
    "dependent items": _check_dependence,
    "extreme persons": _check_extreme_persons,
    "equal difficulties": model.check_equal,
    "easier and harder": model.check_halves,
    "unexpected persons": model.check_misfits,
    "order of categories": model.check_averages,
}

CAUSES = ("reversed items", "labels of items")
#: Checks of items that run against the others, and those whose findings such items explain.
EXPLAINED = (
    *("direction of items", "item fit", "dimensionality", "errors of abilities", "reliability"),
    *("dependent items", "equal difficulties", "easier and harder", "unexpected persons"),
    *("order of categories", "order of thresholds", "distances of steps"),
)

#: Checks of items with steps.
STEP_CHECKS = ("order of thresholds", "rare categories", "order of categories")


def find_problems(estimate: Estimate, study: Study | None) -> tuple[list[Finding], list[str]]:
    """Run every check: the findings, most serious first, and the checks that found nothing.

    What another finding explains is among its consequences. Fewer persons than a test of the model
    needs are described: then only the estimate is checked, and nothing counts as holding.
    """
    by_check = {name: [*check(estimate)] for name, check in ESTIMATE_CHECKS.items()}
    too_few = [*model.check_enough_persons(estimate, study)]
    if study is not None and not too_few:
        by_check |= {name: [*check(estimate, study)] for name, check in ANSWER_CHECKS.items()}
    for name in _list_unchecked(estimate, study):
        by_check.pop(name, None)
    fine = [name for name, some in by_check.items() if not some]
    if study is not None and not too_few and has_many_reversed(estimate, study):
        _fold_consequences(by_check)
    if study is not None:
        _fold_differences(by_check, study)
    findings = [finding for some in by_check.values() for finding in some]
    findings.sort(key=lambda finding: finding.severity)
    if too_few:
        return [*too_few, *findings], []
    return findings, fine


def _fold_consequences(by_check: dict[str, list[Finding]]) -> None:
    """Put findings that items in the wrong direction explain under the finding about these."""
    causes = [name for name in CAUSES if by_check.get(name)]
    if not causes:
        return
    cause = by_check[causes[0]][0]
    others = [finding for name in (*causes[1:], *EXPLAINED) for finding in by_check.pop(name, ())]
    others.sort(key=lambda finding: finding.severity)
    worst = min([cause.severity, *(finding.severity for finding in others)])
    first = replace(cause, severity=worst, consequences=tuple(others))
    by_check[causes[0]] = []
    remaining = {name: by_check.pop(name) for name in list(by_check)}
    by_check |= {"cause": [first], **remaining}


#: Checks that are made again where items that differ between groups are split, and what they need.
RESOLVED = {
    "item fit": "fit",
    "dimensionality": "dimensionality",
    "dependent items": "dependence",
    "unexpected persons": "small_chances",
}


def say_split(study: Study) -> str:
    """Name the items that were split by group."""
    items = () if study.resolved is None else study.resolved.items
    return f"With {name_some(items, limits.NAMED)} split by group: "


def _fold_differences(by_check: dict[str, list[Finding]], study: Study) -> None:
    """Put findings under that about groups which end where the items that differ are split."""
    split, groups = study.resolved, by_check.get("groups")
    if split is None or not groups:
        return
    gone: list[Finding] = []
    for name, needed in RESOLVED.items():
        before = by_check.get(name)
        if not before or getattr(split.study, needed) is None:
            continue
        left = [*ANSWER_CHECKS[name](split.estimate, split.study)]
        by_check[name] = [replace(one, found=say_split(study) + one.found) for one in left]
        gone += [] if left else before
    by_check["groups"] = [replace(groups[0], consequences=tuple(gone)), *groups[1:]]


def _list_unchecked(estimate: Estimate, study: Study | None) -> Iterator[str]:
    """Yield the checks that the answers do not allow."""
    if not estimate.has_steps:
        yield from STEP_CHECKS
    else:
        yield "labels of items"
    needed = {
        "groups": "differences",
        "curves of groups": "differences",
        "dimensionality": "dimensionality",
        "wrong options": "distractors",
        "equal difficulties": "andersen",
        "easier and harder": "martin_loef",
        "distances of steps": "step_models",
        "errors of abilities": "halves",
    }
    yield from (name for name, field in needed.items() if getattr(study, field, None) is None)
