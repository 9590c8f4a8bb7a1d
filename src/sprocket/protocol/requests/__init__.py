"""Headers of requests and replies as declarations, one module per subject."""
