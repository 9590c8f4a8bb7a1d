"""What pytest needs for these tests: the transport, and why some of them cannot pass here."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

import pytest

import sprocket.integrations.celery  # noqa: F401 - makes the scheme known

_AT_BROKER = "tasks with a countdown wait at the broker, and not in the worker"
#: Parts of names of tests, and why these are skipped.
NOT_HERE = {
    "TestPriority::test_publish_requeue": "what is given back comes after all that is new",
    "TestPriority::test_simple_buffer": "queues with auto_delete are mail, without priorities",
    "test_failover_switches_to_alternate_url": "one connection uses all name servers",
    "test_Inspect::test_scheduled": _AT_BROKER,
}


def pytest_configure(config: pytest.Config) -> None:
    """Makes markers of Celery's own known."""
    config.addinivalue_line("markers", "flaky: Celery's own")
    config.addinivalue_line("markers", "amqp: Celery's own")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips what `NOT_HERE` names, and without a Redis server what asks for one when it does so."""
    for item in items:
        for part, reason in NOT_HERE.items():
            if part in item.nodeid:
                item.add_marker(pytest.mark.skip(reason=reason))
    if os.environ.get("REDIS_HOST"):
        return
    for name, module in list(sys.modules.items()):
        if name.startswith("t.integration.") and hasattr(module, "get_redis_connection"):
            vars(module)["get_redis_connection"] = _no_redis


def _no_redis(*_: Any, **__: Any) -> NoReturn:
    pytest.skip("asks for a Redis server")
