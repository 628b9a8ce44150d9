"""Plans: how many persons, what epsilon, what precision, before there is any data."""
