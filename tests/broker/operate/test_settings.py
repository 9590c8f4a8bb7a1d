"""Operators and settings."""

from __future__ import annotations

from sprocket.protocol.requests.admin import (
    BrokerConfigOf,
    CleanExpiredQueues,
    DeleteExpiredLog,
    UpdateBrokerConfig,
)
from tests.broker.parts import SUCCESS, Asker, play


def test_settings_are_shown_and_a_change_counts_at_once() -> None:
    async def test(asker: Asker) -> None:
        reply = await asker.call(BrokerConfigOf())
        assert b"autoCreateTopicEnable=true\n" in bytes(reply.body)
        assert '"counter":0' in reply.fields["version"]
        assert await asker.code(UpdateBrokerConfig(), b"autoCreateTopicEnable=false\n") == SUCCESS
        reply = await asker.call(BrokerConfigOf())
        assert b"autoCreateTopicEnable=false\n" in bytes(reply.body)
        assert '"counter":1' in reply.fields["version"]
        for body, code in ((b"brokerName=x\n", 29), (b"noSuchKey=1\n", SUCCESS), (b"\xff", 1)):
            assert await asker.code(UpdateBrokerConfig(), body) == code

    play(test)


def test_cleaning_that_the_store_does_by_itself_is_agreed_to() -> None:
    async def test(asker: Asker) -> None:
        assert await asker.code(CleanExpiredQueues()) == SUCCESS
        assert await asker.code(DeleteExpiredLog()) == SUCCESS

    play(test)
