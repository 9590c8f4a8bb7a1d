"""Warnings that others can cause."""

from __future__ import annotations

import asyncio
import logging

import pytest

from sprocket.base.rare_log import LINES_MAX, RareLog
from sprocket.testing.loop import simulate


def test_of_each_kind_some_lines_a_minute_are_logged_and_the_rest_is_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main(_: object) -> None:
        log = RareLog(logging.getLogger("rare"))
        for number in range(1_000):
            log.warning("%s knocks", number)
        log.warning("another kind")
        await asyncio.sleep(61)
        log.warning("%s knocks", "someone")
        log.warning("%s knocks", "someone else")

    with caplog.at_level(logging.WARNING):
        simulate(main)
    said = [each.getMessage() for each in caplog.records if each.name == "rare"]
    assert said[:LINES_MAX] == [f"{number} knocks" for number in range(LINES_MAX)]
    assert said[LINES_MAX:] == [
        "another kind",
        f"someone knocks ({1_000 - LINES_MAX} more like this were left out)",
        "someone else knocks",
    ]
