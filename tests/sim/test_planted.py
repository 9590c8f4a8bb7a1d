"""Broken promises, planted one by one, and proof that histories find them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

import pytest

from sprocket.base.believed_time import BelievedTime
from sprocket.base.errors import SprocketError, SystemBusy
from sprocket.broker.sending import destination
from sprocket.broker.sending.destination import Retry
from sprocket.broker.tables.locks import LockTable
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.client.delivery.deliver import OrderedDelivery
from sprocket.client.delivery.polled_messages import PolledMessages
from sprocket.client.delivery.redeliver import Redelivery
from sprocket.client.fetching.fetcher import Feed
from sprocket.client.fetching.window import Window
from sprocket.client.group.local_offsets import LocalOffsets
from sprocket.client.group.membership import Membership
from sprocket.client.sending.sender import MessageSender
from sprocket.delay.levels import deliver
from sprocket.delay.levels.deliver import LevelDelivery
from sprocket.delay.levels.schedule import ScheduleProgress
from sprocket.message.message import StoredMessage
from sprocket.message.offsets import QueueOffset
from sprocket.message.queue import QueueId
from sprocket.message.record import Draft
from sprocket.remoting.transport import Peer
from sprocket.store.store import Store
from sprocket.testing.disk import MemoryDisk
from tests.sim.planting import Plant, assert_found

#: Seeds that show a planted fault soon.
FIRST_TO_SHOW = {"stopped": 16, "lite": 2, "frozen": 3}


def believes_a_jump_of_the_clock_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BelievedTime, "at", lambda self, wall_ms, steady_ms: wall_ms)


def waits_until_the_clock_says_so(patch: pytest.MonkeyPatch) -> None:
    def wait_ms(due_ms: int, *, delay_ms: int, now_ms: int) -> int:
        return max(0, due_ms - now_ms)

    patch.setattr(deliver, "wait_ms", wait_ms)
    patch.setattr(LevelDelivery, "_left_ms", lambda self, level, record: 1 << 40)


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
        OrderedDelivery,
        "_must_wait",
        lambda self, window: window.is_frozen or window in self._resting,
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
    def is_given_up(draft: Draft, retry: Retry) -> bool:
        return draft.reconsume_times > retry.times_max + 1

    patch.setattr(destination, "is_given_up", is_given_up)


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
    right = ScheduleProgress.load

    def load(self: ScheduleProgress, state: Mapping[str, Any]) -> None:
        right(self, state)
        for level in list(self._next):
            self._next[level] += 1

    patch.setattr(ScheduleProgress, "load", load)


def hands_out_before_the_position_is_known(patch: pytest.MonkeyPatch) -> None:
    right = LocalOffsets.committed

    async def committed(self: LocalOffsets, queue: QueueId) -> QueueOffset | None:
        found = await right(self, queue)
        return None if found is None else QueueOffset(found + 1)

    patch.setattr(LocalOffsets, "committed", committed)


def finishes_what_a_poll_returns_at_once(patch: pytest.MonkeyPatch) -> None:
    right = PolledMessages.take

    def take(self: PolledMessages, *args: Any, **kwargs: Any) -> list[StoredMessage]:
        taken = right(self, *args, **kwargs)
        self.finish()
        return taken

    patch.setattr(PolledMessages, "take", take)


def takes_commits_from_before_a_reset(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        ConsumerOffsets,
        "reset",
        lambda self, group, topic, *, queue_number, offset: self.put(
            group, topic, queue_number=queue_number, offset=offset
        ),
    )


def loses_what_it_acknowledged(patch: pytest.MonkeyPatch) -> None:
    def forgets(disk: MemoryDisk) -> MemoryDisk:
        # All but the state files: a start without log is refused if anything shows that there was
        # one.
        for path in [path for path in disk._files if "/config/" not in path]:
            disk.remove(path)
        return right(disk)

    right = MemoryDisk.after_kill
    patch.setattr(MemoryDisk, "after_kill", forgets)


# Not wrong, but dead.


def takes_nothing(patch: pytest.MonkeyPatch) -> None:
    async def refused(self: MessageSender, *args: object) -> None:
        raise SystemBusy("later, perhaps")

    patch.setattr(MessageSender, "send", refused)


def takes_for_ever_to_start(patch: pytest.MonkeyPatch) -> None:
    right = Store.open

    async def opened(**parts: Any) -> Store:
        store = await right(**parts)
        await asyncio.sleep(1_000_000)
        return store

    patch.setattr(Store, "open", opened)


def waits_for_ever_for_an_answer(patch: pytest.MonkeyPatch) -> None:
    right = MessageSender.send

    async def send(self: MessageSender, *args: Any, **named: Any) -> Any:
        try:
            return await right(self, *args, **named)
        except SprocketError:
            await asyncio.sleep(1_000_000)

    patch.setattr(MessageSender, "send", send)


def fetches_no_more_after_an_error(patch: pytest.MonkeyPatch) -> None:
    def complain(self: Feed, error: SprocketError) -> None:
        self._parts.pauses.pause_topic(self.queue.topic)

    patch.setattr(Feed, "_complain", complain)


def stays_with_a_connection_that_leads_nowhere(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Peer, "_overdue", lambda self: None)


@pytest.mark.parametrize(
    ("plant", "name", "told"),
    [
        (commits_one_too_far, "concurrent", "neither finished nor given back"),
        (believes_a_jump_of_the_clock_at_once, "clocks", r"has orders@broker-\d:\d \d+ at 0"),
        (waits_until_the_clock_says_so, "clocks", "does not come to rest|never consumed"),
        (loses_what_it_acknowledged, "kills", "was acknowledged and is lost"),
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
        (takes_nothing, "fair", "a broker takes no message"),
        (takes_for_ever_to_start, "fair", "does not serve 30 s after its start"),
        (waits_for_ever_for_an_answer, "kills", "producers do not come to an end"),
        (fetches_no_more_after_an_error, "connections", "never consumed|does not come to rest"),
        (stays_with_a_connection_that_leads_nowhere, "frozen", "never consumed|takes no message"),
    ],
)
def test_a_broken_promise_is_found(
    plant: Plant, name: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_found(plant, name, told, monkeypatch, seed=FIRST_TO_SHOW.get(name, 1))
