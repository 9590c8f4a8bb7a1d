"""What tasks tell the driver about the rows that they have staged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class StagedPart:
    """What an attempt of a task has staged.

    Attributes:
        writer, batch_id: the transaction of which it is a part.
        requests: how many, by broker.
        topics: by broker, one of those of its messages there.
    """

    writer: str
    batch_id: int
    attempt: str
    requests: Mapping[str, int] = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict)
