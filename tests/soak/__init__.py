"""Real processes on real sockets that are killed, stopped and started again: `make soak`.

It belongs to those who change this project and not to its users, so it is not shipped.
"""
