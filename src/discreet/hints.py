"""Names that are nearly right: errors say which choice, or which public name, was meant.

In: a name, and the names that there are. Out: the one that is spelt alike, or that another program
calls so. What else other programs call otherwise is explained in ``docs/coming-from.md``.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from discreet.errors import BadUsage

#: Choices by the words that other programs have for them, or for what comes nearest.
SYNONYMS = {
    word: choice
    for choice, words in {
        "rasch": "1pl rm dichotomous",
        "partial-credit": "pcm polytomous",
        "rating-scale": "rsm likert andrich",
        "conditional": "cml cmle",
        "marginal": "mml mmle em",
        "refined": "pairwise pmle",
        "warm": "wle wl",
        "ml": "mle",
        "posterior": "eap bayes",
        "mantel-haenszel": "mh mantel",
        "likelihood-ratio": "lr lrt",
    }.items()
    for word in words.split()
}


def find_choice(name: object, choices: Iterable[str]) -> str:
    """Return the choice that a name means; empty where none is near.

    Examples
    --------
    >>> find_choice("CML", ["auto", "conditional"]), find_choice("refind", ["refined"])
    ('conditional', 'refined')
    """
    listed, word = list(choices), str(name).lower().replace("_", "-")
    candidates = [SYNONYMS.get(word, word), *get_close_matches(word, listed, 1)]
    return next((each for each in candidates if each in listed), "")


def check_choice_name(subject: str, name: object, choices: Iterable[str]) -> None:
    """Refuse a name that is none of the choices, and say which one may be meant.

    Examples
    --------
    >>> check_choice_name("model", "PCM", ("rasch", "partial-credit"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    discreet.errors.BadUsage: there is no model called 'PCM'; did you mean 'partial-credit'? ...
    """
    listed = list(choices)
    if name in listed:
        return
    meant = find_choice(name, listed)
    ask = f"did you mean {meant!r}? Choose" if meant else "choose"
    raise BadUsage(f"there is no {subject} called {name!r}; {ask} one of: {', '.join(listed)}")


def suggest(name: str, names: Iterable[str]) -> str:
    """Return the names that are spelt like a wrong one as a question; else all of them.

    Examples
    --------
    >>> suggest("difficulties", ["difficulty", "se"]), suggest("x", ["difficulty", "se"])
    ('Did you mean difficulty?', 'There is difficulty, se.')
    """
    listed = list(names)
    near = get_close_matches(name, listed, 3, 0.7)
    return f"Did you mean {' or '.join(near)}?" if near else f"There is {', '.join(listed)}."
