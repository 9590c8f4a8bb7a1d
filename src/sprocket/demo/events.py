"""What the demonstration and its Spark process tell each other, a line of JSON each."""

from __future__ import annotations

import msgspec


class Task(msgspec.Struct):
    """What Spark is to do.

    Attributes:
        nameservers: the cluster.
        topic: what to read.
        folder: where Parquet goes; what lies there is replaced.
    """

    nameservers: str
    topic: str
    folder: str


class Step(msgspec.Struct, tag=True):
    """What is being done now, in words."""

    doing: str


class RegionTotal(msgspec.Struct):
    """Orders of one region: how many of each status, and their worth."""

    region: str
    orders: dict[str, int]
    amount: float


class Report(msgspec.Struct, tag=True):
    """What was found and written.

    Attributes:
        messages: read from the topic, those of earlier runs too.
        others: messages that are no orders.
        files, file_bytes: of the Parquet that was written.
    """

    messages: int
    others: int
    regions: list[RegionTotal]
    files: int
    file_bytes: int


class Failure(msgspec.Struct, tag=True):
    """Why there is no report."""

    reason: str


Event = Step | Report | Failure

encode = msgspec.json.Encoder().encode
decode_event = msgspec.json.Decoder(Event).decode
decode_task = msgspec.json.Decoder(Task).decode
