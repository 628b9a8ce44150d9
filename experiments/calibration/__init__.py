"""Sizes of tests and coverage of intervals, counted in simulated studies."""
