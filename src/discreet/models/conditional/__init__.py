"""Conditional maximum likelihood: abilities drop out, given every person's score."""
