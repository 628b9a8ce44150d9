"""How many persons or judges a release is about, where that is public.

In: what the steward fixed in advance, or nothing. Out: the number that everybody may know.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Sequence

from discreet.engines.answers import Contributions
from discreet.errors import BadResponses, BadUsage
from discreet.privacy.accounting import Budget, Neighbours

__all__ = ["number_people"]


def number_people(
    data: Contributions, budget: Budget, given: int | Iterable[object] | None, word: str
) -> int | None:
    """Return the public number of persons or judges: as given in advance, or as in the data.

    ``word`` is how the data calls them, and the attribute with their ids.
    """
    if budget.neighbours is Neighbours.ADD_REMOVE:
        if given is not None:
            raise BadUsage(
                f"{word} are named for replace-one only: under add-remove their number is not "
                f"published. Leave {word} out"
            )
        return None
    if given is None:
        return data.n_persons
    if isinstance(given, Iterable) and not isinstance(given, str):
        return _count_ids(data, [str(one) for one in given], word)
    try:
        return operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        raise BadUsage(f"{word} must be a whole number or a list of ids, found {given!r}") from None


def _count_ids(data: Contributions, ids: Sequence[str], word: str) -> int:
    """Return the length of a public list of ids, of which the data may hold no other."""
    found = getattr(data, word, None)
    if found is None:
        raise BadUsage(
            f"a list of {word} can be compared with answers in memory only, and these are read "
            f"where they are. Give the number of {word}, or engine='memory'"
        )
    if len(set(ids)) < len(ids):
        twice = next(one for one, times in Counter(ids).items() if times > 1)
        raise BadUsage(f"the list of {word} names {twice!r} more than once; list each id once")
    others = sorted(set(map(str, found)).difference(ids))
    if others:
        raise BadResponses(
            f"the data has {len(others):,} {word} that are not on the list, for example "
            f"{others[0]!r}. Add them to the list, or take them out of the data first"
        )
    return len(ids)
