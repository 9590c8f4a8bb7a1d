"""What is written while a store is open: appends, flushes, retention."""
