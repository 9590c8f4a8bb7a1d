"""Calls of gRPC whose messages are bytes, by grpcio: for requests that no client would make.

A line of standard input is a call, `{"id", "method", "metadata", "requests": [base64],
"timeout_s"}`; the answer is a line `{"id", "messages": [base64], "status", "details", "initial",
"trailing"}`. Calls are made beside each other. A call ends its side of the stream when the first
answer is there, or with its only request.
"""

from __future__ import annotations

import base64
import json
import queue
import sys
import threading
from collections.abc import Iterator
from typing import Any

import grpc

_lines = threading.Lock()


def _requests(call: dict[str, Any], end: queue.Queue[None]) -> Iterator[bytes]:
    yield from (base64.b64decode(text) for text in call["requests"])
    if call["method"] == "Telemetry":
        end.get()


def _answer(channel: grpc.Channel, call: dict[str, Any]) -> dict[str, Any]:
    service = call.get("service", "apache.rocketmq.v2.MessagingService")
    ask = channel.stream_stream(f"/{service}/{call['method']}")
    end: queue.Queue[None] = queue.Queue()
    metadata = list(call["metadata"].items())
    answers = ask(_requests(call, end), metadata=metadata, timeout=call["timeout_s"])
    messages = []
    try:
        for answer in answers:
            messages.append(base64.b64encode(answer).decode())
            end.put(None)
    except grpc.RpcError:
        pass
    return {
        "id": call["id"],
        "messages": messages,
        "status": answers.code().value[0],
        "details": answers.details(),
        "initial": [[k, str(v)] for k, v in answers.initial_metadata() or ()],
        "trailing": [[k, str(v)] for k, v in answers.trailing_metadata() or ()],
    }


def _tell(channel: grpc.Channel, call: dict[str, Any]) -> None:
    line = json.dumps(_answer(channel, call)) + "\n"
    with _lines:
        sys.stdout.write(line)
        sys.stdout.flush()


def main() -> None:
    """Make the calls of standard input, one after the other."""
    bounds = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    with grpc.insecure_channel(sys.argv[1], options=bounds) as channel:
        for line in sys.stdin:
            threading.Thread(target=_tell, args=(channel, json.loads(line)), daemon=True).start()


main()
