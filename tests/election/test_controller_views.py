"""What a controller says, as a view."""

from __future__ import annotations

import pytest

from sprocket.election.controller_views import beside, elected, is_older, view_of
from sprocket.election.elector import GroupView, Member
from sprocket.protocol.bodies import ReplicaTable
from sprocket.protocol.requests.election import ElectMasterReply

#: As RocketMQ 5.3.3 writes it: `alive` and the master are there only if they are known.
TABLE = b"""{"replicasInfoTable":{"b":{"inSyncReplicas":[
{"alive":true,"brokerAddress":"10.0.0.1:10911","brokerId":1,"brokerName":"b"},
{"alive":false,"brokerAddress":"10.0.0.2:10911","brokerId":2,"brokerName":"b"}],
"masterAddress":"10.0.0.1:10911","masterBrokerId":1,"masterEpoch":7,"notInSyncReplicas":[
{"alive":true,"brokerAddress":"10.0.0.3:10911","brokerId":3,"brokerName":"b"}],
"syncStateSetEpoch":9}}}"""


def test_a_view_has_all_members_and_what_is_known_of_them() -> None:
    facts = ReplicaTable.decode(TABLE).replicas_info_table["b"]
    me = Member(3, "10.0.0.3:10911", "10.0.0.3:4711", priority=5)
    view = view_of(facts, me=me, replication={"10.0.0.2:10911": "10.0.0.2:8888"})
    assert view == GroupView(
        epoch=7,
        master=1,
        in_sync=frozenset({1, 2}),
        set_epoch=9,
        members={
            1: Member(1, "10.0.0.1:10911", "10.0.0.1:10912"),
            2: Member(2, "10.0.0.2:10911", "10.0.0.2:8888", is_alive=False),
            3: me,
        },
    )


def test_a_group_without_a_master_is_a_view_too() -> None:
    facts = ReplicaTable.decode(b'{"replicasInfoTable":{"b":{"masterEpoch":2}}}')
    view = view_of(facts.replicas_info_table["b"], me=None, replication={})
    assert view == GroupView(epoch=2)


def test_an_election_changes_all_but_the_members() -> None:
    before = GroupView(1, 1, frozenset({1, 2}), 4, {1: Member(1, "a:1", "a:2")})
    reply = ElectMasterReply(master_broker_id=2, master_epoch=2, sync_state_set_epoch=5)
    assert elected(reply, [2], before) == GroupView(2, 2, frozenset({2}), 5, before.members)


@pytest.mark.parametrize(
    ("view", "known", "older"),
    [
        ((1, 5), (1, 5), False),
        ((1, 4), (1, 5), True),
        ((2, 4), (1, 5), False),
        ((0, 9), (1, 5), True),
    ],
)
def test_views_are_in_order(view: tuple[int, int], known: tuple[int, int], older: bool) -> None:
    one = GroupView(epoch=view[0], set_epoch=view[1])
    assert is_older(one, GroupView(epoch=known[0], set_epoch=known[1])) is older


def test_slaves_are_next_to_clients_by_default() -> None:
    assert beside("10.0.0.1:10911") == "10.0.0.1:10912"
    assert beside("[::1]:65535") == "[::1]:65535"
    assert beside("nonsense") == ""
