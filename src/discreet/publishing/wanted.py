"""What shall be released, and whether the ledger allows it, before anybody looks at the data.

In: public parameters as they were asked for. Out: the same as :class:`Public` once the number of
persons is known, or a refusal by the ledger's policy. Nothing here opens a file of answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from operator import index
from typing import SupportsIndex

from discreet.errors import BadUsage, NotAllowed
from discreet.models.released import check_estimator
from discreet.privacy.accounting import Budget, Neighbours
from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger.policy import Asked
from discreet.privacy.ledger.request import Request
from discreet.privacy.mechanisms import AUTO, MECHANISMS, check_mechanism, choose_mechanism
from discreet.privacy.mechanisms.base import CompleteMechanism
from discreet.privacy.protocol import NOISE_AWARE, PUBLIC, Public
from discreet.publishing.listing import Listing
from discreet.types import Chooser, Estimator


@dataclass(frozen=True)
class ReleaseSpec:
    """What shall be released: everything that is public but the number of persons in the data.

    Attributes
    ----------
    kind
        ``"answers"`` or ``"comparisons"``.
    budget
        Epsilon, delta and the neighbouring relation.
    listing
        What is public about the items.
    cap
        Answers (or comparisons) per person at most; None for as many as there are items.
    people
        The number of persons fixed in advance, or their ids; None where nobody said.
    mechanism
        A name, or a mechanism with settings of its own.
    expected
        The number declared for the ledger's policy alone, where it is not to be published.
    chosen_by
        Who chose the mechanism, where a request names it; None where it is chosen here.
    estimator
        How the released values become difficulties.
    """

    kind: str
    budget: Budget
    listing: Listing
    cap: int | None
    people: int | Iterable[object] | None
    mechanism: str | CompleteMechanism
    expected: int | None = None
    chosen_by: Chooser | None = None
    estimator: Estimator = NOISE_AWARE

    def __post_init__(self) -> None:
        if not isinstance(self.budget, Budget):
            raise BadUsage(
                f"a release needs a budget, such as Budget(epsilon=1.0), found {self.budget!r}"
            )
        if isinstance(self.mechanism, str):
            check_mechanism(self.mechanism, self.kind)
        if isinstance(self.people, Iterable) and not isinstance(self.people, str):
            object.__setattr__(self, "people", list(self.people))  # it is gone through twice
        if self.estimator != NOISE_AWARE:
            public = self.make_public(self.declared)
            made, _ = choose_mechanism(self.mechanism, public, self.kind)
            check_estimator(made.name, self.estimator)

    @property
    def chooser(self) -> Chooser:
        """Who chose the mechanism."""
        return self.chosen_by or ("auto" if self.mechanism == AUTO else "steward")

    @property
    def declared(self) -> int | None:
        """The number of persons that was declared in advance."""
        if isinstance(self.people, list):
            return len(self.people)
        return index(self.people) if isinstance(self.people, SupportsIndex) else self.expected

    def make_public(self, persons: int | None) -> Public:
        """Return the public parameters with this number of persons."""
        return PUBLIC[self.kind](
            max_answers=len(self.listing.items) if self.cap is None else self.cap,
            neighbours=self.budget.neighbours,
            persons=persons,
            is_fixed=self.people is not None,
            **vars(self.listing),
        )


def check_allowed(
    book: Ledger | None, wanted: ReleaseSpec, population: str, request: Request | None
) -> ReleaseSpec:
    """Refuse what the ledger does not allow, or not without approvals, whatever the answers are."""
    if book is not None:
        book.board().check_release(request)
    return check_wanted(book, wanted, population)


def check_wanted(book: Ledger | None, wanted: ReleaseSpec, population: str) -> ReleaseSpec:
    """Refuse what the ledger does not allow, whatever the answers are; return what is left to do.

    Under add-remove the number of persons is not published; where the policy needs one, it serves
    the policy alone.
    """
    if book is None:
        return wanted
    book.history().check_known(population)
    policy, budget = book.policy, wanted.budget
    if policy is None:
        return wanted
    made, _ = choose_mechanism(wanted.mechanism, wanted.make_public(wanted.declared), wanted.kind)
    if policy.mechanisms is not None:
        _check_own(made)
    book.check_policy(
        Asked(budget.epsilon, budget.delta, str(budget.neighbours), made.name, wanted.declared)
    )
    if budget.neighbours is Neighbours.ADD_REMOVE and policy.needs_persons:
        return replace(wanted, people=None, expected=wanted.declared)
    return wanted


def _check_own(mechanism: CompleteMechanism) -> None:
    """Refuse a mechanism of somebody else's making that has the name of one of the library's."""
    entry = MECHANISMS.get(mechanism.name)
    if entry is not None and type(entry()) is not type(mechanism):
        raise NotAllowed(
            f"the ledger's policy allows the library's own mechanisms, and this {mechanism.name!r} "
            f"is another, {type(mechanism).__name__}"
        )
