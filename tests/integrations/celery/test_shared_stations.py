"""What the connections of a process share ends with the last of them, and with the process."""

from __future__ import annotations

import gc
import subprocess
import sys
import time

import kombu
import pytest

import sprocket.integrations.celery  # noqa: F401 - makes the scheme known
from sprocket.integrations.celery import shared_stations
from sprocket.testing.node_thread import NodeThread
from tests.support import LONGEST

pytestmark = pytest.mark.process


def test_the_last_connection_ends_what_all_share_though_nobody_closes_it() -> None:
    with NodeThread() as node:
        url = f"sprocket+rocketmq://{node.nameservers}"
        with kombu.Connection(url) as closed:
            connection = kombu.Connection(url)
            queues = [kombu.Queue(node.group(), exclusive=True)]
            connection.Consumer(queues, on_message=print).consume()
            closed.connect()
            assert len(shared_stations._stations) == 1
        assert shared_stations._stations
        del connection
        gc.collect()
        until = time.monotonic() + LONGEST
        while shared_stations._stations and time.monotonic() < until:
            time.sleep(0.01)
        assert not shared_stations._stations


ENDING = """
import kombu
import sprocket.integrations.celery
from sprocket.testing.node_thread import NodeThread

with NodeThread() as node:
    connection = kombu.Connection(f"sprocket+rocketmq://{node.nameservers}")
    connection.Consumer([kombu.Queue("replies", exclusive=True)]).consume()
print("the broker is gone")
"""


def test_a_process_ends_though_its_broker_is_gone_and_its_connection_is_open() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", ENDING], capture_output=True, text=True, timeout=LONGEST
    )
    assert (ended.returncode, ended.stdout) == (0, "the broker is gone\n"), ended.stderr
