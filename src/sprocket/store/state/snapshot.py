"""State files: small tables as JSON text, replaced whole, with the previous version as backup.

The text has the form that RocketMQ's JSON library writes: indented by tabs, and number keys
without quotes.

    {
        "offsetTable":{
            "T@G":{0:17,1:20
            }
        }
    }

Keys that are whole numbers are `int` here, so a table reads back as it was saved.

A broker may have 100,000 topics. So a state is encoded in steps of a bounded size, between which
the event loop runs: its rows must not change meanwhile, or be copies.

Source: ConfigManager, and files written by RocketMQ 5.3.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec

from sprocket.base.errors import StoreError, UsageError
from sprocket.base.ports import Disk

logger = logging.getLogger(__name__)

State = Mapping[str, Any]

#: A text, which is skipped; or a number key, which gets quotes and a mark.
_NUMBER_KEY = re.compile(r'"(?:[^"\\]|\\.)*"|(?<=[{,])(\s*)(-?\d+)(\s*:)')
_MARK = "\ue000"
#: Line breaks with the indentation of a table and of its rows.
_INNER, _ROW = "\n\t", "\n\t\t"

#: Made once, because `json.dumps` makes an encoder for each call with options of its own.
_scalar = json.JSONEncoder(ensure_ascii=False).encode
_quoted = json.encoder.encode_basestring
#: The types of most values have a short way, because a broker may have 100,000 topics.
_PLAIN: dict[type, Callable[[Any], str]] = {
    str: _quoted,
    int: repr,
    bool: {True: "true", False: "false"}.__getitem__,
}


#: Entries of a row that are encoded together.
_ROW_LENGTH_MAX = 1024
#: The characters that one step encodes, a millisecond or two, or more by one piece.
STEP_LENGTH = 32 << 10


class ConvertedRows(Mapping[str, Any]):
    """The rows of a table, each converted when it is read: so taking a picture costs little."""

    __slots__ = ("_convert", "_rows")

    def __init__(self, rows: Mapping[str, Any], convert: Callable[[Any], Any]) -> None:
        self._rows = rows
        self._convert = convert

    def __getitem__(self, key: str) -> Any:
        return self._convert(self._rows[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class StateDraft:
    """A state that is being encoded.

    Attributes:
        raw: the text, once it is complete.
    """

    __slots__ = ("_parts", "_pieces", "raw")

    def __init__(self, state: State) -> None:
        self._pieces = _pieces(state)
        self._parts: list[bytes] = []
        self.raw = b""

    def step(self) -> bool:
        """Encodes a bounded part; returns whether the text is complete."""
        part: list[str] = []
        length = 0
        for piece in self._pieces:
            part.append(piece)
            length += len(piece)
            if length >= STEP_LENGTH:
                self._parts.append("".join(part).encode())
                return False
        self._parts.append("".join(part).encode())
        self.raw = b"".join(self._parts)
        return True


class Snapshot:
    """One state file. It can be saved only after it has been loaded.

    A save before the load has finished would replace the state by an empty one.
    """

    __slots__ = ("_disk", "_is_loaded", "_is_secret", "_keeps_backup", "_saved", "path")

    def __init__(
        self, disk: Disk, path: str, *, begins_anew: bool = False, is_secret: bool = False
    ) -> None:
        """
        Args:
            begins_anew: the saved state is of no use, and need not be loaded.
            is_secret: only the owner of the process may read the file, and there is no backup,
                which would hold what was taken away.
        """
        self._disk = disk
        self.path = path
        self._is_loaded = begins_anew
        #: Whether the next save keeps the present file as its backup.
        self._keeps_backup = not begins_anew
        self._is_secret = is_secret
        self._saved = b""

    def load(self) -> dict[str, Any]:
        """The saved state; empty if nothing was ever saved.

        If the file is missing, empty or broken, its backup is used.

        Raises:
            StoreError: the file cannot be used, and its backup cannot either.
        """
        raw = self._disk.read(self.path)
        backup = None if self._is_secret else self._disk.read(f"{self.path}.bak")
        state = self._parsed(raw)
        if self._is_secret and state is None and raw is not None:
            raise StoreError(f"{self.path} is broken: repair it, or remove it to begin without it")
        if state is None and (raw or backup):
            logger.error("%s is broken, its backup is used", self.path)
            state = self._parsed(backup)
            self._keeps_backup = False
            if state is None:
                raise StoreError(
                    f"{self.path} is broken and so is {self.path}.bak: repair one of them, "
                    "or remove both to begin without that state"
                )
        elif state is not None and raw is not None:
            self._saved = raw
        self._is_loaded = True
        return state or {}

    def save(self, state: State) -> None:
        """Replaces the file, unless the state is equal to the last one saved or loaded.

        Raises:
            UsageError: it has not been loaded.
            OSError: the disk refuses it; the old file is still there.
        """
        draft = self.draft(state)
        while not draft.step():
            pass
        self.write(draft.raw)

    def draft(self, state: State) -> StateDraft:
        """A state that the caller encodes step by step, and then writes.

        Raises:
            UsageError: it has not been loaded.
        """
        if not self._is_loaded:
            raise UsageError(f"{self.path} must be loaded before it is saved")
        return StateDraft(state)

    def write(self, raw: bytes) -> None:
        """Replaces the file by an encoded state.

        Raises:
            OSError: the disk refuses it; the old file is still there.
        """
        if self._is_new(raw):
            if self._is_secret:
                self._disk.replace_secret(self.path, raw)
            else:
                self._disk.replace(self.path, raw, backup=self._keeps_backup)
            self._written(raw)

    async def write_in_background(self, raw: bytes) -> None:
        """As `write`, while the event loop runs. Nothing else may write the file meanwhile."""
        if self._is_secret:
            self.write(raw)
        elif self._is_new(raw):
            await self._disk.replace_in_background(self.path, raw, backup=self._keeps_backup)
            self._written(raw)

    def _is_new(self, raw: bytes) -> bool:
        if raw == self._saved:
            return False
        directory = self.path.rpartition("/")[0]
        if directory:
            self._disk.make_directory(directory)
        return True

    def _written(self, raw: bytes) -> None:
        self._keeps_backup = True
        self._saved = raw

    @staticmethod
    def _parsed(raw: bytes | None) -> dict[str, Any] | None:
        if not raw:
            return None
        try:
            return decode_state(raw.decode())
        except ValueError:
            return None


def encode_state(state: State) -> str:
    """A state as text."""
    return "".join(_pieces(state))


def _pieces(state: State) -> Iterator[str]:
    """The text in pieces: one for each row of the tables in the state."""
    opening = "{"
    for key, table in state.items():
        yield f"{opening}{_key(key, _INNER)}:"
        opening = ","
        if isinstance(table, Mapping) and table:
            before = "{"
            for name, row in table.items():
                yield f"{before}{_key(name, _ROW)}:"
                yield from _row_pieces(row)
                before = ","
            yield f"{_INNER}}}"
        else:
            yield _encode(table, _INNER)
    yield "{}" if opening == "{" else "\n}"


def _row_pieces(row: Any) -> Iterator[str]:
    """The text of a row: in several pieces if it is long, as a group's offsets in 16,384 queues."""
    if not isinstance(row, Mapping) or len(row) <= _ROW_LENGTH_MAX:
        yield _encode(row, _ROW)
        return
    items, inner, opening = iter(row.items()), _ROW + "\t", "{"
    while some := list(islice(items, _ROW_LENGTH_MAX)):
        text = ",".join(f"{_key(key, inner)}:{_encode(item, inner)}" for key, item in some)
        yield opening + text
        opening = ","
    yield f"{_ROW}}}"


