"""The machine's memory."""

from __future__ import annotations

from sprocket.runtime.memory import memory_bytes


def test_a_machine_has_memory() -> None:
    assert memory_bytes() >= 64 << 20
