"""Keys are let in only where a server has checked them."""

from __future__ import annotations

import json

import pytest

from sprocket import Standalone
from sprocket.base.errors import NoPermission, UsageError
from sprocket.broker.config import BrokerConfig
from sprocket.console.web.entrance import ConsoleEntrance
from sprocket.console.web.settings import ConsoleSettings
from sprocket.nameserver.config import NameServerConfig
from sprocket.nameserver.nameserver import NameServer
from sprocket.protocol.signing import Signer
from tests.support import run

ADMIN = ("admin", "secret-of-the-admin")
NOBODY = ("admin", "wrong")


def closed(**changes: object) -> BrokerConfig:
    return BrokerConfig(
        port=0, authentication=True, authorization=True,
        inner_keys=json.dumps({"accessKey": ADMIN[0], "secretKey": ADMIN[1]}),
        first_user=json.dumps({"username": ADMIN[0], "password": ADMIN[1]}),
        **changes,  # type: ignore[arg-type]
    )  # fmt: skip


def entrance(nameserver: str) -> ConsoleEntrance:
    settings = ConsoleSettings([nameserver], timeout_ms=60_000)
    return ConsoleEntrance(settings, now_ms=lambda: 1_000_000)


def test_without_a_broker_that_could_check_nobody_is_let_in() -> None:
    async def check() -> None:
        async with NameServer(NameServerConfig(port=0)) as server:
            with pytest.raises(UsageError, match="no broker is registered"):
                await entrance(server.address).check(Signer(*ADMIN))

    run(check())


def test_servers_that_check_nothing_vouch_for_nobody() -> None:
    async def check() -> None:
        async with Standalone() as node:
            assert not await entrance(node.nameserver_address).needs_user()
            with pytest.raises(UsageError, match="no log-in is needed"):
                await entrance(node.nameserver_address).check(Signer(*ADMIN))

    run(check())


def test_an_open_broker_beside_a_closed_one_vouches_for_nobody() -> None:
    async def check() -> None:
        # Names are asked in their order: the open broker is the first.
        configs = [BrokerConfig(port=0, name="a"), closed(name="b")]
        async with Standalone(configs=configs) as node:
            door = entrance(node.nameserver_address)
            with pytest.raises(NoPermission):
                await door.check(Signer(*NOBODY))
            await door.check(Signer(*ADMIN))

    run(check())
