"""What one connection may cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a connection, the same for a server's and for a pool's.

    Attributes:
        frame_bytes_max: a longer frame breaks the connection.
        calls_max: calls of ours that may wait for their replies; more wait for their turn.
        tasks_max: requests of the peer that may be worked on; above it nothing more is read.
        unwritten_bytes_max: replies that the peer has not read; above it nothing more is read
            from a client, and no call is sent to a server.
        connect_seconds: how long making a connection may take.
        silent_seconds: a server from which nothing comes for so long while calls get no reply in
            time is let go, and called anew: the way to it may be dead though nobody said so.
        idle_seconds: a client that says nothing for so long, and waits for nothing, is let go.
    """

    frame_bytes_max: int = 16 << 20
    calls_max: int = 65_536
    tasks_max: int = 16_384
    unwritten_bytes_max: int = 1 << 20
    connect_seconds: float = 3.0
    silent_seconds: float = 30.0
    idle_seconds: float = 120.0
