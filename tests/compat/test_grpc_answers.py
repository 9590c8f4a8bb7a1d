"""Our proxy answers requests of gRPC, right and wrong, as RocketMQ's does.

`tests/golden/grpc/answers.json` has what RocketMQ's proxy 5.5.0 answered in cluster mode, before
a broker 5.3.3. `SPROCKET_RECORD=1` asks it and writes that down.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.foreign import cli
from tests.compat.grpc_answers import STORIES, Transcript, tell_all
from tests.compat.grpc_stories import GROUPS, TOPICS
from tests.compat.javaland import JavaBroker, JavaNameServer, mqadmin
from tests.compat.javaproxy import JavaProxy
from tests.compat.sprocketland import SprocketNode

pytestmark = pytest.mark.process

GOLDEN = Path(__file__).parent.parent / "golden" / "grpc" / "answers.json"

#: Where ours differs, by story and number of the call: the code of our answer.
DIFFERENCES = {
    # Without endpoints in the request, ours names the address that the client has reached.
    ("routes", 10): "OK",
    # A client of an unknown group starts, and learns it from each receive.
    ("settings", 4): "OK",
    # Ours names what is wrong, where RocketMQ's has a more general code or another one.
    ("sends that are wrong", 1): "TOPIC_NOT_FOUND",
    ("receives that are wrong", 3): "ILLEGAL_FILTER_EXPRESSION",
    ("acknowledgements", 10): "TOPIC_NOT_FOUND",
    ("recalls", 8): "TOPIC_NOT_FOUND",
    # Ours has an entry for each message of a batch, and no batches of several message groups:
    # RocketMQ's puts them into any queue.
    ("batches", 0): "OK",
    ("batches", 3): "BAD_REQUEST",
    # An end that is not known yet leaves a transaction open; RocketMQ's proxy forgets it.
    ("transactions", 9): "OK",
}


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Transcript]]:
    """What ours answers."""
    settings = {"broker.auto_create_topics": False, "broker.auto_create_groups": False}
    work = tmp_path_factory.mktemp("answers")
    with SprocketNode(work, settings=settings, grpc=True) as node:
        for topic, (kind, queues) in TOPICS.items():
            cli(node, "topic", "create", topic, "--queues", str(queues), "--message-type", kind)
        for group, is_ordered in GROUPS.items():
            cli(node, "group", "create", group, *(["--ordered"] if is_ordered else []))
        yield tell_all(node.endpoint)


@pytest.mark.parametrize("name", STORIES)
def test_ours_answers_as_rocketmqs_proxy_does(ours: dict[str, Transcript], name: str) -> None:
    expected: Transcript = json.loads(GOLDEN.read_text())[name]
    for number, (seen, recorded) in enumerate(zip(ours[name], expected, strict=True)):
        ours_alone = DIFFERENCES.get((name, number))
        if ours_alone is None:
            assert seen == recorded, (name, number)
        else:
            assert seen != recorded, (name, number)
            assert seen["messages"][0]["status"]["code"] == ours_alone, (name, number)


@pytest.mark.java
@pytest.mark.skipif("SPROCKET_RECORD" not in os.environ, reason="records only where asked to")
def test_record_what_rocketmqs_proxy_answers(tmp_path: Path) -> None:
    settings = {
        "autoCreateTopicEnable": False,
        "autoCreateSubscriptionGroup": False,
        "recallMessageEnable": True,
    }
    with (
        JavaNameServer(tmp_path) as names,
        JavaBroker(tmp_path, names.address, settings=settings),
        JavaProxy.cluster(tmp_path, names.address) as proxy,
    ):
        for topic, (kind, queues) in TOPICS.items():
            mqadmin(
                "updateTopic", "-c", "DefaultCluster", "-t", topic, "-r", str(queues),
                "-w", str(queues), "-a", f"+message.type={kind}", namesrv=names.address,
            )  # fmt: skip
        for group, is_ordered in GROUPS.items():
            words = ("updateSubGroup", "-c", "DefaultCluster", "-g", group)
            mqadmin(*words, "-o", str(is_ordered).lower(), namesrv=names.address)
        told = tell_all(proxy.endpoint)
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(_as_text(told))


def _as_text(told: dict[str, Transcript]) -> str:
    """Write it with a line for each call."""
    stories = []
    for name, calls in told.items():
        lines = ",\n".join("  " + json.dumps(call, ensure_ascii=False) for call in calls)
        stories.append(f"{json.dumps(name)}: [\n{lines}\n]")
    return "{\n" + ",\n".join(stories) + "\n}\n"
