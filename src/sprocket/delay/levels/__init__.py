"""The fixed delay levels: what is due, and its delivery."""
