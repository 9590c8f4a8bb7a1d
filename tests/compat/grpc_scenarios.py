"""What clients of gRPC do with messages, in every language that can: a scenario is a function.

Each takes a client with a topic and a group to itself, and asserts what it sees.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.compat.clients5 import Json, Program, Task
from tests.compat.grpc_world import World

#: The Rust client of this version has no push consumer, no recall, no priority and no change of
#: a message's invisible time.
PUSHING = ("go", "java", "node", "python")
ALL = (*PUSHING, "rust")
#: Those that accept a server's own certificate.
TRUSTING = ("go", "java")


@dataclass(frozen=True)
class Client:
    """A client of one language at one endpoint."""

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
        """Start a task with the topic and the group."""
        where = {"endpoint": self.world.endpoint, "topic": self.topic, "group": self.group}
        usual = {"max": 16, "awaitMs": 5_000, "invisibleMs": 10_000}
        return self.program.start(do, **{**where, **usual, **words})


@dataclass(frozen=True)
class Scenario:
    """What is done, in which languages, on a topic of which type, with how many retries."""

    run: Callable[[Client], None]
    languages: tuple[str, ...]
    kind: str
    tries_max: int


SCENARIOS: dict[str, Scenario] = {}

_Function = Callable[[Client], None]


def scenario(
    *languages: str, kind: str = "NORMAL", tries_max: int = 16
) -> Callable[[_Function], _Function]:
    """Put a function among the scenarios, under its name."""

    def put(function: _Function) -> _Function:
        SCENARIOS[function.__name__] = Scenario(function, languages, kind, tries_max)
        return function

    return put


@scenario(*ALL)
def messages_arrive_whole_and_are_acknowledged(client: Client) -> None:
    long = "a long story " * 1_000
    sent = client.send(
        {"body": "first", "tag": "t", "keys": ["k1", "k2"], "properties": {"town": "Köln"}},
        {"body": long},
    )
    with client.start("receive") as consumer:
        consumer.until(lambda: len(consumer.messages) == 2)
    by_body = {message["body"]: message for message in consumer.messages}
    first = by_body["first"]
    assert (first["tag"], sorted(first["keys"])) == ("t", ["k1", "k2"])
    assert (first["properties"], first["attempt"]) == ({"town": "Köln"}, 1)
    ids = [line["messageId"] for line in sent]
    assert [by_body[body]["messageId"] for body in ("first", long)] == ids
    assert all(message["acked"] for message in consumer.messages)


@scenario(*TRUSTING)
def a_client_that_speaks_tls_is_served_at_the_same_port(client: Client) -> None:
    client.send({"body": "secret"}, tls=True)
    with client.start("receive", tls=True) as consumer:
        consumer.until(lambda: consumer.bodies() == ["secret"])


@scenario(*ALL)
def what_is_not_acknowledged_comes_again(client: Client) -> None:
    client.send({"body": "once more"})
    with client.start("receive", then="nothing") as consumer:
        consumer.until(lambda: len(consumer.messages) == 2)
    assert [message["attempt"] for message in consumer.messages] == [1, 2]


@scenario(*PUSHING)
def a_changed_invisible_time_counts(client: Client) -> None:
    client.send({"body": "soon"})
    words = {"invisibleMs": 600_000, "then": "change", "changeMs": 2_000}
    with client.start("receive", **words) as consumer:
        consumer.until(lambda: len(consumer.messages) == 2)
    first, second = consumer.messages
    assert first["changed"]
    assert (second["acked"], second["attempt"]) == (True, 2)


def _chosen(client: Client, expression: str, *, is_sql: bool) -> None:
    client.send(
        {"body": "no", "tag": "a", "properties": {"n": "1", "town": "Köln"}},
        {"body": "yes", "tag": "b", "properties": {"n": "2", "town": "Köln"}},
    )
    with client.start("receive", expression=expression, isSql=is_sql) as consumer:
        consumer.until(lambda: consumer.bodies() == ["yes"])
    assert consumer.bodies() == ["yes"]


@scenario(*ALL)
def tags_choose(client: Client) -> None:
    _chosen(client, "b || c", is_sql=False)


@scenario(*ALL)
def conditions_choose(client: Client) -> None:
    _chosen(client, "n > 1 AND town = 'Köln'", is_sql=True)


@scenario(*PUSHING)
def a_push_consumer_gets_everything_once(client: Client) -> None:
    bodies = [f"{n:02}" for n in range(20)]
    client.send(*({"body": body} for body in bodies))
    with client.start("consume") as consumer:
        consumer.until(lambda: len(consumer.messages) >= 20)
    assert consumer.bodies() == bodies


@scenario(*PUSHING, kind="FIFO")
def a_push_consumer_keeps_the_order_of_each_group(client: Client) -> None:
    sent = [(group, f"{group}{n}") for n in range(8) for group in ("a", "b")]
    client.send(*({"body": body, "group": group} for group, body in sent))
    with client.start("consume") as consumer:
        consumer.until(lambda: len(consumer.messages) >= 16)
    for group in ("a", "b"):
        told = [m["body"] for m in consumer.messages if m["body"][0] == group]
        assert told == [f"{group}{n}" for n in range(8)]


# With RocketMQ's own servers, too, the clients of the other languages do otherwise: Go's and
# Node's go on with the next message, Python's counts no attempts.
@scenario("java", kind="FIFO")
def a_message_that_fails_holds_its_group(client: Client) -> None:
    client.send(*({"body": f"{n}", "group": "g"} for n in range(4)))
    with client.start("consume", failsOnce=["1"]) as consumer:
        consumer.until(lambda: len(consumer.messages) >= 5)
    told = [(m["body"], m["attempt"]) for m in consumer.messages]
    assert told == [("0", 1), ("1", 1), ("1", 2), ("2", 1), ("3", 1)]


@scenario(*PUSHING, tries_max=1)
def what_a_listener_fails_comes_again_and_ends_as_a_dead_letter(client: Client) -> None:
    client.send({"body": "bad"}, {"body": "good"}, {"body": "late"})
    with client.start("consume", fails=["bad"], failsOnce=["late"]) as consumer:
        consumer.until(lambda: client.world.dead(client.group) == ["bad"])
        consumer.until(lambda: consumer.bodies() == ["bad", "bad", "good", "late", "late"])
    attempts = [m["attempt"] for m in consumer.messages if m["body"] == "bad"]
    assert attempts == [1, 2]


@scenario(*ALL, kind="DELAY")
def a_delayed_message_comes_at_its_time(client: Client) -> None:
    with client.start("receive") as consumer:
        begun = time.time()
        client.send({"body": "later", "delayMs": 3_000})
        consumer.until(lambda: consumer.bodies() == ["later"])
        # Two of the clients send whole seconds only.
        assert time.time() - begun >= 1.9


@scenario(*PUSHING, kind="DELAY")
def a_recalled_message_never_comes(client: Client) -> None:
    # A machine that does much else may take a while between the two requests.
    sent, recalled = client.send({"body": "never", "delayMs": 8_000}, recall=True)
    assert recalled == {"recalled": sent["messageId"]}
    with client.start("receive") as consumer:
        client.send({"body": "later", "delayMs": 10_000})
        consumer.until(lambda: len(consumer.messages) >= 1)
    assert consumer.bodies() == ["later"]


@scenario(*ALL, kind="TRANSACTION")
def transactions_end_as_their_producer_says(client: Client) -> None:
    fates = ["commit", "rollback", "commit later", "rollback later"]
    with client.start("transact", messages=[{"body": fate} for fate in fates]) as producer:
        with client.start("receive") as consumer:
            consumer.until(lambda: consumer.bodies() == ["commit", "commit later"])
            producer.until(lambda: _asked(producer) >= {"commit later", "rollback later"})
        assert consumer.bodies() == ["commit", "commit later"]
        assert not producer.refusals


def _asked(producer: Task) -> set[str]:
    return {line["asked"] for line in list(producer.told) if "asked" in line}


@scenario(*PUSHING, kind="PRIORITY")
def messages_with_a_priority_arrive(client: Client) -> None:
    # Node's client takes a priority of 0 for none.
    client.send(*({"body": f"p{n}", "priority": n} for n in (1, 2, 3)))
    with client.start("receive") as consumer:
        consumer.until(lambda: consumer.bodies() == ["p1", "p2", "p3"])


@scenario(*ALL, kind="FIFO")
def a_message_of_the_wrong_type_is_refused(client: Client) -> None:
    (refused,) = client.send({"body": "no group"})
    assert "refused" in refused


@scenario(*ALL)
def an_unknown_topic_is_refused(client: Client) -> None:
    words = {"topic": "NoSuchTopic", "messages": [{"body": "lost"}]}
    told = client.program.run("send", endpoint=client.world.endpoint, **words)
    assert any("refused" in line or "failed" in line for line in told)


#: Java's client of this version has no simple consumer of lite topics.
@scenario("python", kind="LITE")
def messages_of_lite_topics_come_to_those_who_subscribe_them(client: Client) -> None:
    with client.start("receive", lites=["a", "b"], then="change", changeMs=2_000) as consumer:
        client.send(
            {"body": "1", "lite": "a"}, {"body": "no", "lite": "c"}, {"body": "2", "lite": "b"}
        )
        consumer.until(lambda: consumer.bodies() == ["1", "1", "2", "2"])
        client.send({"body": "3", "lite": "a"})
        consumer.until(lambda: consumer.bodies() == ["1", "1", "2", "2", "3", "3"])
    told = sorted((each["body"], each["attempt"], each["lite"]) for each in consumer.messages)
    assert told == [
        (body, attempt, lite)
        for body, lite in (("1", "a"), ("2", "b"), ("3", "a"))
        for attempt in (1, 2)
    ]


@scenario("java", "python", kind="LITE", tries_max=1)
def a_lite_push_consumer_keeps_the_order_of_each_lite_topic(client: Client) -> None:
    sent = [(lite, f"{lite}{number}") for number in range(6) for lite in ("a", "b")]
    with client.start("consume", lites=["a", "b"], failsOnce=["a2"]) as consumer:
        client.send(*({"body": body, "lite": lite} for lite, body in sent))
        consumer.until(lambda: len(consumer.messages) >= 13)
    assert sorted(set(consumer.bodies())) == sorted(body for _, body in sent)
    assert consumer.bodies().count("a2") == 2
