"""Answers that do not fit into memory: files, databases and queries of any size.

``count_source`` counts them exactly as the memory engine would; ``stream_responses`` hands out
batches of whole persons; ``is_too_large`` is the rule by which ``engine="auto"`` chooses.
"""

from __future__ import annotations

from discreet.engines.outofcore.counting import count_anything, count_source
from discreet.engines.outofcore.settings import Progress, Resources
from discreet.engines.outofcore.stream import count_stream, stream_responses

__all__ = [
    "Progress",
    "Resources",
    "count_anything",
    "count_source",
    "count_stream",
    "stream_responses",
]
