"""The frames between a broker and a filter's process, over two pipes. Pure.

    to the process                              back
    memory, CPU time, parent: as arguments      level: `kernel` or `limits`
    load: name, source                          loaded, or a fault
    judge: queue, messages                      a byte for each message judged, and maybe a fault

A frame is its length (4 bytes), a number that the reply repeats (4), a kind (1), and the rest. The
broker accepts frames of bounded size only, and cuts a fault's text. Numbers are big-endian.

It uses the standard library only, since it is also loaded in an isolated interpreter.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

READY, LOAD, JUDGE, VERDICTS = b"R", b"L", b"J", b"V"

#: The longest frame that the broker accepts.
ANSWERED_BYTES_MAX = 64 << 10
FAULT_CHARACTERS_MAX = 1_000

LENGTH = struct.Struct(">I")
_HEAD = struct.Struct(">Ic")
_NAME = struct.Struct(">H")
_QUEUE = struct.Struct(">iH")
_MESSAGE = struct.Struct(">qqqiII")
_FAULT = struct.Struct(">Iii")
HEAD_BYTES = _HEAD.size


class FrameInvalid(ValueError):
    """The bytes are no valid frame."""


class Fault(NamedTuple):
    """An error in a filter's code.

    Attributes:
        line, column: its position in the source, from 1; 0 if unknown.
        text: a description.
    """

    line: int
    column: int
    text: str

    def __str__(self) -> str:
        where = f"line {self.line}" if self.line else ""
        if self.line and self.column:
            where += f", column {self.column}"
        return f"{where}: {self.text}" if where else self.text


class Verdicts(NamedTuple):
    """The results for a batch.

    Attributes:
        wanted: one result for each judged message, from the first on.
        fault: why the process stopped there; None if it judged all.
    """

    wanted: list[bool]
    fault: Fault | None = None


class FilterInput(NamedTuple):
    """The data of one message for a filter."""

    queue_offset: int
    born_ms: int
    stored_ms: int
    flag: int
    properties: bytes
    body: bytes


def frame(number: int, kind: bytes, *rest: bytes) -> bytes:
    """Encodes a frame."""
    body = b"".join((_HEAD.pack(number, kind), *rest))
    return LENGTH.pack(len(body)) + body


def opened(body: bytes) -> tuple[int, bytes, memoryview]:
    """Decodes number, kind and rest of a frame without its length.

    Raises:
        Garbled: it is too short.
    """
    if len(body) < HEAD_BYTES:
        raise FrameInvalid("a frame is too short")
    number, kind = _HEAD.unpack_from(body)
    return number, kind, memoryview(body)[HEAD_BYTES:]


def load(name: str, source: bytes) -> bytes:
    """Encodes the rest of a load frame."""
    raw = name.encode()
    return _NAME.pack(len(raw)) + raw + source


def load_of(rest: memoryview) -> tuple[str, bytes]:
    """Decodes the rest of a load frame: name and source."""
    (size,) = _NAME.unpack_from(rest)
    end = _NAME.size + size
    return str(rest[_NAME.size : end], "utf-8"), bytes(rest[end:])


def batch(topic: str, queue_number: int, parts: Iterable[FilterInput]) -> bytes:
    """Encodes the rest of a judge frame."""
    raw = topic.encode()
    pieces = [_QUEUE.pack(queue_number, len(raw)), raw]
    for offset, born_ms, stored_ms, flag, properties, body in parts:
        pieces.append(_MESSAGE.pack(offset, born_ms, stored_ms, flag, len(properties), len(body)))
        pieces += (properties, body)
    return b"".join(pieces)


def batch_of(rest: memoryview) -> tuple[str, int, Iterator[FilterInput]]:
    """Decodes the rest of a judge frame: topic, queue number and messages."""
    number, size = _QUEUE.unpack_from(rest)
    at = _QUEUE.size + size
    return str(rest[_QUEUE.size : at], "utf-8"), number, _parts(rest, at)


def _parts(rest: memoryview, at: int) -> Iterator[FilterInput]:
    while at < len(rest):
        offset, born_ms, stored_ms, flag, properties, body = _MESSAGE.unpack_from(rest, at)
        at += _MESSAGE.size
        middle, end = at + properties, at + properties + body
        texts = bytes(rest[at:middle]), bytes(rest[middle:end])
        yield FilterInput(offset, born_ms, stored_ms, flag, *texts)
        at = end


def verdicts(wanted: Iterable[bool], fault: Fault | None = None) -> bytes:
    """Encodes the rest of a reply."""
    judged = bytes(wanted)
    if fault is None:
        return _FAULT.pack(len(judged), -1, -1) + judged
    text = fault.text[:FAULT_CHARACTERS_MAX].encode("utf-8", "replace")
    return _FAULT.pack(len(judged), max(fault.line, 0), max(fault.column, 0)) + judged + text


def verdicts_of(rest: memoryview, count: int) -> Verdicts:
    """Decodes the rest of a reply to a batch of `count` messages.

    Raises:
        Garbled: it is no such reply.
    """
    # A filter's code can write any bytes into its pipe. A reply counts only if it is one that an
    # honest process could send: no more results than messages, each 0 or 1, and a fault exactly if
    # messages are left over.
    if len(rest) < _FAULT.size:
        raise FrameInvalid("an answer is too short")
    judged, line, column = _FAULT.unpack_from(rest)
    raw = bytes(rest[_FAULT.size : _FAULT.size + judged])
    text = rest[_FAULT.size + judged :]
    is_whole = judged == count and line == -1 and not text
    if len(raw) != judged or judged > count or raw.strip(b"\0\1"):
        raise FrameInvalid("an answer does not fit its batch")
    wanted = [each == 1 for each in raw]
    if is_whole:
        return Verdicts(wanted)
    if line < 0 or column < 0 or (judged == count and count):
        raise FrameInvalid("an answer does not fit its batch")
    return Verdicts(wanted, Fault(line, column, _shown(text)))


def _shown(text: memoryview) -> str:
    """A text as one printable line."""
    words = str(text[: 4 * FAULT_CHARACTERS_MAX], "utf-8", "replace")
    shown = "".join(each if each.isprintable() else " " for each in words)
    return shown[:FAULT_CHARACTERS_MAX]
