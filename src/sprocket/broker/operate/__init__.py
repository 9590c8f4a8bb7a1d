"""What operators ask of a broker: one small function for each request code, by subject."""
