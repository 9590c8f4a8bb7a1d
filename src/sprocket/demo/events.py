"""Messages between the demonstration and its Spark process, each a line of JSON."""

from __future__ import annotations

import msgspec


class Task(msgspec.Struct):
    """The task of the Spark process.

    Attributes:
        nameservers: name servers of the cluster.
        topic: the topic to read.
        folder: folder for Parquet; its content is replaced.
    """

    nameservers: str
    topic: str
    folder: str


class Step(msgspec.Struct, tag=True):
    """The present step, in words."""

    doing: str


class RegionTotal(msgspec.Struct):
    """Orders of one region: their numbers by status, and their total amount."""

    region: str
    orders: dict[str, int]
    amount: float


class Report(msgspec.Struct, tag=True):
    """The result of the Spark job.

    Attributes:
        messages: messages read from the topic, with those of earlier runs.
        others: messages that are no orders.
        files, file_bytes: number and size of the Parquet files written.
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
