"""One request takes no longer than its time, however slowly the other side answers."""

from __future__ import annotations

import socket
import threading
import time
from urllib.parse import urlsplit

import pytest

from sprocket.schemas.errors import RegistryUnavailable
from sprocket.schemas.http_answer import get


def ask(port: int, seconds: float = 0.5) -> None:
    get(
        urlsplit(f"http://127.0.0.1:{port}"), "/x", headers={}, tls=None, seconds=seconds,
        bytes_max=1000,
    )  # fmt: skip


def test_an_answer_that_drips_ends_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        stop = threading.Event()

        def drip() -> None:
            peer, _ = server.accept()
            with peer:
                try:
                    peer.sendall(b"HTTP/1.1 200 OK\r\nX-A: ")
                    while not stop.wait(0.05):
                        peer.sendall(b"a")
                except OSError:
                    pass  # it has hung up

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        began = time.monotonic()
        with pytest.raises(RegistryUnavailable, match="does not answer"):
            ask(server.getsockname()[1])
        took = time.monotonic() - began
        stop.set()
        thread.join()
    assert took >= 0.5  # the header alone would go on for as long as it drips


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" * 200,
        b"\x1b]0;a title\x07\r\n\r\n",
        b"HTTP/1.1 " + b"\x1b[31m" * 10_000 + b"\r\n\r\n",
    ],
)
def test_what_is_no_http_is_one_error(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def reply() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(1000)
                peer.sendall(answer)

        thread = threading.Thread(target=reply, daemon=True)
        thread.start()
        with pytest.raises(RegistryUnavailable) as caught:
            ask(server.getsockname()[1], 20)
        thread.join()
    reason = str(caught.value)
    assert reason.isprintable()
    assert len(reason) < 1000


def test_nobody_there_is_one_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(RegistryUnavailable, match=rf"http://127.0.0.1:{port} does not answer"):
        ask(port)
