"""Tools for the files of a store: verify, dump, repair."""
