"""Difficulties from noisy summaries: a fit that knows how much noise it was given."""
