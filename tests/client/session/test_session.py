from __future__ import annotations

import asyncio

from sprocket.client.base.world import ClientEnvironment
from sprocket.client.config import ClientConfig
from sprocket.client.session.session import Session
from sprocket.protocol.command import BINARY
from sprocket.protocol.requests.route import RouteOfTopic
from tests.client.fakes import FakeBroker, play, world

SERVERS = ("127.0.0.1:1",)


def test_those_that_agree_in_loop_servers_and_settings_share_a_session() -> None:
    async def main() -> None:
        here = world()
        one = Session.join(SERVERS, ClientConfig(), here)
        assert Session.join(SERVERS, ClientConfig(), here) is one
        others = [
            Session.join(("127.0.0.1:2",), ClientConfig(), here),
            Session.join(SERVERS, ClientConfig(heartbeat_ms=1000), here),
            Session.join(SERVERS, ClientConfig(), world("elsewhere")),
        ]
        assert len({id(session) for session in (one, *others)}) == 4
        await one.leave()
        assert Session.join(SERVERS, ClientConfig(), here) is one
        await one.leave()
        await one.leave()
        again = Session.join(SERVERS, ClientConfig(), here)
        assert again is not one
        for session in (again, *others):
            await session.leave()

    play(main)


def test_members_of_one_group_never_share_but_those_of_two_do() -> None:
    async def main() -> None:
        here = world()
        one = Session.join(SERVERS, ClientConfig(instance="app"), here, group="readers")
        two = Session.join(SERVERS, ClientConfig(instance="app"), here, group="readers")
        other = Session.join(SERVERS, ClientConfig(instance="app"), here, group="writers")
        assert one is other
        assert one is not two
        assert one.client_id == "10.0.0.9@app"
        assert two.client_id == "10.0.0.9@app#1"
        await one.leave(group="readers")
        assert Session.join(SERVERS, ClientConfig(instance="app"), here, group="readers") is one
        await two.leave(group="readers")
        for group in ("readers", "writers"):
            await one.leave(group=group)

    play(main)


def test_two_containers_with_equal_address_and_process_have_different_ids() -> None:
    async def main() -> None:
        sessions = [
            Session.join(SERVERS, ClientConfig(), world(f"container {n}", "172.17.0.2"))
            for n in range(2)
        ]
        ids = [session.client_id for session in sessions]
        assert ids[0] != ids[1]
        assert all(client_id.startswith("172.17.0.2@1#") for client_id in ids)
        for session in sessions:
            await session.leave()

    play(main)


def test_the_binary_header_can_be_chosen() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            session = Session.join((broker.address,), ClientConfig(header="binary"), world())
            await session.routes.refresh()
            try:
                from sprocket.base.deadline import Deadline

                await session.routes.of("orders", Deadline.after(3))
            finally:
                await session.leave()
            assert broker.last(RouteOfTopic).serialization == BINARY

    play(main)


def test_a_session_ends_though_servers_do_not_answer() -> None:
    async def main() -> None:
        session = Session.join(SERVERS, ClientConfig(), world())
        session.add_producer("senders")
        await asyncio.sleep(40)
        await session.remove_producer("senders")
        await session.leave()

    play(main)


def test_the_real_world_has_an_address_and_differs_from_process_to_process() -> None:
    real = ClientEnvironment.real()
    assert len(real.packed_host) in (4, 16)
    assert real.process > 0
    assert real.clock.now_ms() > 1_700_000_000_000
