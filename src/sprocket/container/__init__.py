"""Many brokers behind one command: a parent that starts, watches, restarts and stops processes.

RocketMQ calls it a broker container. Each broker is a process with a name, ports and a folder of
its own, and to clients it is a broker like any other.
"""
