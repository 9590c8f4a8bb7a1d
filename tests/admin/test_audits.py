"""Audit topics, read by an operator."""

from __future__ import annotations

from sprocket import Message, Producer, Standalone
from sprocket.admin import audits, topic_changes
from sprocket.admin.caller import Caller
from sprocket.broker.config import BrokerConfig
from sprocket.remoting.pool import Pool
from tests.support import run


def test_entries_come_by_their_times_and_what_is_none_is_left_out() -> None:
    async def story() -> None:
        audited = BrokerConfig(port=0, audit_topic="who")
        async with Standalone(configs=[audited]) as node, Pool() as pool:
            caller = Caller(pool, [node.nameserver_address])
            await topic_changes.create(caller, "orders")
            await topic_changes.create(caller, "other")
            found = await audits.entries(caller, "who")
            assert [each.named["topic"] for each in found] == ["orders", "other"]
            assert await audits.entries(caller, "who", begin_ms=1 << 45) == []
            async with Producer("app", nameservers=node.nameserver_address) as producer:
                await producer.send(Message("orders", b"no entry"))
            assert await audits.entries(caller, "orders") == []

    run(story())
