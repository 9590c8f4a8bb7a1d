"""Lite topics asked through the broker's door: subscriptions, pops and acknowledgements."""

from __future__ import annotations

from sprocket.message.message import StoredMessage
from sprocket.message.pop_handle import ORDER_QUEUE, PopHandle
from sprocket.message.record import scan
from sprocket.protocol.bodies import GroupConfig
from sprocket.protocol.bodies.lite import (
    LiteOffsetOption,
    LiteSubscriptionBody,
    LiteSubscriptionEntry,
)
from sprocket.protocol.command import Command
from sprocket.protocol.requests.group import CreateGroup
from sprocket.protocol.requests.lite import ChangeLiteSubscription, PopLite
from sprocket.protocol.requests.pop import AckMessage, ChangeInvisible
from tests.broker.parts import SUCCESS, Asker

PARENT, GROUP = "chats", "g"
FOUND, POLLING_FULL, POLLING_TIMEOUT, GONE = 0, 209, 210, 208
QUOTA, ILLEGAL, INVALID = 2018, 604, 29
HIDDEN_MS = 10_000


async def begin(asker: Asker, *, minutes: int = -1, **attributes: str) -> None:
    """Makes the parent topic and a group that is bound to it."""
    await asker.create(PARENT, 2, attributes=f"+message.type=LITE,+lite.topic.expiration={minutes}")
    await bind(asker, GROUP, **attributes)


async def bind(asker: Asker, group: str, **attributes: str) -> None:
    given = {"lite_bind_topic": PARENT, **attributes}
    named = {f"+{name.replace('_', '.')}": value for name, value in given.items()}
    body = GroupConfig(group_name=group, attributes=named)
    assert await asker.code(CreateGroup(), body.encode()) == SUCCESS


async def change(
    asker: Asker, action: str, *lites: str, client: str = "c", group: str = GROUP,
    option: tuple[str, int] | None = None,
) -> int:  # fmt: skip
    entry = LiteSubscriptionEntry(
        action=action, client_id=client, group=group, topic=PARENT, lite_topic_set=list(lites)
    )
    if option is not None:
        entry.offset_option = LiteOffsetOption(type=option[0], value=option[1])
    body = LiteSubscriptionBody(subscription_set=[entry])
    return await asker.code(ChangeLiteSubscription(), body.encode())


async def subscribe(
    asker: Asker, *lites: str, client: str = "c", group: str = GROUP,
    option: tuple[str, int] | None = None,
) -> None:  # fmt: skip
    code = await change(asker, "PARTIAL_ADD", *lites, client=client, group=group, option=option)
    assert code == SUCCESS


async def send(asker: Asker, lite: str, *bodies: bytes) -> None:
    for body in bodies:
        await asker.send(PARENT, body, __LITE_TOPIC=lite)


class LitePopped:
    """The reply to a pop, with the handles that a client makes from it."""

    def __init__(self, reply: Command) -> None:
        self.code, self.fields = reply.code, dict(reply.fields)
        self.messages: list[StoredMessage] = list(scan(bytes(reply.body)))
        counts = self.fields.get("orderCountInfo", "")
        self.counts = [int(each) for each in counts.split(";") if each]

    @property
    def bodies(self) -> list[bytes]:
        return [each.body for each in self.messages]

    def handle(self, place: int) -> PopHandle:
        message = self.messages[place]
        return PopHandle(
            0, int(self.fields["popTime"]), int(self.fields["invisibleTime"]), ORDER_QUEUE, "0",
            "broker-a", 0, int(message.properties["INNER_MULTI_QUEUE_OFFSET"]),
        )  # fmt: skip


async def pop(
    asker: Asker, *, client: str = "c", group: str = GROUP, count: int = 32, hold_ms: int = 0,
    hidden_ms: int = HIDDEN_MS, attempt: str | None = None,
) -> LitePopped:  # fmt: skip
    header = PopLite(
        client_id=client, consumer_group=group, topic=PARENT, max_msg_num=count,
        invisible_time=hidden_ms, poll_time=hold_ms, born_time=0, attempt_id=attempt,
    )  # fmt: skip
    return LitePopped(await asker.call(header))


async def ack(asker: Asker, popped: LitePopped, *which: int, group: str = GROUP) -> list[int]:
    """Acknowledges messages of a pop by their places, or all; the reply's codes."""
    codes = []
    for place in which or range(len(popped.messages)):
        handle = popped.handle(place)
        header = AckMessage(
            consumer_group=group, topic=PARENT, queue_id=0, extra_info=handle.encode(),
            offset=handle.offset, lite_topic=popped.messages[place].properties["__LITE_TOPIC"],
        )  # fmt: skip
        codes.append(await asker.code(header))
    return codes


async def hide(
    asker: Asker, popped: LitePopped, place: int, hidden_ms: int, *, suspend: bool = False
) -> int:
    handle = popped.handle(place)
    header = ChangeInvisible(
        consumer_group=GROUP, topic=PARENT, queue_id=0, extra_info=handle.encode(),
        offset=handle.offset, invisible_time=hidden_ms, suspend=suspend,
        lite_topic=popped.messages[place].properties["__LITE_TOPIC"],
    )  # fmt: skip
    return await asker.code(header)
