"""The wall clock."""

from __future__ import annotations

import time

from sprocket.runtime.clock import SystemClock


def test_it_tells_the_machines_time_in_milliseconds() -> None:
    before = int(time.time() * 1000)
    assert before - 1 <= SystemClock().now_ms() <= int(time.time() * 1000) + 1
