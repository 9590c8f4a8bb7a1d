"""Finding single messages through the door."""

from __future__ import annotations

from sprocket.message.record import scan
from sprocket.protocol.requests.query import QueryMessage, ViewMessage
from tests.broker.parts import SUCCESS, Asker, play

NOT_FOUND = 22


async def bodies(asker: Asker, topic: str, key: str | None, **more: int) -> list[bytes]:
    """Bodies of the messages with a key; none if the broker found none."""
    wanted = {"max_num": 32, "begin_timestamp": 0, "end_timestamp": 2**63 - 1} | more
    reply = await asker.call(QueryMessage(topic=topic, key=key, **wanted))
    if reply.code == NOT_FOUND:
        return []
    assert reply.code == SUCCESS, reply.remark
    return [message.body for message in scan(bytes(reply.body))]


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


def test_messages_are_found_by_each_of_their_keys_and_by_their_unique_key() -> None:
    async def test(asker: Asker) -> None:
        await asker.send("T", b"1", KEYS="a b", UNIQ_KEY="U1")
        await asker.send("T", b"2", KEYS="b", UNIQ_KEY="U2")
        await asker.send("O", b"3", KEYS="a")
        assert await bodies(asker, "T", "a") == [b"1"]
        assert sorted(await bodies(asker, "T", "b")) == [b"1", b"2"]
        assert await bodies(asker, "T", "U2") == [b"2"]
        assert len(await bodies(asker, "T", "b", max_num=1)) == 1

    play(test)


def test_nothing_is_found_for_another_topic_key_or_time() -> None:
    async def test(asker: Asker) -> None:
        await asker.send("AaTopic", b"aa", KEYS="Aa")
        await asker.send("BBTopic", b"bb", KEYS="BB")
        assert await bodies(asker, "AaTopic", "BB") == []
        assert await bodies(asker, "BBTopic", "BB") == [b"bb"]
        assert await bodies(asker, "AaTopic", "Aa", end_timestamp=1) == []
        assert await bodies(asker, "AaTopic", None) == []
        assert await bodies(asker, "AaTopic", "Aa", max_num=0) == []

    play(test)


def test_a_key_is_found_once_however_often_a_message_names_it() -> None:
    async def test(asker: Asker) -> None:
        await asker.send("T", b"1", KEYS="k k")
        assert await bodies(asker, "T", "k") == [b"1"]

    play(test)
