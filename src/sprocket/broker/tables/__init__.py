"""The state of a broker besides its messages, one table in each module."""
