"""Commands that run a coroutine."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from sprocket.cli import asking
from sprocket.runtime import process


@pytest.mark.parametrize("run", [asking.run, process.run], ids=["command", "server"])
def test_ctrl_c_while_the_loop_is_made_warns_of_no_coroutine(
    run: Callable[[Coroutine[Any, Any, int]], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    async def work() -> int:
        return 0

    gc.collect()  # what earlier tests left warns now
    monkeypatch.setattr(asyncio.Runner, "_lazy_init", interrupted)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with pytest.raises(KeyboardInterrupt):
            run(work())
        gc.collect()
    assert [text for each in warned if "never awaited" in (text := str(each.message))] == []
