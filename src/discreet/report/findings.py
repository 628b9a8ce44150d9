"""What is wrong with a test: checks, and findings in plain words with what to do.

In: an estimate and, where the answers were at hand, its study. Out: findings, the most serious
first, and the checks that found nothing. Limits stand in ``results/limits.py``. To add a check: a
generator of findings and a line in ``ESTIMATE_CHECKS`` or ``ANSWER_CHECKS``, by what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import WarningKind
from discreet.items.dif import list_differing
from discreet.models.methods import GIVEN_PATHS
from discreet.report import model_findings as model
from discreet.report.model_findings import (
    Finding,
    Severity,
    has_many_reversed,
    list_reversed,
    list_suspects,
    say_reliability,
    weak_items,
    words_for,
)
from discreet.results import limits
from discreet.results.estimate import Estimate, Status
from discreet.text import count_of, minus, name_some

if TYPE_CHECKING:
    from discreet.items.study import Study

_EXTREME_ADVICE = (
    "Check the answer key and the wording. If both are right, replace the item or give it to a "
    "group it suits."
)
#: What is said of items without a number, by the reason.
_MISSING: dict[Status, Finding] = {
    Status.NOT_CONNECTED: Finding(
        Severity.SERIOUS,
        "{count} {verb} not linked to the rest",
        "The answers do not compare {names} with the other items: no shared persons link them, or "
        "a category has too few answers. So no difficulty exists on the common scale.",
        "Give some persons items from both parts (a few common items are enough). Merge a category "
        "that hardly anybody chose. Or calibrate the parts apart and do not compare them.",
    ),
    Status.ALWAYS_RIGHT: Finding(
        Severity.LOOK,
        "{count} always answered right",
        "{names}: too easy for everyone who got it. Such answers measure nobody.",
        _EXTREME_ADVICE,
    ),
    Status.ALWAYS_WRONG: Finding(
        Severity.SERIOUS,
        "{count} never answered right",
        "{names}: too hard for everyone who got it, or keyed wrongly. Such answers measure nobody.",
        _EXTREME_ADVICE,
    ),
    Status.NO_ANSWERS: Finding(
        Severity.LOOK,
        "{count} nobody answered",
        "{names}.",
        "Check that the item names in the answers and in the item list agree.",
    ),
}

#: What is said instead of items with steps.
_ONE_CATEGORY = Finding(
    Severity.SERIOUS,
    "{count} always answered in the same category",
    "{names}: answers that do not differ measure nobody.",
    "Check the coding and the wording. If both are right, replace the item or give it to a group "
    "it suits.",
)


def _check_missing(estimate: Estimate, *reasons: Status) -> Iterator[Finding]:
    for reason in reasons:
        pairs = zip(estimate.items, estimate.status, strict=True)
        names = [name for name, status in pairs if status == reason]
        if names:
            extreme = reason in (Status.ALWAYS_RIGHT, Status.ALWAYS_WRONG)
            template = _ONE_CATEGORY if extreme and estimate.has_steps else _MISSING[reason]
            verb = "is" if len(names) == 1 else "are"
            title = template.title.format(count=count_of(len(names)), verb=verb)
            details = template.found.format(names=name_some(names, limits.NAMED))
            yield Finding(template.severity, title, details, template.advice)


def _check_precision(estimate: Estimate) -> Iterator[Finding]:
    rough = np.flatnonzero(estimate.se > limits.ROUGH_SE)
    if not len(rough):
        return
    worst = rough[np.argsort(-estimate.se[rough], kind="stable")]
    yield Finding(
        Severity.LOOK,
        f"{count_of(len(rough))} known only roughly",
        f"The standard error exceeds {limits.ROUGH_SE:g} logits for "
        f"{name_some([estimate.items[i] for i in worst], limits.NAMED)}.",
        "Collect more answers to these items, or do not rely on their order.",
    )


def _check_warnings(estimate: Estimate) -> Iterator[Finding]:
    """Show the fit's own warnings, except those that another check tells."""
    for text in estimate.warnings:
        if text.kind not in (WarningKind.LEFT_OUT, WarningKind.NOT_LINKED, WarningKind.ROUTED):
            about_link = text.kind in (WarningKind.DRIFTED, WarningKind.WEAK_LINK)
            title = "The link between the scales" if about_link else "The estimation says"
            yield Finding(Severity.LOOK, title, f"{_sentence(text)}.", "")


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
    remarks: list[list[str]] = [[] for _ in estimate.items]
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
        for index in range(len(estimate.items)):
            remarks[index] += fit_remarks(study, index)
        for index, value in weak_items(estimate, study).items():
            remarks[index].append("wrong direction?" if value < 0 else "hardly discriminates")
        for row in list_differing(study.differences or {}):
            remarks[estimate.items.index(row[0])].append(f"differs by {row[1]}")
        within = () if study.dependence is None else study.dependence.within
        for index in (k for k, pairs in enumerate(within) if pairs):
            remarks[index].append("dependent")
    return [list(dict.fromkeys(words)) for words in remarks]


