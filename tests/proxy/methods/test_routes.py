"""Routes and shares."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sprocket.broker.config import BrokerConfig
from sprocket.proxy.messages import rocketmq_pb2 as pb
from tests.proxy.world import GROUP, TOPIC, Client, World, play

HERE = pb.Endpoints(scheme=pb.IPv4, addresses=[pb.Address(host="10.1.1.1", port=18_081)])


async def route(client: Client, topic: str = "orders", endpoints: Any = HERE) -> Any:
    request = pb.QueryRouteRequest(topic=pb.Resource(name=topic), endpoints=endpoints)
    return await client.ask("QueryRoute", request)


async def assignment(client: Client, topic: str = "orders", group: str = GROUP) -> Any:
    request = pb.QueryAssignmentRequest(
        topic=pb.Resource(name=topic), group=pb.Resource(name=group), endpoints=HERE
    )
    return await client.ask("QueryAssignment", request)


def test_every_broker_is_behind_the_proxy_at_the_address_that_the_client_uses() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic(queues=2)
        found = await route(client)
        assert found.status.code == pb.OK
        queues = [(each.broker.name, each.id) for each in found.message_queues]
        assert sorted(queues) == [(f"broker-{n}", at) for n in (0, 1) for at in (0, 1)]
        assert all(each.broker.endpoints == HERE for each in found.message_queues)
        assert all(list(each.accept_message_types) == [pb.NORMAL] for each in found.message_queues)

    play(test, brokers=2)


def test_a_client_that_does_not_say_its_address_gets_the_one_that_it_called() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic()
        (queue,) = (await route(client, endpoints=None)).message_queues
        (address,) = queue.broker.endpoints.addresses
        assert (address.host, address.port) == ("proxy.example", 8081)

        for authority, scheme, host in (
            ("10.0.0.1:8081", pb.IPv4, "10.0.0.1"),
            ("[::1]:8081", pb.IPv6, "::1"),
        ):
            client.metadata[":authority"] = authority
            (queue,) = (await route(client, endpoints=None)).message_queues
            found = queue.broker.endpoints
            assert (found.scheme, found.addresses[0].host) == (scheme, host)

    play(test)


def test_a_route_says_what_a_topic_takes() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic("fifo", kind="FIFO")
        await world.make_topic("mixed", kind="MIXED")
        assert list((await route(client, "fifo")).message_queues[0].accept_message_types) == [2]
        found = (await route(client, "mixed")).message_queues[0].accept_message_types
        assert list(found) == [1, 2, 3, 4]

    play(test, broker=BrokerConfig(mixed_message_type=True))


def test_a_topic_that_is_not_there_is_not_made() -> None:
    async def test(world: World, client: Client) -> None:
        assert (await route(client, "unknown")).status.code == pb.TOPIC_NOT_FOUND
        assert (await route(client, "a b")).status.code == pb.ILLEGAL_TOPIC
        assert (await assignment(client, "unknown")).status.code == pb.TOPIC_NOT_FOUND
        assert (await assignment(client, group="a b")).status.code == 40003

    play(test)


def test_a_new_topic_is_found_and_one_that_is_gone_is_gone() -> None:
    async def test(world: World, client: Client) -> None:
        assert (await route(client)).status.code == pb.TOPIC_NOT_FOUND
        await world.make_topic()
        assert (await route(client)).status.code == pb.OK

    play(test)


def test_a_member_receives_from_brokers_or_in_order_from_queues() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic(queues=2)
        await world.make_topic("closed", permission=2)
        await world.make_group("ordered", consume_message_orderly=True)
        found = await assignment(client)
        assert [each.message_queue.id for each in found.assignments] == [-1]
        found = await assignment(client, group="ordered")
        assert [each.message_queue.id for each in found.assignments] == [0, 1]
        assert (await assignment(client, "closed")).status.code == pb.FORBIDDEN

    play(test)


@pytest.mark.parametrize("method", ["QueryRoute", "QueryAssignment"])
def test_what_a_client_says_of_itself_is_not_repeated_without_bound(method: str) -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic(queues=16)
        kind = getattr(pb, f"{method}Request")
        long = kind(topic=pb.Resource(name=TOPIC))
        long.endpoints.addresses.add(host="h" * 2000, port=1)
        wide = kind(topic=pb.Resource(name=TOPIC, resource_namespace="n" * 300))
        usual = kind(topic=pb.Resource(name=TOPIC, resource_namespace="n"))
        usual.endpoints.addresses.extend(
            [pb.Address(host=f"proxy-{at}", port=1) for at in range(9)]
        )
        for request, code in ((long, pb.BAD_REQUEST), (wide, pb.BAD_REQUEST), (usual, pb.OK)):
            if method == "QueryAssignment":
                request.group.name = "g"
            assert (await client.ask(method, request)).status.code == code
        client.metadata[":authority"] = "h" * 10_000 + ":1"
        usual.ClearField("endpoints")
        reply = await client.ask(method, usual)
        assert reply.status.code == pb.OK
        assert reply.ByteSize() < 5_000

    play(test)


def test_others_have_their_turns_while_routes_of_many_queues_are_made() -> None:
    async def test(world: World, client: Client) -> None:
        await world.make_topic(queues=4096)
        await world.make_group(consume_message_orderly=True)
        request = pb.QueryRouteRequest(topic=pb.Resource(name=TOPIC))
        assert len((await client.ask("QueryRoute", request)).message_queues) == 4096
        share = pb.QueryAssignmentRequest(
            topic=pb.Resource(name=TOPIC), group=pb.Resource(name=GROUP)
        )
        assert len((await client.ask("QueryAssignment", share)).assignments) == 4096
        asked = [asyncio.ensure_future(client.ask("QueryRoute", request)) for _ in range(5)]
        asked += [asyncio.ensure_future(client.ask("QueryAssignment", share)) for _ in range(5)]
        turns = 0
        while not all(each.done() for each in asked):
            turns += 1
            await asyncio.sleep(0)
        assert turns >= 10 * 8

    play(test)
