"""The process that runs one filter. It is started as `python -I -S -B -c …`, see `process`.

It loads the modules that a filter may use, then it is confined, and only then it reads a byte from
outside. An error in the code is reported with its line; damage to the process ends the process. The
restriction of names only gives clear errors: the protection is `confine`.

It uses the standard library only.
"""

from __future__ import annotations
import __future__

import builtins
import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from types import TracebackType
from typing import Any

from sprocket.filterserver import confine, exchange
from sprocket.filterserver.exchange import Fault, FilterInput

#: The modules that a filter may import.
MODULES = (
    "base64", "binascii", "bisect", "calendar", "collections", "dataclasses", "datetime", "decimal",
    "enum", "fnmatch", "fractions", "functools", "hashlib", "heapq", "hmac", "ipaddress",
    "itertools", "json", "math", "operator", "random", "re", "statistics", "string", "struct",
    "textwrap", "time", "typing", "unicodedata", "zlib",
)  # fmt: skip
#: Modules that those would load later, when the process can no longer open files.
_HIDDEN = (
    "_strptime", "collections.abc", "encodings.ascii", "encodings.cp1252", "encodings.idna",
    "encodings.latin_1", "encodings.utf_16", "encodings.utf_32",
)  # fmt: skip
_TAKEN_AWAY = (
    "breakpoint", "compile", "copyright", "credits", "eval", "exec", "exit", "help", "input",
    "license", "open", "quit",
)  # fmt: skip
#: The name of the source in a traceback.
FILE = "<filter>"

#: Annotations are not evaluated: a function is uploaded without the names around it.
_ANNOTATIONS = __future__.annotations.compiler_flag

_PROPERTY_END, _NAME_END = "\x02", "\x01"


class FilterMessage:
    """The argument of a filter.

    Attributes:
        topic, queue_number, queue_offset: where it is stored.
        properties: all of them, the sender's and RocketMQ's own.
        body: bytes, opened if it was compressed.
        flag: the sender's number.
        born_ms, stored_ms: when it was sent and stored, ms since 1970 UTC.
    """

    __slots__ = (
        "_properties", "_raw", "body", "born_ms", "flag", "queue_number", "queue_offset",
        "stored_ms", "topic",
    )  # fmt: skip

    def __init__(self, topic: str, queue_number: int, part: FilterInput) -> None:
        self.topic = topic
        self.queue_number = queue_number
        self.queue_offset = part.queue_offset
        self.born_ms = part.born_ms
        self.stored_ms = part.stored_ms
        self.flag = part.flag
        self.body = part.body
        self._raw = part.properties
        self._properties: dict[str, str] | None = None

    @property
    def properties(self) -> dict[str, str]:
        """All properties."""
        if self._properties is None:
            self._properties = dict(_pairs(self._raw.decode("utf-8", "replace")))
        return self._properties

    @property
    def tag(self) -> str | None:
        """The sender's tag."""
        return self.properties.get("TAGS")

    @property
    def keys(self) -> list[str]:
        """The sender's keys."""
        return self.properties.get("KEYS", "").split()


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for pair in text.split(_PROPERTY_END):
        name, _, value = pair.partition(_NAME_END)
        if name and value:
            yield name, value


class _Silence:
    """A text stream that drops what a filter prints."""

    def write(self, text: str) -> int:
        """Drops the text."""
        return len(text)

    def flush(self) -> None:
        """Does nothing."""


