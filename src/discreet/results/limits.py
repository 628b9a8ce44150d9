"""Limits that are rules of thumb, such as for reliability.

A threshold tells a reader where to look first, and is never a verdict. Each says where it is from.
"""

from __future__ import annotations

#: Mean squares of ordinary tests (Wright and Linacre 1994, Reasonable mean-square fit values). They
#: serve where limits were not simulated: for very many answers.
FIT_LOW, FIT_HIGH = 0.7, 1.3

#: Distance of a mean square from the centre of its limits that does not matter, however many
#: persons make it sure.
FIT_NEGLIGIBLE = 0.1

#: From here on an item does not help to measure; from 2 on it harms (the same source).
FIT_BAD = 1.5

#: Below 0.8 (separation 2) two levels of ability are hardly told apart, below 0.5 (separation
#: 1) noise is larger than the differences between persons (Fisher 1992, Linacre).
RELIABILITY_GOOD, RELIABILITY_LOW = 0.8, 0.5

#: Logits between mean ability and mean difficulty: there 73% or 27% right are expected.
OFF_TARGET = 1.0

#: Logits: the 95% interval is then two logits wide, about what 30 persons give.
ROUGH_SE = 0.5

#: Residual correlation above the mean one: a dependent pair where limits were not simulated
#: (Christensen, Makransky and Horton 2017), and what does not matter even where it is sure.
DEPENDENT, DEPENDENT_NEGLIGIBLE = 0.2, 0.1

#: Share of persons with everything right or wrong, of whom little more than that is known.
EXTREME_SHARE = 0.1

#: Correlation of ability and the mean difficulty of the items a person got. Items given out at
#: random show about 0; sampling alone exceeds this with probability 1e-3 from 175 persons on.
MATCHED = 0.25

#: Below, the item hardly tells abler from less able persons; below 0 its key may be wrong.
WEAK_CORRELATION = 0.1

#: Standardised fit below which a mean square far from 1 may be chance: few persons.
SURE_T = 2.0

#: Answers below which a correlation with ability is mostly chance (standard error 0.18).
ENOUGH_ANSWERS = 30

#: Answers below which a category says little about the thresholds beside it (Linacre 2002,
#: Optimizing rating scale category effectiveness).
FEW_IN_CATEGORY = 10

#: First component of the residuals, as a multiple of what chance makes of it. In simulations with
#: 30 items and 500 persons two abilities that correlate at 0.8 give 1.1, at 0.5 1.5, at 0 2.0. A
#: component beyond chance but below the first of these is told as small.
CONTRAST_CLEAR, CONTRAST_FAR, CONTRAST_ALARM = 1.1, 2.0, 4.0

#: Multiple from which on the correlation of the two ends of the component is believed.
CONTRAST_SEEN = 1.3

#: Loading from which on an item belongs to an end of the component: a tenth of its variance.
LOADING = 0.3

#: Correlation of abilities on the two ends: below 0.7 they share less than half of their variance,
#: below 0.3 less than a tenth.
ENDS_DIFFER, ENDS_APART = 0.7, 0.3

#: P-value of Andersen's and Martin-Löf's tests below which they are findings: each is a false
#: alarm for one in a hundred sound tests.
ANDERSEN_LEVEL = 0.01

#: Level of the adjusted p-values of differences that depend on ability.
UNEVEN_LEVEL = 0.05

#: Share of persons with unexpected answers that matters where limits were not simulated; where the
#: model holds, with 5 to 100 items, it is 0 to 0.025.
MISFIT_SHARE = 0.05

#: Persons with right and wrong answers below whom no test of the model can say that it holds: the
#: standard error of a difficulty is then 0.4 or more.
FEWEST_PERSONS = 30

#: Share of items that run against the others from which on they explain other findings: they then
#: distort every ability.
REVERSED_SHARE = 0.1

#: Differences between abilities on easier and harder items, as a multiple of what their standard
#: errors allow, from which on these count as too small. With 60 persons and 1,000 items guessing
#: gives 1.7 where the errors in truth are 1.4 times the standard errors; where it gives 1.05 (1,000
#: persons, 40 items) or unequal slopes give 1.2, the standard errors hold
#: (experiments/calibration/verdicts.py).
ERRORS_LARGE = 1.2

#: A test this many times as long is beyond what the formula can promise.
MANY_TIMES = 10

#: Items that a finding names; the table has them all.
NAMED = 6
