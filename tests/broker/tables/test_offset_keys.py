"""The index of the keys of consumer offsets, as a core."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from sprocket.broker.tables.offset_keys import OffsetKeys

KEYS = some.sampled_from(["T@g", "T@h", "U@g", "T@g@broadcast", "T", "U@h@x@y", "@", "T@"])


@given(some.lists(some.tuples(KEYS, some.sampled_from(["committed", "pulled", "removed"]))))
def test_it_knows_the_keys_that_are_there_by_topic_and_by_group(
    history: list[tuple[str, str]],
) -> None:
    keys, committed, pulled = OffsetKeys(), set[str](), set[str]()
    for key, event in history:
        if event == "removed":
            keys.remove(key)
            committed.discard(key)
            pulled.discard(key)
        else:
            keys.add(key, is_committed=event == "committed")
            (committed if event == "committed" else pulled).add(key)
        keys.validate(committed, pulled)
        known = committed | pulled
        assert sorted(keys.of_topic("T")) == sorted(k for k in known if k.split("@")[0] == "T")
        assert sorted(keys.of_group("g")) == sorted(k for k in known if k.split("@")[1:2] == ["g"])
        assert sorted(keys.topics.get("g", ())) == sorted(
            topic for topic in "TU" if f"{topic}@g" in committed
        )


def test_what_is_not_there_may_be_removed() -> None:
    keys = OffsetKeys()
    keys.remove("T@g")
    assert keys.of_topic("T") == keys.of_group("g") == []
    keys.validate([], [])
