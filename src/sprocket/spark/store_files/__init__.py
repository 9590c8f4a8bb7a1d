"""Reads the store files of a broker without the broker."""
