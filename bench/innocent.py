"""An innocent client: `python -m bench.innocent PORT [USER KEY]` sends 64 B every 5 ms until its
input ends.

Then it prints the seconds that each send waited for its reply, as JSON. It is a process of its own,
so that what the attacker does costs it nothing but the broker's time.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import sys
import time

from bench.load import FIRST_OPAQUE, frame, send_fields
from sprocket.protocol.signing import Signer

TOPIC = "BenchInnocent"
EVERY_SECONDS = 0.005
_LENGTH = struct.Struct(">i")


def received(line: socket.socket) -> bytes:
    """One whole reply, without its length."""
    data = b""
    while len(data) < 4 or len(data) < 4 + _LENGTH.unpack_from(data)[0]:
        part = line.recv(1 << 16)
        if not part:
            raise ConnectionResetError("the broker closed the innocent client's connection")
        data += part
    return data[4:]


def main() -> None:
    """Sends until the input ends."""
    fields, body = send_fields(TOPIC, 0), b"x" * 64
    if len(sys.argv) > 3:
        fields = Signer(*sys.argv[2:4]).signed(fields, body)
    head, tail = frame(310, fields, body)
    request = b"%b%d%b" % (head, FIRST_OPAQUE, tail)
    waits: list[float] = []
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        due = time.perf_counter()
        while not select.select([sys.stdin], [], [], max(0.0, due - time.perf_counter()))[0]:
            began = time.perf_counter()
            line.sendall(request)
            received(line)
            waits.append(time.perf_counter() - began)
            due = max(due + EVERY_SECONDS, began)
    sys.stdout.write(json.dumps(waits))


if __name__ == "__main__":
    main()
