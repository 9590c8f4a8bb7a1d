"""One stream of a connection: its windows, and what waits to be sent. Pure."""

from __future__ import annotations

from collections import deque
from typing import Any

Buffer = bytes | memoryview


class Http2Stream:
    """A stream that is open, or half closed.

    Attributes:
        number: odd, rising.
        send_window: how many bytes the peer still takes; negative after it made its window smaller.
        receive_window: how many bytes the peer may still send.
        received_bytes: bytes that were received and for which it got no new window yet.
        queue: data to send that no frame has yet.
        queued_bytes: their number.
        trailers: the header block that ends our side, once the queue is empty.
        is_peer_done: whether the peer has ended its side.
        body_left: the bytes that its `content-length` promises and that have not come; None without
            that header.
        mark: how far it was when its user last looked.
        call: what the user of the connection keeps for the stream.
    """

    __slots__ = (
        "body_left", "call", "is_peer_done", "mark", "number", "queue", "queued_bytes",
        "receive_window", "received_bytes", "send_window", "trailers",
    )  # fmt: skip

    def __init__(self, number: int, send_window: int, receive_window: int) -> None:
        self.number = number
        self.send_window = send_window
        self.receive_window = receive_window
        self.received_bytes = 0
        self.queue: deque[Buffer] = deque()
        self.queued_bytes = 0
        self.trailers: bytes | None = None
        self.is_peer_done = False
        self.body_left: int | None = None
        self.mark: tuple[int, int] | None = None
        self.call: Any = None

    def take(self, size: int) -> list[Buffer]:
        """Takes that many bytes off the queue, which has them."""
        self.queued_bytes -= size
        queue = self.queue
        parts: list[Buffer] = []
        while size:
            first = queue[0]
            if len(first) <= size:
                parts.append(queue.popleft())
            else:
                rest = memoryview(first)  # slices of it copy nothing
                parts.append(rest[:size])
                queue[0] = rest[size:]
            size -= len(parts[-1])
        return parts
