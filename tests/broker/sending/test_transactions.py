"""Transactions through a broker's door: half messages, their ends, questions, restarts."""

from __future__ import annotations

import asyncio
import errno
import json
import tarfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from sprocket.base.deadline import Deadline
from sprocket.message.batch import BatchedMessage, encode
from sprocket.message.message import StoredMessage
from sprocket.message.record import scan
from sprocket.protocol.bodies import KvTable
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.admin import BrokerState
from sprocket.protocol.requests.send import SendBatch, SendMessageV2
from sprocket.protocol.requests.transaction import (
    COMMIT,
    ROLLBACK,
    UNKNOWN,
    CheckTransaction,
    EndTransaction,
    ResumeCheck,
)
from sprocket.store.config import StoreConfig
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from sprocket.testing.loop import simulate
from tests.broker.parts import ROOT, SUCCESS, Asker, another, new_disk, play, serving, settle

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
HALF, OP = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"
PARKED = "TRANS_CHECK_MAX_TIME_TOPIC"
SYSTEM_GROUP = "CID_RMQ_SYS_TRANS"


async def send_half(
    asker: Asker, body: bytes = b"paid", *, topic: str = "T", group: str = "p", **more: str
) -> EndTransaction:
    """Sends a half message; returns what would commit it."""
    properties = {"TRAN_MSG": "true", "PGROUP": group, **more}
    reply = await asker.send(topic, body, queue=0, **properties)
    return EndTransaction(
        producer_group=group,
        tran_state_table_offset=int(reply["queueOffset"]),
        commit_log_offset=int(reply["msgId"][-16:], 16),
        commit_or_rollback=COMMIT,
        transaction_id=reply["transactionId"],
    )


def rollback_of(end: EndTransaction) -> EndTransaction:
    return EndTransaction(
        producer_group=end.producer_group,
        tran_state_table_offset=end.tran_state_table_offset,
        commit_log_offset=end.commit_log_offset,
        commit_or_rollback=ROLLBACK,
    )


def answering(asker: Asker, outcome: int) -> None:
    """The producer answers every question in the same way."""

    def answer(command: Command) -> Reply | None:
        if command.code == CheckTransaction.code:
            asked = command.read(CheckTransaction)
            end = EndTransaction(
                producer_group="p",
                tran_state_table_offset=asked.tran_state_table_offset,
                commit_log_offset=asked.commit_log_offset,
                commit_or_rollback=outcome,
                from_transaction_check=True,
            )
            task = asyncio.ensure_future(
                asker.pool.send_oneway(asker.broker.address, end, deadline=Deadline.after(5))
            )
            task.add_done_callback(lambda done: done.result())
        return None

    asker.answer = answer


async def keep_beating(asker: Asker, seconds: float, group: str = "p") -> None:
    """Time passes, and the producer is there."""
    left = seconds
    while left > 0:
        await asker.beat(producer=group)
        await asyncio.sleep(min(left, 20.0))
        left -= 20.0


async def messages(asker: Asker, topic: str) -> list[StoredMessage]:
    pulled = await asker.pull(topic)
    return pulled.messages


def test_a_half_message_is_seen_after_its_commit_and_only_once() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T", 2)
        end = await send_half(asker, b"paid", TAGS="t", KEYS="k", UNIQ_KEY="u1")
        assert (await asker.pull("T")).messages == []
        assert [await asker.code(end) for _ in range(3)] == [SUCCESS] * 3
        (seen,) = await messages(asker, "T")
        (half,) = await messages(asker, HALF)
        assert (seen.body, seen.tag, seen.keys) == (b"paid", "t", ["k"])
        assert (seen.sys_flag, seen.prepared_offset) == (8, end.commit_log_offset)
        assert (half.sys_flag, half.prepared_offset, half.queue.number) == (0, 0, 0)
        assert seen.properties == half.properties
        assert half.properties["REAL_TOPIC"] == "T"
        assert half.properties["__transactionId__"] == "u1"
        assert await asker.code(rollback_of(end)) == 1

    play(test)


