"""Statistics in, an estimate out; one file a method."""