def _key(key: Any, line: str) -> str:
    return f"{key}" if isinstance(key, int) else f"{line}{_quoted(key)}"


def _encode(value: Any, line: str) -> str:
    """A value as text; `line` is a line break with the indentation of the value's line."""
    write = _PLAIN.get(type(value))
    if write is not None:
        return write(value)
    if isinstance(value, Mapping):
        return _encode_mapping(value, line)
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return "[" + ",".join(_encode(item, line) for item in value) + "]"
    if isinstance(value, msgspec.Struct):
        return _encode(msgspec.to_builtins(value), line)
    return _scalar(value)


def _encode_mapping(value: Mapping[Any, Any], line: str) -> str:
    if not value:
        return "{}"
    inner = line + "\t"
    pieces = [f"{_key(key, inner)}:{_encode(item, inner)}" for key, item in value.items()]
    return "{" + ",".join(pieces) + line + "}"


def decode_state(text: str) -> dict[str, Any]:
    """The state in a text, with number keys quoted or not.

    Raises:
        ValueError: it is no JSON object.
    """
    quoted = _NUMBER_KEY.sub(_quote_key, text)
    state = json.loads(quoted, object_pairs_hook=_with_number_keys, strict=False)
    if not isinstance(state, dict):
        raise ValueError("no JSON object")
    return state


def _quote_key(found: re.Match[str]) -> str:
    before, number, after = found.groups()
    return found.group() if number is None else f'{before}"{_MARK}{number}"{after}'


def _with_number_keys(pairs: list[tuple[str, Any]]) -> dict[Any, Any]:
    return {int(key[1:]) if key.startswith(_MARK) else key: value for key, value in pairs}
