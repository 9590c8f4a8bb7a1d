"""A broker follows its files of accounts, and keeps what it has when they are wrong."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sprocket.base.config import check
from sprocket.base.errors import ConfigError
from sprocket.broker.config import BrokerConfig
from sprocket.broker.tables.plain_accounts import LOOK_SECONDS
from sprocket.protocol.requests.account import CreateUser, Users
from sprocket.protocol.requests.admin import BrokerConfigOf, BrokerState
from sprocket.protocol.signing import Signer
from sprocket.testing.disk import MemoryDisk
from sprocket.testing.loop import simulate
from tests.broker.accounts import REFUSED
from tests.broker.parts import SUCCESS, Asker, another, serving

pytest.importorskip("yaml", reason="plain_acl.yml is read with PyYAML")

HOME = "/rocketmq"
MAIN = f"{HOME}/conf/plain_acl.yml"
TEAM = f"{HOME}/conf/acl/teams/team.yaml"
ADMIN = Signer("the-admin", "admin-secret")
SHOP = Signer("the-shop", "shop-secret")
ACCOUNTS = """
accounts:
- {accessKey: the-admin, secretKey: admin-secret, admin: true}
- {accessKey: the-shop, secretKey: shop-secret, topicPerms: [orders=PUB|SUB], groupPerms: [g=SUB]}
"""
PLAIN: dict[str, Any] = {"plain_acl": True, "plain_acl_home": HOME}


def disk_with(**files: str) -> MemoryDisk:
    disk = MemoryDisk()
    for path, text in files.items():
        put(disk, {"main": MAIN, "team": TEAM}[path], text)
    return disk


def put(disk: MemoryDisk, path: str, text: str) -> None:
    disk.make_directory(path.rpartition("/")[0])
    disk.replace(path, text.encode(), backup=False)


def play(
    test: Callable[[Asker, MemoryDisk], Awaitable[None]],
    disk: MemoryDisk | None = None,
    **more: object,
) -> None:
    """Runs a test with the administrator of a broker that reads files of accounts."""
    files = disk or disk_with(main=ACCOUNTS)

    async def main() -> None:
        async with serving(files, **PLAIN, **more) as nobody, another(nobody, ADMIN) as admin:
            await test(admin, files)

    simulate(lambda network: main())


async def code_of(asker: Asker, signer: Signer | None) -> int:
    async with another(asker, signer) as other:
        return await other.code(BrokerState())


def test_accounts_sign_and_have_their_permissions() -> None:
    async def test(admin: Asker, disk: MemoryDisk) -> None:
        await admin.create("orders")
        await admin.create("secret")
        assert await code_of(admin, None) == REFUSED
        async with another(admin, SHOP) as shop:
            await shop.send("orders", b"one")
            assert (await shop.pull("orders")).code == SUCCESS
            assert (await shop.pull("secret")).code == REFUSED
            assert await shop.code(BrokerConfigOf()) == REFUSED
        async with another(admin, Signer("the-shop", "guessed")) as liar:
            assert await liar.code(BrokerState()) == REFUSED

    play(test)


def test_a_change_counts_after_two_looks_also_in_the_folder() -> None:
    async def test(admin: Asker, disk: MemoryDisk) -> None:
        put(disk, TEAM, "accounts: [{accessKey: the-team, secretKey: team-secret, admin: true}]")
        team = Signer("the-team", "team-secret")
        assert await code_of(admin, team) == REFUSED
        await asyncio.sleep(2 * LOOK_SECONDS + 0.1)
        assert await code_of(admin, team) == SUCCESS
        disk.remove(TEAM)
        await asyncio.sleep(2 * LOOK_SECONDS + 0.1)
        assert await code_of(admin, team) == REFUSED
        assert await code_of(admin, ADMIN) == SUCCESS

    play(test)


def test_a_file_that_is_half_written_changes_nothing() -> None:
    async def test(admin: Asker, disk: MemoryDisk) -> None:
        for half in range(1, 6):  # each look sees another state of it
            put(disk, MAIN, ACCOUNTS[: 20 * half])
            await asyncio.sleep(LOOK_SECONDS)
            assert await code_of(admin, SHOP) == REFUSED  # it is no administrator, but known
            assert await code_of(admin, ADMIN) == SUCCESS

    play(test)


def test_a_wrong_file_leaves_the_accounts_and_is_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test(admin: Asker, disk: MemoryDisk) -> None:
        for wrong in ("accounts: 7", "accounts: [{accessKey: short}]", "x" * (2 << 20)):
            put(disk, MAIN, wrong)
            await asyncio.sleep(5 * LOOK_SECONDS)
            assert await code_of(admin, ADMIN) == SUCCESS
        put(disk, MAIN, ACCOUNTS)
        await asyncio.sleep(2 * LOOK_SECONDS)

    with caplog.at_level(logging.INFO, "sprocket.broker.tables.plain_accounts"):
        play(test)
    lines = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert len([each for each in lines if "in use stay" in each]) == 1
    assert "right again" in caplog.text
    assert "secret" not in caplog.text.replace("secretKey", "")


def test_all_files_gone_is_nobody_left() -> None:
    async def test(admin: Asker, disk: MemoryDisk) -> None:
        disk.remove(MAIN)
        await asyncio.sleep(2 * LOOK_SECONDS + 0.1)
        assert await code_of(admin, ADMIN) == REFUSED

    play(test)


def test_white_addresses_need_no_signature() -> None:
    async def test(admin: Asker, disk: MemoryDisk) -> None:
        assert await code_of(admin, None) == SUCCESS
        assert admin.broker._inside is not None
        rights = admin.broker._inside.parts.rights
        assert rights.may_copy("127.0.0.1")
        assert not rights.may_copy("10.0.0.9")

    play(test, disk_with(main="globalWhiteRemoteAddresses: [127.0.0.*]"))


def test_slaves_get_the_log_where_an_administrator_has_signed() -> None:
    async def test(admin: Asker, disk: MemoryDisk) -> None:
        assert admin.broker._inside is not None
        rights = admin.broker._inside.parts.rights
        assert await code_of(admin, SHOP) == REFUSED
        assert not rights.may_copy("127.0.0.1")
        assert await code_of(admin, ADMIN) == SUCCESS
        assert rights.may_copy("127.0.0.1")

    play(test)


def test_there_are_no_users_beside_accounts() -> None:
    async def test(admin: Asker, disk: MemoryDisk) -> None:
        for header in (CreateUser(username="x"), Users()):
            reply = await admin.call(header, b'{"password":"x"}')
            assert reply.code != SUCCESS
            assert "plain_acl.yml" in (reply.remark or "")

    play(test)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "there is no /rocketmq/conf/plain_acl.yml"),
        ("", "nobody could enter"),
        ("accounts: [{accessKey: short}]", "line 1: accessKey has more than 6"),
    ],
)
def test_a_start_without_accounts_is_refused(text: str | None, why: str) -> None:
    disk = MemoryDisk() if text is None else disk_with(main=text)

    async def test(admin: Asker, disk: MemoryDisk) -> None:
        raise AssertionError("it has started")

    with pytest.raises(ConfigError, match=why):
        play(test, disk)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"plain_acl_home": None}, "rocketmqHome"),
        ({"authentication": True, "authorization": True}, "authenticationEnabled"),
        ({"first_user": '{"username":"root","password":"x"}'}, "initAuthenticationUser"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(more: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        check(BrokerConfig(**{**PLAIN, **more}))
