"""From a chain to its stationary vector: accurate in every entry, or an error with a name.

In: a matrix of non-negative rates, strongly connected. Out: the centred logarithm of the
stationary vector and how it was found. No answers, no persons, no privacy.
"""

from discreet.stationary.elimination import solve_by_elimination
from discreet.stationary.jumps import iterate_jump_chain
from discreet.stationary.solution import Solution
from discreet.stationary.solving import solve_stationary

__all__ = ["Solution", "iterate_jump_chain", "solve_by_elimination", "solve_stationary"]
