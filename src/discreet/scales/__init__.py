"""One scale for several tests: anchors, links, banks, drift, reported scales.

In: calibrations and answers. Out: shifts, banks, changes of items over time. Confidential unless
every calibration was released.
"""
