"""The demonstration: sends messages, consumes them in a group, and reads them with Spark.

`make run`, or `python -m sprocket.demo --help`.
"""
