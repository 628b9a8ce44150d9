"""Answers in memory, as bits and without names: planes, rows, and what is done to them."""
