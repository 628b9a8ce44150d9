"""Ranks and differences of items, of any calibration.

In: a calibration. Out: rankings, ranges of ranks, comparisons.
"""

from discreet.api.opening import opens
from discreet.results import ranking
from discreet.scales import ranks

rank = opens(ranking.rank)
rank_ranges = opens(ranks.rank_ranges)
compare_items = opens(ranks.compare_items)
