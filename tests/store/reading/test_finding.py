"""Finding by key: the records decide, not the hashes."""

from __future__ import annotations

from dataclasses import replace

from sprocket.testing.disk import FaultyDisk
from tests.store.making import SMALL, a_draft, opened
from tests.support import run


def test_finding_can_stop_at_what_readers_see() -> None:
    store = run(opened(FaultyDisk(1), config=replace(SMALL, flush="SYNC_FLUSH")))
    draft = a_draft(properties=b"KEYS\x01k\x02", keys="k")
    store.append(draft)
    run(store.sync())
    store.append(draft)
    assert len(store.find("orders", "k", count_max=9, end=store.readable_end)) == 1
    assert len(store.find("orders", "k", count_max=9)) == 2


def test_keys_of_one_hash_are_told_apart_by_the_records() -> None:
    store = run(opened(FaultyDisk(1)))
    for topic, key in (("AaTopic", "Aa"), ("AaTopic", "BB"), ("BBTopic", "BB")):
        properties = f"KEYS\x01{key}\x02".encode()
        body = f"{topic} {key}".encode()
        store.append(a_draft(body, topic=topic, properties=properties, keys=key))
    found = store.find("AaTopic", "BB", count_max=9)
    (record,) = found
    assert b"AaTopic BB" in bytes(record)
    assert store.find("BBTopic", "Aa", count_max=9) == []
