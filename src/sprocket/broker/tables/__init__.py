"""What a broker knows besides its messages, one table a module."""
