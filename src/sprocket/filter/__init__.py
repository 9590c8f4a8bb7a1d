"""Which messages a subscriber wants. Pure."""
