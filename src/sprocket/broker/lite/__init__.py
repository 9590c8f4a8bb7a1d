"""Lite topics: who subscribes which, and what they get."""
