"""The method that is taken where none is named: conditional likelihood where it costs little.

In: answers, and the refined estimate that every method starts from. Out: the conditional estimate,
or none, and a sentence that says why. What conditional likelihood costs is foretold from the
patterns of missing answers; they are found in one pass, and the likelihood then goes on with them.
"""

from __future__ import annotations

from discreet.answers.protocol import Answers
from discreet.counts import PairCounts
from discreet.errors import DisconnectedItems, NotConverged
from discreet.models.conditional.estimator import ConditionalTask
from discreet.models.conditional.groups import SOLVE_SECONDS, conditional_work
from discreet.models.conditional.patterns import Patterns
from discreet.models.connectivity import Chain
from discreet.models.step_plan import StepPlan
from discreet.results.estimate import Estimate
from discreet.types import FloatArray

WORK_SECONDS = 2.0
"""Foretold seconds on one core up to which conditional likelihood is taken."""
SAMPLE_CELLS = 4_000_000
"""Cells of a sample of persons; if all their patterns differ, it alone is too much work."""
FEWEST_SAMPLED = 2000

TOOK_CONDITIONAL = (
    f"The method is conditional: it is exact, and takes less than {WORK_SECONDS:g} s here."
)
TOO_MUCH_WORK = (
    f"conditional would take more than {WORK_SECONDS:g} s here; name it to have it all the same"
)


def take_refined(reason: str) -> str:
    """Say that the refined method was taken."""
    return f"The method is refined: {reason}."


def find_obstacle(data: Answers | PairCounts, regularisation: float) -> str:
    """Say why conditional likelihood is out of the question whatever the answers; "" if not."""
    if isinstance(data, PairCounts):
        return "counts of pairs do not say which answers belong to the same person"
    if regularisation != 0:
        return "regularisation is added to pairs of items"
    return "" if data.in_memory else "these answers are not in memory"


def attempt_conditional(
    answers: Answers, plan: StepPlan, chain: Chain, start: FloatArray
) -> tuple[Estimate | None, str]:
    """Estimate by conditional likelihood if that is little work; say what was decided, and why.

    Parameters
    ----------
    answers
        The answers, in memory.
    plan
        The categories of the items.
    chain
        Which nodes are linked.
    start
        The refined estimate of the linked nodes.
    """
    by_pairs = plan.is_binary or plan.held is not None
    task = ConditionalTask(plan, chain, start) if by_pairs else ConditionalTask(plan)
    patterns = find_patterns(answers, task)
    if patterns is None:
        return None, take_refined(TOO_MUCH_WORK)
    try:
        return task.assemble(task.maximise(patterns), patterns), TOOK_CONDITIONAL
    except (NotConverged, DisconnectedItems) as error:
        return None, take_refined(f"conditional found no maximum ({error})")


def find_patterns(answers: Answers, task: ConditionalTask) -> Patterns | None:
    """Return the patterns of all persons, or ``None`` where they are too much work."""
    columns, steps = task.items, max(task.plan.steps)
    if SOLVE_SECONDS * (len(columns) * steps) ** 3 > WORK_SECONDS:
        return None
    sample = max(FEWEST_SAMPLED, SAMPLE_CELLS // len(columns))
    complete = answers.n_answers == answers.n_persons * len(answers.items)
    # Very many persons need not all be looked at to see that their patterns are too many.
    samples_first = answers.n_persons > sample and not complete
    for chosen in (sample, None) if samples_first else (None,):
        patterns = task.collect(answers, chosen)
        if conditional_work(patterns, steps) > WORK_SECONDS:
            return None
    return patterns
