"""Pair counts: how often one item was answered right where another was answered wrong.

In: numbers from an engine. Out: an immutable value that adds up over batches of whole persons,
in memory and in files. Confidential: a count is about the persons behind it, so it never crosses
the wall without noise.
"""

from discreet.counts.matrix import is_sparse, prefers_sparse
from discreet.counts.table import PairCounts, merge_counts, name_weighting

__all__ = ["PairCounts", "is_sparse", "merge_counts", "name_weighting", "prefers_sparse"]
