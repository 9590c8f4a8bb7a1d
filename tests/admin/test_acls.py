"""Rights are given, shown and taken at all brokers."""

from __future__ import annotations

import pytest

from sprocket.admin import acls, users
from sprocket.admin.caller import BrokersFailed, Caller
from sprocket.admin.users import UserNotFound
from sprocket.auth.policies import Action, PolicyEntry, PolicyKind
from sprocket.auth.resources import ResourcePattern
from sprocket.base.errors import UsageError
from sprocket.testing.cluster import Cluster
from tests.admin.closed import operate

ORDERS = ResourcePattern.parse("Topic:orders")


def entry(actions: str, decision: str = "Allow", *networks: str) -> PolicyEntry:
    return PolicyEntry.of("Topic:orders", actions.split(","), decision, networks)


async def shown(caller: Caller) -> list[str]:
    """The policies of ann, which are alike at all brokers."""
    found = [
        [str(each) for each in policies.entries]
        for policies in (await acls.policies(caller, "ann")).values()
    ]
    assert found[1:] == found[:-1]
    return found[0]


def test_a_right_does_not_take_another() -> None:
    async def test(caller: Caller, cluster: Cluster) -> None:
        await users.create(caller, "ann", "ann's")
        assert await shown(caller) == []
        await acls.grant(caller, "ann", entry("Pub"))
        done = await acls.grant(caller, "ann", entry("Sub"))
        assert done == dict.fromkeys(["broker-0", "broker-1"], entry("Pub,Sub"))
        assert await shown(caller) == ["Allow Pub,Sub on Topic:orders"]
        with pytest.raises(UsageError, match="--replace"):
            await acls.grant(caller, "ann", entry("Sub", "Deny"))
        with pytest.raises(UsageError, match="--replace"):
            await acls.grant(caller, "ann", entry("Sub", "Allow", "10.0.0.0/8"))
        await acls.grant(caller, "ann", entry("Sub", "Deny"), replaces=True)
        assert await shown(caller) == ["Deny Sub on Topic:orders"]
        found = await acls.all_policies(caller)
        assert {name: list(those) for name, those in found.items()} == {
            "broker-0": ["ann"],
            "broker-1": ["ann"],
        }

    operate(test)


def test_rights_are_taken_one_by_one_by_resource_or_all() -> None:
    async def test(caller: Caller, cluster: Cluster) -> None:
        await users.create(caller, "ann", "ann's")
        await acls.grant(caller, "ann", entry("Pub,Sub"))
        left = await acls.revoke(caller, "ann", ORDERS, actions=frozenset({Action.PUB}))
        assert list(left.values()) == [entry("Sub")] * 2
        assert await acls.revoke(caller, "ann", ORDERS, actions=frozenset({Action.PUB})) == {}
        assert await acls.revoke(caller, "ann", ORDERS, kind=PolicyKind.DEFAULT) == {}
        assert list((await acls.revoke(caller, "ann", ORDERS)).values()) == [None, None]
        assert await shown(caller) == []
        assert await acls.revoke(caller, "ann", None) == {}
        await acls.grant(caller, "ann", entry("All"), broker="broker-0")
        with pytest.raises(UsageError, match="all actions"):
            await acls.revoke(
                caller, "ann", ORDERS, actions=frozenset({Action.PUB}), broker="broker-0"
            )
        await acls.grant(
            caller, "ann", PolicyEntry.of("Group:*", ["Sub"], "Allow", kind="Default"),
            broker="broker-0",
        )  # fmt: skip
        assert await acls.revoke(caller, "ann", None) == {"broker-0": None}
        assert await shown(caller) == []

    operate(test)


def test_a_broker_without_the_user_is_left_out() -> None:
    async def test(caller: Caller, cluster: Cluster) -> None:
        await users.create(caller, "ann", "ann's", broker="broker-1")
        assert list(await acls.grant(caller, "ann", entry("Pub"))) == ["broker-1"]
        assert list(await acls.policies(caller, "ann")) == ["broker-1"]
        with pytest.raises(UserNotFound):
            await acls.grant(caller, "bob", entry("Pub"))

    operate(test)


def test_a_broker_that_cannot_do_it_is_named() -> None:
    async def test(caller: Caller, cluster: Cluster) -> None:
        await users.create(caller, "ann", "ann's")
        await acls.grant(caller, "ann", entry("Pub", "Deny"), broker="broker-1")
        with pytest.raises(BrokersFailed, match="failed at broker-1"):
            await acls.grant(caller, "ann", entry("Pub"))

    operate(test)
