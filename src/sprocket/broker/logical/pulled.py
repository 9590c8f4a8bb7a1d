"""Replies to pulls from a part of a logical queue, with logical offsets. Pure.

At the end of a part that is not the last one, the reader goes on with the next part. A consumer's
position is moved only at the two ends of the logical queue: an older part that is truncated, or a
slave that lacks messages, does not move it.

Source: PullMessageProcessor.rewriteResponseForStaticTopic of RocketMQ 5.3.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from sprocket.clientcore.logical_queues import decided, ends, logical, part_after
from sprocket.protocol.bodies import MappingItem
from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.requests.pull import PullReply

#: Codes of replies that say where to continue.
READ = (
    ResponseCode.SUCCESS,
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
)


class PartRead(NamedTuple):
    """A read in one part of a logical queue.

    Attributes:
        parts: all parts of the logical queue, oldest first.
        item: the part that was read.
        offset: the offset in its queue that was asked for.
    """

    parts: list[MappingItem]
    item: MappingItem
    offset: int

    @property
    def is_last(self) -> bool:
        """Whether messages are still added to the part."""
        return self.item.gen == self.parts[-1].gen

    def is_over(self, header: PullReply, code: int) -> bool:
        """Whether the part has no message at the offset and will have none."""
        return (
            not self.is_last
            and code != ResponseCode.SUCCESS
            and self.offset >= header.max_offset
            and self.offset >= header.min_offset
        )


def shown(read: PartRead, header: PullReply, code: int) -> tuple[PullReply, int]:
    """The header and the code of the reply for the logical queue."""
    item, low, high = read.item, header.min_offset, header.max_offset
    following = header.next_begin_offset
    if read.is_over(header, code):
        after = part_after(read.parts, item)
        if after is None:
            return _in_logical(read, header, following=read.offset), (ResponseCode.PULL_NOT_FOUND)
        begin = after.logic_offset
        moved = replace(
            header, next_begin_offset=begin, min_offset=begin, max_offset=begin, offset_delta=None
        )
        return moved, ResponseCode.PULL_RETRY_IMMEDIATELY
    if code != ResponseCode.SUCCESS and read.offset < low:
        is_first = item.gen == decided(read.parts)[0].gen
        code = ResponseCode.PULL_OFFSET_MOVED if is_first else ResponseCode.PULL_RETRY_IMMEDIATELY
        following = low
    elif code == ResponseCode.PULL_OFFSET_MOVED and read.is_last and read.offset > high:
        following = high
    elif code == ResponseCode.PULL_OFFSET_MOVED and not read.is_last:
        code = ResponseCode.PULL_RETRY_IMMEDIATELY
    return _in_logical(read, header, following=following), code


def _in_logical(read: PartRead, header: PullReply, *, following: int) -> PullReply:
    item = read.item
    if ends(item):
        following = min(following, item.end_offset)
    end = max(logical(item, header.max_offset), read.parts[-1].logic_offset)
    return replace(
        header,
        next_begin_offset=logical(item, following),
        min_offset=logical(item, header.min_offset),
        max_offset=end,
        offset_delta=item.logic_offset - item.start_offset,
    )
