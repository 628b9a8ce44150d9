"""From a chain to its stationary vector: accurate in every entry, or an error with a name."""
