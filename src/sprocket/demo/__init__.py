"""The main job: messages in, shared by a group, and read as a table by Spark, on one machine.

`make run`, or `python -m sprocket.demo --help`.
"""
