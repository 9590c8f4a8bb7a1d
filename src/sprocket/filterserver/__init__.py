"""The filter server: runs consumers' Python code in separate processes beside the broker."""
