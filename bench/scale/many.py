"""Many connections to one server, held by this process."""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

from bench.load import FIRST_OPAQUE, frame

_NOTICE, _REPLY = b'"code":40,', b'"code":0,'
_READ_BYTES = 1 << 16
_QUIET_SECONDS = 3.0


def whole(code: int, fields: dict[str, str], body: bytes = b"") -> bytes:
    """A request's frame."""
    head, tail = frame(code, fields, body)
    return b"%b%d%b" % (head, FIRST_OPAQUE, tail)


def heartbeat(client: str, group: str | None = None, topic: str = "BenchScale") -> bytes:
    """A heartbeat of a producer; of a consumer, if it has a group."""
    consumer = {
        "groupName": group, "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET", "unitMode": False,
        "subscriptionDataSet": [{
            "topic": topic, "subString": "*", "subVersion": 1, "tagsSet": [], "codeSet": [],
            "classFilterMode": False, "expressionType": "TAG",
        }],
    }  # fmt: skip
    body = {
        "clientID": client,
        "producerDataSet": [] if group else [{"groupName": "bench_producer"}],
        "consumerDataSet": [consumer] if group else [],
    }
    return whole(34, {}, json.dumps(body).encode())


class ManyConnections:
    """Connections that send what they are told, and count what comes.

    Attributes:
        replies, notices: how many came since the last `forget`.
        changed: when the last of either came.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._poll = select.epoll()
        self._sockets: dict[int, socket.socket] = {}
        self.replies = self.notices = 0
        self.changed = time.perf_counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.hang_up(len(self))
        self._poll.close()

    def __len__(self) -> int:
        return len(self._sockets)

    def join(self, requests: Iterable[bytes]) -> None:
        """Opens a connection for each request, and sends it."""
        for request in requests:
            line = socket.create_connection(("127.0.0.1", self._port))
            line.sendall(request)
            line.setblocking(False)
            self._sockets[line.fileno()] = line
            self._poll.register(line.fileno(), select.EPOLLIN)
            self.look(0)

    def lines(self) -> Iterable[socket.socket]:
        """The connections in the order in which they joined."""
        return self._sockets.values()

    def say(self, request: Callable[[int], bytes]) -> None:
        """Sends a request on each connection, by its place."""
        for place, line in enumerate(list(self._sockets.values())):
            line.setblocking(True)
            line.sendall(request(place))
            line.setblocking(False)
            self.look(0)

    def look(self, seconds: float) -> None:
        """Reads what comes within a time."""
        for number, _ in self._poll.poll(seconds, 4096):
            data = self._sockets[number].recv(_READ_BYTES)
            if not data:
                raise ConnectionResetError(
                    f"the server closed one of {len(self)} connections; see ulimit -n"
                )
            notices = data.count(_NOTICE)
            self.notices += notices
            self.replies += data.count(_REPLY)
            self.changed = time.perf_counter()

    def until_quiet(self) -> float:
        """Reads until nothing more comes for some seconds; returns when the last came."""
        while time.perf_counter() - self.changed < _QUIET_SECONDS:
            self.look(0.1)
        return self.changed

    def forget(self) -> None:
        """Counts from 0 again."""
        self.replies = self.notices = 0
        self.changed = time.perf_counter()

    def hang_up(self, count: int) -> None:
        """Closes the first connections."""
        for number in list(self._sockets)[:count]:
            self._poll.unregister(number)
            self._sockets.pop(number).close()
