"""Reads the audit topics of brokers: who changed what."""

from __future__ import annotations

from sprocket.admin import reading
from sprocket.admin.caller import Caller
from sprocket.audit.entries import AuditEntry
from sprocket.audit.reading import entry_in
from sprocket.message.offsets import LONG_MAX


async def entries(
    caller: Caller, topic: str, *, begin_ms: int = 0, end_ms: int = LONG_MAX
) -> list[AuditEntry]:
    """The entries in the audit topic of all brokers that have it, the oldest first.

    Messages that are none are left out.

    Args:
        begin_ms, end_ms: when they were stored, ms since 1970 UTC, without the end.

    Raises:
        TopicNotFound: no broker has the topic.
        TransportError, ReplyError: a broker did not answer, or refused.
    """
    found = [
        entry
        async for message in reading.messages(caller, topic, begin_ms=begin_ms, end_ms=end_ms)
        if (entry := entry_in(message.body)) is not None
    ]
    return sorted(found, key=lambda entry: entry.time)
