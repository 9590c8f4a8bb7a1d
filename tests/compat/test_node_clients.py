"""A Node client in plain JavaScript at our servers, alone and in one group with ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sprocket.message.hosts import pack
from sprocket.message.ids import offset_id
from tests.compat import foreign
from tests.compat.foreign import Foreign, make_topic, stored
from tests.compat.javaland import wait_until
from tests.compat.sprocketland import SprocketNode

pytestmark = pytest.mark.process

QUEUES = 4


@pytest.fixture(scope="module")
def node_js() -> Foreign:
    return foreign.node()


@pytest.fixture(scope="module")
def node(node_js: Foreign, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SprocketNode]:
    """A node where nothing takes long."""
    settings = {"store.delay_levels": "1s " * 18}
    with SprocketNode(tmp_path_factory.mktemp("js"), settings=settings) as running:
        yield running


@pytest.fixture
def topic(request: pytest.FixtureRequest, node: SprocketNode) -> str:
    return make_topic(node, request.node.name, queues=QUEUES)


def test_what_a_node_producer_sends_is_stored_whole(
    node_js: Foreign, node: SprocketNode, topic: str
) -> None:
    sent = [
        {"body": "first", "tag": "paid", "keys": ["k1", "k2"], "properties": {"town": "Köln"}},
        {"body": "a long story " * 1_000},
        {"body": "late", "delayLevel": 3},
    ]
    told = node_js.run("produce", names=node.names, group="p", topic=topic, messages=sent)
    wait_until(lambda: len(stored(node, topic)) == 3)
    by_length = sorted(stored(node, topic), key=lambda message: len(message.body))
    late, first, long = by_length
    assert (first.body, first.tag, first.keys) == (b"first", "paid", ["k1", "k2"])
    assert first.properties["town"] == "Köln"
    assert long.body == b"a long story " * 1_000
    assert long.record_bytes < len(long.body) / 10
    assert late.stored_ms - late.born_ms >= 1_000
    host = pack(node.address)  # for this client ids are offset ids
    assert {offset_id(host, each.log_offset) for each in (first, long)} <= {
        line["id"] for line in told
    }
