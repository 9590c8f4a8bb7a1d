"""Hundreds of histories of consumption, and proof that broken promises are found.

A failure prints the command that plays it again. `make sim SEEDS=1..2000` plays more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from sprocket.admin import positions
from sprocket.admin.caller import Caller
from sprocket.base.errors import SprocketError
from sprocket.broker import rewrite
from sprocket.broker.locks import LockTable
from sprocket.broker.offsets import ConsumerOffsets
from sprocket.client.consumer import PushConsumer
from sprocket.client.deliver import Ordered
from sprocket.client.local_offsets import LocalOffsets
from sprocket.client.membership import Membership
from sprocket.client.polled import Polled
from sprocket.client.producer import Producer
from sprocket.client.redeliver import Redelivery
from sprocket.client.window import Window
from sprocket.delay import deliver
from sprocket.delay.schedule import Progress
from sprocket.message.message import Message, StoredMessage
from sprocket.message.offsets import QueueOffset
from sprocket.message.queue import QueueId
from sprocket.message.record import Record
from sprocket.protocol.requests.offset import UpdateOffset
from sprocket.remoting.pool import Pool
from sprocket.testing.cluster import BROKER_PORT, Cluster
from sprocket.testing.consumption import CONSUMPTION, play
from sprocket.testing.invariants import Violation
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from sprocket.testing.observer import Observer

SEEDS_PER_TEST = 3
#: Seeds that show a planted fault soon.
FIRST_TO_SHOW = {"stopped": 16}


@pytest.fixture(autouse=True)
def _quiet_logs(caplog: pytest.LogCaptureFixture) -> None:
    """What clients and brokers log about bad weather is no news here, and costs time."""
    caplog.set_level(logging.CRITICAL)


@pytest.mark.parametrize("name", CONSUMPTION)
def test_all_promises_of_consumption_hold(name: str) -> None:
    for seed in range(1, 1 + SEEDS_PER_TEST):
        outcome = play(name, seed)
        assert outcome.delivered >= outcome.acknowledged > 0


def test_a_position_that_an_older_commit_overtook_is_told_again() -> None:
    async def main(network: Network) -> int:
        cluster = Cluster(network)
        await cluster.start()
        observer = Observer(cluster, "orders", 1, group="g")
        await observer.create_topic()
        process, world = cluster.client("one")
        servers = cluster.nameserver_addresses

        async def consume() -> None:
            async with (
                Producer("p", nameservers=servers, world=world) as producer,
                PushConsumer("g", nameservers=servers, world=world, start="first") as consumer,
            ):
                consumer.subscribe("orders", listener=nothing)
                for _ in range(5):
                    await producer.send(Message("orders", b"x"))
                await asyncio.sleep(30)
                offsets = cluster.brokers[0].server._parts.offsets
                assert offsets.committed("g", "orders", 0) == 5
                offsets.commit("g", "orders", queue_number=0, offset=3)
                await asyncio.sleep(70)

        await process.run(consume())
        (committed,) = (await observer.committed()).values()
        await observer.close()
        await cluster.stop()
        return committed

    async def nothing(message: StoredMessage) -> None:
        pass

    assert simulate(main) == 5


def test_a_tool_moves_a_group_after_a_reset_and_a_consumer_that_did_not_hear_does_not() -> None:
    async def main(network: Network) -> tuple[list[int], int]:
        cluster = Cluster(network)
        await cluster.start()
        observer = Observer(cluster, "orders", 1, group="g")
        await observer.create_topic()
        (queue,) = await observer.ends()
        process, world = cluster.client("member")
        servers = cluster.nameserver_addresses
        got: list[int] = []

        async def consume() -> None:
            async with (
                Producer("p", nameservers=servers, world=world) as producer,
                PushConsumer("g", nameservers=servers, world=world, start="first") as consumer,
            ):
                consumer.subscribe("orders", listener=note)
                for _ in range(8):
                    await producer.send(Message("orders", b"x"))
                await asyncio.sleep(120)

        async def note(message: StoredMessage) -> None:
            got.append(int(message.queue_offset))
            await asyncio.sleep(1)

        consuming = asyncio.ensure_future(process.run(consume()))
        await asyncio.sleep(3)
        process.stop()  # with messages in hand, and a pull that is held
        pool = Pool()
        tool = Caller(pool, servers, timeout_ms=3_000)
        await positions.reset(tool, "g", "orders", queue=queue, offset=1)
        for commits, offset in ((False, 2), (True, 6)):
            await tool.ask(f"{cluster.brokers[0].address}:{BROKER_PORT}", commit(offset))
            assert (await observer.committed())[queue] == (6 if commits else 1)
            await positions.lag(tool, "g")
        network.break_connections("member")
        process.wake()
        await asyncio.sleep(0)
        got.clear()
        await consuming
        (committed,) = (await observer.committed()).values()
        await pool.close()
        await observer.close()
        await cluster.stop()
        return got, committed

    def commit(offset: int) -> UpdateOffset:
        return UpdateOffset(consumer_group="g", topic="orders", queue_id=0, commit_offset=offset)

    assert simulate(main) == ([6, 7], 8)


def commits_one_too_far(patch: pytest.MonkeyPatch) -> None:
    right = Window.committable.fget
    assert right is not None

    def committable(window: Window) -> int:
        return min(right(window) + 1, window.next_offset) if window.count else right(window)

    patch.setattr(Window, "committable", property(committable))


def ignores_the_loss_of_a_lease(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Membership, "lost", lambda self, address: None)
    patch.setattr(Membership, "_renewed", lambda self, queue, feed, trusted_until: None)
    patch.setattr(
        Ordered, "_must_wait", lambda self, window: window.is_frozen or window in self._resting
    )


def forgets_leases_when_it_is_killed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LockTable, "load", lambda self, state: None)


def believes_that_a_return_arrived(patch: pytest.MonkeyPatch) -> None:
    async def give_back(self: Redelivery, message: StoredMessage, delay_level: int = 0) -> bool:
        with contextlib.suppress(SprocketError):
            await self._send_back(message, delay_level)
        return True

    patch.setattr(Redelivery, "give_back", give_back)


def gives_one_try_too_many(patch: pytest.MonkeyPatch) -> None:
    def is_given_up(record: Record, *, level: int, times_max: int) -> bool:
        return record.reconsume_times > times_max

    patch.setattr(rewrite, "is_given_up", is_given_up)


def delivers_a_second_early(patch: pytest.MonkeyPatch) -> None:
    right = deliver.wait_ms
    patch.setattr(
        deliver,
        "wait_ms",
        lambda due_ms, *, delay_ms, now_ms: right(due_ms, delay_ms=delay_ms, now_ms=now_ms + 1000),
    )


def delivers_again_after_a_kill(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deliver, "delivered_since", lambda store, log_offset: {})


def loses_what_is_due_while_it_stops(patch: pytest.MonkeyPatch) -> None:
    right = Progress.load

    def load(self: Progress, state: Mapping[str, Any]) -> None:
        right(self, state)
        for level in list(self._next):
            self._next[level] += 1

    patch.setattr(Progress, "load", load)


def hands_out_before_the_position_is_known(patch: pytest.MonkeyPatch) -> None:
    right = LocalOffsets.committed

    async def committed(self: LocalOffsets, queue: QueueId) -> QueueOffset | None:
        found = await right(self, queue)
        return None if found is None else QueueOffset(found + 1)

    patch.setattr(LocalOffsets, "committed", committed)


def finishes_what_a_poll_returns_at_once(patch: pytest.MonkeyPatch) -> None:
    right = Polled.take

    def take(self: Polled, *args: Any, **kwargs: Any) -> list[StoredMessage]:
        taken = right(self, *args, **kwargs)
        self.finish()
        return taken

    patch.setattr(Polled, "take", take)


def takes_commits_from_before_a_reset(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        ConsumerOffsets,
        "reset",
        lambda self, group, topic, *, queue_number, offset: self.put(
            group, topic, queue_number=queue_number, offset=offset
        ),
    )


def play_until_it_fails(name: str) -> None:
    for seed in range(FIRST_TO_SHOW.get(name, 1), 41):
        play(name, seed)


@pytest.mark.parametrize(
    ("plant", "name", "told"),
    [
        (commits_one_too_far, "concurrent", "neither finished nor given back"),
        (
            ignores_the_loss_of_a_lease,
            "stopped",
            "while .* is at offset|before all that lies before",
        ),
        (forgets_leases_when_it_is_killed, "ordered-power", "while .* is at offset"),
        (believes_that_a_return_arrived, "dead-letters", "never consumed|dead letter 0x"),
        (gives_one_try_too_many, "dead-letters", "is the limit"),
        (delivers_a_second_early, "delayed", "ms early"),
        (delivers_again_after_a_kill, "delayed", "and came 2 times"),
        (loses_what_is_due_while_it_stops, "delayed", "never consumed|and came 0 times"),
        (hands_out_before_the_position_is_known, "broadcasting", "never consumed|nor given back"),
        (finishes_what_a_poll_returns_at_once, "lite", "neither finished nor given back"),
        (takes_commits_from_before_a_reset, "resets", "nor given back|did not come after that"),
    ],
)
def test_a_broken_promise_is_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    name: str,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    with pytest.raises(Violation, match=rf"(?s)({told}).*SCENARIO={name}"):
        play_until_it_fails(name)


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        pytest.param("ordered-power", 6, id="leases-outlive-a-broker-that-lost-its-power"),
        pytest.param(
            "ordered-power", 7, id="a-dead-letter-that-cannot-be-stored-is-no-further-try"
        ),
        pytest.param("delayed", 12, id="what-was-delivered-before-a-kill-does-not-come-again"),
        pytest.param("delayed", 8, id="nor-does-what-waited-in-the-first-record-of-the-log"),
        pytest.param("dead-letters", 17, id="nor-do-returned-messages"),
        pytest.param("tempest", 196, id="a-reset-is-not-lost-on-a-pull-that-was-given-up"),
        pytest.param("resets", 136, id="nor-told-to-a-connection-that-is-gone"),
        pytest.param("resets", 137, id="that-one-member-heard-does-not-speak-for-another"),
        pytest.param("tempest", 145, id="a-group-moved-forwards-goes-on-behind-what-it-passed"),
    ],
)
def test_what_was_broken_once_holds(name: str, seed: int) -> None:
    play(name, seed)
