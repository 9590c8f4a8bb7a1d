"""What runs while a store is open: appends, flushes, retention."""
