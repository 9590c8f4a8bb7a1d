"""A small registry over HTTP in a thread, whose answers a test writes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Answers:
    """What the server answers, and what it was asked.

    Attributes:
        by_path: an answer for each path: a status and a body, which may be made by `json.dumps`.
        headers: more headers of every answer.
        asked: the paths, with the headers of each request.
    """

    def __init__(self) -> None:
        self.url = ""
        self.by_path: dict[str, tuple[int, Any]] = {}
        self.headers: dict[str, str] = {}
        self.asked: list[tuple[str, Mapping[str, str]]] = []


@contextmanager
def registry() -> Iterator[Answers]:
    """A registry on a free port."""
    answers = Answers()

    class Requests(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers.asked.append((self.path, dict(self.headers)))
            status, value = answers.by_path.get(self.path, (404, {"error_code": 40403}))
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            for name, text in answers.headers.items():
                self.send_header(name, text)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    answers.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield answers
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
