"""Answers that do not fit into memory: files, databases and queries of any size."""
