"""Values that Java RocketMQ computed, computed here."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sprocket.base.errors import SubscriptionInvalid
from sprocket.filter.tags import TagFilter
from sprocket.message import batch, hosts, ids, properties, record, topic
from sprocket.message.hashing import java_hash, tag_code

VECTORS = Path(__file__).parent.parent / "golden" / "vectors"


def vector(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text())


@pytest.mark.parametrize("case", vector("properties_text"), ids=repr)
def test_properties_text(case: dict[str, Any]) -> None:
    if "string" in case:
        pairs = {name: value for name, value in case["map"].items() if value is not None}
        assert properties.encode(pairs) == case["string"]
        assert properties.encode(pairs).encode().hex() == case["hex"]
        assert properties.decode(case["string"]) == case["parsedAgain"]
    else:
        assert properties.decode(case["parse"]) == case["map"]
        assert properties.decode_bytes(bytes.fromhex(case["hex"])) == case["map"]


@pytest.mark.parametrize("case", vector("topic_names")["cases"], ids=lambda case: case["topic"])
def test_topic_names(case: dict[str, Any]) -> None:
    name = "a" * int(case["topic"][3:]) if case["topic"].startswith("a x") else case["topic"]
    assert (topic.fault_of_topic(name) or "") == case["remark"]
    assert topic.is_system_topic(name) is case["system"]
    assert topic.is_closed_topic(name) is case["notAllowedSend"]


def test_system_topics() -> None:
    names = vector("topic_names")
    ours = {topic.STAGED}
    assert sorted(topic.SYSTEM_TOPICS - ours) == names["systemTopics"]
    assert sorted(topic.CLOSED_TOPICS - ours) == names["notAllowedSend"]


def test_retry_and_dead_letter_names() -> None:
    names = vector("names")
    assert topic.retry_topic("G") == names["retryTopic"]
    assert topic.dead_letter_topic("G") == names["dlqTopic"]


@pytest.mark.parametrize("case", vector("tag_hash"), ids=repr)
def test_tag_hash(case: dict[str, Any]) -> None:
    assert tag_code(case["tags"]) == case["tagsCode"]


@pytest.mark.parametrize("case", vector("subscription_tags"), ids=repr)
def test_subscription_tags(case: dict[str, Any]) -> None:
    if "error" in case:
        with pytest.raises(SubscriptionInvalid, match="subString split error"):
            TagFilter.parse(case["expression"])
        return
    parsed = TagFilter.parse(case["expression"])
    assert parsed.expression == case["subString"]
    assert sorted(parsed.tags) == sorted(case["tagsSet"])
    assert sorted(parsed.codes) == sorted(case["codeSet"])


@pytest.mark.parametrize("case", vector("body_crc"), ids=repr)
def test_body_crc(case: dict[str, Any]) -> None:
    text = "0123456789" * 100 if " x" in case["text"] else case["text"]
    assert record.body_crc(text.encode()) == case["crc32"]


@pytest.mark.parametrize("case", vector("index_hash"), ids=repr)
def test_index_hash(case: dict[str, Any]) -> None:
    assert java_hash(case["indexKey"]) == case["stringHashCode"]


@pytest.mark.parametrize("case", vector("record_examples")["records"], ids=lambda c: c["bornHost"])
def test_record_examples(case: dict[str, Any]) -> None:
    raw = bytes.fromhex(case["recordHex"])
    message = record.decode(raw, 0, "b")
    assert message.sys_flag == case["sysFlag"]
    assert hosts.pack(message.born_host) == hosts.pack(case["decodedBorn"].strip("/"))
    assert hosts.pack(message.store_host) == hosts.pack(case["decodedStore"].strip("/"))
    assert message.record_bytes == case["storeSizeInRecord"]
    assert message.properties == case["properties"]
    assert ids.offset_id(hosts.pack(message.store_host), message.log_offset) == case["decodedMsgId"]
    draft = record.Draft(
        topic=message.topic,
        queue_number=message.queue.number,
        body=message.body,
        properties=bytes(record.parse(raw).properties),
        tag_code=0,
        flag=message.flag,
        sys_flag=0,
        born_ms=message.born_ms,
        born_host=hosts.pack(message.born_host),
        reconsume_times=message.reconsume_times,
        prepared_offset=message.prepared_offset,
    )
    again = record.Encoder(hosts.pack(message.store_host)).encode(
        draft,
        record.topic_part(message.topic.encode()),
        log_offset=message.log_offset,
        queue_offset=message.queue_offset,
        stored_ms=message.stored_ms,
    )
    assert again == raw


def test_batch_body() -> None:
    raw = bytes.fromhex(vector("record_examples")["batchBodyHex"])
    parts = batch.decode(raw)
    assert [bytes(part.body) for part in parts] == [b"batch body %d" % n for n in range(3)]
    assert [part.flag for part in parts] == [0, 1, 2]
    assert properties.decode(parts[1].properties) == {"KEYS": "k1", "WAIT": "true", "TAGS": "Tag1"}
    assert batch.encode(parts) == raw


@pytest.mark.parametrize("case", vector("unique_id") + vector("unique_id_ipv4"), ids=repr)
def test_unique_ids(case: dict[str, Any]) -> None:
    parsed = ids.parse_unique_id(case["id"])
    assert parsed.process == case["pid16"]
    if len(parsed.address) == 16:
        assert parsed.address.hex(":", 2) == case["ip"]
    else:
        assert ".".join(map(str, parsed.address)) == case["ip"]
    raw = bytes.fromhex(case["id"])
    maker = ids.UniqueIds(address=parsed.address, process=parsed.process, token=raw[-10:-6])
    start_ms, _ = ids.month_of(case.get("nowMs", 0))
    for _ in range(parsed.counter):
        maker.make(start_ms)
    assert maker.make(start_ms + parsed.age_ms) == case["id"]


@pytest.mark.parametrize("case", vector("unique_id")[:4], ids=repr)
def test_unique_ids_tell_their_time(case: dict[str, Any]) -> None:
    """Java worked it out on a machine in UTC, a moment after the id was made."""
    now_ms = case["nowMs"]
    assert datetime.fromtimestamp(now_ms / 1000, UTC).year == 2026
    born_ms = ids.parse_unique_id(case["id"]).born_ms(now_ms + 1)
    assert 0 <= now_ms - born_ms < 1000


@pytest.mark.parametrize("case", vector("offset_message_id"), ids=repr)
def test_offset_ids(case: dict[str, Any]) -> None:
    packed = hosts.pack(f"[{case['host']}]:{case['port']}")
    assert ids.offset_id(packed, case["offset"]) == case["id"]
    address, log_offset = ids.parse_offset_id(case["id"])
    assert hosts.pack(address) == hosts.pack(case["decodedAddress"].strip("/"))
    assert log_offset == case["decodedOffset"]
