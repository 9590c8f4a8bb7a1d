"""RocketMQ's own gRPC clients, in each language they are written in, at our servers.

A node is one process of ours, as a user starts it. `SPROCKET_LONG=1` also puts our proxy before
Java's broker and name server, Java's proxy before ours, and Java's before Java's: what fails
there is not our fault.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.compat import clients5
from tests.compat.clients5 import Json, Program, Task
from tests.compat.grpc_world import OURS, WORLDS, World
from tests.compat.javaland import wait_until

pytestmark = pytest.mark.process

#: The Rust client of this version has no push consumer, no recall, no priority and no change of
#: a message's invisible time.
PUSHING = ("go", "java", "node", "python")
LANGUAGES = (*PUSHING, "rust")


@pytest.fixture(scope="module", params=WORLDS if "SPROCKET_LONG" in os.environ else [OURS])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """Servers with an endpoint of gRPC."""
    with request.param.open(tmp_path_factory.mktemp("world")) as opened:
        yield opened


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Program]]:
    """The running program of a language."""
    started: dict[str, Program] = {}
    work = tmp_path_factory.mktemp("clients")

    def program(language: str) -> Program:
        if language not in started:
            started[language] = clients5.start(language, work)
        return started[language]

    yield program
    for each in started.values():
        each.stop()


@dataclass
class Client:
    """A client of one language at one endpoint, with a topic for one test."""

    program: Program
    world: World
    topic: str
    group: str

    def send(self, *messages: Json, **more: object) -> list[Json]:
        """Send messages, and return what the client told, without its last word."""
        words = {"topic": self.topic, "messages": messages, **more}
        *told, last = self.program.run("send", endpoint=self.world.endpoint, **words)
        assert last == {"done": True}, (told, last)
        return told

    def start(self, do: str, **words: object) -> Task:
        """Start a task with the test's topic and group."""
        where = {"endpoint": self.world.endpoint, "topic": self.topic, "group": self.group}
        usual = {"max": 16, "awaitMs": 5_000, "invisibleMs": 10_000}
        return self.program.start(do, **{**where, **usual, **words})


@pytest.fixture
def client(
    request: pytest.FixtureRequest, world: World, programs: Callable[[str], Program]
) -> Client:
    """A client of the test's language; its topic is of the type that the test is marked with."""
    language = request.node.callspec.params["language"]
    program = programs(language)
    mark = request.node.get_closest_marker("topic")
    kind = mark.args[0] if mark else "NORMAL"
    name = "".join(c if c.isalnum() else "_" for c in request.node.name)[:100]
    world.make_topic(name, kind)
    world.make_group(f"G_{name}", is_ordered=kind == "FIFO")
    return Client(program, world, name, f"G_{name}")


def each(*languages: str) -> pytest.MarkDecorator:
    """Run a test in these languages."""
    return pytest.mark.parametrize("language", languages)


@each(*LANGUAGES)
def test_messages_arrive_whole_and_are_acknowledged(client: Client) -> None:
    long = "a long story " * 1_000
    sent = client.send(
        {"body": "first", "tag": "t", "keys": ["k1", "k2"], "properties": {"town": "Köln"}},
        {"body": long},
    )
    with client.start("receive") as consumer:
        wait_until(lambda: len(consumer.messages) == 2)
    by_body = {message["body"]: message for message in consumer.messages}
    first = by_body["first"]
    assert (first["tag"], sorted(first["keys"])) == ("t", ["k1", "k2"])
    assert (first["properties"], first["attempt"]) == ({"town": "Köln"}, 1)
    assert [by_body[body]["messageId"] for body in ("first", long)] == [
        line["messageId"] for line in sent
    ]
    assert all(message["acked"] for message in consumer.messages)
    assert not consumer.refusals


@each("go", "java")
def test_a_client_that_speaks_tls_is_served_at_the_same_port(client: Client) -> None:
    client.send({"body": "secret"}, tls=True)
    with client.start("receive", tls=True) as consumer:
        wait_until(lambda: consumer.bodies() == ["secret"])


@each(*LANGUAGES)
def test_what_is_not_acknowledged_comes_again(client: Client) -> None:
    client.send({"body": "once more"})
    with client.start("receive", then="nothing") as consumer:
        wait_until(lambda: len(consumer.messages) == 2)
    assert [message["attempt"] for message in consumer.messages] == [1, 2]


@each(*PUSHING)
def test_a_changed_invisible_time_counts(client: Client) -> None:
    client.send({"body": "soon"})
    words = {"invisibleMs": 60_000, "then": "change", "changeMs": 2_000}
    with client.start("receive", **words) as consumer:
        wait_until(lambda: len(consumer.messages) == 2)
    first, second = consumer.messages
    assert first["changed"]
    assert (second["acked"], second["attempt"]) == (True, 2)


