"""A broker and a name server record what is changed, by whom, and how it ended."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sprocket.audit.audit_log import AuditLog
from sprocket.audit.config import AuditConfig
from sprocket.audit.trail import NO_REPLY, AuditTrail
from sprocket.base.deadline import Deadline
from sprocket.base.errors import ConfigError
from sprocket.broker.broker import Broker
from sprocket.nameserver.config import NameServerConfig
from sprocket.nameserver.nameserver import NameServer
from sprocket.protocol.command import Command, Header, Reply
from sprocket.protocol.requests import route
from sprocket.protocol.requests.admin import BrokerConfigOf, UpdateBrokerConfig
from sprocket.protocol.requests.group import DeleteGroup
from sprocket.protocol.requests.offset import ResetOffset, UpdateOffset
from sprocket.protocol.requests.topic import CreateTopic, DeleteTopic
from sprocket.protocol.signing import Signer
from sprocket.remoting.endpoints import EventualResponse
from sprocket.remoting.pool import Pool
from sprocket.remoting.transport import Peer
from sprocket.testing.clock import LoopClock
from sprocket.testing.disk import MemoryDisk
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.loop import simulate
from tests.broker.accounts import CLOSED, ROOT_USER, make_user
from tests.broker.parts import CONFIG, ROOT, STORE, Asker, another

ON = AuditConfig(enabled=True)


def new(disk: MemoryDisk, audit: AuditConfig | None = ON) -> Broker:
    return Broker(
        CONFIG, store=STORE, root=ROOT, disk=disk, clock=LoopClock(), entropy=SeededEntropy(1),
        audit=audit,
    )  # fmt: skip


def play(test: Callable[[Asker], Awaitable[None]]) -> list[dict[str, Any]]:
    """What is in the audit log after a broker was asked."""
    disk = MemoryDisk()
    disk.make_directory(ROOT)

    async def main(_: object) -> None:
        async with new(disk) as broker:
            asker = Asker(broker)
            async with asker.pool:
                await test(asker)

    simulate(main)
    content = disk.read(f"{ROOT}/audit/broker/audit.jsonl") or b""
    return [json.loads(line) for line in content.splitlines()]


def topic(name: str, queues: int = 1) -> CreateTopic:
    return CreateTopic(
        topic=name, default_topic="TBW102", read_queue_nums=queues, write_queue_nums=queues,
        perm=6, topic_filter_type="SINGLE_TAG",
    )  # fmt: skip


def test_a_change_is_recorded_with_who_what_and_result() -> None:
    async def test(asker: Asker) -> None:
        await asker.beat("g", client_id="me@1", topics={"t": "*"})
        assert await asker.code(topic("orders", 3)) == 0
        assert await asker.code(topic("not a name")) != 0
        assert await asker.code(DeleteTopic(topic="orders")) == 0
        await asker.call(BrokerConfigOf())
        await asker.send("other")

    created, refused, deleted = play(test)
    assert (created["request"], created["code"], created["result"]) == (
        "UPDATE_AND_CREATE_TOPIC", 17, 0,
    )  # fmt: skip
    assert (created["named"]["topic"], created["named"]["readQueueNums"]) == ("orders", "3")
    assert created["client"] == "me@1"
    assert created["server"] == "broker-a"
    assert created["address"].rpartition(":")[2].isdigit()
    assert refused["result"] != 0
    assert "illegal characters" in refused["remark"]
    assert refused["named"]["topic"] == "not a name"
    assert (deleted["request"], deleted["named"]) == ("DELETE_TOPIC_IN_BROKER", {"topic": "orders"})


def test_settings_are_recorded_by_name_and_secrets_never() -> None:
    async def test(asker: Asker) -> None:
        text = b"brokerPermission=4\nbroker.filter_secret=Hunter2\npassword=Hunter2\n"
        await asker.call(UpdateBrokerConfig(), text)

    (found,) = play(test)
    assert found["result"] == 29
    assert found["named"]["settings"] == "brokerPermission=4 broker.filter_secret=(secret) password"
    assert "Hunter2" not in json.dumps(found)


def test_offsets_are_recorded_when_no_member_sets_them_and_alike_ones_once_in_a_minute() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t", 4)
        await asker.beat("mine", topics={"t": "*"})
        for queue in range(4):
            for group in ("mine", "theirs"):
                header = UpdateOffset(
                    consumer_group=group, topic="t", queue_id=queue, commit_offset=0
                )
                await asker.call(header)
        await asyncio.sleep(61)
        await asker.call(
            UpdateOffset(consumer_group="theirs", topic="t", queue_id=0, commit_offset=0)
        )
        reset = ResetOffset(topic="t", group="mine", timestamp=-1, is_force=True)
        await asker.call(reset)

    created, first, later, reset = play(test)
    assert created["request"] == "UPDATE_AND_CREATE_TOPIC"
    assert (first["request"], first["named"]["consumerGroup"], first["times"]) == (
        "UPDATE_CONSUMER_OFFSET", "theirs", 1,
    )  # fmt: skip
    assert later["times"] == 4
    assert (reset["request"], reset["named"]["group"]) == ("INVOKE_BROKER_TO_RESET_OFFSET", "mine")


def test_one_who_hangs_up_before_the_reply_is_recorded_too() -> None:
    async def test(asker: Asker) -> None:
        for name in ("a", "b", "c"):
            async with Pool() as pool:
                call = asyncio.ensure_future(
                    pool.call(asker.broker.address, topic(name), deadline=Deadline.after(9))
                )
                for _ in range(1_000):
                    if asker.broker._parts.tables.topics.get(name) is not None:
                        break
                    await asyncio.sleep(0.0001)
                call.cancel()
        await asyncio.sleep(1)

    assert {each["named"]["topic"] for each in play(test)} == {"a", "b", "c"}


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_reply_that_is_cancelled_at_any_step_leaves_a_line(steps: int) -> None:
    disk = MemoryDisk()

    async def main(_: object) -> None:
        log = AuditLog(ON, server="b", folder="/audit", disk=disk, clock=LoopClock())

        async def respond() -> Reply:
            await asyncio.sleep(1)
            return Reply()

        async def send(response: EventualResponse) -> None:
            assert isinstance(response, Awaitable)
            await response

        async with log:
            trail = AuditTrail(log)
            command = Command.request(DeleteTopic(topic="t"))
            peer = cast(Peer, SimpleNamespace(address="1.2.3.4:5"))
            sending = asyncio.ensure_future(send(trail.followed(command, peer, respond())))
            for _ in range(steps):
                await asyncio.sleep(0)
            sending.cancel()
            await asyncio.sleep(2)

    simulate(main)
    (found,) = [json.loads(line) for line in (disk.read("/audit/audit.jsonl") or b"").splitlines()]
    assert found["result"] == (NO_REPLY if steps else 0)


def test_who_signed_is_recorded_and_who_is_refused_too() -> None:
    disk = MemoryDisk()
    disk.make_directory(ROOT)
    config = replace(CONFIG, **CLOSED)

    async def main(_: object) -> None:
        broker = Broker(
            config, store=STORE, root=ROOT, disk=disk, clock=LoopClock(),
            entropy=SeededEntropy(1), audit=ON,
        )  # fmt: skip
        async with broker:
            nobody = Asker(broker)
            async with nobody.pool, another(nobody, ROOT_USER) as root:
                await make_user(root, "alice")
                async with another(nobody, Signer("alice", "alice's")) as alice:
                    assert await alice.code(DeleteTopic(topic="t")) == 16
                async with another(nobody, Signer("root", "guessed")) as liar:
                    assert await liar.code(DeleteTopic(topic="t")) == 16
                assert await nobody.code(DeleteTopic(topic="t")) == 16

    simulate(main)
    content = (disk.read(f"{ROOT}/audit/broker/audit.jsonl") or b"").decode()
    made, *refused = [json.loads(line) for line in content.splitlines()]
    assert (made["user"], made["request"], made["named"]["username"], made["result"]) == (
        "root", "AUTH_CREATE_USER", "alice", 0,
    )  # fmt: skip
    assert [(each["user"], each["result"]) for each in refused] == [
        ("alice", 16),
        ("", 16),
        ("", 16),
    ]
    assert "no permission" in refused[0]["remark"]
    assert "alice's" not in content
    assert "guessed" not in content


def test_nothing_is_written_unless_it_is_asked_for() -> None:
    disk = MemoryDisk()
    disk.make_directory(ROOT)

    async def main(_: object) -> None:
        async with new(disk, AuditConfig()) as broker:
            asker = Asker(broker)
            async with asker.pool:
                await asker.create("t")
                await asker.code(DeleteGroup(group_name="g"))

    simulate(main)
    assert "audit" not in disk.names(ROOT)


def test_a_name_server_records_settings_and_permissions() -> None:
    disk = MemoryDisk()

    async def main(_: object) -> None:
        config = NameServerConfig(kv_path="/ns/kv.json")
        async with (
            NameServer(config, disk=disk, audit=ON, clock=LoopClock()) as server,
            Pool() as pool,
        ):

            async def ask(header: Header, body: bytes = b"") -> Reply:
                deadline = Deadline.after(9)
                return await pool.call(server.address, header, body=body, deadline=deadline)

            await ask(route.PutKv(namespace="n", key="k", value="v"))
            await ask(route.GetKv(namespace="n", key="k"))
            await ask(route.WipeWritePermission(broker_name="b"))
            await ask(route.UpdateNameServerConfig(), b"listenPort=1\nsecret=Hunter2")
            await ask(route.DeleteTopicRoute(topic="t"))

    simulate(main)
    content = disk.read("/ns/audit/nameserver/audit.jsonl") or b""
    found = [json.loads(line) for line in content.splitlines()]
    assert [each["request"] for each in found] == [
        "PUT_KV_CONFIG", "WIPE_WRITE_PERM_OF_BROKER", "UPDATE_NAMESRV_CONFIG",
        "DELETE_TOPIC_IN_NAMESRV",
    ]  # fmt: skip
    assert found[0]["named"] == {"namespace": "n", "key": "k", "value": "v"}
    assert found[2]["named"] == {"settings": "listenPort=1 secret"}
    assert found[2]["result"] != 0
    assert b"Hunter2" not in content


def test_a_name_server_without_a_folder_says_what_is_missing() -> None:
    async def main(_: object) -> None:
        with pytest.raises(ConfigError, match="auditLogPath"):
            NameServer(NameServerConfig(), disk=MemoryDisk(), audit=ON)

    simulate(main)
