"""What answers say about items beyond their difficulty: fit, groups, dimensions, distractors.

In: answers and a calibration. Out: statistics and tests, one row per item or pair. Confidential.
"""
