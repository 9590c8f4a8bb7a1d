"""A seeded world for tests: virtual time, a network and disks in memory, clusters that crash.

For the tests of this project and of its users. Nothing else imports it.
"""
