"""The messages between the demo and its Spark process, each a line of JSON."""

from __future__ import annotations

import msgspec


class Task(msgspec.Struct):
    """The task of the Spark process.

    Attributes:
        nameservers: name servers of the cluster.
        topic: the topic to read.
        folder: where to write Parquet; its old content is replaced.
    """

    nameservers: str
    topic: str
    folder: str


class DemoStep(msgspec.Struct, tag=True):
    """The current step, in words."""

    doing: str


class RegionTotal(msgspec.Struct):
    """Orders of one region: how many of each status, and their total amount."""

    region: str
    orders: dict[str, int]
    amount: float


class DemoReport(msgspec.Struct, tag=True):
    """The result of the Spark job.

    Attributes:
        messages: number of messages in the topic, also of earlier runs.
        others: number of messages that are not orders.
        files, file_bytes: number and size of the Parquet files.
    """

    messages: int
    others: int
    regions: list[RegionTotal]
    files: int
    file_bytes: int


class Failure(msgspec.Struct, tag=True):
    """The reason why there is no report."""

    reason: str


Event = DemoStep | DemoReport | Failure

encode = msgspec.json.Encoder().encode
decode_event = msgspec.json.Decoder(Event).decode
decode_task = msgspec.json.Decoder(Task).decode
