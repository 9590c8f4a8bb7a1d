"""Requests of operators: one small endpoint for each request code, grouped by subject."""
