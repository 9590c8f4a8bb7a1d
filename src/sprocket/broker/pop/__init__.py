"""Pop consumption: messages given out one by one, acknowledged, and given out again."""
