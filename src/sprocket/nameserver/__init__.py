"""The name server: it knows which broker has which topic."""
