"""What tasks tell the driver about the rows that they have staged."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StagedPart:
    """What an attempt of a task has staged.

    Attributes:
        writer, batch_id: the transaction of which it is a part.
        topic: one of its topics; empty if it had no rows.
    """

    writer: str
    batch_id: int
    attempt: str
    requests: int = 0
    topic: str = ""
