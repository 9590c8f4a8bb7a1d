"""What an operator sees of messages that wait, and can do about them."""

from __future__ import annotations

import pytest

from sprocket import Message, Producer
from sprocket.admin import timers
from sprocket.base.errors import ReplyError, UsageError
from tests.admin.parts import Shop, shop
from tests.support import run


def test_what_waits_is_seen_by_topic_and_by_time_and_taken_back() -> None:
    async def test(shop: Shop) -> None:
        async with Producer("p", nameservers=shop.node.nameserver_address) as producer:
            soon = await producer.send(Message("orders", b"x", delay=3600))
            await producer.send(Message("orders", b"y", delay=200_000))
        (waiting,) = await timers.waiting(shop.caller)
        assert (waiting.broker, waiting.topics, waiting.total) == ("broker-a", {"orders": 2}, 2)
        assert {seconds: n for seconds, n in waiting.spans.items() if n} == {3600: 1}
        assert waiting.later == 1
        assert soon.recall_handle is not None
        assert await timers.recall(shop.caller, soon.recall_handle) == soon.message_id
        (waiting,) = await timers.waiting(shop.caller)
        assert waiting.total == 1

    async def main() -> None:
        async with shop() as opened:
            await test(opened)

    run(main())


def test_what_cannot_be_taken_back_is_said() -> None:
    async def main() -> None:
        async with shop() as opened:
            with pytest.raises(UsageError):
                await timers.recall(opened.caller, "nonsense")
            async with Producer("p", nameservers=opened.node.nameserver_address) as producer:
                sent = await producer.send(Message("orders", b"x", delay=0.05))
                with pytest.raises(UsageError, match="not 'U'"):
                    await producer.recall("U", sent.recall_handle or "")
            with pytest.raises(ReplyError, match="timestamp invalid"):
                await timers.recall(opened.caller, sent.recall_handle or "")

    run(main())
