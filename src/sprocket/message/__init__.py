"""Messages: their values and their bytes. Pure."""
