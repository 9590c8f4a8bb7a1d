"""How messages reach users: by listeners, concurrent or ordered, by iterating, by polling."""
