"""Brings a broker a filter in Python that it does not have: when a pull hears so, and not before.

So the first member of a group brings it, and one that finds the broker anew after it lost its
store. What is refused is told with the broker's words, line and column.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from sprocket.base.errors import FilterMissing
from sprocket.filter.choice import Filter
from sprocket.filter.python import PythonFilter, Upload
from sprocket.protocol.command import Command
from sprocket.protocol.requests.filter import UploadFilter

#: Asks the broker.
Call = Callable[[UploadFilter, bytes], Awaitable[Command]]


async def upload_filter(
    wanted: Filter, missing: FilterMissing, *, group: str, topic: str, now_ms: int, call: Call
) -> None:
    """Uploads what a subscription chooses by.

    Raises:
        FilterMissing: there is nothing to upload: it is known by its name only.
        SubscriptionInvalid, NoPermission, ReplyError: the broker does not take it.
        TransportError: the broker does not answer.
    """
    if not isinstance(wanted, PythonFilter) or wanted.source is None:
        raise missing
    reply = await call(
        upload_request(wanted, group=group, topic=topic, now_ms=now_ms), wanted.source
    )
    reply.checked()


def upload_request(wanted: PythonFilter, *, group: str, topic: str, now_ms: int) -> UploadFilter:
    """The request that takes a filter to a broker, signed if it has a secret."""
    asked = Upload(group, topic, wanted.name, wanted.version, now_ms)
    is_signed = wanted.secret is not None
    return UploadFilter(
        consumer_group=group,
        topic=topic,
        class_name=wanted.name,
        signed_ms=now_ms if is_signed else None,
        signature=None if wanted.secret is None else asked.signature(wanted.secret),
    )
