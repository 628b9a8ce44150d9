"""Names of types that need no array: choices of options and keywords, and plain values by name.

It imports nothing of the library, so that commands can show their choices at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

#: Values by name as JSON and TOML hold them; who reads them checks them.
PlainDict = dict[str, Any]
PlainMapping = Mapping[str, Any]

#: Names of models of answers.
NamedModel = Literal["rasch", "partial-credit", "rating-scale"]
MODELS: tuple[str, ...] = get_args(NamedModel)
Model = Literal["auto", NamedModel]
#: Those of answers with steps.
ScaleModel = Literal["partial-credit", "rating-scale"]
#: Who answered what, as far as that is public: everybody everything, a part that does not depend on
#: ability, or nobody knows.
Design = Literal["complete", "random", "unknown"]

#: Names of estimators of difficulties.
Method = Literal["auto", "conditional", "refined", "spectral", "marginal"]

#: Those that need pair counts only.
PairMethod = Literal["refined", "spectral"]
#: Those of counts of right answers.
CountMethod = Literal["auto", "conditional", PairMethod]
#: What marginal likelihood assumes about abilities.
Ability = Literal["normal", "empirical"]
#: Names of estimators of abilities.
ScoreMethod = Literal["warm", "ml", "posterior"]
#: Which ratings are compared: of the same person and item, or all of a person (None).
Within = Literal["auto", "item"] | None
#: Where pairs are counted; "duckdb" is another name for "disk".
Engine = Literal["auto", "memory", "disk", "duckdb", "spark"]
#: How persons are weighted where pairs are counted.
WeightingName = Literal["refined", "none"]
#: One row for each answer, or one for each person.
Layout = Literal["long", "wide"]
#: Transposed: a row for each item, a column for each person.
TableLayout = Literal["long", "wide", "transposed"]
#: What to do with a second answer of a person to an item, or a second vote of a judge on a pair.
Kept = Literal["error", "first", "last"]
#: Or the number of right ones of all, where samples of an item were drawn.
Repeats = Literal[Kept, "sum"]
OneMeans = Literal["right", "wrong"]
#: What to do with cells that are no answers.
Invalid = Literal["error", "missing"]
Blank = Literal["missing", "wrong"]
#: What a missing answer in a module that decided the path of a routed test was.
Skipped = Literal["refuse", "wrong"]
#: What to do with comparisons that nobody won: Davidson's model of ties, or half a win for each.
Ties = Literal["error", "drop", "davidson", "shrunk"]
#: Whom a release of comparisons protects: a judge's whole set, or one vote where none are known.
PrivacyUnit = Literal["judge", "vote"]
#: What a 1 in a column of winners stands for, where 0 is the other object.
WinnerSide = Literal["left", "right"]
#: How single items are compared between groups.
DifTest = Literal["wald", "mantel-haenszel", "likelihood-ratio"]
#: How p-values are adjusted for their number.
Adjustment = Literal["benjamini-hochberg", "holm", "none"]
#: Who gets which items in a simulation.
DesignName = Literal["uniform", "booklets", "targeted", "adaptive", "two-stage"]
#: Those that plans predict the error of.
PlannedDesign = Literal["uniform", "booklets"]
#: Which two sets of answers are neighbours.
Relation = Literal["replace-one", "add-remove"]
#: How spends add up.
Composition = Literal["gaussian", "basic"]
#: Who chose a mechanism: somebody by its name, or the library from public parameters.
Chooser = Literal["steward", "auto"]
NamedMechanism = Literal[
    "margins", "laplace-margins", "pairs", "sparse-pairs", "laplace-pairs", "randomized-response",
    "totals", "residuals",
]  # fmt: skip
AnswerMechanism = Literal["auto", NamedMechanism]
#: How released values become difficulties.
Estimator = Literal["noise-aware", "spectral"]
#: The mechanisms of :mod:`discreet.privacy.mechanisms`, for programs that check types.
ComparisonMechanism = Literal["auto", "net-wins", "win-pairs"]
