"""The process that runs one filter. Started as `python -I -S -B -c …`, see `process`.

Modules that a filter may use are loaded, then the process is shut in, and only then a byte from
outside is read. What the code does wrong is told with its line; what it does to this process ends
this process. Which names it may use is a matter of clear errors: what holds is `confine`.

The standard library only.
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
from sprocket.filterserver.exchange import Fault, Part

#: What a filter may import.
MODULES = (
    "base64", "binascii", "bisect", "calendar", "collections", "dataclasses", "datetime", "decimal",
    "enum", "fnmatch", "fractions", "functools", "hashlib", "heapq", "hmac", "ipaddress",
    "itertools", "json", "math", "operator", "random", "re", "statistics", "string", "struct",
    "textwrap", "time", "typing", "unicodedata", "zlib",
)  # fmt: skip
#: Loaded later by those themselves, when it is too late.
_HIDDEN = (
    "_strptime", "collections.abc", "encodings.ascii", "encodings.cp1252", "encodings.idna",
    "encodings.latin_1", "encodings.utf_16", "encodings.utf_32",
)  # fmt: skip
_TAKEN_AWAY = (
    "breakpoint", "compile", "copyright", "credits", "eval", "exec", "exit", "help", "input",
    "license", "open", "quit",
)  # fmt: skip
#: The name of its source in a traceback.
FILE = "<filter>"

#: What stands in annotations is not looked up: a function comes without the names around it.
_ANNOTATIONS = __future__.annotations.compiler_flag

_PROPERTY_END, _NAME_END = "\x02", "\x01"


class Message:
    """What a filter is given.

    Attributes:
        topic, queue_number, queue_offset: where it lies.
        properties: all of them, the sender's and RocketMQ's own.
        body: bytes, opened if it was compressed.
        flag: the sender's number.
        born_ms, stored_ms: when it was sent and stored, ms since 1970 UTC.
    """

    __slots__ = (
        "_properties", "_raw", "body", "born_ms", "flag", "queue_number", "queue_offset",
        "stored_ms", "topic",
    )  # fmt: skip

    def __init__(self, topic: str, queue_number: int, part: Part) -> None:
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
    """Where what a filter prints goes."""

    def write(self, text: str) -> int:
        """Takes it."""
        return len(text)

    def flush(self) -> None:
        """Nothing to do."""


def main(memory_bytes: int, cpu_seconds: int, parent: int) -> None:
    """Runs until the broker closes its pipe."""
    for name in (*MODULES, *_HIDDEN):
        import_module(name)
    sys.stdout = sys.stderr = _Silence()
    level = confine.shut(memory_bytes=memory_bytes, cpu_seconds=cpu_seconds, parent=parent)
    _say(exchange.frame(0, exchange.READY, level.encode()))
    wants: Callable[[Message], object] | None = None
    while (body := _hear()) is not None:
        number, kind, rest = exchange.opened(body)
        if kind == exchange.LOAD:
            wants, fault = _loaded(*exchange.load_of(rest))
            answer = exchange.verdicts((), fault) if fault else b""
            _say(exchange.frame(number, exchange.LOAD, answer))
        elif wants is not None:
            _say(exchange.frame(number, exchange.VERDICTS, _judged(wants, rest)))


def _hear() -> bytes | None:
    size = _exactly(exchange.LENGTH.size)
    return None if size is None else _exactly(exchange.LENGTH.unpack(size)[0])


def _exactly(size: int) -> bytes | None:
    pieces: list[bytes] = []
    while size:
        piece = os.read(0, min(size, 1 << 20))
        if not piece:
            return None
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _say(frame: bytes) -> None:
    while frame:
        frame = frame[os.write(1, frame) :]


def _loaded(name: str, source: bytes) -> tuple[Callable[[Message], object] | None, Fault | None]:
    """The function that a source defines, or what is wrong with it."""
    namespace: dict[str, Any] = {"__builtins__": _names(), "__name__": "filter"}
    try:
        exec(compile(source, FILE, "exec", _ANNOTATIONS, dont_inherit=True), namespace)
    except SyntaxError as error:
        return None, Fault(error.lineno or 0, error.offset or 0, str(error.msg))
    except BaseException as error:  # code of users: whatever it raises is told
        return None, _fault(error)
    function = namespace.get(name)
    if not callable(function):
        return None, Fault(0, 0, f"the source defines no function {name!r}")
    return function, None


def _names() -> dict[str, Any]:
    """The names that code has from the start."""
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


def _judged(wants: Callable[[Message], object], rest: memoryview) -> bytes:
    """The answer to a batch."""
    topic, queue_number, parts = exchange.batch_of(rest)
    wanted: list[bool] = []
    try:
        for part in parts:
            verdict = wants(Message(topic, queue_number, part))
            if verdict is not True and verdict is not False:
                said = type(verdict).__name__
                return exchange.verdicts(wanted, Fault(0, 0, f"said {said}, not True or False"))
            wanted.append(verdict)
    except BaseException as error:  # as above
        return exchange.verdicts(wanted, _fault(error))
    return exchange.verdicts(wanted)


def _fault(error: BaseException) -> Fault:
    try:
        text = str(error)[: exchange.FAULT_CHARACTERS_MAX]
    except BaseException:  # an error of users says nothing of itself
        text = ""
    kind = type(error).__name__
    return Fault(*_place(error.__traceback__), f"{kind}: {text}" if text else kind)


def _place(trace: TracebackType | None) -> tuple[int, int]:
    """Line and column of what ran last in the source, from 1."""
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
