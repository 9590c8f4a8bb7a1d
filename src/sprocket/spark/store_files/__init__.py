"""A broker's files read without the broker."""
