"""A seeded world for tests: virtual time, a network and disks in memory, clusters that crash.

For this project's tests and for its users'. Nothing else imports it.
"""
