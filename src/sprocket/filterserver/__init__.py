"""The filter server: Python code of consumers, run beside the broker in processes of its own."""
