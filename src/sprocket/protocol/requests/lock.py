"""Requests for queue locks, for ordered consumption. Their headers are empty.

Source: LockBatchRequestBody, UnlockBatchRequestBody of RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

from typing import ClassVar

from sprocket.protocol.command import Header


class LockQueues(Header, kw_only=True):
    """Takes or renews locks; request body: `LockBody`, reply body: `LockedBody`."""

    code: ClassVar[int] = 41


class UnlockQueues(Header, kw_only=True):
    """Releases locks; request body: `LockBody`."""

    code: ClassVar[int] = 42
