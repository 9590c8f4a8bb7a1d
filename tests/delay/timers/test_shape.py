"""What is due late is stored anew in time."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sprocket.delay.timers.shape import Shape
from sprocket.store.config import StoreConfig

DAY_MS = 86_400_000


def test_javas_defaults() -> None:
    shape = Shape.of(StoreConfig())
    assert (shape.width_ms, shape.roll_ms, shape.timer_file_bytes) == (1000, 2 * DAY_MS, 104857600)


def test_a_message_is_stored_anew_before_its_record_leaves_the_log() -> None:
    shape = Shape.of(replace(StoreConfig(), kept_hours=6))
    assert shape.roll_ms == 4 * 3_600_000


@given(st.integers(0, 400 * DAY_MS))
def test_every_stop_on_the_way_is_nearer_and_within_the_window(left_ms: int) -> None:
    shape = Shape.of(StoreConfig())
    now_ms = 1_700_000_000_000
    slot_ms = now_ms + left_ms // 1000 * 1000
    times = 0
    while slot_ms - now_ms >= shape.roll_ms:
        stop_ms = shape.on_the_way(slot_ms, now_ms)
        assert now_ms < stop_ms <= now_ms + shape.roll_ms
        assert stop_ms < slot_ms
        now_ms = stop_ms
        times += 1
    assert times <= left_ms // (shape.roll_ms // 2) + 1
