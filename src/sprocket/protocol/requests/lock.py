"""Leases on queues, for ordered consumption. Everything is in the bodies.

Source: LockBatchRequestBody, UnlockBatchRequestBody of RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

from typing import ClassVar

from sprocket.protocol.command import Header


class LockQueues(Header, kw_only=True):
    """Takes or renews; body `LockBody`, of the answer `LockedBody`."""

    code: ClassVar[int] = 41


class UnlockQueues(Header, kw_only=True):
    """Gives back; body `LockBody`."""

    code: ClassVar[int] = 42
