"""Topics read in batch and as a stream."""
