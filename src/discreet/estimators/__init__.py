"""Estimators: statistics in, an :class:`~discreet.estimate.Estimate` out; one file each."""
