"""Anything tabular to columns: paths, files, frames, queries, servers; roles, values, ids."""
