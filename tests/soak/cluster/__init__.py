"""A soak of a group of brokers: processes that are killed, stand still and end, under load."""
