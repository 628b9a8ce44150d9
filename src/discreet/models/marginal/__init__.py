"""Marginal maximum likelihood: abilities are drawn from a distribution and integrated out."""
