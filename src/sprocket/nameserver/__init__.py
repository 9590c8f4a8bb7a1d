"""Which broker has which topic."""
