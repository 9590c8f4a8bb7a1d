"""How messages and positions are read from a broker."""
