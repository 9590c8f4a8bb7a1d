"""Views over the log: consume queues, the key index, the confirmed offset, and their replay."""
