"""Backups of a store, made while a broker has it open, and stores made from them."""
