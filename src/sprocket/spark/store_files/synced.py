"""Which records of a store its broker knew to be on the disk: the file `checkpoint`, read only.

A crash can tear only what comes later, so only there bodies have to be compared with their
checksums.

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
class Synced:
    """What is on the disk for sure.

    Attributes:
        before: records before this log offset are.
        until_ms: records stored until then are.
    """

    before: int = 0
    until_ms: int = 0

    def missing(self, logs: NDArray[Any], stored_ms: NDArray[Any]) -> NDArray[np.intp]:
        """Indices of the records that may have been torn."""
        return np.flatnonzero((logs >= self.before) & (stored_ms > self.until_ms))


NOTHING_SYNCED = Synced()


def synced(store: Path) -> Synced:
    """What the broker of a store noted last; nothing if it noted nothing that can be read."""
    try:
        raw = (store / _NAME).read_bytes()
    except OSError:
        return NOTHING_SYNCED
    marks = marks_in(raw)
    if marks is not None:
        return Synced(before=marks.flushed)
    if len(raw) < _LOG_MS.size:
        return NOTHING_SYNCED
    return Synced(until_ms=_LOG_MS.unpack_from(raw)[0] - SAFETY_MS)
