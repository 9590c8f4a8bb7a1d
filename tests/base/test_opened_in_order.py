"""Parts are closed in the opposite order, also those before one that cannot be opened."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from sprocket.base.opened_in_order import OpenedInOrder


class Parts(OpenedInOrder):
    def __init__(self, *, fails: bool) -> None:
        self.fails = fails
        self.done: list[str] = []

    async def _open(self, opened: AsyncExitStack) -> None:
        for name in ("a", "b"):
            self.done.append(f"+{name}")
            opened.callback(self.done.append, f"-{name}")
        if self.fails:
            raise OSError("c")


def test_parts_are_closed_in_the_opposite_order() -> None:
    async def story() -> None:
        async with Parts(fails=False) as parts:
            assert parts.done == ["+a", "+b"]
        assert parts.done == ["+a", "+b", "-b", "-a"]
        await parts.__aexit__(None, None, None)
        assert parts.done == ["+a", "+b", "-b", "-a"]
        async with parts:
            assert parts.done[4:] == ["+a", "+b"]

    asyncio.run(story())


def test_a_part_that_cannot_be_opened_has_those_before_it_closed() -> None:
    async def story() -> None:
        parts = Parts(fails=True)
        with pytest.raises(OSError, match="c"):
            async with parts:
                raise AssertionError
        assert parts.done == ["+a", "+b", "-b", "-a"]

    asyncio.run(story())
