"""What a broker has answered is there after a kill, and after a loss of power, right behind it."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from sprocket.message.batch import BatchedMessage, encode
from sprocket.protocol.bodies import (
    AckBatchBody,
    AclBody,
    GroupConfig,
    GroupConfigList,
    LockBody,
    MappingDetail,
    MappingItem,
    PolicyBody,
    PolicyEntryBody,
    Queue,
    RequestMode,
    TopicConfig,
    TopicConfigList,
    UserBody,
)
from sprocket.protocol.bodies.staged import AttemptEntry, AttemptList
from sprocket.protocol.codes import OwnRequestCode, RequestCode
from sprocket.protocol.command import Header
from sprocket.protocol.requests.account import (
    CreateAcl,
    CreateUser,
    DeleteAcl,
    DeleteUser,
    UpdateAcl,
    UpdateUser,
)
from sprocket.protocol.requests.admin import SetReadAhead, UpdateBrokerConfig
from sprocket.protocol.requests.group import (
    CreateGroup,
    CreateGroups,
    DeleteGroup,
    ForbidGroup,
    SetRequestMode,
)
from sprocket.protocol.requests.lock import LockQueues, UnlockQueues
from sprocket.protocol.requests.offset import CloneOffset, ResetOffset
from sprocket.protocol.requests.pop import AckMessages
from sprocket.protocol.requests.send import SendBack, SendBatch, SendMessage
from sprocket.protocol.requests.staged import PublishStaged
from sprocket.protocol.requests.topic import CreateStaticTopic, CreateTopics, DeleteTopic
from sprocket.protocol.requests.transaction import UNKNOWN, ResumeCheck
from sprocket.store.state.snapshot import decode_state, encode_state
from sprocket.testing.disk import FaultyDisk
from sprocket.testing.loop import simulate
from tests.broker.lite import lites
from tests.broker.parts import ROOT, STORE, SUCCESS, Asker, serving
from tests.broker.pop.popping import ack, hide, items_of, pop
from tests.broker.sending.test_staged import staging
from tests.broker.sending.test_transactions import (
    HALF,
    OP,
    PARKED,
    SYSTEM_GROUP,
    answering,
    keep_beating,
    rollback_of,
    send_half,
)
from tests.delay.timing import take_back

#: Prepares what is to be changed, changes it, and returns once that is answered.
Change = Callable[[Asker], Awaitable[None]]
SYNCED = replace(STORE, flush="SYNC_FLUSH")
LOCK = LockBody(
    client_id="a",
    consumer_group="g",
    mq_set=[Queue(broker_name="broker-a", queue_id=0, topic="T")],
).encode()


async def done(asker: Asker, header: Header, body: bytes = b"") -> None:
    reply = await asker.call(header, body)
    assert reply.code == SUCCESS, (reply.code, reply.remark)


async def filled(asker: Asker) -> None:
    """A topic with three messages, and a group that has committed two."""
    await asker.create("T", 2)
    for _ in range(3):
        await asker.send("T")
    await done(asker, CreateGroup(), GroupConfig(group_name="g").encode())
    await asker.commit("g", "T", 2)


async def saved(asker: Asker) -> None:
    """The same, with the committed offset in its file."""
    await filled(asker)
    await asyncio.sleep(6)


async def sends(asker: Asker) -> None:
    await asker.create("T", 2)
    await done(
        asker, SendMessage(producer_group="p", topic="T", queue_id=0, born_timestamp=1), b"one"
    )


async def sends_short(asker: Asker) -> None:
    await asker.send("T", b"two", queue=0)


async def sends_batch(asker: Asker) -> None:
    await asker.create("T", 2)
    header = SendBatch(producer_group="p", topic="T", queue_id=0, born_timestamp=1, batch=True)
    await done(asker, header, encode([BatchedMessage(0, b"a", ""), BatchedMessage(0, b"b", "")]))


async def stages(asker: Asker) -> None:
    await asker.create("T", 2)
    await done(asker, staging(), encode([BatchedMessage(0, b"a", "")]))


async def publishes(asker: Asker) -> None:
    await stages(asker)
    named = AttemptList(attempts=[AttemptEntry(name="a", requests=1)])
    await done(asker, PublishStaged(writer="w", batch_id=0, is_first=True), named.encode())


async def gives_back(asker: Asker) -> None:
    await saved(asker)
    (first, *_) = (await asker.pull("T")).messages
    await done(asker, SendBack(offset=first.log_offset, group="g", delay_level=-1))


async def recalls(asker: Asker) -> None:
    sent = await asker.send("T", b"late", TIMER_DELAY_MS="20000")
    assert (await take_back(asker, sent["recallHandle"])).code == SUCCESS


async def commits_transaction(asker: Asker) -> None:
    await asker.create("T", 2)
    await done(asker, await send_half(asker, UNIQ_KEY="u1"))


async def rolls_back(asker: Asker) -> None:
    await asker.create("T", 2)
    await done(asker, rollback_of(await send_half(asker, UNIQ_KEY="u1")))


async def resumes(asker: Asker) -> None:
    answering(asker, UNKNOWN)
    await send_half(asker, UNIQ_KEY="u1")
    await keep_beating(asker, 60)
    (parked,) = (await asker.pull(PARKED)).messages
    await done(asker, ResumeCheck(msg_id="0" * 16 + f"{parked.log_offset:016X}"))


async def makes_topic(asker: Asker) -> None:
    await asker.create("Other")
    await asker.create("T", 3)


async def makes_topics(asker: Asker) -> None:
    await asker.create("Other")
    topics = [TopicConfig(topic_name=name) for name in ("T1", "T2")]
    await done(asker, CreateTopics(), TopicConfigList(topic_config_list=topics).encode())


async def makes_static_topic(asker: Asker) -> None:
    await asker.create("Other")
    mapping = MappingDetail(
        bname="broker-a",
        epoch=1,
        hosted_queues={0: [MappingItem(bname="broker-a")]},
        topic="T",
        total_queues=1,
    )
    header = CreateStaticTopic(
        topic="T",
        default_topic="",
        read_queue_nums=1,
        write_queue_nums=1,
        perm=6,
        topic_filter_type="SINGLE_TAG",
    )
    await done(asker, header, mapping.encode())


async def deletes_static_topic(asker: Asker) -> None:
    await makes_static_topic(asker)
    await asyncio.sleep(1)
    await done(asker, DeleteTopic(topic="T"))


async def deletes_topic(asker: Asker) -> None:
    await saved(asker)
    await done(asker, DeleteTopic(topic="T"))


async def deletes_topic_and_makes_it_again(asker: Asker) -> None:
    await deletes_topic(asker)
    await asker.create("T", 2)


async def makes_group(asker: Asker) -> None:
    await done(asker, CreateGroup(), GroupConfig(group_name="other").encode())
    await done(asker, CreateGroup(), GroupConfig(group_name="g", retry_max_times=3).encode())


async def makes_groups(asker: Asker) -> None:
    await asker.create("Other")
    groups = [GroupConfig(group_name=name) for name in ("g1", "g2")]
    await done(asker, CreateGroups(), GroupConfigList(group_config_list=groups).encode())


async def deletes_group(asker: Asker) -> None:
    await saved(asker)
    await done(asker, ForbidGroup(group="g", topic="T", readable=False))
    await done(asker, LockQueues(), LOCK)
    await done(asker, DeleteGroup(group_name="g", clean_offset=True))


async def deletes_unknown_group(asker: Asker) -> None:
    await asker.create("T", 1)
    await done(asker, ForbidGroup(group="nobody", topic="T", readable=False))
    await asyncio.sleep(1)
    await done(asker, DeleteGroup(group_name="nobody"))


async def forbids(asker: Asker) -> None:
    await saved(asker)
    await done(asker, ForbidGroup(group="g", topic="T", readable=False))


async def resets(asker: Asker) -> None:
    await saved(asker)
    await done(asker, ResetOffset(topic="T", group="g", timestamp=0))


async def clones(asker: Asker) -> None:
    await saved(asker)
    await done(asker, CloneOffset(src_group="g", dest_group="h", topic="T", offline=True))


async def locks(asker: Asker) -> None:
    await asker.create("T", 1)
    await done(asker, LockQueues(), LOCK.replace(b'"g"', b'"h"'))
    await done(asker, LockQueues(), LOCK)


async def unlocks(asker: Asker) -> None:
    await locks(asker)
    await asyncio.sleep(1)
    await done(asker, LockQueues(), LOCK.replace(b'"g"', b'"i"'))
    await done(asker, UnlockQueues(), LOCK)


async def pops(asker: Asker) -> None:
    await filled(asker)
    assert len((await pop(asker, "T")).messages) == 1


async def pops_in_order(asker: Asker) -> None:
    await filled(asker)
    assert len((await pop(asker, "T", order=True)).messages) == 1


async def acknowledges(asker: Asker) -> None:
    await filled(asker)
    assert await ack(asker, await pop(asker, "T")) == [SUCCESS]


async def acknowledges_in_order(asker: Asker) -> None:
    await filled(asker)
    assert await ack(asker, await pop(asker, "T", order=True)) == [SUCCESS]


async def acknowledges_several(asker: Asker) -> None:
    await filled(asker)
    found = await pop(asker, "T")
    body = AckBatchBody(acks=[items_of(found, 0, topic="T")], broker_name="broker-a")
    await done(asker, AckMessages(), body.encode())


async def hides(asker: Asker) -> None:
    await filled(asker)
    found = await hide(asker, await pop(asker, "T"), hidden_ms=60_000)
    assert found.code == SUCCESS


async def sets_mode(asker: Asker) -> None:
    await saved(asker)
    body = RequestMode(consumer_group="g", topic="T", mode="POP", pop_share_queue_num=1)
    await done(asker, SetRequestMode(), body.encode())


async def pops_lite(asker: Asker) -> None:
    await popped_lite(asker)


async def acknowledges_lite(asker: Asker) -> None:
    assert await lites.ack(asker, await popped_lite(asker)) == [SUCCESS]


async def popped_lite(asker: Asker) -> lites.LitePopped:
    await lites.begin(asker)
    await lites.subscribe(asker, "a")
    await lites.send(asker, "a", b"1", b"2")
    popped = await lites.pop(asker, count=1)
    assert len(popped.messages) == 1
    return popped


async def makes_user(asker: Asker) -> None:
    await done(asker, CreateUser(username="ann"), UserBody(password="x").encode())
    await done(asker, CreateUser(username="bob"), UserBody(password="y").encode())


async def changes_user(asker: Asker) -> None:
    await makes_user(asker)
    await done(asker, UpdateUser(username="ann"), UserBody(user_status="disable").encode())


async def deletes_user(asker: Asker) -> None:
    await makes_policy(asker)
    await done(asker, DeleteUser(username="ann"))


async def makes_policy(asker: Asker) -> None:
    await makes_user(asker)
    entry = PolicyEntryBody(resource="Topic:T", actions=["Pub"], decision="Allow")
    body = AclBody(policies=[PolicyBody(entries=[entry])]).encode()
    await done(asker, CreateAcl(subject="User:bob"), body)
    await done(asker, UpdateAcl(subject="User:ann"), body)


async def deletes_policy(asker: Asker) -> None:
    await makes_policy(asker)
    await done(asker, DeleteAcl(subject="User:ann", resource="Topic:T"))


async def changes_settings(asker: Asker) -> None:
    await done(asker, UpdateBrokerConfig(), b"fileReservedTime=24\nlongPollingEnable=false\n")


async def reads_as_asked(asker: Asker) -> None:
    await done(asker, SetReadAhead(read_ahead_mode=1))


_READS = "it changes nothing"
_CLIENT = "it asks a client"
_BACK = "the next request of the same client brings it back"
#: Every request code of a broker: the changes that are tried, or why there is nothing to keep.
_FILES = "at a broker that reads plain_acl.yml: see tests/broker/operate/test_plain_accounts.py"
WALK: dict[int, tuple[Change, ...] | str] = {
    RequestCode.SEND_MESSAGE: (sends,),
    RequestCode.SEND_MESSAGE_V2: (sends_short,),
    RequestCode.SEND_BATCH_MESSAGE: (sends_batch,),
    OwnRequestCode.STAGE_BATCH: (stages,),
    OwnRequestCode.PUBLISH_STAGED: (publishes,),
    RequestCode.CONSUMER_SEND_MSG_BACK: (gives_back,),
    RequestCode.RECALL_MESSAGE: (recalls,),
    RequestCode.END_TRANSACTION: (commits_transaction, rolls_back),
    RequestCode.RESUME_CHECK_HALF_MESSAGE: (resumes,),
    RequestCode.UPDATE_AND_CREATE_TOPIC: (makes_topic,),
    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: (makes_topics,),
    RequestCode.DELETE_TOPIC_IN_BROKER: (
        deletes_topic,
        deletes_topic_and_makes_it_again,
        deletes_static_topic,
    ),
    RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC: (makes_static_topic,),
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: (makes_group,),
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: (makes_groups,),
    RequestCode.DELETE_SUBSCRIPTIONGROUP: (deletes_group, deletes_unknown_group),
    RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN: (forbids,),
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: (resets,),
    RequestCode.CLONE_GROUP_OFFSET: (clones,),
    RequestCode.LOCK_BATCH_MQ: (locks,),
    RequestCode.UNLOCK_BATCH_MQ: (unlocks,),
    RequestCode.POP_MESSAGE: (pops, pops_in_order),
    RequestCode.POP_LITE_MESSAGE: (pops_lite,),
    RequestCode.ACK_MESSAGE: (acknowledges, acknowledges_in_order, acknowledges_lite),
    RequestCode.BATCH_ACK_MESSAGE: (acknowledges_several,),
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: (hides,),
    RequestCode.SET_MESSAGE_REQUEST_MODE: (sets_mode,),
    RequestCode.AUTH_CREATE_USER: (makes_user,),
    RequestCode.AUTH_UPDATE_USER: (changes_user,),
    RequestCode.AUTH_DELETE_USER: (deletes_user,),
    RequestCode.AUTH_CREATE_ACL: (makes_policy,),
    RequestCode.AUTH_UPDATE_ACL: (makes_policy,),
    RequestCode.AUTH_DELETE_ACL: (deletes_policy,),
    RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: _FILES,
    RequestCode.DELETE_ACL_CONFIG: _FILES,
    RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: _FILES,
    RequestCode.UPDATE_BROKER_CONFIG: (changes_settings,),
    RequestCode.SET_COMMITLOG_READ_MODE: (reads_as_asked,),
    # What is lost on purpose, or costs nothing.
    RequestCode.UPDATE_CONSUMER_OFFSET: "saved in rounds: messages may come twice, never not",
    RequestCode.HEART_BEAT: _BACK,
    OwnRequestCode.PROXIED_CLIENTS: _BACK,
    RequestCode.LITE_SUBSCRIPTION_CTL: _BACK,
    RequestCode.UNREGISTER_CLIENT: "connections end with the broker",
    RequestCode.SEND_REPLY_MESSAGE: "the asker has it, or the answer is an error",
    RequestCode.SEND_REPLY_MESSAGE_V2: "the asker has it, or the answer is an error",
    RequestCode.CLEAN_UNUSED_TOPIC: "queues that come back belong to no topic",
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: _READS,
    RequestCode.DELETE_EXPIRED_COMMITLOG: _READS,
    OwnRequestCode.HAND_OVER: "an elector keeps it, and this broker has none",
    OwnRequestCode.REMOVE_FILTER: "real processes: see the tests of filters in Python",
    RequestCode.PULL_MESSAGE: _BACK,
    RequestCode.LITE_PULL_MESSAGE: _BACK,
    RequestCode.QUERY_CONSUMER_OFFSET: _BACK,
    RequestCode.CONSUME_MESSAGE_DIRECTLY: _CLIENT,
    RequestCode.GET_CONSUMER_RUNNING_INFO: _CLIENT,
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: _CLIENT,
    **dict.fromkeys(
        (
            OwnRequestCode.FILTERS,
            RequestCode.AUTH_GET_USER,
            RequestCode.AUTH_LIST_USER,
            RequestCode.AUTH_GET_ACL,
            RequestCode.AUTH_LIST_ACL,
            RequestCode.GET_BROKER_CLUSTER_ACL_INFO,
            OwnRequestCode.GROUP_STATE,
            OwnRequestCode.ESCAPED_MESSAGES,
            OwnRequestCode.HELD_LEASES,
            OwnRequestCode.STATE_CHANGES,
            RequestCode.CHECK_CLIENT_CONFIG,
            RequestCode.EXCHANGE_BROKER_HA_INFO,
            RequestCode.GET_BROKER_EPOCH_CACHE,
            RequestCode.GET_ALL_CONSUMER_OFFSET,
            RequestCode.GET_ALL_DELAY_OFFSET,
            RequestCode.GET_ALL_MESSAGE_REQUEST_MODE,
            RequestCode.GET_ALL_PRODUCER_INFO,
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
            RequestCode.GET_ALL_TOPIC_CONFIG,
            RequestCode.GET_BROKER_CONFIG,
            RequestCode.GET_BROKER_CONSUME_STATS,
            RequestCode.GET_BROKER_EPOCH_CACHE,
            RequestCode.GET_BROKER_HA_STATUS,
            RequestCode.GET_BROKER_RUNTIME_INFO,
            RequestCode.GET_CONSUMER_CONNECTION_LIST,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP,
            RequestCode.GET_CONSUME_STATS,
            RequestCode.GET_EARLIEST_MSG_STORETIME,
            RequestCode.GET_MAX_OFFSET,
            RequestCode.GET_MIN_OFFSET,
            RequestCode.GET_PRODUCER_CONNECTION_LIST,
            RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG,
            RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER,
            RequestCode.GET_TIMER_CHECK_POINT,
            RequestCode.GET_TIMER_METRICS,
            RequestCode.GET_TOPIC_CONFIG,
            RequestCode.GET_TOPIC_STATS_INFO,
            RequestCode.GET_BROKER_LITE_INFO,
            RequestCode.GET_PARENT_TOPIC_INFO,
            RequestCode.GET_LITE_TOPIC_INFO,
            RequestCode.GET_LITE_CLIENT_INFO,
            RequestCode.GET_LITE_GROUP_INFO,
            RequestCode.TRIGGER_LITE_DISPATCH,
            RequestCode.NOTIFICATION,
            RequestCode.PEEK_MESSAGE,
            RequestCode.POLLING_INFO,
            RequestCode.POP_ROLLBACK,
            RequestCode.QUERY_ASSIGNMENT,
            RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE,
            RequestCode.QUERY_CONSUME_QUEUE,
            RequestCode.QUERY_CONSUME_TIME_SPAN,
            RequestCode.QUERY_CORRECTION_OFFSET,
            RequestCode.QUERY_MESSAGE,
            RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER,
            RequestCode.QUERY_TOPICS_BY_CONSUMER,
            RequestCode.QUERY_TOPIC_CONSUME_BY_WHO,
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
            RequestCode.VIEW_BROKER_STATS_DATA,
            RequestCode.VIEW_MESSAGE_BY_ID,
        ),
        _READS,
    ),
}
#: What may be lost: a committed message itself shows that its transaction has ended.
MAY_LOSE = {commits_transaction: "undecided"}
CHANGES = [change for entry in WALK.values() if not isinstance(entry, str) for change in entry]


async def known(asker: Asker) -> dict[str, Any]:
    """All that a broker knows and has to keep."""
    tables = asker.broker._parts.tables
    offsets = tables.offsets.to_json()["offsetTable"]
    staged = asker.broker._parts.publication.ledger
    return {
        "staged": {name: (writer.attempts, writer.last) for name, writer in staged.writers.items()},
        "topics": tables.topics.to_json()["topicConfigTable"],
        "groups": {**tables.groups.to_json(), "dataVersion": None},
        "offsets": {key: each for key, each in offsets.items() if SYSTEM_GROUP not in key},
        "in flight": tables.offsets.popped.to_json()["inFlight"],
        "popped in order": tables.pop_orders.to_json()["table"],
        "mappings": decode_state(encode_state(tables.mappings.to_json()))[
            "topicQueueMappingInfoMap"
        ],
        "accounts": tables.accounts.to_json(),
        "modes": tables.request_modes.to_json(),
        "settings": asker.broker.settings.lines(),
        "leases": decode_state(encode_state(tables.lock_table.to_json()))["lockTable"],
        "undecided": tables.ledger.by_topic,
        "messages": {
            (topic, number): await asker.max_offset(topic, number)
            for topic in sorted(
                tables.topics.by_name.keys() - {OP} - tables.mappings.by_topic.keys()
            )
            for number in range(2)
        },
    }


def test_each_request_of_a_broker_is_in_the_walk() -> None:
    async def test() -> None:
        async with serving() as asker:
            dispatch = asker.broker._dispatch
            assert dispatch is not None
            assert set(dispatch.counts) - {-1} == set(WALK)

    simulate(lambda network: test())


@pytest.mark.parametrize("end", ["kill", "loss of power"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_was_answered_is_there_after_the_end_of_the_broker(change: Change, end: str) -> None:
    is_kill = end == "kill"
    store = STORE if is_kill else SYNCED
    settings: dict[str, Any] = {"transaction_checks_max": 1, "transaction_check_ms": 1000}

    async def main() -> None:
        disk = FaultyDisk(7, sync_seconds=(0.001, 0.002))
        disk.make_directory(ROOT)
        async with serving(disk, store=store, **settings) as asker:
            await change(asker)
            left = disk.after_kill() if is_kill else disk.after_power_loss()
            before = await known(asker)
        async with serving(left, store=store, **settings) as asker:
            after = await known(asker)
        for name, value in before.items():
            assert after[name] == value or name == MAY_LOSE.get(change), name

    simulate(lambda network: main())


def test_a_commit_after_a_rollback_that_was_answered_is_refused_also_by_the_next_process(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        disk = FaultyDisk()
        disk.make_directory(ROOT)
        async with serving(disk) as asker:
            await asker.create("T", 2)
            end = await send_half(asker, UNIQ_KEY="u1")
            await done(asker, rollback_of(end))
            left = disk.after_kill()
        async with serving(left) as asker:
            assert await asker.code(end) == 1
            assert await asker.bodies("T") == []

    with caplog.at_level(logging.WARNING):
        simulate(lambda network: main())
    assert "wants to commit the transaction at" in caplog.text


def test_a_rollback_that_the_disk_refuses_is_no_success() -> None:
    async def main() -> None:
        disk = FaultyDisk()
        disk.make_directory(ROOT)
        async with serving(disk) as asker:
            await asker.create("T", 2)
            end = rollback_of(await send_half(asker, UNIQ_KEY="u1"))
            disk.fail("map", errno.ENOSPC)
            assert await asker.code(end) != SUCCESS
            await done(asker, end)
            assert await asker.max_offset(OP) == 1
            assert await asker.max_offset(HALF) == 1

    simulate(lambda network: main())


def test_an_older_round_does_not_overwrite_what_was_saved_at_once() -> None:
    async def main() -> None:
        disk = FaultyDisk(3, sync_seconds=(1.0, 1.5))
        disk.make_directory(ROOT)
        async with serving(disk, offset_save_ms=5_000) as asker:
            await filled(asker)
            rounds = asker.broker._parts.files.offset_rounds
            older = asyncio.create_task(rounds.save())
            await asyncio.sleep(0)
            await done(asker, ResetOffset(topic="T", group="g", timestamp=0))
            await older
            left = disk.after_kill()
        async with serving(left) as asker:
            assert await asker.committed("g", "T") == 0

    simulate(lambda network: main())
