"""Finding single messages through the door."""

from __future__ import annotations

from sprocket.message.record import scan
from sprocket.protocol.requests.query import ViewMessage
from tests.broker.parts import SUCCESS, Asker, play


def test_a_message_is_found_by_its_place_and_only_where_one_begins() -> None:
    async def test(asker: Asker) -> None:
        sent = await asker.send("T", b"here")
        log_offset = int(sent["msgId"][16:], 16)
        reply = await asker.call(ViewMessage(offset=log_offset))
        assert reply.code == SUCCESS
        (message,) = scan(bytes(reply.body))
        assert message.body == b"here"
        for wrong in (log_offset + 1, 1 << 40, -1):
            assert await asker.code(ViewMessage(offset=wrong)) == 1

    play(test)