def test_a_commit_that_the_disk_refused_is_carried_out_without_another_question() -> None:
    disk = FaultyDisk()

    async def test(asker: Asker) -> None:
        await asker.create("T", 2)
        end = await send_half(asker, b"paid", UNIQ_KEY="u1")
        disk.fail("map", errno.ENOSPC, times=1)
        assert await asker.code(end) != SUCCESS
        assert await messages(asker, "T") == []
        await asyncio.sleep(60)
        assert [seen.body for seen in await messages(asker, "T")] == [b"paid"]
        assert await messages(asker, PARKED) == []

    play(test, disk)


def test_parked_messages_can_be_looked_at_though_their_topic_was_lost() -> None:
    disk = new_disk()

    async def main() -> None:
        async with serving(disk, transaction_checks_max=1, transaction_check_ms=1000) as asker:
            answering(asker, UNKNOWN)
            await send_half(asker)
            await keep_beating(asker, 60)
            assert len(await messages(asker, PARKED)) == 1
        for name in ("topics.json", "topics.json.bak"):
            disk.remove(f"{ROOT}/config/{name}")
        async with serving(disk) as asker:
            assert len(await messages(asker, PARKED)) == 1

    simulate(lambda network: main())


def test_a_message_that_was_rolled_back_stays_unseen() -> None:
    async def test(asker: Asker) -> None:
        end = await send_half(asker)
        assert [await asker.code(rollback_of(end)) for _ in range(2)] == [SUCCESS] * 2
        assert await asker.code(end) == 1
        assert await asker.max_offset("T") == 0

    play(test)


def test_what_has_ended_is_told_in_javas_form() -> None:
    async def test(asker: Asker) -> None:
        ends = [await send_half(asker) for _ in range(4)]
        await asyncio.gather(*(asker.code(end) for end in (ends[2], rollback_of(ends[0]))))
        await settle()
        (told,) = await messages(asker, OP)
        assert sorted(told.body.decode().split(",")) == ["", "0", "2"]
        assert told.properties == {"WAIT": "true", "TAGS": "d"}
        assert await asker.committed(SYSTEM_GROUP, HALF) == 1
        assert await asker.committed(SYSTEM_GROUP, OP) is None

    play(test)


@pytest.mark.parametrize(
    ("change", "remark"),
    [
        ({"producer_group": "q"}, "The producer group wrong"),
        ({"tran_state_table_offset": 7}, "The transaction state table offset wrong"),
        ({"commit_log_offset": 1}, "Find prepared transaction message failed"),
        ({"commit_or_rollback": 5}, "commitOrRollback field wrong"),
    ],
)
def test_an_end_of_nothing_is_refused(change: dict[str, object], remark: str) -> None:
    async def test(asker: Asker) -> None:
        end = await send_half(asker)
        for name, value in change.items():
            setattr(end, name, value)
        reply = await asker.call(end)
        assert (reply.code, reply.remark) == (1, remark)
        assert await asker.max_offset("T") == 0

    play(test)


def test_an_ordinary_message_cannot_be_committed() -> None:
    async def test(asker: Asker) -> None:
        reply = await asker.send("T", PGROUP="p")
        end = EndTransaction(
            producer_group="p",
            tran_state_table_offset=0,
            commit_log_offset=int(reply["msgId"][-16:], 16),
            commit_or_rollback=COMMIT,
        )
        assert await asker.code(end) == 1

    play(test)


def test_transactions_can_be_refused_and_are_bounded() -> None:
    async def refused(asker: Asker) -> None:
        header = SendMessageV2(
            producer_group="p", topic="T", queue_id=0, properties="TRAN_MSG\x01true\x02"
        )
        reply = await asker.call(header, b"x")
        assert (reply.code, "transaction" in (reply.remark or "")) == (16, True)

    async def full(asker: Asker) -> None:
        end = await send_half(asker)
        header = SendMessageV2(
            producer_group="p", topic="T", queue_id=0, properties="TRAN_MSG\x01true\x02"
        )
        assert await asker.code(header, b"x") == 2
        assert await asker.code(end) == SUCCESS
        await send_half(asker)

    play(refused, reject_transactions=True)
    play(full, transactions_max=1)


