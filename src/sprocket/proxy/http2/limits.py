"""The limits of a gRPC server. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GrpcLimits:
    """Limits of a server and of each of its connections.

    Attributes:
        message_bytes_max: the longest message of a request, opened.
        streams_max: the most calls of one connection at a time; further ones are refused.
        stream_window_bytes: what a client may send on a call before its method has read it.
        connection_window_bytes: the same for all calls of a connection.
        headers_bytes_max: the most that the headers of a request may have.
        unwritten_bytes_max: from this many bytes on that a client has not read, nothing more is
            read from it.
        unread_bytes_max: the most bytes of replies that wait for a client's windows, over all of
            its calls; above it the connection is closed.
        unread_bytes_total_max: the same over all connections; above it those that have waited
            longest are closed.
        unfinished_bytes_max: the most bytes of incomplete messages over all connections; above it
            those that have been incomplete for longest are closed.
        first_seconds: how long a client may take for its preface and settings.
        idle_seconds: a client without calls that sends nothing for this long is disconnected.
    """

    message_bytes_max: int = 16 << 20
    streams_max: int = 1024
    stream_window_bytes: int = 256 << 10
    connection_window_bytes: int = 16 << 20
    headers_bytes_max: int = 16 << 10
    unwritten_bytes_max: int = 1 << 20
    unread_bytes_max: int = 32 << 20
    unread_bytes_total_max: int = 256 << 20
    unfinished_bytes_max: int = 128 << 20
    first_seconds: float = 10.0
    idle_seconds: float = 120.0
