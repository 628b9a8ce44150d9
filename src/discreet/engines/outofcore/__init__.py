"""Answers that do not fit into memory: files, databases and queries of any size.

``count_source`` counts them exactly as the memory engine would; ``stream_responses`` hands out
batches of whole persons; ``open_answers`` lets ``fit`` look at them twice, and ``open_persons``
lets ``release`` do so; ``load_responses`` reads them into memory. ``choosing`` holds the rule by
which ``engine="auto"`` chooses.
"""

from __future__ import annotations

from discreet.engines.outofcore.counting import count_source
from discreet.engines.outofcore.loading import load_responses
from discreet.engines.outofcore.persons import (
    StreamedAnswers,
    count_anything,
    open_answers,
    open_persons,
)
from discreet.engines.outofcore.settings import Progress, Resources
from discreet.engines.outofcore.stream import count_stream, stream_responses

__all__ = [
    "Progress",
    "Resources",
    "StreamedAnswers",
    "count_anything",
    "count_source",
    "count_stream",
    "load_responses",
    "open_answers",
    "open_persons",
    "stream_responses",
]
