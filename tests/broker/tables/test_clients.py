"""The table of clients, as a core."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sprocket.base.errors import SystemBusy
from sprocket.broker.tables.clients import (
    BROADCASTING,
    CLUSTERING,
    PASSIVELY,
    ClientInfo,
    ClientTable,
    GroupMode,
)
from sprocket.protocol.bodies import SubscriptionData

MANNER = GroupMode(PASSIVELY, CLUSTERING, "CONSUME_FROM_LAST_OFFSET")


def client(name: str, client_id: str | None = None, seen_ms: int = 0) -> ClientInfo:
    return ClientInfo(name, client_id or name, f"{name}:1", "PYTHON", 479, seen_ms, seen_ms)


def wants(topic: str, text: str = "*", version: int = 1) -> SubscriptionData:
    return SubscriptionData(topic=topic, sub_string=text, sub_version=version)


def beat(
    clients: ClientTable, member: ClientInfo, *subscriptions: SubscriptionData, group: str = "g"
):  # type: ignore[no-untyped-def]
    return clients.consumer_heartbeat(group, member, mode=MANNER, subscriptions=subscriptions)


def test_a_member_that_comes_or_leaves_is_a_change_and_a_second_beat_is_none() -> None:
    clients = ClientTable(members_max=10)
    assert beat(clients, client("a"), wants("T")).has_changed
    assert not beat(clients, client("a"), wants("T")).has_changed
    assert beat(clients, client("b"), wants("T")).is_new
    left = clients.consumer_left("g", "a")
    assert left is not None
    assert left.client_ids() == ["b"]
    assert clients.consumer_left("g", "a") is None
    clients.consumer_left("g", "b")
    assert clients.group("g") is None
    clients.validate()


def test_the_newest_subscription_of_a_topic_counts_whoever_brought_it() -> None:
    clients = ClientTable(members_max=10)
    beat(clients, client("a"), wants("T", "x", version=2))
    seen = beat(clients, client("b"), wants("T", "y", version=1))
    assert seen.replaced == ()
    assert [(told.sub_string, kept.sub_string) for told, kept in seen.outdated] == [("y", "x")]
    assert beat(clients, client("b"), wants("T", "y", version=1)).outdated == ()
    group = clients.group("g")
    assert group is not None
    assert group.subscriptions["T"].sub_string == "x"
    seen = beat(clients, client("b"), wants("T", "y", version=3))
    assert [(old.sub_string, new.sub_string) for old, new in seen.replaced] == [("x", "y")]
    assert not seen.has_changed


def test_topics_that_are_no_longer_subscribed_are_a_change() -> None:
    clients = ClientTable(members_max=10)
    beat(clients, client("a"), wants("T"), wants("U"))
    assert beat(clients, client("a"), wants("T")).has_changed
    assert clients.groups_of("U") == []
    assert clients.groups_of("T") == ["g"]


def test_subscriptions_that_are_left_out_stay_and_are_missed_where_unknown() -> None:
    clients = ClientTable(members_max=10)
    beat(clients, client("a"), wants("T"))
    kept = clients.consumer_heartbeat("g", client("b"), mode=MANNER, subscriptions=None)
    assert not kept.is_unknown
    missed = clients.consumer_heartbeat("h", client("b"), mode=MANNER, subscriptions=None)
    assert missed.is_unknown


def test_two_clients_of_one_id_are_two_members_and_noticed() -> None:
    clients = ClientTable(members_max=10)
    beat(clients, client("a", "same"), wants("T"))
    seen = beat(clients, client("b", "same"), wants("T"))
    assert seen.clashing is not None
    assert seen.clashing.connection == "a"
    group = clients.group("g")
    assert group is not None
    assert group.client_ids() == ["same"]
    assert len(group.members) == 2


def test_the_end_of_a_connection_takes_it_out_of_all_groups() -> None:
    clients = ClientTable(members_max=10)
    for group in ("g", "h"):
        beat(clients, client("a"), wants("T"), group=group)
    beat(clients, client("b"), wants("T"))
    clients.producer_heartbeat("p", client("a"))
    assert [group.name for group in clients.closed("a")] == ["g", "h"]
    assert clients.closed("a") == []
    assert clients.producers("p") == []
    assert clients.producer_groups() == {}
    clients.validate()


def test_silent_members_are_found() -> None:
    clients = ClientTable(members_max=10)
    beat(clients, client("a", seen_ms=5), wants("T"))
    clients.producer_heartbeat("p", client("b", seen_ms=7))
    assert [member.connection for member in clients.silent(7)] == ["a"]


def test_the_number_of_members_is_bounded() -> None:
    clients = ClientTable(members_max=2)
    beat(clients, client("a"), wants("T"))
    clients.producer_heartbeat("p", client("a"))
    with pytest.raises(SystemBusy):
        beat(clients, client("b"), wants("T"))
    with pytest.raises(SystemBusy):
        clients.producer_heartbeat("p", client("b"))
    beat(clients, client("a"), wants("T"))
    clients.validate()


def test_the_manner_of_the_last_beat_counts() -> None:
    clients = ClientTable(members_max=10)
    manner = GroupMode(PASSIVELY, BROADCASTING, "x")
    clients.consumer_heartbeat("g", client("a"), mode=manner, subscriptions=())
    group = clients.group("g")
    assert group is not None
    assert group.is_broadcasting


moves = some.lists(
    some.tuples(
        some.sampled_from(["beat", "produce", "leave", "stop", "close"]),
        some.sampled_from(["a", "b", "c"]),
        some.sampled_from(["g", "h"]),
    ),
    max_size=40,
)


@given(moves)
def test_the_indexes_agree_after_every_step(history: list[tuple[str, str, str]]) -> None:
    clients = ClientTable(members_max=4)
    for verb, name, group in history:
        try:
            if verb == "beat":
                beat(clients, client(name), wants("T"), group=group)
            elif verb == "produce":
                clients.producer_heartbeat(group, client(name))
        except SystemBusy:
            pass
        if verb == "leave":
            clients.consumer_left(group, name)
        elif verb == "stop":
            clients.producer_left(group, name)
        elif verb == "close":
            clients.closed(name)
        clients.validate()
