from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sprocket.client.group.rebalance import Acquire, Instruction, Rebalance, Release
from sprocket.message.queue import QueueId

Q0, Q1, Q2, Q3 = (QueueId("t", "a", number) for number in range(4))
ALL = [Q0, Q1, Q2, Q3]


def held_by_me(*queues: QueueId) -> Rebalance:
    rebalance = Rebalance("me")
    rebalance.update("t", queues, ["me"])
    for queue in queues:
        rebalance.acquired(queue)
    return rebalance


def test_a_lone_member_acquires_every_queue() -> None:
    rebalance = Rebalance("me")
    assert rebalance.update("t", ALL, ["me"]) == [Acquire(queue) for queue in ALL]
    assert rebalance.update("t", ALL, ["me"]) == []
    assert rebalance.held == []


def test_a_second_member_takes_half() -> None:
    rebalance = held_by_me(*ALL)
    assert rebalance.update("t", ALL, ["you", "me"]) == [Release(Q2), Release(Q3)]
    assert rebalance.held == [Q0, Q1]


def test_a_list_without_this_member_changes_nothing() -> None:
    rebalance = held_by_me(*ALL)
    assert rebalance.update("t", ALL, ["you"]) == []
    assert rebalance.held == ALL


def test_a_queue_that_left_the_route_is_released() -> None:
    rebalance = held_by_me(Q0, Q1)
    assert rebalance.update("t", [Q0], ["me"]) == [Release(Q1)]


def test_topics_are_looked_at_one_by_one() -> None:
    rebalance = held_by_me(Q0)
    other = QueueId("u", "a", 0)
    assert rebalance.update("u", [other], ["me"]) == [Acquire(other)]
    assert rebalance.unsubscribed("t") == [Release(Q0)]


def test_a_queue_lost_interest_in_while_acquiring_is_released_then() -> None:
    rebalance = Rebalance("me")
    rebalance.update("t", [Q0], ["me"])
    assert rebalance.update("t", [], ["me"]) == []
    assert rebalance.acquired(Q0) == [Release(Q0)]
    assert rebalance.released(Q0) == []
    assert rebalance.held == []


def test_a_queue_wanted_back_while_releasing_is_acquired_then() -> None:
    rebalance = held_by_me(Q0)
    rebalance.update("t", [], ["me"])
    assert rebalance.update("t", [Q0], ["me"]) == []
    assert rebalance.released(Q0) == [Acquire(Q0)]


def test_a_failed_acquire_is_tried_at_the_next_look() -> None:
    rebalance = Rebalance("me")
    rebalance.update("t", [Q0], ["me"])
    rebalance.gave_up(Q0)
    assert rebalance.update("t", [Q0], ["me"]) == [Acquire(Q0)]


def test_leaving_releases_everything_and_acquires_nothing_more() -> None:
    rebalance = held_by_me(Q0, Q1)
    assert rebalance.left() == [Release(Q0), Release(Q1)]
    assert rebalance.released(Q0) == []
    assert rebalance.released(Q1) == []
    assert rebalance.held == []


class Group(RuleBasedStateMachine):
    """Three members look at changing routes and lists, and perform instructions at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.members = {name: Rebalance(name) for name in "abc"}
        self.open: list[tuple[str, Instruction]] = []

    def note(self, name: str, instructions: list[Instruction]) -> None:
        self.open += [(name, each) for each in instructions]

    @rule(
        name=st.sampled_from("abc"),
        route=st.sets(st.sampled_from(ALL)),
        alive=st.sets(st.sampled_from("abc")),
    )
    def look(self, name: str, route: set[QueueId], alive: set[str]) -> None:
        self.note(name, self.members[name].update("t", route, sorted(alive)))

    @precondition(lambda self: self.open)
    @rule(data=st.data(), succeeds=st.booleans())
    def perform(self, data: st.DataObject, succeeds: bool) -> None:
        at = data.draw(st.integers(0, len(self.open) - 1))
        name, instruction = self.open.pop(at)
        member = self.members[name]
        if isinstance(instruction, Release):
            self.note(name, member.released(instruction.queue))
        elif succeeds:
            self.note(name, member.acquired(instruction.queue))
        else:
            member.gave_up(instruction.queue)

    @invariant()
    def holds(self) -> None:
        for member in self.members.values():
            member.validate()
        for name in self.members:
            mine = [each.queue for owner, each in self.open if owner == name]
            assert len(mine) == len(set(mine)), "one open instruction for a queue"

    def teardown(self) -> None:
        """Once all agree and all is performed, each queue has exactly one holder."""
        for _ in range(10):
            while self.open:
                name, instruction = self.open.pop(0)
                member = self.members[name]
                done = member.released if isinstance(instruction, Release) else member.acquired
                self.note(name, done(instruction.queue))
            for name, member in self.members.items():
                self.note(name, member.update("t", ALL, ["a", "b", "c"]))
        assert not self.open
        assert sorted(q for member in self.members.values() for q in member.held) == ALL


TestGroup = Group.TestCase
TestGroup.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


@pytest.mark.timeout(60)
def test_a_share_of_very_many_queues_costs_no_look_at_all_of_them_for_each() -> None:
    """With a look at all for each queue this takes many minutes."""
    queues = [QueueId("orders", "b", number) for number in range(50_000)]
    rebalance = Rebalance("me")
    for instruction in rebalance.update("orders", queues, ["me"]):
        assert rebalance.acquired(instruction.queue) == []
    assert rebalance.held == queues
    releases = rebalance.left()
    assert [rebalance.released(each.queue) for each in releases] == [[]] * len(queues)
