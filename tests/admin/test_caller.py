"""Asking name servers and brokers."""

from __future__ import annotations

import asyncio

import pytest

from sprocket.admin.caller import BrokersFailed, Caller
from sprocket.base.errors import (
    CallTimeout,
    ConnectFailed,
    QueryNotFound,
    TopicNotFound,
    UsageError,
)
from sprocket.nameserver.config import NameServerConfig
from sprocket.nameserver.nameserver import NameServer
from sprocket.protocol.requests.route import ClusterOf, DeleteTopicRoute, GetKv
from sprocket.remoting.pool import Pool
from sprocket.testing.loop import simulate
from tests.support import run

NOBODY = "127.0.0.1:1"


def test_a_name_server_that_is_gone_is_passed_over() -> None:
    async def story() -> None:
        async with NameServer(NameServerConfig(port=0)) as server, Pool() as pool:
            caller = Caller(pool, [NOBODY, server.address])
            assert (await caller.ask_nameserver(ClusterOf())).code == 0
            with pytest.raises(UsageError, match="no broker is registered"):
                await caller.masters()

    run(story())


def test_a_no_is_not_asked_for_twice() -> None:
    async def story() -> None:
        async with NameServer(NameServerConfig(port=0)) as server, Pool() as pool:
            with pytest.raises(QueryNotFound):
                await Caller(pool, [server.address, NOBODY]).ask_nameserver(
                    GetKv(namespace="n", key="k")
                )

    run(story())


def test_none_there_is_the_last_failure() -> None:
    async def story() -> None:
        async with Pool() as pool:
            with pytest.raises(ConnectFailed):
                await Caller(pool, [NOBODY]).ask_nameserver(ClusterOf())

    run(story())


def test_telling_all_tells_those_that_are_there_and_then_complains() -> None:
    async def story() -> None:
        async with NameServer(NameServerConfig(port=0)) as server, Pool() as pool:
            await Caller(pool, [server.address]).tell_nameservers(DeleteTopicRoute(topic="x"))
            with pytest.raises(BrokersFailed, match="cannot be reached"):
                await Caller(pool, [NOBODY, server.address]).tell_nameservers(
                    DeleteTopicRoute(topic="x")
                )

    run(story())


def test_without_name_servers_there_is_nobody_to_ask() -> None:
    with pytest.raises(UsageError, match="no name server is given"):
        Caller(Pool(), [])


def test_several_are_asked_at_the_same_time_and_each_failure_is_named() -> None:
    async def work(name: str, address: str) -> str:
        await asyncio.sleep(5)
        if name in failing:
            raise failing[name]
        return address

    async def ask() -> dict[str, str]:
        return await caller.at_each(servers, work, absent=(TopicNotFound,))

    async def story() -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        assert await ask() == servers
        failing["b"] = CallTimeout("b is silent")
        failing["d"] = TopicNotFound("not here")
        with pytest.raises(BrokersFailed) as told:
            await ask()
        assert told.value.done == ["a", "c", "d"]
        assert str(told.value) == "only a, c, d answered; failed at b (b: b is silent)"
        del failing["b"]
        assert list(await ask()) == ["a", "b", "c"]
        failing.update(dict.fromkeys(servers, CallTimeout("all are silent")))
        with pytest.raises(CallTimeout):
            await ask()
        assert loop.time() - begun == 20

    failing: dict[str, Exception] = {}
    servers = {name: f"{name}:1" for name in "abcd"}
    caller = Caller(Pool(), ["n:1"])
    simulate(lambda network: story())
