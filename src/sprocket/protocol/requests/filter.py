"""Requests about filters in Python at a broker.

`UploadFilter` is RocketMQ's own request for filter classes, with additional optional fields; Java's
clients of 4.x send it without them. RocketMQ has nothing like the other requests.

Source: RegisterMessageFilterClassRequestHeader of RocketMQ 4.9.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from sprocket.protocol.codes import OwnRequestCode
from sprocket.protocol.command import Header, Int, Long


class UploadFilter(Header, kw_only=True):
    """Uploads a group's filter for a topic; request body: the source.

    `class_name`: the filter's name; `class_crc`: CRC-32 of the source, 0 if unknown;
    `signature`: see `sprocket.filter.python.Upload`, with `signed_ms`, ms since 1970 UTC;
    `is_again`: switches the filter on again.
    """

    code: ClassVar[int] = 302

    consumer_group: str
    topic: str
    class_name: str
    class_crc: Int = msgspec.field(default=0, name="classCRC")
    signed_ms: Long | None = None
    signature: str | None = None
    is_again: bool = False


class FiltersOf(Header, kw_only=True):
    """Asks for the filters at a broker, of one group or of all; reply body: `FilterList`."""

    code: ClassVar[int] = OwnRequestCode.FILTERS

    consumer_group: str | None = None


class RemoveFilter(Header, kw_only=True):
    """Removes one or all versions of a filter. Signed like an upload of the version `-`."""

    code: ClassVar[int] = OwnRequestCode.REMOVE_FILTER

    consumer_group: str
    topic: str
    class_name: str
    version: str | None = None
    signed_ms: Long | None = None
    signature: str | None = None
