"""The fixed delay levels, and the delivery of messages that are due."""
