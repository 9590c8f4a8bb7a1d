"""Users are made, shown, changed and deleted at all brokers."""

from __future__ import annotations

import pytest

from sprocket.admin import users
from sprocket.admin.caller import BrokersFailed, Caller
from sprocket.admin.users import UserNotFound
from sprocket.base.errors import NoPermission, UsageError
from sprocket.protocol.signing import Signer
from sprocket.remoting.pool import Pool
from sprocket.testing.cluster import Cluster
from tests.admin.closed import operate

BOTH = ["broker-0", "broker-1"]


def test_a_user_is_made_shown_changed_and_deleted() -> None:
    async def test(caller: Caller, cluster: Cluster) -> None:
        assert await users.create(caller, "ann", "ann's") == BOTH
        assert await users.create(caller, "ann", "ann's") == BOTH  # exactly so
        found = await users.user(caller, "ann")
        assert {each.user_type for each in found.values()} == {"Normal"}
        assert await users.update(caller, "ann", status="Disable") == BOTH
        assert await users.update(caller, "ann", kind="super", broker="broker-1") == BOTH[1:]
        found = await users.user(caller, "ann")
        assert [(each.user_type, each.user_status) for each in found.values()] == [
            ("Normal", "disable"),
            ("Super", "disable"),
        ]
        assert await users.names(caller) == ["ann", "root"]
        everybody = await users.everybody(caller, broker="broker-0")
        assert [each.username for each in everybody["broker-0"]] == ["ann", "root"]
        assert await users.delete(caller, "ann") == BOTH
        assert await users.delete(caller, "ann") == []
        with pytest.raises(UserNotFound):
            await users.user(caller, "ann")
        with pytest.raises(UserNotFound, match="create it first"):
            await users.update(caller, "ann", kind="Super")

    operate(test)


def test_a_new_password_is_the_one_that_counts() -> None:
    async def test(caller: Caller, cluster: Cluster) -> None:
        await users.create(caller, "ann", "old", kind="Super")
        await users.update(caller, "ann", password="new")
        for password in ("new", "old"):
            async with Pool(signer=Signer("ann", password)) as pool:
                other = Caller(pool, cluster.nameserver_addresses)
                if password == "old":
                    with pytest.raises(NoPermission, match="check signature"):
                        await users.names(other)
                else:
                    assert await users.names(other) == ["ann", "root"]

    operate(test, brokers=1)


def test_the_brokers_that_refuse_are_named() -> None:
    async def test(caller: Caller, cluster: Cluster) -> None:
        await users.create(caller, "ann", "other", broker="broker-1")
        with pytest.raises(BrokersFailed, match=r"failed at broker-1 .*already"):
            await users.create(caller, "ann", "ann's")
        assert sorted(await users.user(caller, "ann")) == BOTH

    operate(test)


def test_what_cannot_be_a_user_is_refused_before_anybody_is_asked() -> None:
    async def test(caller: Caller, cluster: Cluster) -> None:
        for arguments in ({"kind": "Boss"}, {"status": "asleep"}):
            with pytest.raises(UsageError):
                await users.create(caller, "ann", "ann's", **arguments)
            with pytest.raises(UsageError):
                await users.update(caller, "root", **arguments)
        with pytest.raises(UsageError, match="password"):
            await users.create(caller, "ann", " ")
        with pytest.raises(UsageError, match="nothing"):
            await users.update(caller, "root")

    operate(test, brokers=1)
