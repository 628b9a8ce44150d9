"""The public functions: they open what holds answers or a calibration, and call the engine.

In: what users have, a path, a frame, an array, answers. Out: results. Only these modules read
tables for an analysis; everything behind them takes answers and calibrations that are open.
"""
