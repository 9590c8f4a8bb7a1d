"""RocketMQ's own Go client with the keys of a user, at a closed broker and at its limits.

The Go client takes every refusal of a send for final: it raises the text at once, also that of code
2 ("broker busy"), which Java's and ours try again. A refused pull it repeats.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from sprocket import Message
from sprocket.client import blocking
from sprocket.client.config import ProducerConfig, PullConfig
from tests.cli.parts import sprocket
from tests.compat import foreign
from tests.compat.foreign import Foreign
from tests.compat.javaland import wait_until
from tests.compat.sprocketland import SprocketNode

pytestmark = pytest.mark.process

ADMIN: dict[str, Any] = {"access_key": "root", "secret_key": "root's secret"}
ADMIN_VARIABLES = {f"SPROCKET_CLIENT_{name.upper()}": text for name, text in ADMIN.items()}
#: The driver signs with the name of its group.
SHOP, SECRET = "shop", "shop's secret"
SETTINGS = {
    "broker.authentication": True,
    "broker.authorization": True,
    "broker.first_user": '{"username":"root","password":"root\'s secret"}',
    "broker.transaction_check_ms": 1_000,
    "broker.transaction_timeout_ms": 1_000,
}


@pytest.fixture(scope="module")
def go() -> Foreign:
    return foreign.go()


@pytest.fixture(scope="module")
def node(go: Foreign, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SprocketNode]:
    with SprocketNode(tmp_path_factory.mktemp("go-closed"), settings=SETTINGS) as running:
        rule(running, "user", "create", SHOP, SPROCKET_USER_PASSWORD=SECRET)
        for topic in ("Orders", "Paid", "Busy", "Many"):
            rule(running, "topic", "create", topic, "--queues", "1")
            rule(running, "acl", "grant", SHOP, f"Topic:{topic}", "Pub", "Sub")
        rule(running, "acl", "grant", SHOP, f"Group:{SHOP}", "Sub")
        rule(running, "topic", "create", "Secret", "--queues", "1")
        yield running


def rule(node: SprocketNode, *words: str, **variables: str) -> str:
    """What the super user does."""
    done = sprocket(*words, "-n", node.names, **ADMIN_VARIABLES, **variables)
    assert done.code == 0, done.err
    return done.out


def stored(node: SprocketNode, topic: str) -> list[bytes]:
    with blocking.PullConsumer(
        "looker", nameservers=node.names, config=PullConfig(**ADMIN)
    ) as reader:
        return [m.body for queue in reader.queues(topic) for m in reader.pull(queue, 0).messages]


def tried(
    go: Foreign, node: SprocketNode, topic: str, *bodies: str, secret: str = SECRET
) -> list[dict[str, Any]]:
    return go.run(
        "produce", names=node.names, group=SHOP, secret=secret, topic=topic, how="try",
        messages=[{"body": body} for body in bodies],
    )  # fmt: skip


def test_a_user_sends_and_consumes_where_it_may_and_nowhere_else(
    go: Foreign, node: SprocketNode
) -> None:
    (sent,) = tried(go, node, "Orders", "one")
    assert sent["status"] == 0
    (refused,) = tried(go, node, "Secret", "no")
    assert "no permission to access Topic:Secret" in refused["error"]
    (refused,) = tried(go, node, "Orders", "no", secret="guessed")
    assert "check signature failed" in refused["error"]
    (refused,) = tried(go, node, "Orders", "no", secret="")
    assert "not signed" in refused["error"]
    task = {"names": node.names, "group": SHOP, "topic": "Orders", "expression": "*"}
    with go.start("consume", **task, secret=SECRET) as consumer:
        wait_until(lambda: consumer.bodies() == ["one"])
    assert stored(node, "Orders") == [b"one"]


def test_the_broker_asks_go_how_a_transaction_ended(go: Foreign, node: SprocketNode) -> None:
    fates = ("commit", "rollback", "commit later", "rollback later")
    with go.start(
        "transact", names=node.names, group=SHOP, secret=SECRET, topic="Paid",
        messages=[{"body": fate} for fate in fates],
    ):  # fmt: skip
        wait_until(lambda: sorted(stored(node, "Paid")) == [b"commit", b"commit later"])


def test_a_send_over_a_limit_is_refused_at_once_and_nothing_of_it_is_stored(
    go: Foreign, node: SprocketNode
) -> None:
    rule(node, "config", "set", "broker.quotas=topic Busy requests=1/3")
    began = time.monotonic()
    told = tried(go, node, "Busy", *(f"{number}" for number in range(12)))
    refused = [line["error"] for line in told if "error" in line]
    taken = len(told) - len(refused)
    assert 3 <= taken <= 4 + (time.monotonic() - began)
    assert refused
    assert all("broker busy" in text and "over its limit" in text for text in refused)
    rule(node, "config", "set", "broker.quotas=")
    assert len(stored(node, "Busy")) == taken


def test_a_consumer_over_a_limit_gets_everything_later(go: Foreign, node: SprocketNode) -> None:
    with blocking.Producer(
        "ours", nameservers=node.names, config=ProducerConfig(**ADMIN)
    ) as producer:
        for number in range(40):
            producer.send(Message("Many", b"%d" % number))
    rule(node, "config", "set", f"broker.quotas=group {SHOP} requests=2/2")
    task = {"names": node.names, "group": SHOP, "topic": "Many", "expression": "*"}
    with go.start("consume", **task, secret=SECRET) as consumer:
        wait_until(lambda: len(set(consumer.bodies())) == 40)
    rule(node, "config", "set", "broker.quotas=")
