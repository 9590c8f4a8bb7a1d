"""How peers share the loop: on a loop whose time only passes as the test says."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.remoting.turns import (
    ITERATION_SECONDS,
    RUN,
    TURN_SECONDS,
    Account,
    Turns,
    turns_of,
)


class Loop:
    """Callbacks by iteration, and a clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.due: deque[Callable[[], Any]] = deque()

    def time(self) -> float:
        return self.now

    def call_soon(self, callback: Callable[[], Any]) -> None:
        self.due.append(callback)

    def iterate(self) -> None:
        for _ in range(len(self.due)):
            self.due.popleft()()


class Asking:
    """A peer with requests that take some seconds each."""

    def __init__(self, loop: Loop, name: str, costs: list[float], log: list[str]) -> None:
        self.loop, self.name, self.log = loop, name, log
        self.costs = deque(costs)
        self.account = Account()
        self.is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True

    def take_turn(self, until: float) -> bool:
        while True:
            self.loop.now += self.costs.popleft()
            self.log.append(self.name)
            if not self.costs or self.loop.now >= until:
                return bool(self.costs)


def waiting(*costs: list[float]) -> tuple[Loop, Turns, list[str]]:
    """A line of peers whose requests cost so much."""
    loop, log = Loop(), list[str]()
    turns = Turns(cast(Any, loop))
    for at, each in enumerate(costs):
        turns.join(Asking(loop, str(at), each, log))
    return loop, turns, log


def test_short_work_costs_no_callback() -> None:
    loop, turns, _ = waiting()
    turns.spend(0.0001)
    assert not loop.due
    assert not turns.is_over


def test_what_is_read_in_one_iteration_has_its_time_over_all_peers() -> None:
    loop, turns, _ = waiting()
    for _ in range(9):
        turns.spend(ITERATION_SECONDS / 10)
    assert not turns.is_over
    turns.spend(ITERATION_SECONDS / 5)
    assert turns.is_over
    loop.iterate()
    assert not turns.is_over


def test_a_peer_with_much_to_do_leaves_the_others_their_turns() -> None:
    loop, _, log = waiting([0.001] * 100, [0.001] * 2)
    loop.iterate()
    assert log.count("1") == 2, "the second had its turn in the first iteration"
    assert loop.now <= ITERATION_SECONDS + 0.002
    for _ in range(40):
        loop.iterate()
    assert log.count("0") == 100
    assert not loop.due


@given(st.lists(st.lists(st.floats(1e-5, 0.003), min_size=1, max_size=30), min_size=1, max_size=20))
def test_each_request_is_handled_once_and_no_iteration_is_long(costs: list[list[float]]) -> None:
    loop, _, log = waiting(*costs)
    most = max(max(each) for each in costs)
    while loop.due:
        began, before = loop.now, len(log)
        loop.iterate()
        assert loop.now - began <= ITERATION_SECONDS + TURN_SECONDS + most
        assert len(log) > before
    assert sorted(log) == sorted(str(at) for at, each in enumerate(costs) for _ in each)


def test_tasks_begin_while_an_iteration_has_time() -> None:
    loop = Loop()
    turns = Turns(cast(Any, loop))
    assert all(turns.may_begin("a") for _ in range(100))
    loop.now += ITERATION_SECONDS / 2
    assert turns.may_begin("a")
    loop.now += ITERATION_SECONDS
    assert [turns.may_begin(peer) for peer in "aabab"] == [True, False, True, False, False]
    loop.iterate()
    assert turns.may_begin("a")
    assert len(loop.due) == 1


