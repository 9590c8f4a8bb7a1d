"""The demo: sends messages, consumes them in a group, reads them with Spark, on one machine.

`make run`, or `python -m sprocket.demo --help`.
"""
