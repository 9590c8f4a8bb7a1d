"""What an operator can do, once."""
