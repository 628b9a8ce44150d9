"""What answers say about persons: abilities, plausible values.

In: answers and a calibration. Out: abilities with standard errors. Confidential.
"""
