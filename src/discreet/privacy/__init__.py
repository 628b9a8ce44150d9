"""Differential privacy: noise, accounting, mechanisms, the wall and the ledger."""
