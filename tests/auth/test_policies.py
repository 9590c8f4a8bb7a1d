"""Which entry of a policy decides."""

from __future__ import annotations

import ipaddress
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.auth.policies import (
    ENTRIES_MAX,
    NETWORKS_MAX,
    Action,
    Decision,
    Need,
    PolicyEntry,
    PolicyKind,
    UserPolicies,
)
from sprocket.auth.resources import Resource, ResourceKind, ResourcePattern
from sprocket.base.errors import UsageError

ORDERS = Resource(ResourceKind.TOPIC, "orders-eu")
HERE = "10.1.2.3"
#: From the narrowest to the widest.
NARROWING = ("Topic:orders-eu", "Topic:orders-*", "Topic:o*", "Topic:*", "*")


def entry(
    resource: str, decision: str = "Allow", *, actions: tuple[str, ...] = ("Pub",), **more: object
) -> PolicyEntry:
    return PolicyEntry.of(resource, actions, decision, **more)  # type: ignore[arg-type]


def may(
    *entries: PolicyEntry,
    resource: Resource = ORDERS,
    actions: tuple[Action, ...] = (Action.PUB,),
    source: str = HERE,
) -> bool:
    return UserPolicies(entries).judge(Need(resource, actions), source).is_allowed


@pytest.mark.parametrize("at", range(len(NARROWING) - 1))
def test_the_narrower_resource_decides_in_whatever_order_they_were_made(at: int) -> None:
    narrow, wide = NARROWING[at : at + 2]
    for pair in permutations([entry(narrow, "Deny"), entry(wide, "Allow")]):
        assert not may(*pair)
    for pair in permutations([entry(narrow, "Allow"), entry(wide, "Deny")]):
        assert may(*pair)


def test_nothing_is_allowed_without_an_entry_for_it() -> None:
    assert not may()
    assert not may(entry("Topic:orders"), entry("Group:orders-eu"))
    assert not may(entry("Topic:orders-eu", actions=("Sub",)))
    judgement = UserPolicies().judge(Need(ORDERS, (Action.PUB,)), HERE)
    assert judgement.entry is None


def test_an_entry_counts_for_its_networks_only() -> None:
    inside = entry("Topic:*", networks=["10.0.0.0/8", "2001:db8::/32", "192.168.7.1"])
    for source in ("10.9.9.9", "2001:db8::7", "192.168.7.1", "::ffff:10.1.1.1", "2001:db8::7%eth0"):
        assert may(inside, source=source)
    for source in ("11.0.0.1", "2001:db9::1", "192.168.7.2", "", "localhost"):
        assert not may(inside, source=source)
    assert may(entry("Topic:orders-eu", "Deny", networks=["11.0.0.0/8"]), entry("Topic:*"))


def test_defaults_count_where_nothing_else_does() -> None:
    default = entry("Topic:orders-eu", "Deny", kind="Default")
    assert may(default, entry("*"))
    assert not may(default)
    assert may(entry("Topic:*", actions=("Sub",)), entry("*", kind="default"))


def test_any_of_the_actions_is_enough_and_all_is_every_action() -> None:
    wanted = (Action.PUB, Action.SUB, Action.GET)
    assert may(entry("Topic:*", actions=("Get",)), actions=wanted)
    assert may(entry("Topic:*", actions=("all",)), actions=(Action.DELETE,))
    assert not may(entry("Topic:*", "Deny", actions=("All",)), entry("*"), actions=wanted)


