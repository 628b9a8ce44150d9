"""One script for each picture; the README maps picture to command."""
