"""Standard errors of estimates from pairs: random signs, folds, sandwich."""
