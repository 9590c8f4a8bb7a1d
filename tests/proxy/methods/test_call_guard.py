"""Calls pass with a signature and the rights that they need, wherever the broker is."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from sprocket.admin import acls, users
from sprocket.admin.caller import Caller
from sprocket.auth.policies import PolicyEntry
from sprocket.broker.config import BrokerConfig
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.http2.status import GrpcError
from sprocket.proxy.messages import rocketmq_pb2 as pb
from tests.broker.accounts import INNER, ROOT_USER
from tests.proxy.world import (
    GROUP,
    TOPIC,
    Client,
    World,
    consumer_settings,
    message,
    play,
    producer_settings,
)

TIME = "20231227T194619Z"
CLOSED = ProxyConfig(
    port=8081, authentication=True, authorization=True, inner_keys=INNER["inner_keys"]
)
Test = Callable[[World, Caller], Awaitable[None]]

pytestmark = pytest.mark.parametrize("inner", [False, True], ids=["elsewhere", "inside"])


def signed(world: World, name: str, secret: str = "") -> Client:
    """A client with keys."""
    made = hmac.new((secret or f"{name}'s").encode(), TIME.encode(), hashlib.sha1).hexdigest()
    authorization = (
        f"MQv2-HMAC-SHA1 Credential={name}, SignedHeaders=x-mq-date-time, Signature={made}"
    )
    metadata: dict[str, Any] = {"x-mq-date-time": TIME, "authorization": authorization}
    return Client(world.proxy, f"{name}@1", **metadata)


def play_closed(test: Test, *, inner: bool, config: ProxyConfig = CLOSED) -> None:
    """Runs a test before a closed broker with the topic, and with the users ann and eve."""

    async def main(world: World, nobody: Client) -> None:
        caller = Caller(world.pool, world.names)
        await world.make_topic()
        for name in ("ann", "eve"):
            await users.create(caller, name, f"{name}'s")
        await test(world, caller)

    play(main, inner=inner, broker=BrokerConfig(**INNER), config=config, signer=ROOT_USER)


async def receive_code(client: Client) -> int:
    """The code of a receive that is refused: its reply is nothing else."""
    call = client.receive_call()
    await client.run_receive(call)
    (only,) = call.sent
    return pb.ReceiveMessageResponse.FromString(only).status.code


async def allow(caller: Caller, *entries: str) -> None:
    for each in entries:
        actions, resource = each.split()
        await acls.grant(caller, "ann", PolicyEntry.of(resource, actions.split(","), "Allow"))


def test_a_call_without_a_signature_of_a_user_is_unauthorized(inner: bool) -> None:
    async def test(world: World, caller: Caller) -> None:
        calls = [
            (Client(world.proxy), "not signed"),
            (signed(world, "nobody"), "check signature"),
            (signed(world, "ann", "wrong"), "check signature"),
        ]
        for client, told in calls:
            for reply in (
                await client.send(message()),
                await client.ask("Heartbeat", pb.HeartbeatRequest()),
                await client.ask("QueryRoute", pb.QueryRouteRequest(topic=pb.Resource(name=TOPIC))),
                await client.connect(producer_settings()),
            ):
                assert reply.status.code == pb.UNAUTHORIZED
                assert told in reply.status.message
            assert await receive_code(client) == pb.UNAUTHORIZED
        assert await world.count(TOPIC) == 0

    play_closed(test, inner=inner)


def test_each_call_needs_its_rights(inner: bool) -> None:
    async def test(world: World, caller: Caller) -> None:
        ann = signed(world, "ann")
        told = (await ann.send(message())).status
        assert told.code == pb.UNAUTHORIZED
        assert "Topic:orders" in told.message
        assert "needed: Pub" in told.message
        await allow(caller, "Pub Topic:orders")
        if not inner:
            await asyncio.sleep(60)  # the proxy knows users for 20 s
            await ann.send(message())
            await asyncio.sleep(1)
        assert (await ann.send(message(b"one"))).status.code == pb.OK
        assert (await ann.connect(producer_settings())).status.code == pb.OK
        assert await receive_code(ann) == pb.UNAUTHORIZED
        assert (await ann.connect(consumer_settings())).status.code == pb.UNAUTHORIZED
        assert (await ann.send(message(topic="other"))).status.code == pb.UNAUTHORIZED

    play_closed(test, inner=inner)


def test_a_consumer_with_its_rights_consumes(inner: bool) -> None:
    async def test(world: World, caller: Caller) -> None:
        await world.make_group()
        await allow(caller, f"Sub Group:{GROUP}", "Pub,Sub Topic:ord*")
        ann, eve = signed(world, "ann"), signed(world, "eve")
        assert (await ann.connect(consumer_settings())).status.code == pb.OK
        assert (await ann.receive(hold=5)).code == pb.MESSAGE_NOT_FOUND
        await ann.send(message(b"one"), message(b"two"))
        found = await ann.receive()
        assert sorted(found.bodies) == [b"one", b"two"]
        for client, code in ((eve, pb.UNAUTHORIZED), (ann, pb.OK)):
            entry = pb.AckMessageEntry(message_id="m", receipt_handle=found.handles[0])
            reply = await client.ask(
                "AckMessage",
                pb.AckMessageRequest(
                    group=pb.Resource(name=GROUP), topic=pb.Resource(name=TOPIC), entries=[entry]
                ),
            )
            assert reply.status.code == code
        beat = pb.HeartbeatRequest(group=pb.Resource(name=GROUP))
        assert (await ann.ask("Heartbeat", beat)).status.code == pb.OK
        assert (await eve.ask("Heartbeat", beat)).status.code == pb.UNAUTHORIZED
        await asyncio.sleep(30)  # the proxy's own heartbeats reach the broker too
        end = pb.NotifyClientTerminationRequest(group=pb.Resource(name=GROUP))
        assert (await ann.ask("NotifyClientTermination", end)).status.code == pb.OK

    play_closed(test, inner=inner)


def test_a_super_user_may_do_everything_and_a_disabled_one_nothing(inner: bool) -> None:
    async def test(world: World, caller: Caller) -> None:
        root = signed(world, "root")
        assert (await root.send(message())).status.code == pb.OK
        await users.update(caller, "ann", status="disable")
        told = (await signed(world, "ann").send(message())).status
        assert (told.code, told.message) == (pb.UNAUTHORIZED, "User:ann is disabled.")

    play_closed(test, inner=inner)


def test_without_authorization_a_signature_is_enough(inner: bool) -> None:
    async def test(world: World, caller: Caller) -> None:
        assert (await signed(world, "ann").send(message())).status.code == pb.OK
        assert (await Client(world.proxy).send(message())).status.code == pb.UNAUTHORIZED

    play_closed(test, inner=inner, config=replace(CLOSED, authorization=False))


def test_the_request_is_not_read_before_the_signature_is_checked(inner: bool) -> None:
    class Unreadable:
        def SerializeToString(self) -> bytes:
            return b"\xff" * 10

    async def test(world: World, caller: Caller) -> None:
        reply = await Client(world.proxy).ask("SendMessage", Unreadable())
        assert reply.status.code == pb.UNAUTHORIZED

    play_closed(test, inner=inner)


def test_the_address_of_the_client_counts(inner: bool) -> None:
    async def test(world: World, caller: Caller) -> None:
        for network, code in (("10.9.8.0/24", pb.OK), ("10.1.0.0/16", pb.UNAUTHORIZED)):
            entry = PolicyEntry.of(f"Topic:{TOPIC}", ["Pub"], "Allow", [network])
            name = "ann" if code == pb.OK else "eve"
            await acls.grant(caller, name, entry)
            assert (await signed(world, name).send(message())).status.code == code

    play_closed(test, inner=inner)


def test_a_receive_that_waits_was_let_in_once(inner: bool) -> None:
    async def test(world: World, caller: Caller) -> None:
        await allow(caller, f"Sub Group:{GROUP}", f"Sub Topic:{TOPIC}")
        ann = signed(world, "ann")
        waiting = ann.receiving(hold=10)
        await asyncio.sleep(1)
        await signed(world, "root").send(message(b"one"))
        assert (await waiting).bodies == [b"one"]

    play_closed(test, inner=inner)


def test_a_client_id_belongs_to_the_user_who_made_it_known(inner: bool) -> None:
    async def test(world: World, caller: Caller) -> None:
        for name in ("ann", "eve"):
            entry = PolicyEntry.of("*", ["All"], "Allow")
            await acls.grant(caller, name, entry)
        ann, eve = signed(world, "ann"), signed(world, "eve")
        eve.metadata["x-mq-client-id"] = ann.metadata["x-mq-client-id"]
        await ann.connect(consumer_settings())
        end = pb.NotifyClientTerminationRequest(group=pb.Resource(name=GROUP))
        for request in (pb.HeartbeatRequest(group=pb.Resource(name=GROUP)), end):
            name = type(request).__name__.removesuffix("Request")
            assert (await eve.ask(name, request)).status.code == pb.UNAUTHORIZED
        with pytest.raises(GrpcError, match="another user"):
            await eve.connect(consumer_settings())
        assert (await ann.ask("NotifyClientTermination", end)).status.code == pb.OK

    play_closed(test, inner=inner)


def test_a_handle_or_id_that_was_made_up_reaches_no_message_of_another_topic(inner: bool) -> None:
    async def test(world: World, caller: Caller) -> None:
        await world.make_topic("secret")
        await world.make_topic("secret-half", kind="TRANSACTION")
        await world.make_group()
        await allow(caller, f"Sub Group:{GROUP}", f"Pub,Sub Topic:{TOPIC}")
        root, ann = signed(world, "root"), signed(world, "ann")
        half = message(topic="secret-half", message_type=pb.TRANSACTION)
        (sent,) = (await root.send(half)).entries
        for client, topic, code in (
            (ann, TOPIC, pb.INTERNAL_SERVER_ERROR),
            (root, "secret-half", pb.OK),
        ):
            end = pb.EndTransactionRequest(
                topic=pb.Resource(name=topic), transaction_id=sent.transaction_id,
                message_id=sent.message_id, resolution=pb.COMMIT,
            )  # fmt: skip
            reply = await client.ask("EndTransaction", end)
            assert reply.status.code == code
        await root.send(message(b"for nobody else", topic="secret"))
        await root.receive(topic="secret", hold=5)
        await root.send(message(b"a secret", topic="secret"))
        (handle,) = (await root.receive(topic="secret")).handles
        for client, topic, code in (
            (ann, TOPIC, pb.INTERNAL_SERVER_ERROR),
            (root, "secret", pb.OK),
        ):
            forward = pb.ForwardMessageToDeadLetterQueueRequest(
                group=pb.Resource(name=GROUP), topic=pb.Resource(name=topic),
                receipt_handle=handle, message_id="m",
            )  # fmt: skip
            reply = await client.ask("ForwardMessageToDeadLetterQueue", forward)
            assert reply.status.code == code
            assert ("of another topic" in reply.status.message) is (client is ann)

    play_closed(test, inner=inner)
