"""Estimation methods, one module each: statistics in, an estimate out."""