@each(*LANGUAGES)
@pytest.mark.parametrize(
    ("expression", "is_sql"), [("b || c", False), ("n > 1 AND town = 'Köln'", True)]
)
def test_filters_choose(client: Client, expression: str, is_sql: bool) -> None:
    client.send(
        {"body": "no", "tag": "a", "properties": {"n": "1", "town": "Köln"}},
        {"body": "yes", "tag": "b", "properties": {"n": "2", "town": "Köln"}},
    )
    with client.start("receive", expression=expression, isSql=is_sql) as consumer:
        wait_until(lambda: consumer.bodies() == ["yes"])
    assert consumer.bodies() == ["yes"]


@each(*PUSHING)
def test_a_push_consumer_gets_everything_once(client: Client) -> None:
    bodies = [f"{n:02}" for n in range(20)]
    client.send(*({"body": body} for body in bodies))
    with client.start("consume") as consumer:
        wait_until(lambda: len(consumer.messages) >= 20)
    assert consumer.bodies() == bodies


@each(*PUSHING)
@pytest.mark.topic("FIFO")
def test_a_push_consumer_keeps_the_order_of_each_group(client: Client) -> None:
    sent = [(group, f"{group}{n}") for n in range(8) for group in ("a", "b")]
    client.send(*({"body": body, "group": group} for group, body in sent))
    with client.start("consume", failsOnce=["a3"]) as consumer:
        wait_until(lambda: len(consumer.messages) >= 17)
    for group in ("a", "b"):
        told = [m["body"] for m in consumer.messages if m["body"][0] == group]
        again = ["a3"] if group == "a" else []
        assert told == [f"{group}{n}" for n in range(4)] + again + [
            f"{group}{n}" for n in range(4, 8)
        ]


@each(*PUSHING)
def test_what_a_listener_fails_comes_again_and_ends_as_a_dead_letter(client: Client) -> None:
    client.world.make_group(client.group, tries_max=1)
    client.send({"body": "bad"}, {"body": "good"}, {"body": "late"})
    with client.start("consume", fails=["bad"], failsOnce=["late"]) as consumer:
        wait_until(lambda: client.world.dead(client.group) == ["bad"])
        wait_until(lambda: consumer.bodies() == ["bad", "bad", "good", "late", "late"])
    attempts = [m["attempt"] for m in consumer.messages if m["body"] == "bad"]
    assert attempts == [1, 2]


@each(*LANGUAGES)
@pytest.mark.topic("DELAY")
def test_a_delayed_message_comes_at_its_time(client: Client) -> None:
    with client.start("receive") as consumer:
        begun = time.time()
        client.send({"body": "later", "delayMs": 3_000})
        wait_until(lambda: consumer.bodies() == ["later"])
        # Two clients send whole seconds only.
        assert time.time() - begun >= 1.9


@each(*PUSHING)
@pytest.mark.topic("DELAY")
def test_a_recalled_message_never_comes(client: Client) -> None:
    sent, recalled = client.send({"body": "never", "delayMs": 3_000}, recall=True)
    assert recalled == {"recalled": sent["messageId"]}
    with client.start("receive") as consumer:
        client.send({"body": "later", "delayMs": 5_000})
        wait_until(lambda: len(consumer.messages) >= 1)
    assert consumer.bodies() == ["later"]


@each(*LANGUAGES)
@pytest.mark.topic("TRANSACTION")
def test_transactions_end_as_their_producer_says(client: Client) -> None:
    fates = ["commit", "rollback", "commit later", "rollback later"]
    with client.start("transact", messages=[{"body": fate} for fate in fates]) as producer:
        with client.start("receive") as consumer:
            wait_until(lambda: consumer.bodies() == ["commit", "commit later"])
            wait_until(lambda: _asked(producer) >= {"commit later", "rollback later"})
        assert consumer.bodies() == ["commit", "commit later"]
        assert not producer.refusals


def _asked(producer: Task) -> set[str]:
    return {line["asked"] for line in list(producer.told) if "asked" in line}


@each(*PUSHING)
@pytest.mark.topic("PRIORITY")
def test_priorities_are_sent(client: Client) -> None:
    # Node's client takes a priority of 0 for none.
    client.send(*({"body": f"p{n}", "priority": n} for n in (1, 2, 3)))
    with client.start("receive") as consumer:
        wait_until(lambda: consumer.bodies() == ["p1", "p2", "p3"])


@each(*LANGUAGES)
@pytest.mark.topic("FIFO")
def test_a_message_of_the_wrong_type_is_refused(client: Client) -> None:
    (refused,) = client.send({"body": "no group"})
    assert "refused" in refused


@each(*LANGUAGES)
def test_an_unknown_topic_is_refused(client: Client) -> None:
    client.topic = "NoSuchTopic"
    words = {"topic": client.topic, "messages": [{"body": "lost"}]}
    told = client.program.run("send", endpoint=client.world.endpoint, **words)
    assert any("refused" in line or "failed" in line for line in told)
