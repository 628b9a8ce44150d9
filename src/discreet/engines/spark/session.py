"""Find the DataFrame behind what the user named.

In: a Spark DataFrame, classic or of Spark Connect, or the name of a table. Out: a DataFrame.
PySpark is imported only to look up a table: whoever has a DataFrame has PySpark already.
"""

from __future__ import annotations

import sys
from typing import Any

from discreet.errors import BadUsage, MissingExtra

__all__ = ["find_frame", "is_frame"]


def is_frame(source: object) -> bool:
    """Say whether something is a Spark DataFrame, without importing Spark."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql.")
        for kind in type(source).__mro__
    )


def find_frame(source: Any) -> Any:
    """Return a DataFrame as it is, and that of a table by its name."""
    if is_frame(source):
        return source
    if isinstance(source, str):
        return _active_session().table(source)
    if type(source).__module__.startswith("pyspark.pandas"):
        raise BadUsage(
            "engine='spark' takes a Spark DataFrame, found a pandas-on-Spark one; "
            "pass frame.to_spark()"
        )
    raise BadUsage(
        "engine='spark' takes a Spark DataFrame or the name of a table such as "
        f"'catalog.schema.table', found {type(source).__name__}; for files, read them with "
        "spark.read first, or leave the engine to 'auto'"
    )


def _active_session() -> Any:
    """Return the session of this thread: classic, or of Spark Connect."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtra("engine='spark'", "spark") from None
    session = SparkSession.getActiveSession()
    if session is None:
        session = _connect_session()
    if session is None:
        raise BadUsage(
            "engine='spark' was asked for a table by its name, but there is no active Spark "
            "session to look it up in; start one, or pass spark.table(name)"
        )
    return session


def _connect_session() -> Any:
    """Return the active session of Spark Connect; whoever has one has loaded its module.

    Importing it here would end the process where the packages that it needs are missing and
    Python runs neither a file nor a prompt: PySpark then calls ``sys.exit``.
    """
    module = sys.modules.get("pyspark.sql.connect.session")
    return None if module is None else module.SparkSession.getActiveSession()
