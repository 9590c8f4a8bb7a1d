"""Uploads a filter in Python to a broker that has replied to a pull that it does not have it.

So the first member of a group uploads it, and a member whose broker has lost its store does so
again. If the broker refuses, the error has the broker's message with line and column.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from sprocket.base.errors import FilterMissing
from sprocket.filter.choice import Filter
from sprocket.filter.python import PythonFilter, Upload
from sprocket.protocol.command import Command
from sprocket.protocol.requests.filter import UploadFilter

#: Sends a request with a body to the broker, and returns the reply.
Call = Callable[[UploadFilter, bytes], Awaitable[Command]]


async def upload_filter(
    wanted: Filter, missing: FilterMissing, *, group: str, topic: str, now_ms: int, call: Call
) -> None:
    """Uploads the filter of a subscription.

    Args:
        wanted: the subscription's filter.
        missing: the error of the pull; it is raised if there is nothing to upload.
        group, topic: those of the subscription.
        now_ms: the time for the signature, in ms since 1970 UTC.
        call: sends the request.

    Raises:
        FilterMissing: the client has no source of the filter, only its name.
        SubscriptionInvalid, NoPermission, ReplyError: the broker refuses the filter.
        TransportError: the broker does not reply.
    """
    if not isinstance(wanted, PythonFilter) or wanted.source is None:
        raise missing
    reply = await call(
        upload_request(wanted, group=group, topic=topic, now_ms=now_ms), wanted.source
    )
    reply.checked()


def upload_request(wanted: PythonFilter, *, group: str, topic: str, now_ms: int) -> UploadFilter:
    """Returns the request that uploads a filter, signed if the filter has a secret."""
    upload = Upload(group, topic, wanted.name, wanted.version, now_ms)
    is_signed = wanted.secret is not None
    return UploadFilter(
        consumer_group=group,
        topic=topic,
        class_name=wanted.name,
        signed_ms=now_ms if is_signed else None,
        signature=None if wanted.secret is None else upload.signature(wanted.secret),
    )
