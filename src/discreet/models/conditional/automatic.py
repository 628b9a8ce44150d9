"""The method that is taken where none is named: conditional likelihood where it costs little.

In: answers, and the refined estimate that every method starts from. Out: the conditional
estimate, or none, and a sentence that says why. What conditional likelihood costs is foretold
from the patterns of missing answers; they are found in one pass, and the likelihood then goes on
with them.
"""

from __future__ import annotations

from discreet.answers.protocol import Answers
from discreet.counts import PairCounts
from discreet.errors import DisconnectedItems, NotConverged, OutOfReach
from discreet.models.conditional import Patterns
from discreet.models.conditional.batches import SOLVE_SECONDS, conditional_work
from discreet.models.conditional.estimator import ConditionalTask
from discreet.models.connectivity import Chain
from discreet.models.step_plan import StepPlan
from discreet.models.weak_links import WeakLinks
from discreet.results.estimate import Estimate
from discreet.types import FloatArray

#: Foretold seconds on one core up to which conditional likelihood is taken.
WORK_SECONDS = 2.0


#: Cells of a sample of persons; if all their patterns differ, it alone is too much work.
SAMPLE_CELLS = 4_000_000


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
    return "" if data.lasts else "these answers can be gone through only once"


def attempt_conditional(
    answers: Answers, plan: StepPlan, chain: Chain, start: FloatArray, links: WeakLinks | None
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
    links
        Parts that few persons link to the others.
    """
    task = ConditionalTask(plan, links=links)
    if plan.needs_links:
        task = ConditionalTask(plan, chain, start, links)
    try:
        patterns = find_patterns(answers, task)
        if patterns is None:
            return None, take_refined(TOO_MUCH_WORK)
        return task.assemble(task.maximise(patterns), patterns), TOOK_CONDITIONAL
    except (NotConverged, DisconnectedItems, OutOfReach) as error:
        return None, take_refined(f"conditional found no estimate ({error})")


def find_patterns(answers: Answers, task: ConditionalTask) -> Patterns | None:
    """Return the patterns of all persons, or ``None`` where they are too much work."""
    columns, steps = task.items, max(task.plan.steps)
    if SOLVE_SECONDS * (len(columns) * steps) ** 3 > WORK_SECONDS:
        return None
    sample = max(FEWEST_SAMPLED, SAMPLE_CELLS // len(columns))
    if answers.n_persons > sample and not answers.in_memory:
        raise OutOfReach(f"answers of more than {sample:,} persons that are not in memory")
    complete = answers.n_answers == answers.n_persons * len(answers.items)
    # Very many persons need not all be looked at to see that their patterns are too many.
    samples_first = answers.n_persons > sample and not complete
    for chosen in (sample, None) if samples_first else (None,):
        patterns = task.collect(answers, chosen)
        if conditional_work(patterns, steps) > WORK_SECONDS:
            return None
    return patterns
