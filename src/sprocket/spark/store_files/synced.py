"""Reads from the file `checkpoint` which records of a store are certainly on the disk.

A crash can tear only later records, so only their bodies are compared with the checksums. With the
fast skip of zeros in `scan`, that makes a row of 100 B cost 0.7 instead of 2.1 µs (three columns).

Source: StoreCheckpoint of RocketMQ 4.9 and 5.x; the file is described in
`sprocket.store.state.checkpoint`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sprocket.store.state.checkpoint import SAFETY_MS, marks_in

_NAME = "checkpoint"
_LOG_MS = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class SyncedLog:
    """The records that are certainly on the disk.

    Attributes:
        before: all records before this log offset are.
        until_ms: all records stored until this time are, ms since 1970.
    """

    before: int = 0
    until_ms: int = 0

    def missing(self, logs: NDArray[Any], stored_ms: NDArray[Any]) -> NDArray[np.intp]:
        """Indices of the records that may have been torn."""
        return np.flatnonzero((logs >= self.before) & (stored_ms > self.until_ms))


NOTHING_SYNCED = SyncedLog()


def synced(store: Path) -> SyncedLog:
    """The last checkpoint of a store's broker; nothing is synced if there is no readable one."""
    try:
        raw = (store / _NAME).read_bytes()
    except OSError:
        return NOTHING_SYNCED
    marks = marks_in(raw)
    if marks is not None:
        return SyncedLog(before=marks.flushed)
    if len(raw) < _LOG_MS.size:
        return NOTHING_SYNCED
    return SyncedLog(until_ms=_LOG_MS.unpack_from(raw)[0] - SAFETY_MS)
