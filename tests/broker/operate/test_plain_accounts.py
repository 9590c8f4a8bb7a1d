"""Requests 50 to 53 change the files of accounts, and count at once."""

from __future__ import annotations

import asyncio
import json

import pytest

from sprocket.broker.tables.plain_accounts import LOOK_SECONDS
from sprocket.protocol.requests.admin import BrokerState
from sprocket.protocol.requests.plain_account import (
    DeletePlainAccount,
    PlainVersionsOf,
    PlainVersionsReply,
    UpdatePlainAccount,
    UpdatePlainAddresses,
)
from sprocket.protocol.signing import Signer
from sprocket.testing.disk import MemoryDisk
from tests.broker.accounts import REFUSED, play_closed
from tests.broker.parts import SUCCESS, Asker, another
from tests.broker.tables.test_plain_accounts import (
    ACCOUNTS,
    MAIN,
    SHOP,
    TEAM,
    code_of,
    disk_with,
    play,
)

pytest.importorskip("yaml", reason="plain_acl.yml is read with PyYAML")

NEW = Signer("newcomer", "new-secret")
MAKE = UpdatePlainAccount(
    access_key="newcomer", secret_key="new-secret", topic_perms="orders=PUB,others=SUB"
)


async def versions(asker: Asker) -> dict[str, dict[str, int]]:
    reply = (await asker.call(PlainVersionsOf())).read(PlainVersionsReply)
    assert (reply.cluster_name, reply.broker_name) == ("DefaultCluster", "broker-a")
    assert reply.broker_addr == asker.broker.address
    assert "counter" in json.loads(reply.version)
    found: dict[str, dict[str, int]] = json.loads(reply.all_acl_file_version or "")
    return found


def test_an_account_is_made_changed_and_deleted() -> None:
    async def test(admin: Asker, disk: MemoryDisk) -> None:
        await admin.create("orders")
        assert (await versions(admin))[MAIN]["counter"] == 0
        assert await admin.code(MAKE) == SUCCESS
        async with another(admin, NEW) as newcomer:
            await newcomer.send("orders")
            assert (await newcomer.pull("orders")).code == REFUSED
            weaker = UpdatePlainAccount(
                access_key="newcomer", secret_key="new-secret", topic_perms="orders=DENY"
            )
            assert await admin.code(weaker) == SUCCESS
            assert (await newcomer.pull("orders")).code == REFUSED
        assert await admin.code(DeletePlainAccount(access_key="newcomer")) == SUCCESS
        assert await code_of(admin, NEW) == REFUSED
        assert (await versions(admin))[MAIN]["counter"] == 3
        await asyncio.sleep(3 * LOOK_SECONDS)
        assert (disk.read(MAIN) or b"").count(b"accessKey") == 2
        async with another(admin, SHOP) as shop:
            await shop.send("orders")

    play(test)


def test_what_is_answered_survives_a_kill() -> None:
    disks: list[MemoryDisk] = []

    async def change(admin: Asker, disk: MemoryDisk) -> None:
        assert await admin.code(MAKE) == SUCCESS
        disks.append(disk.after_kill())

    async def find(admin: Asker, disk: MemoryDisk) -> None:
        assert await code_of(admin, NEW) == REFUSED  # known, and no administrator
        async with another(admin, NEW) as newcomer:
            assert "secret key" not in ((await newcomer.call(BrokerState())).remark or "")

    play(change)
    play(find, disks[0])


def test_an_account_is_changed_in_the_file_where_it_counts() -> None:
    team = "accounts: [{accessKey: newcomer, secretKey: older-secret}]"

    async def test(admin: Asker, disk: MemoryDisk) -> None:
        assert await admin.code(MAKE) == SUCCESS
        assert b"new-secret" in (disk.read(TEAM) or b"")
        assert (disk.read(MAIN) or b"").decode() == ACCOUNTS
        found = await versions(admin)
        assert (found[TEAM]["counter"], found[MAIN]["counter"]) == (1, 0)

    play(test, disk_with(main=ACCOUNTS, team=team))


def test_white_addresses_are_changed_in_files_of_accounts_only() -> None:
    async def test(admin: Asker, disk: MemoryDisk) -> None:
        change = UpdatePlainAddresses(global_white_addrs="127.0.0.1,10.0.0.*")
        for path in ("/etc/passwd", f"{MAIN}/../other.yml"):
            wrong = UpdatePlainAddresses(global_white_addrs="1.2.3.4", acl_file_full_path=path)
            reply = await admin.call(wrong)
            assert (reply.code, "none of this broker" in (reply.remark or "")) == (211, True)
            assert disk.read(path) is None
        assert await code_of(admin, None) == REFUSED
        assert await admin.code(change) == SUCCESS
        assert await code_of(admin, None) == SUCCESS

    play(test)


@pytest.mark.parametrize(
    ("header", "code", "why"),
    [
        (UpdatePlainAccount(access_key="new", secret_key="new-secret"), 209, "more than 6"),
        (UpdatePlainAccount(access_key="newcomer"), 209, "secretKey"),
        (
            UpdatePlainAccount(
                access_key="newcomer", secret_key="new-secret", white_remote_address="10.0.0"
            ),
            209,
            "address",
        ),
        (DeletePlainAccount(access_key="newcomer"), 210, "there is no account 'newcomer'"),
        (UpdatePlainAddresses(global_white_addrs="nowhere"), 211, "no address"),
    ],
)
def test_what_is_wrong_has_rocketmqs_code_and_changes_nothing(
    header: UpdatePlainAccount, code: int, why: str
) -> None:
    async def test(admin: Asker, disk: MemoryDisk) -> None:
        reply = await admin.call(header)
        assert reply.code == code
        assert why in (reply.remark or "")
        assert "new-secret" not in (reply.remark or "")
        assert (disk.read(MAIN) or b"").decode() == ACCOUNTS

    play(test)


def test_only_administrators_change_accounts() -> None:
    async def test(admin: Asker, disk: MemoryDisk) -> None:
        async with another(admin, SHOP) as shop:
            for header in (
                UpdatePlainAccount(access_key="the-shop", secret_key="shop-secret", admin=True),
                DeletePlainAccount(access_key="the-admin"),
                UpdatePlainAddresses(global_white_addrs="*"),
                PlainVersionsOf(),
            ):
                assert await shop.code(header) == REFUSED
        assert (disk.read(MAIN) or b"").decode() == ACCOUNTS

    play(test)


def test_a_broker_with_users_has_no_such_accounts() -> None:
    async def test(nobody: Asker, root: Asker) -> None:
        for header, code in ((MAKE, 209), (PlainVersionsOf(), 29)):
            reply = await root.call(header)
            assert (reply.code, "reads no plain_acl.yml" in (reply.remark or "")) == (code, True)
        assert await root.code(BrokerState()) == SUCCESS

    play_closed(test)
