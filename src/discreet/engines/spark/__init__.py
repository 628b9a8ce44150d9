"""Answers in a cluster: Spark DataFrames and tables, counted where they are.

``count_frame`` counts them exactly as the memory engine would; ``open_frame`` lets ``fit`` and
``release`` work on them. The way of a row::

    frame --shuffle by person--> tasks --blocks of partial sums--> executors add --> driver
             (``layout``)       (``reading``)         (``addition``)

Whole persons meet in one task, which stores their answers and counts them with the code that
counts in memory. Partial sums are added on executors, and only the sum reaches the driver.
Nothing here uses a Spark context, so sessions of Spark Connect (Databricks, for one) will do.

Task retries cannot count twice: the only way out of a task is the rows that it returns, and
Spark takes those of one successful attempt. A cap on answers is a function of a secret key and
the person (``capping``), so that a task that runs again keeps the same answers.
"""

from __future__ import annotations

from discreet.engines.spark.answers import SparkAnswers, count_frame, open_frame

__all__ = ["SparkAnswers", "count_frame", "open_frame"]
