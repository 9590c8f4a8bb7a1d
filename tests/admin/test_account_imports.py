"""A plan becomes users and policies, once or again."""

from __future__ import annotations

from sprocket.admin import account_imports, acls, users
from sprocket.admin.account_imports import ImportOutcome
from sprocket.admin.caller import Caller
from sprocket.auth.accounts import User
from sprocket.auth.plain_import import ImportPlan
from sprocket.auth.policies import PolicyEntry
from sprocket.testing.cluster import Cluster
from tests.admin.closed import operate

ENTRIES = (
    PolicyEntry.of("Topic:*", ["Pub"], "Allow", kind="Default"),
    PolicyEntry.of("Topic:orders", ["Pub", "Sub"], "Allow", ["10.0.0.0/8"]),
)
PLAN = ImportPlan((User("ann", "ann's"), User("bob", "bob's")), {"ann": ENTRIES, "bob": ()}, ())


def test_users_are_made_and_a_second_import_changes_nothing() -> None:
    async def test(caller: Caller, cluster: Cluster) -> None:
        await users.create(caller, "bob", "another", broker="broker-1")
        done = await account_imports.carry_out(caller, PLAN)
        made, kept, same = ImportOutcome.CREATED, ImportOutcome.KEPT, ImportOutcome.UNCHANGED
        assert done == {
            "broker-0": {"ann": made, "bob": made},
            "broker-1": {"ann": made, "bob": kept},
        }
        for policies in (await acls.policies(caller, "ann")).values():
            assert set(policies.entries) == set(ENTRIES)
        assert (await account_imports.carry_out(caller, PLAN))["broker-0"] == {
            "ann": same,
            "bob": same,
        }

    operate(test)


def test_what_was_left_half_or_changed_is_replaced_if_that_is_asked_for() -> None:
    async def test(caller: Caller, cluster: Cluster) -> None:
        await users.create(caller, "ann", "ann's")
        await acls.grant(caller, "ann", PolicyEntry.of("Group:*", ["Sub"], "Allow"))
        await users.create(caller, "bob", "other", kind="Super")
        done = await account_imports.carry_out(caller, PLAN)
        assert set(done["broker-0"].values()) == {ImportOutcome.KEPT}
        done = await account_imports.carry_out(caller, PLAN, replaces=True)
        assert set(done["broker-0"].values()) == {ImportOutcome.REPLACED}
        (policies,) = (await acls.policies(caller, "ann")).values()
        assert set(policies.entries) == set(ENTRIES)
        (bob,) = (await users.user(caller, "bob")).values()
        assert (bob.user_type, bob.password) == ("Normal", "bob's")

    operate(test, brokers=1)
