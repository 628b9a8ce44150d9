"""Everything at the wall between confidential answers and released values."""
