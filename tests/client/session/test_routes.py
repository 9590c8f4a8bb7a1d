from __future__ import annotations

import asyncio

import pytest

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ConnectFailed, RouteNotFound
from sprocket.client.session.routes import RouteCache
from sprocket.protocol.requests.route import RouteOfTopic
from sprocket.remoting.pool import Pool
from tests.client.fakes import FakeBroker, play


def test_the_next_name_server_is_asked_when_one_is_gone_or_knows_less() -> None:
    async def main() -> None:
        async with FakeBroker({"t": 1}) as knows, FakeBroker() as knows_less, Pool() as pool:
            servers = ["127.0.0.1:1", knows_less.address, knows.address]
            routes = RouteCache(pool, servers, first=0, timeout_ms=3000)
            assert len((await routes.of("t", Deadline.after(5))).readable) == 1
            await routes.fetch("t", Deadline.after(5))
            assert knows_less.count(RouteOfTopic) == 1, "it stays with the one that answered"
            with pytest.raises(RouteNotFound):
                await routes.of("nothing", Deadline.after(5))

    play(main)


def test_without_any_name_server_the_old_route_stays() -> None:
    async def main() -> None:
        async with Pool() as pool:
            async with FakeBroker({"t": 1}) as server:
                routes = RouteCache(pool, [server.address], first=0, timeout_ms=500)
                found = await routes.of("t", Deadline.after(5))
            await routes.refresh()
            assert routes.known("t") == found
            with pytest.raises(ConnectFailed, match="no name server"):
                await routes.fetch("other", Deadline.after(5))

    play(main)


def test_a_topic_that_vanishes_for_a_moment_keeps_its_route() -> None:
    async def main() -> None:
        async with FakeBroker({"t": 1}) as server, Pool() as pool:
            routes = RouteCache(pool, [server.address], first=0, timeout_ms=500)
            found = await routes.of("t", Deadline.after(5))
            del server.topics["t"]
            await routes.refresh()
            assert await routes.of("t", Deadline.after(5)) == found

    play(main)


def test_all_who_ask_at_once_share_one_question_and_changes_are_told() -> None:
    async def main() -> None:
        async with FakeBroker({"t": 1}) as server, Pool() as pool:
            routes = RouteCache(pool, [server.address], first=0, timeout_ms=500)
            changed: list[str] = []
            routes.on_change = changed.append
            await asyncio.gather(*(routes.of("t", Deadline.after(5)) for _ in range(20)))
            assert server.count(RouteOfTopic) == 1
            await routes.refresh()
            server.topics["t"] = 2
            await routes.refresh()
            assert changed == ["t", "t"]
            assert routes.address("broker-a") == server.address

    play(main)
