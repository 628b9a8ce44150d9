"""Plans: how many persons, what epsilon, what precision, before there is any data.

In: public parameters and assumptions. Out: predicted errors. Nothing here reads an answer.
"""

from __future__ import annotations

from discreet.planning.plans import Plan, plan
from discreet.planning.setting import Assumptions, Setting

__all__ = ["Assumptions", "Plan", "Setting", "plan"]
