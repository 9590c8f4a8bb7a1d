"""The properties that a message is sent with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from sprocket.base.errors import UsageError
from sprocket.message.message import Message
from sprocket.message.outgoing import text_of
from sprocket.message.properties import decode


def test_a_message_goes_with_its_tag_keys_delay_and_its_own_properties() -> None:
    message = Message(
        "t", b"", tag="paid", keys=["a", "b"], properties={"n": "1"}, delay_level=3,
        wait_stored=False,
    )  # fmt: skip
    assert decode(text_of(message)) == {
        "n": "1", "KEYS": "a b", "TAGS": "paid", "DELAY": "3", "WAIT": "false",
    }  # fmt: skip


@pytest.mark.parametrize(
    "message",
    [
        Message("t", b"", tag="a\x02KEYS\x01forged"),
        Message("t", b"", keys=["a\x01b"]),
        Message("t", b"", properties={"TAGS": "x"}),
    ],
)
def test_a_message_cannot_smuggle_properties_in(message: Message) -> None:
    with pytest.raises(UsageError):
        text_of(message)


@pytest.mark.parametrize(("wish", "expected"), [
    ({"delay": 2}, {"TIMER_DELAY_MS": "2000"}),
    ({"delay": 0.0011}, {"TIMER_DELAY_MS": "2"}),
    ({"delay": 0.1 + 0.2}, {"TIMER_DELAY_MS": "300"}),
    ({"delay": timedelta(days=400)}, {"TIMER_DELAY_MS": "34560000000"}),
    ({"deliver_at": 1_893_456_000_000}, {"TIMER_DELIVER_MS": "1893456000000"}),
    ({"deliver_at": datetime(2030, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))},
     {"TIMER_DELIVER_MS": "1893456000000"}),
    ({"deliver_at": datetime(2030, 1, 1, 0, 0, 0, 1, UTC)}, {"TIMER_DELIVER_MS": "1893456000001"}),
])  # fmt: skip
def test_a_message_says_when_it_is_to_come_and_never_a_moment_before(
    wish: dict[str, Any], expected: dict[str, str]
) -> None:
    message = Message("T", b"x", **wish)
    assert message.waits
    assert decode(text_of(message)) == {**expected, "WAIT": "true"}


@pytest.mark.parametrize(("wish", "fault"), [
    ({"delay": -1}, "0 s to 1000 years"),
    ({"delay": float("nan")}, "0 s to 1000 years"),
    ({"delay": 1e15}, "0 s to 1000 years"),
    ({"deliver_at": datetime(2030, 1, 1)}, "no time zone"),
    ({"delay": 1, "delay_level": 1}, "exclude each other"),
    ({"delay": 1, "deliver_at": 5}, "exclude each other"),
])  # fmt: skip
def test_a_time_that_cannot_be_is_refused(wish: dict[str, Any], fault: str) -> None:
    with pytest.raises(UsageError, match=fault):
        text_of(Message("T", b"x", **wish))


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ({"properties": {"a": "x\udce9"}}, "'a'"),
        ({"properties": {"b": "ok", "a\ud800": "x"}}, r"'a\ud800'"),
        ({"tag": "t\udce9"}, "'TAGS'"),
        ({"keys": ["k\udce9"]}, "'KEYS'"),
    ],
)
def test_half_of_a_surrogate_pair_is_refused_as_other_properties_are(
    parts: dict[str, Any], name: str
) -> None:
    with pytest.raises(UsageError, match="half of a surrogate pair") as raised:
        text_of(Message("t", b"x", **parts))
    assert name in str(raised.value)
    assert "\u00e9" in text_of(Message("t", b"x", properties={"a": "caf\u00e9"}))


def test_a_priority_goes_as_rocketmq_s_property() -> None:
    text = text_of(Message("t", b"x", priority=3))
    assert decode(text)["_SYS_MSG_PRIORITY_"] == "3"
    assert "PRIORITY" not in text_of(Message("t", b"x"))
    for wrong in (-1, 1 << 31, True, "3"):
        with pytest.raises(UsageError, match="a priority is"):
            text_of(Message("t", b"x", priority=wrong))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="cannot be delayed"):
        text_of(Message("t", b"x", priority=3, delay=1))
