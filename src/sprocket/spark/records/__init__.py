"""Records of the log as columns of Arrow batches."""
