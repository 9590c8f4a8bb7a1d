"""Limits of time beyond those of pytest-timeout, so that no test keeps a run from ending.

Its timer fires once, so what a test waits for in its `finally` has no limit; and it is cancelled
when a test fails, so neither have the fixtures that end then. Here it fires again and again, and
what ends a test has a timer of its own. After the last test, the process itself must end.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys

import pytest
from pytest_timeout import Settings

#: For what ends a test, fixtures of a module or a session among it, s.
_TEARDOWN_SECONDS = float(os.environ.get("SPROCKET_TEARDOWN_SECONDS", "300"))
#: After the first time, s.
_AGAIN_SECONDS = 60.0
#: From the last test until the process has ended, s.
_EXIT_SECONDS = 300.0
_HAS_ALARM = hasattr(signal, "setitimer")  # Windows has not


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Makes the test's timer fire again and again."""
    _repeat(signal.getitimer(signal.ITIMER_REAL)[0] if _HAS_ALARM else 0.0)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Starts a timer for what ends the test."""
    if _HAS_ALARM:
        settings = Settings(_TEARDOWN_SECONDS, "signal", False, False)
        item.config.hook.pytest_timeout_set_timer(item=item, settings=settings)
        _repeat(_TEARDOWN_SECONDS)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Shows what keeps the process from ending, if anything does, and ends it.

    A process of pytest-xdist waits for the others first, and is ended by the one that started it.
    """
    if not hasattr(config, "workerinput"):
        faulthandler.dump_traceback_later(_EXIT_SECONDS, exit=True, file=sys.__stderr__)


def _repeat(seconds: float) -> None:
    if seconds > 0:
        signal.setitimer(signal.ITIMER_REAL, seconds, min(seconds, _AGAIN_SECONDS))
