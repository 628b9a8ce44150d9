"""Tools for those who work on the library itself; not part of what is installed."""
