"""The scikit-learn estimators: glue only.

In: an answer matrix as scikit-learn passes it. Out: fitted attributes and abilities. Importing
this package imports scikit-learn; nothing else in the library does.
"""

from __future__ import annotations

from discreet.sklearn.private import PrivateRasch
from discreet.sklearn.rasch import Rasch

__all__ = ["PrivateRasch", "Rasch"]
