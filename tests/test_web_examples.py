"""The examples for web frameworks do what their guide page says: over HTTP, with PostgreSQL."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from sprocket import Message, Producer, PullConsumer, SomeNotSent
from sprocket.testing.node_thread import NodeThread
from tests.compat.javaland import free_port
from tests.postgres import MISSING, postgres
from tests.support import LONGEST, run

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples" / "web"
needs_postgres = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))


@pytest.fixture(scope="module")
def database() -> Iterator[dict[str, str]]:
    pytest.importorskip("psycopg")
    with postgres(free_port()) as variables:
        yield variables


@pytest.fixture
def outbox(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("sqlalchemy")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return pytest.importorskip("outbox")


@contextlib.contextmanager
def process(*command: str, cwd: Path = EXAMPLES, **variables: str) -> Iterator[None]:
    """Runs a Python program until the block is left, and then has it end by SIGTERM."""
    with subprocess.Popen(
        [sys.executable, *command], cwd=cwd, env={**os.environ, **variables}
    ) as started:
        try:
            yield
            assert started.poll() is None
        finally:
            started.terminate()


def post(url: str, value: object = None) -> int:
    """The status of the answer; waits for a server that is starting."""
    request = urllib.request.Request(url, json.dumps(value).encode(), method="POST")
    request.add_header("Content-Type", "application/json")
    until = time.monotonic() + LONGEST
    while True:
        try:
            with urllib.request.urlopen(request, timeout=LONGEST) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except urllib.error.URLError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


@needs_postgres
def test_an_order_and_its_message_are_committed_together_and_billed_once(
    own_rocketmq: NodeThread, database: dict[str, str], outbox: ModuleType
) -> None:
    """FastAPI, the outbox, the worker."""
    pytest.importorskip("uvicorn")
    variables = {**database, "DATABASE": "postgresql+psycopg://"}
    port = free_port()
    with (
        process("-m", "uvicorn", "--port", str(port), "fastapi_shop:app", **variables),
        process("billing_worker.py", **variables),
    ):
        url = f"http://127.0.0.1:{port}"
        assert post(f"{url}/orders", {"id": "o-1", "what": "one coffee"}) == 201
        assert post(f"{url}/orders", {"id": "o-1", "what": "again"}) == 500  # the key is taken
        assert post(f"{url}/views/coffee") == 202
        (message,) = own_rocketmq.messages("orders", 1, wait_s=LONGEST)
        assert json.loads(message.body) == {"id": "o-1", "what": "one coffee"}
        assert message.keys == ["o-1"]

        # a relay that died before its commit sends again: with the same id
        identity = {outbox.ID: message.properties[outbox.ID]}
        own_rocketmq.send("orders", message.body, keys=["o-1"], properties=identity)
        own_rocketmq.messages("orders", 2, wait_s=LONGEST)
        assert post(f"{url}/orders", {"id": "o-2", "what": "one tea"}) == 201
        run(consumed("billing", 3))
        bills = run(eventually(database, "select of_order from bills order by of_order", 2))
        assert bills == ["o-1", "o-2"]
        run(eventually(database, "select topic from outbox", 0))
        assert message.properties[outbox.ID] in run(eventually(database, "select id from done", 2))
    assert [m.body for m in own_rocketmq.messages("views")] == [b"coffee"]


async def eventually(database: dict[str, str], query: str, count: int) -> list[Any]:
    """The first column of a query, once it has so many rows."""
    import psycopg

    named = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE"}
    address = {name: database[variable] for name, variable in named.items()}
    async with await psycopg.AsyncConnection.connect(**address, autocommit=True) as connection:
        while True:
            rows = await (await connection.execute(query.encode())).fetchall()
            if len(rows) == count:
                return [row[0] for row in rows]
            await asyncio.sleep(0.05)


async def consumed(group: str, count: int) -> None:
    """Waits until a group has consumed so many messages, and all there are."""
    async with PullConsumer(group) as there:
        while True:
            queues = await there.queues("orders")
            offsets = [await there.committed(queue) for queue in queues]
            if sum(offset or 0 for offset in offsets) == count:
                return
            await asyncio.sleep(0.1)


@needs_postgres
def test_the_outbox_keeps_what_was_not_sent_and_marks_what_never_can_be(
    own_rocketmq: NodeThread,
    database: dict[str, str],
    outbox: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from sqlalchemy.ext.asyncio import create_async_engine

    for name, value in database.items():
        monkeypatch.setenv(name, value)

    class Dies(Producer):
        async def send_many(self, *arguments: Any, **named: Any) -> Any:
            with contextlib.suppress(SomeNotSent):
                await super().send_many(*arguments, **named)
            raise ConnectionError("died")

    async def scenario() -> None:
        engine = create_async_engine("postgresql+psycopg://")
        async with engine.begin() as connection:
            await connection.run_sync(outbox.tables.drop_all)
            await connection.run_sync(outbox.tables.create_all)
            for number in range(3):
                await outbox.put(connection, Message("kept", b"%d" % number, keys=["one"]))
            await outbox.put(connection, Message("kept", b"never", tag="a || b"))
        with contextlib.suppress(RuntimeError):
            async with engine.begin() as connection:
                await outbox.put(connection, Message("kept", b"rolled back"))
                raise RuntimeError("rolled back")
        async with Dies("shop") as dies:
            with pytest.raises(ConnectionError):
                await outbox.send_waiting(engine, dies)
        async with Producer("shop") as producer:
            # two relays at the same time: each message goes out by one of them
            both = [outbox.send_waiting(engine, producer) for _ in range(2)]
            assert sorted(await asyncio.gather(*both)) == [0, 3]
            assert await outbox.send_waiting(engine, producer) == 0
        assert await eventually(database, "select convert_from(body, 'utf8') from outbox", 1) == [
            "never"
        ]
        (reason,) = await eventually(database, "select refused from outbox", 1)
        assert "tag" in reason
        await engine.dispose()

    run(scenario())
    bodies = [message.body for message in own_rocketmq.messages("kept")]
    assert bodies == [b"0", b"1", b"2"] * 2  # those of the relay that died, and once more


def test_one_producer_serves_all_workers_of_flask(own_rocketmq: NodeThread) -> None:
    pytest.importorskip("flask")
    pytest.importorskip("gunicorn")
    address = f"127.0.0.1:{free_port()}"
    with process("-m", "gunicorn", "-w2", "--preload", "--bind", address, "flask_shop:app"):
        assert [post(f"http://{address}/views/p{number}") for number in range(8)] == [202] * 8
    assert len(own_rocketmq.messages("views", 8)) == 8


@needs_postgres
def test_django_commits_an_order_with_its_message(
    own_rocketmq: NodeThread, database: dict[str, str]
) -> None:
    pytest.importorskip("django")
    project, port = EXAMPLES / "django_shop", free_port()

    def manage(*command: str) -> None:
        variables = {**os.environ, **database}
        command = (sys.executable, "manage.py", *command)
        subprocess.run(command, cwd=project, env=variables, check=True, timeout=LONGEST)

    manage("migrate", "--run-syncdb", "--verbosity=0")
    served = ("manage.py", "runserver", "--noreload", str(port))
    with process(*served, cwd=project, **database):
        url = f"http://127.0.0.1:{port}/orders"
        assert post(url, {"id": "d-1", "what": "one coffee"}) == 201
        assert post(url, {"id": "d-1", "what": "again"}) == 500
        assert post(url, {"id": "d-2", "what": "one tea"}) == 201
    manage("relay", "--once")
    keys = [message.keys for message in own_rocketmq.messages("orders", 2)]
    assert sorted(keys) == [["d-1"], ["d-2"]]


def test_what_the_guide_shows_stands_in_the_examples() -> None:
    shown = re.findall(
        r"^```python no-run\n(.*?)^```$",
        (ROOT / "docs" / "guide" / "web.md").read_text(),
        re.DOTALL | re.MULTILINE,
    )
    texts = "\n".join(path.read_text() for path in EXAMPLES.rglob("*.py"))
    assert shown
    for excerpt in shown:
        for part in excerpt.split("\n\n\n"):
            assert part.strip("\n") in texts, part