def test_a_batch_holds_no_half_messages() -> None:
    async def test(asker: Asker) -> None:
        header = SendBatch(producer_group="p", topic="T", queue_id=0, batch=True)
        assert (
            await asker.code(header, encode([BatchedMessage(0, b"x", "TRAN_MSG\x01true\x02")]))
            == 13
        )
        assert await asker.max_offset(HALF) == 0

    play(test)


def test_a_committed_message_can_be_given_back_by_its_consumer() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("%RETRY%g")
        reply = await asker.send("%RETRY%g", b"again", TRAN_MSG="true", PGROUP="p")
        assert reply["queueOffset"] == "0"
        assert await asker.max_offset(HALF) == 0

    play(test)


def test_a_producer_is_asked_when_its_time_is_over_and_then_again_and_again() -> None:
    async def test(asker: Asker) -> None:
        answering(asker, UNKNOWN)
        await asker.beat(producer="p")
        end = await send_half(asker, b"paid", UNIQ_KEY="u1", TAGS="t")
        await asyncio.sleep(5.5)
        assert asker.told == []
        await asyncio.sleep(1.6)
        (asked,) = asker.told
        header = asked.read(CheckTransaction)
        (shown,) = scan(bytes(asked.body))
        assert asked.is_oneway
        assert (header.topic, header.msg_id, header.transaction_id) == ("T", "u1", "u1")
        assert header.tran_state_table_offset == end.tran_state_table_offset + 1
        assert header.commit_log_offset > end.commit_log_offset
        assert (shown.topic, shown.body, shown.tag, shown.sys_flag) == ("T", b"paid", "t", 0)
        assert shown.log_offset == header.commit_log_offset
        assert shown.queue_offset == header.tran_state_table_offset
        assert shown.properties["TRANSACTION_CHECK_TIMES"] == "1"
        await keep_beating(asker, 62)
        assert len(asker.told) == 3
        answering(asker, COMMIT)
        await keep_beating(asker, 120)
        assert len(asker.told) == 4
        (seen,) = await messages(asker, "T")
        assert "TRANSACTION_CHECK_TIMES" not in seen.properties
        assert await asker.code(end) == SUCCESS
        assert await asker.max_offset("T") == 1

    play(test)


def test_a_late_commit_of_the_first_copy_ends_the_newest_too() -> None:
    async def test(asker: Asker) -> None:
        answering(asker, UNKNOWN)
        await asker.beat(producer="p")
        end = await send_half(asker)
        await asyncio.sleep(8)
        assert len(asker.told) == 1
        assert await asker.code(end) == SUCCESS
        answering(asker, COMMIT)
        await keep_beating(asker, 100)
        assert len(asker.told) == 1
        assert await asker.bodies("T") == [b"paid"]

    play(test)


def test_nothing_is_counted_before_immunity_ends_and_then_every_check_is_a_question() -> None:
    async def test(asker: Asker) -> None:
        answering(asker, UNKNOWN)
        await asker.beat(producer="p")
        body = bytes(range(256)) * 256
        await send_half(asker, body, CHECK_IMMUNITY_TIME_IN_SECONDS="6")
        await asyncio.sleep(5.9)
        assert asker.told == []
        assert await asker.max_offset(HALF) == 1
        await keep_beating(asker, 60)
        assert len(asker.told) == 15
        assert await asker.max_offset(PARKED) == 1
        (parked,) = await messages(asker, PARKED)
        assert (parked.body, parked.properties["TRANSACTION_CHECK_TIMES"]) == (body, "15")
        assert await asker.max_offset("T") == 0
        assert await asker.committed(SYSTEM_GROUP, HALF) == await asker.max_offset(HALF)

        answering(asker, COMMIT)
        assert await asker.code(ResumeCheck(msg_id="0" * 16 + f"{parked.log_offset:016X}")) == 0
        await keep_beating(asker, 20)
        (seen,) = await messages(asker, "T")
        assert seen.body == body

    play(test, transaction_timeout_ms=300, transaction_check_ms=300)


