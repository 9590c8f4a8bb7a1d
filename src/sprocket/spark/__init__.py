"""Topics as Spark data sources."""