def main(memory_bytes: int, cpu_seconds: int, parent: int) -> None:
    """Runs until the broker closes its pipe."""
    # Importing comes first, since the confined process cannot open files. The first frame reports
    # the level, so the broker can refuse a process that is not confined before it sends a source.
    for name in (*MODULES, *_HIDDEN):
        import_module(name)
    sys.stdout = sys.stderr = _Silence()
    level = confine.shut(memory_bytes=memory_bytes, cpu_seconds=cpu_seconds, parent=parent)
    _write(exchange.frame(0, exchange.READY, level.encode()))
    wants: Callable[[FilterMessage], object] | None = None
    while (body := _read_frame()) is not None:
        number, kind, rest = exchange.opened(body)
        if kind == exchange.LOAD:
            wants, fault = _loaded(*exchange.load_of(rest))
            answer = exchange.verdicts((), fault) if fault else b""
            _write(exchange.frame(number, exchange.LOAD, answer))
        elif wants is not None:
            _write(exchange.frame(number, exchange.VERDICTS, _judged(wants, rest)))


def _read_frame() -> bytes | None:
    size = _read_exactly(exchange.LENGTH.size)
    return None if size is None else _read_exactly(exchange.LENGTH.unpack(size)[0])


def _read_exactly(size: int) -> bytes | None:
    pieces: list[bytes] = []
    while size:
        piece = os.read(0, min(size, 1 << 20))
        if not piece:
            return None
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _write(frame: bytes) -> None:
    while frame:
        frame = frame[os.write(1, frame) :]


def _loaded(
    name: str, source: bytes
) -> tuple[Callable[[FilterMessage], object] | None, Fault | None]:
    """The function that a source defines, or the source's fault."""
    namespace: dict[str, Any] = {"__builtins__": _names(), "__name__": "filter"}
    try:
        exec(compile(source, FILE, "exec", _ANNOTATIONS, dont_inherit=True), namespace)
    except SyntaxError as error:
        return None, Fault(error.lineno or 0, error.offset or 0, str(error.msg))
    except BaseException as error:  # a user's code: all that it raises is reported
        return None, _fault(error)
    function = namespace.get(name)
    if not callable(function):
        return None, Fault(0, 0, f"the source defines no function {name!r}")
    return function, None


def _names() -> dict[str, Any]:
    """The built-in names of a filter's code."""
    names = {name: value for name, value in vars(builtins).items() if name not in _TAKEN_AWAY}
    load = builtins.__import__

    def only(
        name: str, within: Any = None, local: Any = None, wanted: Any = (), level: int = 0
    ) -> Any:
        if level or name.partition(".")[0] not in (*MODULES, *_HIDDEN):
            raise ImportError(f"a filter may not import {name}; it may: {', '.join(MODULES)}")
        return load(name, within, local, wanted, level)

    names["__import__"] = only
    return names


def _judged(wants: Callable[[FilterMessage], object], rest: memoryview) -> bytes:
    """The reply to a batch."""
    topic, queue_number, parts = exchange.batch_of(rest)
    wanted: list[bool] = []
    try:
        for part in parts:
            verdict = wants(FilterMessage(topic, queue_number, part))
            if verdict is not True and verdict is not False:
                kind = type(verdict).__name__
                return exchange.verdicts(wanted, Fault(0, 0, f"said {kind}, not True or False"))
            wanted.append(verdict)
    except BaseException as error:  # a user's code, as above
        return exchange.verdicts(wanted, _fault(error))
    return exchange.verdicts(wanted)


def _fault(error: BaseException) -> Fault:
    try:
        text = str(error)[: exchange.FAULT_CHARACTERS_MAX]
    except BaseException:  # a user's error may fail to describe itself
        text = ""
    kind = type(error).__name__
    return Fault(*_place(error.__traceback__), f"{kind}: {text}" if text else kind)


def _place(trace: TracebackType | None) -> tuple[int, int]:
    """Line and column of the last executed place in the source, from 1."""
    # The innermost frame may be in a library that the filter called; the author needs the place in
    # the filter, so the last frame of its own source counts.
    found = (0, 0)
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == FILE:
            found = trace.tb_lineno or 0, 0
            places = list(code.co_positions())[trace.tb_lasti // 2 : trace.tb_lasti // 2 + 1]
            for line, _, column, _ in places:
                if line == found[0] and column is not None:
                    found = found[0], column + 1
        trace = trace.tb_next
    return found
