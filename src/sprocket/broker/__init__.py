"""The broker: stores messages and gives them to consumers."""
