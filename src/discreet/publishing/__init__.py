"""From data and a budget to a bundle: ledger, wall, estimate, files, in that order."""
