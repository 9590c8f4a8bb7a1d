"""What a slave refuses, with RocketMQ's codes."""

from __future__ import annotations

import pytest

from sprocket.protocol.command import Header
from sprocket.protocol.requests.send import SendBack, SendBatch, SendMessage, SendMessageV2
from sprocket.protocol.requests.topic import CreateTopic, DeleteTopic
from sprocket.protocol.requests.transaction import EndTransaction
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.groups import group
from tests.broker.parts import pull_of

_SEND = {"producer_group": "p", "topic": "T", "queue_id": 0, "born_timestamp": 1}
BUSY = 2


@pytest.mark.parametrize(
    ("header", "code", "remark"),
    [
        (SendMessageV2(**_SEND), BUSY, "takes no messages"),  # type: ignore[arg-type]
        (SendMessage(**_SEND), BUSY, "takes no messages"),  # type: ignore[arg-type]
        (SendBatch(**_SEND, batch=True), BUSY, "takes no messages"),  # type: ignore[arg-type]
        (SendBack(offset=0, group="g", delay_level=0), BUSY, "takes no messages"),
        (pull_of("T"), BUSY, "may not be read"),
        (
            EndTransaction(
                producer_group="p",
                tran_state_table_offset=0,
                commit_log_offset=0,
                commit_or_rollback=8,
                from_transaction_check=False,
                msg_id="",
                transaction_id="",
            ),
            11,
            "ends no transactions",
        ),
        (
            CreateTopic(
                topic="N",
                default_topic="TBW102",
                read_queue_nums=1,
                write_queue_nums=1,
                perm=6,
                topic_filter_type="SINGLE_TAG",
            ),
            1,
            "please execute it from master broker",
        ),
        (DeleteTopic(topic="T"), 1, "please execute it from master broker"),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Header) else "",
)
def test_a_slave_refuses_what_would_write(header: Header, code: int, remark: str) -> None:
    async def main(network: Network) -> None:
        async with group(network) as running:
            master, slave = running.askers
            await master.create("T")
            await master.send("T")
            await running.equal()
            end = running.slaves[0].server._store.log_end
            reply = await slave.call(header, b"x")
            assert (reply.code, remark in (reply.remark or "")) == (code, True), reply.remark
            assert running.slaves[0].server._store.log_end == end

    simulate(main)


def test_a_slave_takes_the_offsets_of_consumers() -> None:
    async def main(network: Network) -> None:
        async with group(network) as running:
            master, slave = running.askers
            await master.create("T")
            await master.send("T")
            await running.equal()
            assert await slave.commit("g", "T", 1) == 0
            assert await slave.committed("g", "T") == 1

    simulate(main)
