"""Delivery at any time: the wheel, its files, and delivery."""