def test_an_entry_for_a_resource_that_has_one_replaces_it() -> None:
    policies = UserPolicies([entry("Topic:*")]).with_entries([entry("topic:*", "Deny")])
    assert [each.decision for each in policies.entries] == [Decision.DENY]
    assert policies.without(PolicyKind.DEFAULT, ResourcePattern.parse("Topic:*")).entries
    assert not policies.without(PolicyKind.CUSTOM, ResourcePattern.parse("Topic:*")).entries


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("Topic:a", [], "Allow"), "needs an action"),
        (("Topic:a", ["Fly"], "Allow"), "'Fly' is not one of All, Pub"),
        (("Topic:a", ["Pub"], "Perhaps"), "is not one of Allow, Deny"),
        (("Topic:a", ["Pub"], "Allow", ["10.0.0.0/99"]), "a network is"),
        (("Topic:a", ["Pub"], "Allow", ["here"]), "a network is"),
        (("Topic:a", ["Pub"], "Allow", [""]), "a network is"),
        (("Topic:a", ["Pub"], "Allow", [HERE] * (NETWORKS_MAX + 1)), "at most"),
        (("Topic:a", ["Pub"], "Allow", [], "Odd"), "is not one of Custom, Default"),
    ],
)
def test_what_is_no_entry_is_refused(arguments: tuple[object, ...], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        PolicyEntry.of(*arguments)  # type: ignore[arg-type]


def test_a_user_has_a_bounded_number_of_entries() -> None:
    full = UserPolicies(entry(f"Topic:{number}") for number in range(ENTRIES_MAX))
    assert len(full.with_entries([entry("Topic:0", "Deny")]).entries) == ENTRIES_MAX
    with pytest.raises(UsageError, match="at most"):
        full.with_entries([entry("Topic:new")])


def test_an_entry_says_what_it_is() -> None:
    made = entry("Topic:*", "deny", actions=("Sub", "Pub"), networks=[HERE], kind="Default")
    assert str(made) == f"Deny Pub,Sub on Topic:* from {HERE} (default)"


_NAMES = st.text("ab", min_size=1, max_size=3)
_PATTERNS = st.one_of(
    st.just("*"),
    st.builds("{}:{}{}".format, st.sampled_from(["Topic", "Group"]), _NAMES, st.sampled_from("* ")),
    st.sampled_from(["Topic:*", "Group:*"]),
).map(str.strip)
_ENTRIES = st.builds(
    PolicyEntry.of,
    _PATTERNS,
    st.lists(st.sampled_from(["All", "Pub", "Sub"]), min_size=1, max_size=2),
    st.sampled_from(["Allow", "Deny"]),
    st.sampled_from([(), ("10.0.0.0/8",), ("10.1.2.3",), ("11.0.0.0/8",)]),
    st.sampled_from(["Custom", "Default"]),
)


def _expected(entries: list[PolicyEntry], need: Need, source: str) -> bool:
    """What the documents promise, entry by entry."""
    address = ipaddress.ip_address(source)

    def rank(each: PolicyEntry) -> tuple[int, int] | None:
        kind, name, is_prefix = each.resource
        if need.actions[0] not in each.actions and Action.ALL not in each.actions:
            return None
        if each.networks and not any(address in ipaddress.ip_network(net) for net in each.networks):
            return None
        if kind is None:
            return 0, 0
        if kind != need.resource.kind:
            return None
        if is_prefix:
            return (1, len(name)) if need.resource.name.startswith(name) else None
        return (2, 0) if name == need.resource.name else None

    latest = {(each.kind, each.resource): each for each in entries}.values()
    for policy in (PolicyKind.CUSTOM, PolicyKind.DEFAULT):
        ranked = [(rank(each), each) for each in latest if each.kind == policy]
        fits = [(found, each) for found, each in ranked if found is not None]
        if fits:
            return max(fits, key=lambda pair: pair[0])[1].decision == Decision.ALLOW
    return False


@given(
    st.lists(_ENTRIES, max_size=8),
    st.builds(Resource, st.sampled_from([ResourceKind.TOPIC, ResourceKind.GROUP]), _NAMES),
    st.sampled_from([Action.PUB, Action.SUB, Action.DELETE]),
    st.sampled_from(["10.1.2.3", "10.9.9.9", "11.1.1.1"]),
)
def test_the_judgement_is_that_of_the_documents(
    entries: list[PolicyEntry], resource: Resource, action: Action, source: str
) -> None:
    need = Need(resource, (action,))
    found = UserPolicies(entries).judge(need, source)
    assert found.is_allowed == _expected(entries, need, source)
    if found.entry is None:
        assert not found.is_allowed


@given(st.lists(_ENTRIES, max_size=8))
def test_the_order_of_entries_for_different_resources_does_not_matter(
    entries: list[PolicyEntry],
) -> None:
    single = list({(each.kind, each.resource): each for each in entries}.values())
    need = Need(Resource(ResourceKind.TOPIC, "ab"), (Action.PUB,))
    there = UserPolicies(single).judge(need, HERE)
    back = UserPolicies(reversed(single)).judge(need, HERE)
    assert there == back
