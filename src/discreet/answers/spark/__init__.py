"""Answers in a cluster: Spark DataFrames and tables, counted where they are."""
