"""The two ids of a message: its sender makes the unique id, its broker the offset id.

    unique id   address 4 or 16, process 2, token 4, ms since the month began 4, counter 2
    offset id   address 4 or 16, port 4, log offset 8

Both are written as upper-case hex. Pure. Source: MessageClientIDSetter and
MessageDecoder.createMessageId / decodeMessageId of RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

from typing import NamedTuple

from sprocket.base.errors import UsageError
from sprocket.message.hosts import V4_BYTES, V6_BYTES, unpack
from sprocket.message.offsets import LogOffset

_DAY_MS = 86_400_000
#: If the clock goes back by less than this, ids count as made when the month began.
_BACK_MS = 1_000_000


class UniqueIds:
    """Makes ids that no process with another address, process number or token makes."""

    __slots__ = ("_counter", "_month_end_ms", "_month_start_ms", "_now_ms", "_prefix", "_stem")

    def __init__(self, *, address: bytes, process: int, token: bytes) -> None:
        """
        Args:
            address: 4 or 16 bytes of this machine's IP address.
            process: this process's number; its low 16 bits are used.
            token: 4 bytes that distinguish two processes with the same number and address.
        """
        if len(address) not in (4, 16) or len(token) != 4:
            raise UsageError("an id needs an address of 4 or 16 bytes and a token of 4")
        process_bytes = (process & 0xFFFF).to_bytes(2, "big")
        self._prefix = (address + process_bytes + token).hex().upper()
        self._counter = -1
        self._month_start_ms = 0
        self._month_end_ms = 0
        self._now_ms = -1
        self._stem = ""

    def make(self, now_ms: int) -> str:
        """The next id: 32 characters with an IPv4 address, 56 with IPv6."""
        if now_ms != self._now_ms:
            self._now_ms, self._stem = now_ms, self._stem_at(now_ms)
        self._counter = counter = (self._counter + 1) & 0xFFFF
        return f"{self._stem}{counter:04X}"

    def make_many(self, count: int, now_ms: int) -> tuple[str, int]:
        """The next ids: what all of them begin with, and the number in the last four hex digits of
        the first. The digits of each further one are higher by 1, and 0000 after FFFF.
        """
        first = int(self.make(now_ms)[-4:], 16)
        self._counter = (first + count - 1) & 0xFFFF
        return self._stem, first

    def _stem_at(self, now_ms: int) -> str:
        """The common beginning of all ids of one millisecond."""
        if now_ms >= self._month_end_ms:
            self._month_start_ms, self._month_end_ms = month_of(now_ms)
        age_ms = now_ms - self._month_start_ms
        if -_BACK_MS < age_ms < 0:
            age_ms = 0
        return f"{self._prefix}{age_ms & 0xFFFFFFFF:08X}"


class UniqueId(NamedTuple):
    """The parts of a unique id."""

    address: bytes
    process: int
    age_ms: int
    counter: int

    def born_ms(self, now_ms: int) -> int:
        """About when it was made, ms since 1970: in the month of `now_ms` or, if that would be
        later than `now_ms`, in the month before.
        """
        start_ms, _ = month_of(now_ms)
        if start_ms + self.age_ms >= now_ms:
            start_ms, _ = month_of(start_ms - 1)
        return start_ms + self.age_ms


def parse_unique_id(text: str) -> UniqueId:
    """Parses a unique id.

    Raises:
        UsageError: it is not 32 or 56 hex characters.
    """
    raw = _from_hex(text, (32, 56), "unique id")
    head = len(raw) - 12
    return UniqueId(
        address=raw[:head],
        process=int.from_bytes(raw[head : head + 2], "big"),
        age_ms=int.from_bytes(raw[head + 6 : head + 10], "big"),
        counter=int.from_bytes(raw[head + 10 :], "big"),
    )


def offset_id(store_host: bytes, log_offset: int) -> str:
    """The id of the record at a log offset of the broker with a packed address."""
    return (store_host + log_offset.to_bytes(8, "big")).hex().upper()


def parse_offset_id(text: str) -> tuple[str, LogOffset]:
    """The broker address (`ip:port`) and the log offset in an offset id.

    Raises:
        UsageError: it is not 32 or 56 hex characters.
    """
    raw = _from_hex(text, (2 * (V4_BYTES + 8), 2 * (V6_BYTES + 8)), "offset id")
    return unpack(raw[:-8]), LogOffset(int.from_bytes(raw[-8:], "big", signed=True))


def _from_hex(text: str, lengths: tuple[int, int], kind: str) -> bytes:
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        raw = b""
    if len(text) not in lengths or 2 * len(raw) != len(text):
        raise UsageError(f"not an {kind}: {text[:80]!r}")
    return raw


def month_of(now_ms: int) -> tuple[int, int]:
    """Start and end of the UTC month that contains a moment, ms since 1970."""
    year, month = _civil_month(now_ms // _DAY_MS)
    start = _days_before(year, month)
    end = _days_before(year + month // 12, month % 12 + 1)
    return start * _DAY_MS, end * _DAY_MS


def _civil_month(day: int) -> tuple[int, int]:
    """Year and month of a day counted from 1970-01-01: an estimate, then corrected."""
    year = 1970 + day // 366
    while _days_before(year + 1, 1) <= day:
        year += 1
    month = 1
    while month < 12 and _days_before(year, month + 1) <= day:
        month += 1
    return year, month


def _days_before(year: int, month: int) -> int:
    """Days from 1970-01-01 to the first of a month, in the Gregorian calendar."""
    past = year - 1
    days = past * 365 + past // 4 - past // 100 + past // 400 - 719162
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    lengths = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return days + sum(lengths[: month - 1])
