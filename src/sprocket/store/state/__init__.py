"""State files: small tables that are replaced whole."""