def find_limits(study: Study, statistic: str, index: int) -> tuple[float, float]:
    """Return from where on an infit or outfit of an item is a finding, downwards and upwards.

    Simulated limits, but never closer to their centre than matters; else the rules of thumb.
    """
    if study.limits is None:
        return limits.FIT_LOW, limits.FIT_HIGH
    low, high = (float(end) for end in getattr(study.limits, statistic)[index])
    centre = float(np.sqrt(low * high))
    if np.isnan(centre):
        centre = low = high = 1.0
    return min(low, centre - limits.FIT_NEGLIGIBLE), max(high, centre + limits.FIT_NEGLIGIBLE)


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
    beyond = _list_beyond(study, index)
    fit, highest = study.fit, find_limits(study, "outfit", index)[1]
    if list(beyond) != ["outfit"] or fit.outfit[index] - fit.outfit_without_one[index] <= (
        limits.FIT_NEGLIGIBLE
    ):
        return False
    return bool(_take_one_out(study, index) <= highest)


def _take_one_out(study: Study, index: int) -> float:
    """Return the conditional outfit without the most unexpected answer, by its share of it."""
    fit = study.fit
    share = fit.outfit_without_one[index] / fit.outfit[index]
    return float(fit.conditional_outfit[index] * share)


def tell_few(estimate: Estimate, study: Study) -> str:
    """Say which outfits are large because of one person; empty where none is."""
    names = [
        f"{item} ({study.fit.conditional_outfit[i]:.2f}; {_take_one_out(study, i):.2f} without 1 "
        "person)"
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
        parts.append(f"{name} {value:.2f}, limit {high if value > 1 else low:.2f}")
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
    if noisy:
        worst = max(max(_list_beyond(study, i).values()) for i in noisy)
        names = [_name_beyond(estimate, study, i) for i in noisy]
        yield Finding(
            Severity.SERIOUS if worst > limits.FIT_BAD else Severity.LOOK,
            f"{count_of(len(noisy))} answered less predictably than the model expects",
            f"{name_some(names, limits.NAMED)}. {say_limits(study)}{tell_few(estimate, study)}",
            f"{words_for(estimate).noise} Without these items, see whether the other "
            f"{words_for(estimate).numbers} change.",
        )
    if low:
        names = [_name_beyond(estimate, study, i) for i in low]
        yield Finding(
            Severity.LOOK,
            f"{count_of(len(low))} answered more predictably than the model expects",
            f"{name_some(names, limits.NAMED)}. {say_limits(study)}",
            "No harm to measurement, but errors are understated. Often items that repeat "
            "each other; see the dependent pairs.",
        )


def _check_direction(estimate: Estimate, study: Study) -> Iterator[Finding]:
    reversed_items = list_reversed(estimate, study)
    correlations = weak_items(estimate, study).items()
    weak = sorted((value, index) for index, value in correlations if index not in reversed_items)
    if not weak:
        return
    names = [f"{estimate.items[index]} ({minus(f'{value:.2f}')})" for value, index in weak]
    negative = weak[0][0] < 0
    yield Finding(
        Severity.SERIOUS if negative else Severity.LOOK,
        f"{count_of(len(names))} hardly {'tells' if len(names) == 1 else 'tell'} persons apart",
        f"Correlation of answer and ability below {limits.WEAK_CORRELATION:g}: "
        f"{name_some(names, limits.NAMED)}.",
        f"{words_for(estimate).direction} Then the wording.",
    )


def _check_routing(estimate: Estimate) -> Iterator[Finding]:
    for text in estimate.warnings:
        if text.kind is WarningKind.ROUTED:
            yield Finding(
                Severity.SERIOUS,
                "The test looks routed, so these difficulties are biased",
                f"{_sentence(text)}.",
                "If scores on modules chose the next module, state the rules with --routing. If "
                "items were chosen from the same person's earlier answers in another way (adaptive "
                "test, stopping rule), calibrate with --method marginal.",
            )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _check_design(estimate: Estimate, study: Study) -> Iterator[Finding]:
    value = study.abilities.matching
    routed = any(warning.kind is WarningKind.ROUTED for warning in estimate.warnings)
    is_safe = estimate.method in ("marginal", GIVEN_PATHS)
    if value is None or value <= limits.MATCHED or routed or is_safe:
        return
    yield Finding(
        Severity.LOOK,
        "Abler persons got harder items",
        f"Ability and the difficulty of the items a person got correlate at {value:.2f}.",
        "Nothing is wrong if items were assigned beforehand (grade, form). If they were chosen "
        "from the same person's earlier answers, use --method marginal.",
    )


def _check_targeting(estimate: Estimate, study: Study) -> Iterator[Finding]:
    offset = study.abilities.mean - float(np.nanmean(estimate.difficulty))
    if abs(offset) <= limits.OFF_TARGET:
        return
    easy = offset > 0
    yield Finding(
        Severity.SERIOUS if abs(offset) > 2 * limits.OFF_TARGET else Severity.LOOK,
        f"The test is too {'easy' if easy else 'hard'} for these persons",
        f"Their mean ability lies {abs(offset):.1f} logits {'above' if easy else 'below'} the "
        f"mean {words_for(estimate).number}.",
        f"Add {'harder' if easy else 'easier'} items; the Wright map shows where persons have "
        "no items.",
    )


def _check_reliability(_: Estimate, study: Study) -> Iterator[Finding]:
    value, answered = study.reliability.reliability, study.abilities.answered
    if not value < limits.RELIABILITY_GOOD:
        return
    poor = value < limits.RELIABILITY_LOW
    yield Finding(
        Severity.SERIOUS if poor else Severity.LOOK,
        f"{'Low' if poor else 'Moderate'} person reliability",
        f"Person reliability is {say_reliability(value)} with {answered:g} answers "
        "per person (median).",
        f"Report groups rather than single persons, or give each person "
        f"{_wanted_answers(value, answered)}. Difficulties are not affected.",
    )


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
    if share <= limits.EXTREME_SHARE:
        return
    yield Finding(
        Severity.LOOK,
        f"{share:.0%} of the persons have {words_for(estimate).extremes}",
        f"{extreme:,} of {total:,} persons. They say nothing about the items, and "
        "the test says little about them.",
        "Give longer tests, or easier and harder items.",
    )


def _check_dependence(_: Estimate, study: Study) -> Iterator[Finding]:
    count = 0 if study.dependence is None else study.dependence.count
    if study.dependence is None or not count:
        return
    worst = study.dependence.pairs[: min(count, 3)]
    names = [f"{first} with {second} ({excess:.2f})" for first, second, excess, _ in worst]
    more = f" and {count - 3:,} more" if count > 3 else ""
    yield Finding(
        Severity.LOOK,
        f"{count_of(count, 'pair')} of items {'depends' if count == 1 else 'depend'} on each other",
        f"Residual correlation above the mean: {', '.join(names)}{more}. {say_pair_limit(study)}",
        "Items on one text, or one that gives the other away, count twice: errors look "
        "smaller than they are. Drop one of each pair, or score them as one item (testlets).",
    )


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
    items = len({row[0] for row in rows})
    yield Finding(
        Severity.SERIOUS if any(row[5] == "C" for row in rows) else Severity.LOOK,
        f"{count_of(items)} {'works' if items == 1 else 'work'} differently in groups of equal "
        "ability",
        f"Differential item functioning: {name_some(names, limits.NAMED)}.",
        "Read these items for wording or content that only one group knows. Comparisons of "
        "the groups should do without them, or with them split by group.",
    )


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
        verb = "differs" if len(rows) == 1 else "differ"
        yield Finding(
            Severity.LOOK,
            f"{count_of(len(rows))} {verb} between groups by more or less with ability",
            f"The curve is steeper in one group than in another: {name_some(names, limits.NAMED)}. "
            "P-values of group times ability are adjusted for the number of items.",
            "Look at the curves of the groups. The item tells persons apart better in one group: "
            "read it for what only some of its persons know.",
        )


def _check_options(_: Estimate, study: Study) -> Iterator[Finding]:
    options = study.distractors
    if options is None or not options.flagged:
        return
    rows = [(options.option[row], options.item[row], options.share[row]) for row in options.flagged]
    names = [f"{option} of {item} (chosen by {share:.0%})" for option, item, share in rows]
    count = len(names)
    yield Finding(
        Severity.SERIOUS,
        f"{count_of(count, 'wrong option')} attract{'s' * (count == 1)} abler persons",
        f"Those who chose {name_some(names, limits.NAMED)} are abler than others who answered the "
        "item.",
        "Check the key first: the option may be the right one, or right too. Then read the item "
        "for a second meaning that only able persons see.",
    )


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
