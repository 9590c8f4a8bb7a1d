"""A verdict names the entry that decides, and those that lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.admin import acls, permission_tests, users
from sprocket.admin.caller import Caller
from sprocket.admin.permission_tests import PermissionTest, judged_by
from sprocket.auth.policies import Action, Need, PolicyEntry, UserPolicies
from sprocket.auth.resources import Resource, ResourceKind
from sprocket.protocol.bodies.accounts import UserBody
from sprocket.testing.cluster import Cluster
from tests.admin.closed import operate

ANN = UserBody(username="ann", user_type="Normal", user_status="enable")
ORDERS = Resource(ResourceKind.TOPIC, "orders-eu")


def entry(text: str) -> PolicyEntry:
    """An entry as `Allow Pub,Sub on Topic:orders from 10.0.0.0/8`."""
    rule, _, networks = text.partition(" from ")
    decision, actions, _, resource = rule.split()
    return PolicyEntry.of(
        resource, actions.split(","), decision, networks.split(",") if networks else ()
    )


def judge(*entries: str, source: str = "", user: UserBody = ANN) -> PermissionTest:
    policies = UserPolicies(map(entry, entries))
    return judged_by(user, policies, Need(ORDERS, (Action.PUB,)), source)


def test_the_narrowest_decides_and_the_others_lose() -> None:
    found = judge(
        "Allow All on *", "Deny Pub on Topic:orders-*", "Allow Pub on Topic:other",
        "Allow Sub on Topic:orders-eu",
    )  # fmt: skip
    assert not found.is_allowed
    assert found.decides == entry("Deny Pub on Topic:orders-*")
    assert found.lost == (entry("Allow All on *"),)
    assert found.why == "its policy says Deny Pub on Topic:orders-*"


def test_what_counts_from_elsewhere_is_named() -> None:
    allowed = "Allow Pub on Topic:orders-eu from 10.0.0.0/8"
    found = judge(allowed)
    assert (found.is_allowed, found.elsewhere) == (False, (entry(allowed),))
    found = judge(allowed, source="10.1.1.1")
    assert (found.is_allowed, found.elsewhere) == (True, ())


def test_users_for_whom_no_policy_counts() -> None:
    denied = "Deny All on *"
    root = UserBody(username="root", user_type="Super", user_status="enable")
    assert judge(denied, user=root).is_allowed
    for status, told in (("disable", "disabled"), ("asleep", "another kind")):
        user = UserBody(username="ann", user_type="Super", user_status=status)
        found = judge(user=user)
        assert not found.is_allowed
        assert told in found.why


ENTRIES = st.lists(
    st.builds(
        lambda decision, action, resource, network: entry(
            f"{decision} {action} on {resource}{network}"
        ),
        st.sampled_from(["Allow", "Deny"]),
        st.sampled_from(["Pub", "Sub", "All", "Pub,Get"]),
        st.sampled_from(["*", "Topic:*", "Topic:orders*", "Topic:orders-eu", "Group:*"]),
        st.sampled_from(["", " from 10.0.0.0/8", " from 11.0.0.1"]),
    )
)


@given(ENTRIES, st.sampled_from(["", "10.1.1.1", "11.0.0.1"]))
def test_it_says_what_the_broker_decides(entries: list[PolicyEntry], source: str) -> None:
    policies = UserPolicies(entries)
    need = Need(ORDERS, (Action.PUB,))
    found = judged_by(ANN, policies, need, source)
    assert found.is_allowed == policies.judge(need, source).is_allowed
    about = [*([found.decides] if found.decides else []), *found.lost, *found.elsewhere]
    assert len(about) == len(set(about))
    assert set(about) <= set(policies.entries)
    if found.lost:
        assert found.decides is not None


def test_each_broker_is_asked() -> None:
    async def test(caller: Caller, cluster: Cluster) -> None:
        await users.create(caller, "ann", "ann's", broker="broker-1")
        await acls.grant(caller, "ann", entry("Allow Pub on Topic:orders-*"))
        found = await permission_tests.judge(caller, "ann", Action.PUB, ORDERS)
        assert {name: each.is_allowed for name, each in found.items()} == {
            "broker-0": False,
            "broker-1": True,
        }
        assert found["broker-0"].why == "the broker has no user ann"

    operate(test)
