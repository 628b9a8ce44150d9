"""Thresholds from noisy totals: how often each category was chosen, and how scores spread."""
