"""Messages for a time of their own through kills, losses of power, bad clocks and bad disks."""

from __future__ import annotations

import pytest

from sprocket.delay.timers.delivery_history import DeliveryHistory
from sprocket.delay.timers.timed_delivery import TimedDelivery
from sprocket.delay.timers.timers import Timers
from sprocket.testing.plays import play
from sprocket.testing.timed import TIMED
from tests.sim.planting import Plant, assert_found

SEEDS_PER_TEST = 2


@pytest.mark.parametrize("name", TIMED)
def test_each_comes_once_and_never_early(name: str) -> None:
    for seed in range(1, 1 + SEEDS_PER_TEST):
        outcome = play(name, seed)
        assert outcome.acknowledged > 0


@pytest.mark.parametrize(("name", "seed"), [("timers-power", 2), ("timers-disk", 18)])
def test_a_recall_is_on_the_wheel_before_its_message_can_come(name: str, seed: int) -> None:
    """Under synchronous flush it was not, and nor was a copy of the message stored anew."""
    play(name, seed)


def test_what_was_stored_anew_before_a_crash_does_not_come_after_the_next() -> None:
    """The first recovery put it on the wheel and only remembered that it was done with."""
    assert play("timers-disk", 5038).acknowledged > 0


def test_a_broker_that_lost_its_power_syncs_a_rebuilt_wheel_at_once() -> None:
    """Piece by piece it was away for as long as anybody sent."""
    assert play("timers-power", 2006).acknowledged > 0


def test_the_first_record_of_the_log_counts_as_an_origin_too() -> None:
    """It waited, was stored anew and delivered; 0, its offset, also means that there is none."""
    assert play("timers-power", 5000007).acknowledged > 0


def forgets_the_log(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DeliveryHistory, "pop", lambda self, log_offset, key, is_rolled: False)


def passes_what_the_store_refused(patch: pytest.MonkeyPatch) -> None:
    right = TimedDelivery._deliver
    patch.setattr(TimedDelivery, "_deliver", lambda self, at: right(self, at) or True)


def forgets_recalls(patch: pytest.MonkeyPatch) -> None:
    right = Timers.__init__

    class Nothing(dict[str, bool]):
        def __contains__(self, key: object) -> bool:
            return False

    def init(self: Timers, *args: object, **named: object) -> None:
        right(self, *args, **named)  # type: ignore[arg-type]
        self.current.recalled = Nothing()

    patch.setattr(Timers, "__init__", init)


@pytest.mark.parametrize(
    ("plant", "name", "told"),
    [
        (forgets_the_log, "timers-kills", "came more than once"),
        (passes_what_the_store_refused, "timers-disk", "never came"),
        (forgets_recalls, "timers", "was taken back and came"),
    ],
)
def test_a_broken_promise_is_found(
    plant: Plant, name: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_found(plant, name, told, monkeypatch)
