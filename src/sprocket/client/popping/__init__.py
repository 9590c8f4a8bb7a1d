"""Popping: messages that are given out one by one, and acknowledged by their handles."""