def test_while_nobody_is_there_to_ask_nothing_counts() -> None:
    async def test(asker: Asker) -> None:
        await send_half(asker)
        await asyncio.sleep(900)
        assert await asker.max_offset(HALF) == 1
        answering(asker, COMMIT)
        await keep_beating(asker, 60)
        assert await asker.bodies("T") == [b"paid"]

    play(test)


def test_a_producer_is_asked_while_its_connection_holds_a_pull() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T", 2)
        answering(asker, COMMIT)
        await asker.beat(producer="p")
        await send_half(asker, b"paid", UNIQ_KEY="u1")
        held = asyncio.ensure_future(asker.pull("T", queue=1, hold_ms=60_000))
        await keep_beating(asker, 40)
        assert not held.done()
        assert [seen.body for seen in await messages(asker, "T")] == [b"paid"]
        held.cancel()

    play(test)


def test_members_of_a_group_are_asked_in_turn_and_the_dead_are_left_out() -> None:
    async def test(asker: Asker) -> None:
        await asker.beat(producer="p")
        async with another(asker) as other:
            await other.beat(client_id="c2", producer="p")
            for _ in range(10):
                await send_half(asker)
            await asyncio.sleep(8)
            assert (len(asker.told), len(other.told)) == (5, 5)
        await settle()
        await send_half(asker)
        await asyncio.sleep(8)
        assert len(asker.told) == 6

    play(test)


def test_a_half_that_was_sent_twice_is_seen_once() -> None:
    async def test(asker: Asker) -> None:
        answering(asker, COMMIT)
        await asker.beat(producer="p")
        for _ in range(2):
            end = await send_half(asker, UNIQ_KEY="same")
        assert await asker.code(end) == SUCCESS
        await keep_beating(asker, 60)
        assert asker.told == []
        assert await asker.bodies("T") == [b"paid"]

    play(test)


def test_a_delay_begins_with_the_commit() -> None:
    async def test(asker: Asker) -> None:
        end = await send_half(asker, DELAY="2")
        await asyncio.sleep(5.9)
        assert await asker.code(end) == SUCCESS
        await asyncio.sleep(4)
        assert await asker.max_offset("T") == 0
        await asyncio.sleep(3)
        assert await asker.bodies("T") == [b"paid"]

    play(test)


Step = Callable[[Asker], Awaitable[None]]


def with_restarts(*steps: Step, killed: bool, **settings: Any) -> None:
    """Each step meets a broker that was started anew on the same disk."""

    async def main() -> None:
        disk = new_disk()
        for step in steps:
            after: list[MemoryDisk] = []
            async with serving(disk, **settings) as asker:
                await step(asker)
                await settle()
                if killed:
                    after.append(disk.after_kill())
            disk = after[0] if killed else disk

    simulate(lambda network: main())


@pytest.mark.parametrize("killed", [False, True])
def test_a_transaction_survives_a_restart_after_every_step(killed: bool) -> None:
    ends: list[EndTransaction] = []

    async def begin(asker: Asker) -> None:
        ends.extend([await send_half(asker, body) for body in (b"a", b"b", b"c", b"d")])

    async def commit(asker: Asker) -> None:
        assert await asker.bodies("T") == []
        assert await asker.code(ends[1]) == SUCCESS
        assert await asker.code(rollback_of(ends[2])) == SUCCESS

    async def again(asker: Asker) -> None:
        assert await asker.code(ends[1]) == SUCCESS
        assert await asker.code(rollback_of(ends[1])) == 1
        assert await asker.code(ends[2]) == 1
        assert await asker.bodies("T") == [b"b"]

    async def asked(asker: Asker) -> None:
        answering(asker, UNKNOWN)
        await keep_beating(asker, 10)
        assert len(asker.told) == 2

    async def asked_again(asker: Asker) -> None:
        answering(asker, UNKNOWN)
        assert await asker.code(ends[0]) == SUCCESS
        await keep_beating(asker, 40)
        (asked,) = asker.told
        (shown,) = scan(bytes(asked.body))
        assert (shown.body, shown.properties["TRANSACTION_CHECK_TIMES"]) == (b"d", "2")

    async def end(asker: Asker) -> None:
        answering(asker, COMMIT)
        await keep_beating(asker, 60)
        assert sorted(await asker.bodies("T")) == [b"a", b"b", b"d"]
        assert await asker.max_offset(PARKED) == 0

    async def nothing_left(asker: Asker) -> None:
        await keep_beating(asker, 60)
        assert asker.told == []
        assert await asker.max_offset("T") == 3

    with_restarts(begin, commit, again, asked, asked_again, end, nothing_left, killed=killed)


