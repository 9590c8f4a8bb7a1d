"""What the console remembers of a cluster's figures, for plots over time."""
