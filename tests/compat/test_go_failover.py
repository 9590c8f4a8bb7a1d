"""RocketMQ's Go client while the master of a group over etcd is stopped and killed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.compat import foreign
from tests.compat.foreign import Foreign, Task
from tests.compat.javaland import wait_until
from tests.compat.test_java_failover import GROUP, ROUTE_SECONDS, TOPIC, Group
from tests.election.etcds import Etcd, needs_etcd

pytestmark = [
    pytest.mark.process,
    needs_etcd,
    pytest.mark.skipif(
        not os.environ.get("SPROCKET_LONG"), reason="takes two minutes: SPROCKET_LONG=1"
    ),
]
pytest.importorskip("aiohttp", reason="needs the extra `etcd` (aiohttp)")


@pytest.fixture(scope="module")
def go() -> Foreign:
    return foreign.go()


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    with ExitStack() as stack:
        etcd = Etcd(tmp_path)
        etcd.start()
        stack.callback(etcd.close)
        made = Group(tmp_path, etcd.place)
        stack.enter_context(made.names)
        for each in made.brokers:
            stack.enter_context(each)
        made.wait_whole()
        yield made


def send(producer: Task, *bodies: str) -> None:
    """Sends each until it is accepted; Go asks for routes every 30 s."""
    for body in bodies:
        producer.say(body)
        wait_until(lambda body=body: {"sent": body} in producer.told, 3 * ROUTE_SECONDS)  # type: ignore[misc]


def test_a_go_client_goes_on_at_the_next_master(go: Foreign, group: Group) -> None:
    sent = [f"{number:03}" for number in range(9)]
    names = {"names": group.names.address, "topic": TOPIC}
    with go.start("relay", group="p", **names) as producer:
        send(producer, sent[0])
        with go.start("consume", group=GROUP, expression="*", **names) as consumer:
            send(producer, *sent[1:3])
            stopped = group.master
            stopped.stop()
            send(producer, *sent[3:6])
            stopped.start()
            group.wait_whole()
            group.master.kill()
            send(producer, *sent[6:])
            wait_until(lambda: {*consumer.bodies()} >= {*sent}, 3 * ROUTE_SECONDS)
