"""A closed name server: who may ask it what, and where its users are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sprocket.auth.nameserver_needs import NAMESERVER_RULES
from sprocket.base.deadline import Deadline
from sprocket.base.errors import ConfigError, CorruptRecord
from sprocket.broker.config import BrokerConfig
from sprocket.nameserver.config import NameServerConfig
from sprocket.nameserver.nameserver import NameServer
from sprocket.protocol import registration
from sprocket.protocol.bodies import RegisterBody, UserBody
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests import route
from sprocket.protocol.requests.account import CreateUser, DeleteUser, UserOf, Users
from sprocket.protocol.requests.admin import BrokerState
from sprocket.protocol.signing import Signer
from sprocket.remoting.pool import Pool
from sprocket.testing.cluster import Cluster
from sprocket.testing.disk import FaultyDisk
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.accounts import INNER, REFUSED, ROOT_USER
from tests.nameserver.test_dispatch import table as topics

PATH = "/ns/accounts.json"
CLOSED: dict[str, Any] = {
    "authentication": True,
    "authorization": True,
    "accounts_path": PATH,
    "first_user": '{"username":"root","password":"root\'s"}',
}
ANN = Signer("ann", "ann's")
BUSY = 2


class Desk:
    """Asks a name server, as one user after the other."""

    def __init__(self, server: NameServer) -> None:
        self._server = server

    async def ask(
        self, header: Header, body: bytes = b"", *, by: Signer | None = ROOT_USER
    ) -> Command:
        async with Pool(signer=by) as pool:
            deadline = Deadline.after(5)
            return await pool.call(self._server.address, header, body=body, deadline=deadline)

    async def code(self, header: Header, body: bytes = b"", *, by: Signer | None) -> int:
        return (await self.ask(header, body, by=by)).code


def play(
    test: Callable[[Desk], Awaitable[None]], disk: FaultyDisk | None = None, **settings: Any
) -> None:
    async def main(network: Network) -> None:
        config = NameServerConfig(**{**CLOSED, **settings})
        async with NameServer(config, disk=disk or FaultyDisk()) as server:
            await test(Desk(server))

    simulate(main)


async def make_ann(desk: Desk) -> None:
    assert (
        await desk.code(CreateUser(username="ann"), UserBody("ann's").encode(), by=ROOT_USER) == 0
    )


def test_each_request_is_refused_to_who_is_nobody_and_to_a_user_without_rights() -> None:
    async def test(desk: Desk) -> None:
        await make_ann(desk)
        codes = desk._server._answer.codes
        unruled = {code for code in codes if code not in NAMESERVER_RULES}
        assert unruled == {103, 104, 322, 904}  # what brokers ask

        class Raw:
            reply = None

            def __init__(self, code: int) -> None:
                self.code = code

            def to_fields(self) -> dict[str, str]:
                return {"topic": "T", "namespace": "n", "key": "k", "value": "v"}

        for code in codes:
            header: Any = Raw(code)
            assert "not signed" in ((await desk.ask(header, by=None)).remark or ""), code
            assert await desk.code(header, by=Signer("ann", "wrong")) == REFUSED
            assert await desk.code(header, by=ANN) == REFUSED, code
            assert await desk.code(header, by=ROOT_USER) != REFUSED, code
        assert await desk.code(route.RouteOfTopic(topic="TBW102"), by=ANN) == 17

    play(test)


def test_an_open_name_server_asks_for_no_signature() -> None:
    async def test(desk: Desk) -> None:
        assert await desk.code(route.RouteOfTopic(topic="T"), by=None) == 17
        assert await desk.code(route.RouteOfTopic(topic="T"), by=Signer("who", "knows")) == 17

    play(test, authentication=False, authorization=False)


def test_users_are_kept_before_a_change_is_answered() -> None:
    disk = FaultyDisk()

    async def first(desk: Desk) -> None:
        await make_ann(desk)
        left.append(disk.after_kill())
        await desk.ask(DeleteUser(username="ann"))
        disk.fail("replace", 28)
        reply = await desk.ask(CreateUser(username="bob"), UserBody("x").encode())
        assert "cannot keep it" in (reply.remark or "")
        assert not (await desk.ask(UserOf(username="bob"))).body

    async def again(desk: Desk) -> None:
        assert await desk.code(Users(), by=ANN) == REFUSED  # it is known, and has no right
        assert b"ann's" in bytes((await desk.ask(UserOf(username="ann"))).body)
        assert "ann's" not in repr(desk)

    left: list[Any] = []
    play(first, disk)
    play(again, left[0])


@pytest.mark.parametrize("text", ["", "[]", "{", '{"users":{"a":{}}}'])
def test_a_file_that_is_none_of_users_stops_the_start(text: str) -> None:
    disk = FaultyDisk()
    disk.make_directory("/ns")
    disk.replace(PATH, text.encode())

    async def test(desk: Desk) -> None:
        raise AssertionError

    with pytest.raises(CorruptRecord, match=r"accounts\.json is no file of users"):
        play(test, disk)


def test_a_closed_name_server_without_a_super_user_does_not_start() -> None:
    async def test(desk: Desk) -> None:
        raise AssertionError

    with pytest.raises(ConfigError, match="no super user is enabled"):
        play(test, first_user=None)
    with pytest.raises(ConfigError, match=r"needs nameserver\.authentication"):
        play(test, authentication=False)


def test_settings_show_no_secret() -> None:
    async def test(desk: Desk) -> None:
        shown = bytes((await desk.ask(route.ReadNameServerConfig())).body)
        assert b"nameserver.authentication=true" in shown
        assert b"root's" not in shown

    play(test)


def test_a_registration_needs_a_super_user() -> None:
    async def test(desk: Desk) -> None:
        await make_ann(desk)
        header = route.RegisterBroker(
            broker_name="a", broker_addr="10.0.0.1:1", cluster_name="c", broker_id=0
        )
        body = registration.encode(RegisterBody(topics=topics("T")))
        for by, code in ((None, REFUSED), (ANN, REFUSED), (ROOT_USER, 0)):
            assert await desk.code(header, body, by=by) == code

    play(test)


def test_a_closed_broker_registers_at_a_closed_name_server_with_its_keys() -> None:
    async def main(network: Network) -> None:
        config = NameServerConfig(
            authentication=True, authorization=True, inner_keys=INNER["inner_keys"]
        )
        cluster = Cluster(network, 1, broker=BrokerConfig(**INNER), nameserver=config)
        await cluster.start()
        broker = cluster.brokers[0].server
        async with Pool(signer=Signer("inner", "inner's")) as pool:
            (address,) = broker._settings.config.nameservers
            found = await pool.call(
                address, route.RouteOfTopic(topic="TBW102"), deadline=Deadline.after(5)
            )
            assert found.code == 0
            asked = await pool.call(broker.address, BrokerState(), deadline=Deadline.after(5))
            assert asked.code == 0
        await cluster.stop()

    simulate(main)


def test_limits_know_the_users_and_count_what_is_refused() -> None:
    async def test(desk: Desk) -> None:
        await make_ann(desk)
        for wanted in (REFUSED, REFUSED, BUSY):  # whoever signs without rights counts, too
            assert await desk.code(route.ClusterOf(), by=ANN) == wanted
        for _ in range(4):
            assert await desk.code(route.ClusterOf(), by=ROOT_USER) == 0
            liar = Signer("ann", "guessed")  # who is not ann does not take what is hers
            assert await desk.code(route.ClusterOf(), by=liar) == REFUSED

    play(test, quotas=("user ann requests=1/2",))


def test_limits_of_addresses_hold_for_what_is_refused() -> None:
    async def test(desk: Desk) -> None:
        codes = [await desk.code(route.ClusterOf(), by=None) for _ in range(4)]
        assert codes == [REFUSED, REFUSED, BUSY, BUSY]

    play(test, quotas=("ip * requests=1/2",))
