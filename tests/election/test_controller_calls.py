"""Requests to several controllers of which one leads."""

from __future__ import annotations

import asyncio

import pytest

from sprocket.election.controller_calls import ControllerCalls, ControllerRefused
from sprocket.election.elector import ElectorUnavailable
from sprocket.protocol.codes import RequestCode, ResponseCode
from sprocket.protocol.requests.election import (
    NextMember,
    NextMemberReply,
    RegisterMember,
)
from sprocket.remoting.pool import Pool
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.election.controllers import Controllers

NEXT = NextMember(cluster_name="c", broker_name="b")
CODE = RequestCode.CONTROLLER_GET_NEXT_BROKER_ID


def now() -> float:
    return asyncio.get_running_loop().time()


def test_the_one_that_leads_is_found_wherever_it_stands() -> None:
    async def main(network: Network) -> None:
        async with Controllers(9000, 9001, 9002) as controllers, Pool() as pool:
            for leader in (2, 0, 1):
                controllers.leader = leader
                calls = ControllerCalls(controllers.addresses, pool)
                reply = await calls.ask(NEXT)
                assert reply.read(NextMemberReply).next_broker_id == 1
                assert calls.leader == controllers.addresses[leader]

    simulate(main)


def test_a_single_known_one_names_the_one_that_leads() -> None:
    async def main(network: Network) -> None:
        async with Controllers(9000, 9001) as controllers, Pool() as pool:
            controllers.leader = 1
            calls = ControllerCalls(controllers.addresses[:1], pool)
            await calls.ask(NEXT)
            assert calls.leader == controllers.addresses[1]

    simulate(main)


def test_a_request_waits_for_an_election_among_controllers() -> None:
    async def main(network: Network) -> None:
        async with Controllers(9000, 9001) as controllers, Pool() as pool:
            calls = ControllerCalls(controllers.addresses, pool)
            await calls.ask(NEXT)
            controllers.leader = None
            asyncio.get_running_loop().call_later(2, setattr, controllers, "leader", 1)
            began = now()
            await calls.ask(NEXT)
            assert 2 <= now() - began < 3

    simulate(main)


def test_without_one_that_leads_it_ends_in_time() -> None:
    async def main(network: Network) -> None:
        async with Controllers(9000, 9001) as controllers, Pool() as pool:
            controllers.leader = None
            calls = ControllerCalls([*controllers.addresses, "127.0.0.1:5"], pool)
            began = now()
            with pytest.raises(ElectorUnavailable, match="none of them leads"):
                await calls.ask(NEXT)
            assert now() - began < 7

    simulate(main)


def test_a_silent_one_costs_seconds_and_only_what_may_be_repeated_is() -> None:
    async def main(network: Network) -> None:
        async with Controllers(9000) as controllers, Pool() as pool:
            calls = ControllerCalls(controllers.addresses, pool)
            controllers.silent.add(CODE)
            counts = []
            for is_repeatable in (True, False):
                before = len(controllers.asked)
                with pytest.raises(ElectorUnavailable, match="no reply"):
                    await calls.ask(NEXT, is_repeatable=is_repeatable)
                counts.append([code for code, _ in controllers.asked[before:]].count(CODE))
            assert counts == [3, 1]

    simulate(main)


def test_refusals_have_rocketmqs_names() -> None:
    async def main(network: Network) -> None:
        async with Controllers(9000) as controllers, Pool() as pool:
            calls = ControllerCalls(controllers.addresses, pool)
            header = RegisterMember(
                cluster_name="c", broker_name="b", broker_id=1, broker_address="a:1"
            )
            with pytest.raises(ControllerRefused, match="BROKER_NEED_TO_BE_REGISTERED") as caught:
                await calls.ask(header)
            assert caught.value.code == ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED
            code = ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED
            assert (await calls.ask(header, accepts=[code])).code == code

    simulate(main)


def test_a_connection_that_breaks_is_made_again() -> None:
    async def main(network: Network) -> None:
        async with Controllers(9000) as controllers, Pool() as pool:
            calls = ControllerCalls(controllers.addresses, pool)
            await calls.ask(NEXT)
            await controllers.stop(0)
            await controllers.start(0)
            await calls.ask(NEXT)

    simulate(main)


def test_nothing_is_asked_after_the_end() -> None:
    async def main(network: Network) -> None:
        async with Controllers(9000) as controllers, Pool() as pool:
            calls = ControllerCalls(controllers.addresses, pool)
            calls.close()
            with pytest.raises(ElectorUnavailable, match="has left"):
                await calls.ask(NEXT)
            assert not controllers.asked

    simulate(main)
