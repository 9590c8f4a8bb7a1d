"""Sockets behave alike on asyncio's own loop and on uvloop's."""

from __future__ import annotations

import asyncio
import sys

import pytest

from tests import support

if sys.platform == "win32":
    LOOPS = {"asyncio": asyncio.new_event_loop}
else:
    import uvloop

    LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(params=LOOPS.values(), ids=LOOPS)
def either_loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes `tests.support.run` use one kind of loop, then the other."""
    monkeypatch.setattr(support, "new_loop", request.param)
