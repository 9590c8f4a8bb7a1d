"""Starts Spark: finds Java, sets the workers' interpreter, packs the package for clusters."""