def longest_wait(heavy: int, seconds: float) -> float:
    """How long one with a short request each 50 ms waits, beside so many who ask for something long
    again as soon as they are answered."""
    loop, turns, log = waiting()
    others = [Asking(loop, "heavy", [], log) for _ in range(heavy)]
    modest, waits, in_line = Asking(loop, "modest", [], log), list[float](), False
    asked, due = 0.0, 0.05
    while loop.now < 60.0:
        for each in others:
            if not each.costs:
                each.costs.append(seconds)
                turns.join(each)
        if not modest.costs and in_line:
            waits.append(loop.now - asked)
            in_line = False
        if not in_line and loop.now >= due:
            asked, due, in_line = loop.now, loop.now + 0.05, True
            modest.costs.append(0.0001)
            turns.join(modest)
        loop.iterate()
        loop.now += 0.0001
    assert log.count("heavy") * seconds > 50.0, "the others are not kept from their work"
    return max(waits[len(waits) // 10 :])


def test_many_with_long_requests_do_not_hold_up_one_with_short_ones() -> None:
    assert longest_wait(100, 0.030) <= 2 * 0.030 + 2 * ITERATION_SECONDS
    assert longest_wait(3, 0.200) <= 2 * 0.200 + 2 * ITERATION_SECONDS


def test_one_that_asked_for_something_long_has_its_turn_like_others_later() -> None:
    loop, turns, log = waiting([0.030], [0.001])
    loop.iterate()
    assert loop.now >= 0.030
    first = Asking(loop, "first", [0.001], log)
    turns.charge(first, 0.030)
    assert turns.is_behind(first)
    loop.now += 1.0
    assert not turns.is_behind(first)
    turns.charge(first, 0.002)
    assert not turns.is_behind(first)


def test_those_behind_get_on_however_many_are_before_them() -> None:
    loop, turns, log = waiting(*[[0.002] * 1_000 for _ in range(5)])
    slow = Asking(loop, "slow", [0.001] * 3, log)
    turns.charge(slow, 1.0)
    turns.join(slow)
    for _ in range(3):
        loop.iterate()
    assert log.count("slow") >= 3


def a_crowd(*names: str) -> tuple[Loop, Turns, dict[str, Asking]]:
    """Peers that nobody knows yet."""
    loop, turns, log = waiting()
    return loop, turns, {name: Asking(loop, name, [], log) for name in names}


def after_a_while(turns: Turns, shares: dict[Asking, int]) -> None:
    """They took so much of the loop, again and again."""
    for _ in range(400):
        for peer, requests in shares.items():
            turns.count(peer, requests, 0.0)


def test_who_takes_less_than_half_of_an_equal_share_is_modest() -> None:
    _, turns, peers = a_crowd("a", "b", "c")
    assert not any(map(turns.is_modest, peers.values())), "they may be new ones of one flood"
    after_a_while(turns, {peers["a"]: 20, peers["b"]: 20, peers["c"]: 1})
    assert [name for name, peer in peers.items() if turns.is_modest(peer)] == ["c"]
    after_a_while(turns, {peers["c"]: 20, peers["b"]: 20, peers["a"]: 1})
    assert [name for name, peer in peers.items() if turns.is_modest(peer)] == ["a"]


def test_those_that_take_the_same_are_all_alike_and_none_has_short_turns() -> None:
    for each in ("a", "ab", "abcdefgh"):
        _, turns, peers = a_crowd(*each)
        after_a_while(turns, dict.fromkeys(peers.values(), 16))
        assert not any(map(turns.is_modest, peers.values()))
        assert not turns.is_short(0.0)
        turns.count(peers["a"], 1_000, 0.0)
        assert not turns.is_full


def test_beside_a_modest_peer_an_iteration_is_full_after_a_run_of_others() -> None:
    loop, turns, peers = a_crowd("much", "little")
    after_a_while(turns, {peers["much"]: 64, peers["little"]: 1})
    assert turns.is_short(loop.now)
    loop.iterate()
    assert not turns.is_full
    turns.count(peers["much"], RUN, loop.now)
    assert turns.is_full
    loop.iterate()
    assert not turns.is_full
    loop.now += 2.0
    assert not turns.is_short(loop.now), "the modest one has not come again"


def test_a_modest_peer_passes_the_others_in_the_line() -> None:
    loop, turns, peers = a_crowd("little", *(f"much{at}" for at in range(9)))
    little, *much = peers.values()
    after_a_while(turns, {little: 1, **dict.fromkeys(much, 64)})
    loop.iterate()
    for peer in (*much, little):
        peer.costs.extend([0.0005] * 2)
        turns.join(peer)
    loop.iterate()
    assert little.log[0] == "little"
    assert len(little.log) <= 6, "the others had a millisecond"


class Failing(Asking):
    """A peer whose turn ends with an error."""

    def take_turn(self, until: float) -> bool:
        raise RuntimeError("of the turn")


def test_a_peer_whose_turn_fails_is_closed_and_the_others_have_theirs() -> None:
    loop, turns, log = waiting()
    failing = Failing(loop, "failing", [0.001], log)
    turns.join(failing)
    turns.join(Asking(loop, "other", [0.001], log))
    with pytest.raises(RuntimeError, match="of the turn"):
        loop.iterate()
    assert failing.is_aborted
    loop.iterate()
    assert log == ["other"]
    assert not loop.due


class Steps:
    """What may happen to the turns of a loop, in any order. Whoever waits always has a callback."""

    def __init__(self, names: str) -> None:
        self.loop, self.turns, self.log = waiting()
        self.peers = [Asking(self.loop, name, [], self.log) for name in names]
        self.asked = 0

    def ask(self, which: int, seconds: float) -> None:
        """A peer has a request for its turn."""
        peer = self.peers[which]
        if not peer.costs:
            peer.costs.append(seconds)
            self.turns.join(peer)
        else:
            peer.costs.append(seconds)
        self.asked += 1

    def answered(self, which: int, requests: int) -> None:
        """Requests of a peer were answered as they were read."""
        self.turns.count(self.peers[which], requests, self.loop.now)

    def took(self, which: int, seconds: float) -> None:
        """Its requests took so long."""
        self.loop.now += seconds
        self.turns.spend(seconds)
        self.turns.charge(self.peers[which], seconds)

    def passes(self, which: int, seconds: float) -> None:
        """Time passes, or not, and an iteration begins."""
        self.loop.now += seconds if which else 0.0
        self.loop.iterate()

    @property
    def is_due_if_needed(self) -> bool:
        """Whether an iteration comes, if anything waits for one."""
        waits = any(peer.costs for peer in self.peers)
        return bool(self.loop.due) or not (waits or self.turns.is_over or self.turns.is_full)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("ask"), st.integers(0, 3), st.sampled_from([0.0, 1e-4, 3e-3, 0.05])),
            st.tuples(st.just("answered"), st.integers(0, 3), st.sampled_from([1, 7, 64, 1_100])),
            st.tuples(st.just("took"), st.integers(0, 3), st.sampled_from([0.0, 1e-4, 6e-3, 0.4])),
            st.tuples(st.just("passes"), st.integers(0, 3), st.sampled_from([0.0, 1e-3, 2.0])),
        ),
        max_size=60,
    )
)
def test_whoever_waits_for_a_turn_always_has_a_callback(steps: list[tuple[str, int, Any]]) -> None:
    # Even where no time passes at all, as in a simulation.
    world = Steps("abcd")
    for name, which, amount in steps:
        getattr(world, name)(which, amount)
        assert world.is_due_if_needed
    for _ in range(4 * len(steps) + 4):
        world.loop.iterate()
        assert world.is_due_if_needed
    assert len(world.log) == world.asked
    assert not world.loop.due


def test_servers_of_one_loop_share_its_turns_until_the_last_is_gone() -> None:
    loops = cast(Any, Loop()), cast(Any, Loop())
    first, second = turns_of(loops[0]), turns_of(loops[1])
    assert turns_of(loops[0]) is first
    assert second is not first
    del first
    assert turns_of(loops[0]) is not second
