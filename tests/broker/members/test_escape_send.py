"""The form in which a message that waited is sent to another master."""

from __future__ import annotations

import pytest

from sprocket.broker.members.escape_send import DueMessage
from sprocket.message import properties as names
from sprocket.message.drafting import drafted
from sprocket.message.properties import decode


def text_of(topic: str, properties: dict[str, str], *, is_half: bool = False) -> dict[str, str]:
    draft = drafted(
        properties,
        topic=topic,
        queue_number=0,
        body=b"x",
        flag=0,
        sys_flag=0,
        born_ms=1,
        born_host=bytes(8),
    )
    return decode(DueMessage(7, draft, properties, is_half).text())


def test_what_brokers_write_about_a_message_that_waits_is_left_out() -> None:
    written = dict.fromkeys(names.OF_BROKERS, "1")
    own = {"colour": "red", names.UNIQUE_KEY: "U", names.TIMER_DELIVER_MS: "5"}
    relative = {names.TIMER_DELAY_MS: "9", names.TIMER_DELAY_SECONDS: "9"}
    assert text_of("T", {**written, **own, **relative}) == own


def test_a_retry_keeps_where_it_comes_from() -> None:
    kept = {names.RETRY_TOPIC: "T", names.ORIGIN_ID: "O"}
    assert text_of("%RETRY%g", {**kept, names.REAL_TOPIC: "%RETRY%g"}) == kept


@pytest.mark.parametrize("is_half", [True, False])
def test_only_an_undecided_message_is_a_half_again(is_half: bool) -> None:
    sent = text_of("T", {names.HALF: "true", names.PRODUCER_GROUP: "p"}, is_half=is_half)
    assert (names.HALF in sent) == is_half
    assert sent[names.PRODUCER_GROUP] == "p"