def test_a_parked_message_can_be_committed_after_a_restart_once() -> None:
    ends: list[EndTransaction] = []

    async def park(asker: Asker) -> None:
        await asker.beat(producer="p")
        ends.append(await send_half(asker))
        await asyncio.sleep(5)
        assert await asker.max_offset(PARKED) == 1

    async def commit(asker: Asker) -> None:
        assert [await asker.code(ends[0]) for _ in range(2)] == [SUCCESS] * 2
        assert await asker.bodies("T") == [b"paid"]

    quick = {
        "transaction_timeout_ms": 200, "transaction_check_ms": 200, "transaction_checks_max": 1,
    }  # fmt: skip
    with_restarts(park, commit, commit, killed=True, **quick)


def test_a_java_store_is_taken_over_with_all_its_transactions() -> None:
    """Of nine halves three are committed, three rolled back, three undecided."""
    disk = new_disk()
    with tarfile.open(GOLDEN / "stores" / "clean.tar.gz") as archive:
        for member in archive.getmembers():
            path = member.name.removeprefix("./").partition("/")[2]
            if not member.isfile() or "timer" in path or path in ("lock", "abort"):
                continue
            extracted = archive.extractfile(member)
            assert extracted is not None
            folder = f"{ROOT}/{path}".rpartition("/")[0]
            disk.make_directory(folder)
            disk.replace(f"{ROOT}/{path}", extracted.read(), backup=False)

    async def test(asker: Asker) -> None:
        assert await asker.max_offset("StTx") == 3
        halves = await messages(asker, HALF)
        codes = []
        for half in halves:
            end = EndTransaction(
                producer_group="PG_stx",
                tran_state_table_offset=half.queue_offset,
                commit_log_offset=half.log_offset,
                commit_or_rollback=COMMIT,
            )
            codes.append(await asker.code(end))
        assert codes == [SUCCESS, 1, SUCCESS] * 3
        seen = await asker.bodies("StTx")
        assert sorted(seen) == sorted(
            f"tx-{number}-{kind}".encode()
            for number, kind in enumerate(["COMMIT_MESSAGE", None, "UNKNOW"] * 3)
            if kind
        )
        await settle()
        assert await asker.committed(SYSTEM_GROUP, HALF) == 9

    sizes = StoreConfig(
        log_file_bytes=65536, queue_file_bytes=6000, index_slots=100, index_entries=400
    )
    play(test, disk, store=sizes)


def test_operators_see_how_many_are_undecided_and_how_the_others_ended() -> None:
    disk = new_disk()

    async def test(asker: Asker) -> None:
        ends = [await send_half(asker, b"%d" % n, topic=topic) for n, topic in enumerate("TTTU")]
        assert await asker.code(ends[0]) == SUCCESS
        assert await asker.code(rollback_of(ends[1])) == SUCCESS
        table = KvTable.decode((await asker.call(BrokerState())).body).table
        shown = {name: table[name] for name in table if name.startswith("transaction")}
        assert shown == {
            "transactionsPending": "2", "transactionsCommitted": "1",
            "transactionsRolledBack": "1", "transactionsParked": "0", "transactionChecks": "0",
        }  # fmt: skip
        await asyncio.sleep(15)
        assert pending() == {"T": 1, "U": 1}

    def pending() -> dict[str, int]:
        state = json.loads(disk.read(f"{ROOT}/config/transactionMetrics") or b"{}")
        return {topic: each["count"] for topic, each in state["transactionCount"].items()}

    play(test, disk, transaction_timeout_ms=60_000)
    assert pending() == {"T": 1, "U": 1}
