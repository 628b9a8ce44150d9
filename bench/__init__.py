"""Comparisons with other tools and with promises, as ratios measured in one run."""
