"""The settings of a replication connection, the same at both ends. Pure."""

from __future__ import annotations

from typing import NamedTuple

from sprocket.replication.stream_start import FreshStart


class StreamRules(NamedTuple):
    """How a connection is used. Times in seconds.

    Attributes:
        heartbeat: after so long without anything to send, a heartbeat or a report is sent.
        silence: a connection on which nothing arrives for so long is closed.
        batch_bytes: the most bytes of the log in a frame.
        bytes_per_second: the most that one slave is sent in a second; 0: no limit.
        gather: pause after a frame that is not full, so that the next one holds more than one
            message; 0 where senders wait for slaves.
        fresh: where a slave without a log begins.
        pauses: a slave's pause before it connects again, at first and at most.
    """

    heartbeat: float = 5.0
    silence: float = 20.0
    batch_bytes: int = 32 * 1024
    bytes_per_second: int = 0
    gather: float = 0.0
    fresh: FreshStart = FreshStart()
    pauses: tuple[float, float] = (1.0, 15.0)
