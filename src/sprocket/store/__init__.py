"""The log on disk and its views."""
