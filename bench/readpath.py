"""How records get from the log's pages into a socket: copied, as slices, or by the kernel alone.

One process answers with records over loopback, another throws them away. No event loop takes part:
all ways would pay for it alike. Counted is the CPU of the answering process, kernel included.
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import socket
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.console import Console

from bench.figures import Figure, Report, Sample, interleave

_CPU = Figure("CPU", "µs/MiB", False)
_RATE = Figure("rate", "MiB/s", True)
_MIB = 1 << 20
_FILE_BYTES = 128 * _MIB
_HEADER = b"h" * 150
#: Name, bytes of a record, how many in an answer, whether they lie side by side in the log.
_CASES = (
    ("32 of 256 B, side by side", 256, 32, True),
    ("32 of 256 B, apart", 256, 32, False),
    ("32 of 1 KiB, side by side", 1024, 32, True),
    ("32 of 1 KiB, apart", 1024, 32, False),
    ("32 of 4 KiB, apart", 4096, 32, False),
    ("32 of 16 KiB, apart", 16384, 32, False),
    ("1 MiB, side by side", _MIB, 1, True),
)

#: Where the records of an answer lie in the file.
Places = list[tuple[int, int]]


def main(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """Prints the table."""
    path = folder / "log"
    path.write_bytes(os.urandom(_MIB) * (_FILE_BYTES // _MIB))
    report = Report("answers of records over loopback", ["copy", "slices", "sendfile"])
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        view = memoryview(mapped)
        ways = {
            "copy": partial(_copy, view),
            "slices": partial(_slices, view),
            "sendfile": partial(_sendfile, file.fileno()),
        }
        for name, size, count, is_dense in _CASES:
            answers = _answers(size, count, is_dense=is_dense, total=_MIB * (32 if quick else 128))
            sides = {way: partial(_measured, send, answers) for way, send in ways.items()}
            report.add(name, interleave(sides, rounds=rounds))
        view.release()
    report.show(console)


def _answers(size: int, count: int, *, is_dense: bool, total: int) -> list[Places]:
    """Records side by side are one part; those of a queue among eight are parts of their own."""
    answers = []
    at = 0
    step = size if is_dense else 8 * size
    for _ in range(total // (size * count)):
        if at + step * count > _FILE_BYTES:
            at = 0
        if is_dense:
            answers.append([(at, size * count)])
        else:
            answers.append([(at + step * number, size) for number in range(count)])
        at += step * count
    return answers


def _copy(view: memoryview, to: socket.socket, places: Places) -> None:
    to.sendall(b"".join([_HEADER, *[view[at : at + size] for at, size in places]]))


def _slices(view: memoryview, to: socket.socket, places: Places) -> None:
    parts = [memoryview(_HEADER), *[view[at : at + size] for at, size in places]]
    sent = to.sendmsg(parts)
    if sent < len(_HEADER) + sum([size for _, size in places]):
        for part in parts:
            if sent < len(part):
                to.sendall(part[sent:])
            sent = max(sent - len(part), 0)


def _sendfile(descriptor: int, to: socket.socket, places: Places) -> None:
    to.sendall(_HEADER, socket.MSG_MORE)
    for at, size in places:
        end = at + size
        while at < end:
            at += os.sendfile(to.fileno(), descriptor, at, end - at)


def _measured(send: Callable[[socket.socket, Places], None], answers: list[Places]) -> Sample:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        reader = multiprocessing.get_context("spawn").Process(target=_discard, args=(port,))
        reader.start()
        to, _ = listening.accept()
    with to:
        to.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        began, cpu_before = time.perf_counter(), time.process_time()
        for places in answers:
            send(to, places)
        cpu = time.process_time() - cpu_before
        to.shutdown(socket.SHUT_WR)
        to.recv(1)
        seconds = time.perf_counter() - began
    reader.join()
    mib = sum(size for places in answers for _, size in places) / _MIB
    return {_CPU: cpu / mib * 1e6, _RATE: mib / seconds}


def _discard(port: int) -> None:
    into = bytearray(_MIB)
    with socket.create_connection(("127.0.0.1", port)) as reader:
        while reader.recv_into(into):
            pass
