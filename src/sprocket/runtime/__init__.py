"""The real world behind the ports."""
