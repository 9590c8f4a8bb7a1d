"""Celery at a broker with TLS and users: a caller, a worker, and results by mail."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import celery
import kombu
import pytest
from celery.contrib.testing.worker import start_worker

import sprocket.integrations.celery  # noqa: F401 - makes the scheme known
from sprocket.base.errors import NoPermission
from sprocket.integrations.celery import shared_stations
from tests.certificates import Authority
from tests.integrations.closed import PASSWORD, USER, closed_node
from tests.support import LONGEST

pytestmark = pytest.mark.process


@pytest.fixture
def kept_logging() -> Iterator[None]:
    """A worker sets the root logger's level and handlers, for other tests too."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.mark.usefixtures("kept_logging")
def test_a_user_with_pub_and_sub_alone_calls_and_works(
    authority: Authority, tmp_path: Path
) -> None:
    with closed_node(authority, tmp_path, ["celery"], mail=["sprocket-mail"]) as node:
        ssl = {"ca_certs": node.authorities}
        url = f"sprocket+rocketmq://{node.names}"
        app = celery.Celery("closed", broker=url, backend="rpc://", set_as_current=False)
        app.conf.broker_user, app.conf.broker_password = USER, PASSWORD
        app.conf.broker_use_ssl = ssl
        app.conf.broker_transport_options = {"create_topics": False}

        @app.task
        def add(x: int, y: int) -> int:
            return x + y

        with start_worker(app, pool="solo", perform_ping_check=False):
            assert add.delay(2, 3).get(timeout=LONGEST) == 5
            stats = app.control.inspect(timeout=2.0).stats()
            assert stats
            assert PASSWORD not in repr(stats), "whoever inspects a worker reads its secret"
        app.backend.result_consumer.stop()
        app.pool.force_close_all()
        url = f"sprocket+rocketmq://{USER}:{quote(PASSWORD, safe='')}@{node.names}"
        with kombu.Connection(url, ssl=ssl) as connection:
            connection.connect()
            assert PASSWORD not in connection.as_uri()
        wrong = kombu.Connection(f"sprocket+rocketmq://{USER}:wrong@{node.names}", ssl=ssl)
        with wrong, pytest.raises(wrong.connection_errors) as refused:
            wrong.SimpleQueue("celery").put("refused")
        assert isinstance(refused.value, NoPermission)
        assert not shared_stations._stations
