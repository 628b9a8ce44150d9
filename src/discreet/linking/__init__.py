"""Calibrations on one scale: anchors, links through common items, banks that grow.

In: answers with known difficulties of some items, or two calibrations with items in common.
Out: difficulties on the known scale, and a check of whether the common items still agree.
What comes from answers is confidential; what comes from releases alone is not.
"""

from discreet.linking.anchoring import Anchored, fit_anchored
from discreet.linking.bank import Bank, create_bank, grow_bank, read_bank, write_bank
from discreet.linking.joining import Link, link_calibrations

__all__ = [
    "Anchored",
    "Bank",
    "Link",
    "create_bank",
    "fit_anchored",
    "grow_bank",
    "link_calibrations",
    "read_bank",
    "write_bank",
]
