"""Two kinds of position that must never mix."""

from __future__ import annotations

from typing import NewType

#: Bytes from the beginning of the whole log, counted through all its files.
LogOffset = NewType("LogOffset", int)

#: Index of a message in its queue, from 0.
QueueOffset = NewType("QueueOffset", int)
