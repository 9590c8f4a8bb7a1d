"""A message in which something has a wrong type is refused in words that name it."""

from __future__ import annotations

import array
from typing import Any

import pytest

from sprocket.base.errors import UsageError
from sprocket.client.config import ProducerConfig
from sprocket.clientcore.envelope import seal, seal_batch
from sprocket.message.ids import UniqueIds
from sprocket.message.message import Message

IDS = UniqueIds(address=bytes(4), process=1, token=bytes(4))
CONFIG = ProducerConfig()

WRONG: dict[str, Any] = {
    "expected a Message, not NoneType": None,
    "expected a Message, not dict": {"topic": "T"},
    "a topic is a text, not NoneType": Message(None, b"x"),  # type: ignore[arg-type]
    "a topic is a text, not bytes": Message(b"T", b"x"),  # type: ignore[arg-type]
    "a body is bytes, not str": Message("T", "x"),  # type: ignore[arg-type]
    "a tag is a text, not int": Message("T", b"x", tag=5),  # type: ignore[arg-type]
    "keys is a list of words, not int": Message("T", b"x", keys=5),  # type: ignore[arg-type]
    "a key is a text, not int": Message("T", b"x", keys=["a", 5]),  # type: ignore[list-item]
    "properties is a mapping of texts, not list": Message("T", b"x", properties=[1]),  # type: ignore[arg-type]
    "a property is a text with a text as name: 'a'=5": Message("T", b"x", properties={"a": 5}),  # type: ignore[dict-item]
    "a property is a text with a text as name: 5='a'": Message("T", b"x", properties={5: "a"}),  # type: ignore[dict-item]
}


@pytest.mark.parametrize("words", WRONG)
def test_a_wrong_type_is_named(words: str) -> None:
    with pytest.raises(UsageError) as told:
        seal(WRONG[words], IDS, 0, CONFIG)
    assert str(told.value) == words
    with pytest.raises(UsageError) as told:
        seal_batch([WRONG[words]], IDS, 0, CONFIG)
    assert str(told.value) == words


@pytest.mark.parametrize("delay", [{"delay": "5"}, {"deliver_at": "5"}])
def test_a_wait_that_is_no_time_is_named(delay: Any) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(delay))} is a"):
        seal(Message("T", b"x", **delay), IDS, 0, CONFIG)


@pytest.mark.parametrize(
    "view", [memoryview(b"abcdef")[::2], memoryview(array.array("i", [1, 2, 3]))]
)
def test_a_view_whose_bytes_do_not_lie_in_a_row_costs_no_other_message(view: memoryview) -> None:
    """Written as it is it would break the connection, and with it what others send."""
    for sealed in (seal, lambda one, *rest: seal_batch([one], *rest)):
        with pytest.raises(UsageError, match="contiguous bytes"):
            sealed(Message("T", view), IDS, 0, CONFIG)  # type: ignore[arg-type]
    assert seal(Message("T", memoryview(b"abc")), IDS, 0, CONFIG).body == b"abc"  # type: ignore[arg-type]
