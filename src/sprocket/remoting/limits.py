"""The limits of one connection."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of a connection, the same for a server's and a pool's.

    Attributes:
        frame_bytes_max: a longer frame breaks the connection.
        calls_max: the most calls of ours that wait for their replies; further calls wait before
            they are sent.
        tasks_max: the most requests of the peer in progress; above it nothing more is read.
        unwritten_bytes_max: the most bytes that the peer has not read; above it nothing more is
            read from a client, and no call is sent to a server.
        unread_bytes_max: the most bytes of finished replies that wait for the peer to read, after
            `unwritten_bytes_max`; above it the connection is closed. Records in mapped files do
            not count. Only replies that took a while wait so: no others are made meanwhile.
        unfinished_bytes_max: the most bytes of incomplete frames over all connections of a server;
            above it those that have been incomplete for longest are closed. One frame may always
            have `frame_bytes_max`.
        connect_seconds: the time limit for making a connection.
        silent_seconds: if calls time out and nothing arrives from a server for this long, its
            connection is closed and made again: the network may have dropped it silently.
        idle_seconds: a client that sends nothing for this long, and waits for nothing, is
            disconnected.
    """

    frame_bytes_max: int = 16 << 20
    calls_max: int = 65_536
    tasks_max: int = 16_384
    unwritten_bytes_max: int = 1 << 20
    unread_bytes_max: int = 32 << 20
    unfinished_bytes_max: int = 128 << 20
    connect_seconds: float = 3.0
    silent_seconds: float = 30.0
    idle_seconds: float = 120.0

    @property
    def unfinished_bytes_allowed(self) -> int:
        """`unfinished_bytes_max`, or the longest frame if that is more."""
        return max(self.unfinished_bytes_max, self.frame_bytes_max)
