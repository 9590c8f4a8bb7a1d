"""Pops, acknowledgements and what is in flight, asked through the broker's door."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from sprocket.message.message import StoredMessage
from sprocket.message.pop_handle import PopHandle, kind_of, read_offsets
from sprocket.message.record import scan
from sprocket.protocol.bodies import AckItem
from sprocket.protocol.bodies.offset import ConsumeStats
from sprocket.protocol.command import Command
from sprocket.protocol.requests.group import ConsumeStatsOf
from sprocket.protocol.requests.pop import AckMessage, ChangeInvisible, PopMessage
from tests.broker.parts import Asker

FOUND, POLLING_FULL, POLLING_TIMEOUT, GONE = 0, 209, 210, 208
HIDDEN_MS = 10_000


class Popped:
    """The reply to a pop, with the handles that a client makes from it."""

    def __init__(self, reply: Command, topic: str, broker: str = "broker-a") -> None:
        self._broker = broker
        self.code, self.remark, self.fields = reply.code, reply.remark, dict(reply.fields)
        self.messages: list[StoredMessage] = list(scan(bytes(reply.body)))
        starts = read_offsets(self.fields.get("startOffsetInfo", ""))
        self.handles = [self._handle(each, starts) for each in self.messages]
        self.topic = topic

    def _handle(
        self, message: StoredMessage, starts: dict[tuple[str, int], list[int]]
    ) -> PopHandle:
        if text := message.properties.get("POP_CK"):
            return PopHandle.parse(text)
        place = (kind_of(message.topic), message.queue.number)
        return PopHandle(
            starts[place][0], int(self.fields["popTime"]), int(self.fields["invisibleTime"]),
            int(self.fields["reviveQid"]), place[0], self._broker, message.queue.number,
            message.queue_offset,
        )  # fmt: skip

    @property
    def bodies(self) -> list[bytes]:
        return [each.body for each in self.messages]


async def pop(
    asker: Asker, topic: str = "t", *, group: str = "g", queue: int = -1, count: int = 32,
    hidden_ms: int = HIDDEN_MS, hold_ms: int = 0, broker: str = "broker-a", **more: object,
) -> Popped:  # fmt: skip
    header = PopMessage(
        consumer_group=group, topic=topic, queue_id=queue, max_msg_nums=count,
        invisible_time=hidden_ms, poll_time=hold_ms, born_time=0, init_mode=0, **more,  # type: ignore[arg-type]
    )  # fmt: skip
    return Popped(await asker.call(header), topic, broker)


def _topic(popped: Popped, handle: PopHandle, group: str) -> str:
    separator = {"0": None, "1": "_", "2": "+"}[handle.kind]
    return popped.topic if separator is None else f"%RETRY%{group}{separator}{popped.topic}"


async def ack(asker: Asker, popped: Popped, *which: int, group: str = "g") -> list[int]:
    """Acknowledges messages of a pop by their places, or all; the reply's codes."""
    places: Sequence[int] = which or range(len(popped.handles))
    codes = []
    for handle in (popped.handles[place] for place in places):
        header = AckMessage(
            consumer_group=group, topic=_topic(popped, handle, group),
            queue_id=handle.queue_number, extra_info=handle.encode(), offset=handle.offset,
        )  # fmt: skip
        codes.append(await asker.code(header))
    return codes


async def hide(
    asker: Asker, popped: Popped, place: int = 0, *, hidden_ms: int, group: str = "g"
) -> Popped:
    """Changes an invisible time; the pop with the new handle."""
    handle = popped.handles[place]
    header = ChangeInvisible(
        consumer_group=group, topic=_topic(popped, handle, group),
        queue_id=handle.queue_number, extra_info=handle.encode(), offset=handle.offset,
        invisible_time=hidden_ms,
    )  # fmt: skip
    reply = await asker.call(header)
    popped.code = reply.code
    if reply.code == 0:
        is_in_order = reply.fields["reviveQid"] == "999"
        popped.handles[place] = handle._replace(
            start_offset=handle.start_offset if is_in_order else handle.offset,
            pop_ms=int(reply.fields["popTime"]), invisible_ms=int(reply.fields["invisibleTime"]),
            revive_queue=int(reply.fields["reviveQid"]),
        )  # fmt: skip
    return popped


async def lag(asker: Asker, group: str = "g") -> int:
    """How many messages the group has not done."""
    reply = await asker.call(ConsumeStatsOf(consumer_group=group))
    table = ConsumeStats.decode(reply.body).offset_table
    return sum(each.broker_offset - each.consumer_offset for each in table.values())


def items_of(found: Popped, *places: int, topic: str = "t") -> AckItem:
    """Messages of a pop, by their places, as an item of a batch of acknowledgements."""
    bits, first = 0, found.handles[0]
    for place in places:
        bits |= 1 << found.handles[place].offset - first.start_offset
    return AckItem(
        bits=base64.b64encode(bits.to_bytes(4, "little")).decode(), consumer_group="g",
        invisible_time=first.invisible_ms, pop_time=first.pop_ms, queue_id=first.queue_number,
        retry=first.kind, revive_queue_id=first.revive_queue, start_offset=first.start_offset,
        topic=topic,
    )  # fmt: skip
