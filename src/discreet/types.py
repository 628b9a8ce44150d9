"""Arrays by what they hold, and words that are chosen from: one name for each, known once."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]
Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
Int8Array = npt.NDArray[np.int8]
Texts = npt.NDArray[np.object_]
UInt64Array = npt.NDArray[np.uint64]
Vector = npt.NDArray[Any]

NamedModel = Literal["rasch", "partial-credit", "rating-scale"]
"""Names of models of answers."""
MODELS: tuple[str, ...] = get_args(NamedModel)
Model = Literal["auto", NamedModel]
ScaleModel = Literal["partial-credit", "rating-scale"]
"""Those of answers with steps."""
Design = Literal["complete", "random", "unknown"]
"""Who answered what, as far as that is public: everybody everything, a part that does not depend on
ability, or nobody knows."""

Method = Literal["auto", "conditional", "refined", "spectral", "marginal"]
"""Names of estimators of difficulties."""

PairMethod = Literal["refined", "spectral"]
"""Those that need pair counts only."""
Ability = Literal["normal", "empirical"]
"""What marginal likelihood assumes about abilities."""
ScoreMethod = Literal["warm", "ml", "posterior"]
"""Names of estimators of abilities."""
Within = Literal["auto", "item"] | None
"""Which ratings are compared: of the same person and item, or all of a person (None)."""
Engine = Literal["auto", "memory", "disk", "duckdb", "gpu", "spark"]
"""Where pairs are counted; "duckdb" is another name for "disk"."""
WeightingName = Literal["refined", "none"]
"""How persons are weighted where pairs are counted."""
Layout = Literal["long", "wide"]
"""One row for each answer, or one for each person."""
Repeats = Literal["error", "first", "last"]
"""What to do with a second answer of a person to an item."""
OneMeans = Literal["right", "wrong"]
Ties = Literal["error", "drop"]
"""What to do with comparisons that nobody won."""
DifTest = Literal["wald", "mantel-haenszel", "likelihood-ratio"]
"""How single items are compared between groups."""
Adjustment = Literal["benjamini-hochberg", "holm", "none"]
"""How p-values are adjusted for their number."""
DesignName = Literal["uniform", "booklets", "targeted", "adaptive", "two-stage"]
"""Who gets which items in a simulation."""
PlannedDesign = Literal["uniform", "booklets"]
"""Those that plans predict the error of."""
Relation = Literal["replace-one", "add-remove"]
"""Which two sets of answers are neighbours."""
Composition = Literal["gaussian", "basic"]
"""How spends add up."""
Chooser = Literal["steward", "auto", "unknown"]
"""Who chose the mechanism of a release: somebody by its name, the library from public parameters,
or a request of the first format, which does not say."""
NamedMechanism = Literal[
    "margins", "laplace-margins", "pairs", "sparse-pairs", "laplace-pairs", "randomized-response",
    "totals",
]  # fmt: skip
AnswerMechanism = Literal["auto", NamedMechanism]
Estimator = Literal["noise-aware", "spectral"]
"""How released values become difficulties."""
ComparisonMechanism = Literal["auto", "net-wins", "win-pairs"]
"""The mechanisms of :mod:`discreet.privacy.mechanisms`, for programs that check types."""
