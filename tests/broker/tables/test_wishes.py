"""How members of a group disagree, in words that stay short."""

from __future__ import annotations

from sprocket.broker.tables.wishes import MemberWish, discord
from sprocket.protocol.bodies import SubscriptionData


def wish(*topics: str) -> MemberWish:
    subscriptions = [SubscriptionData(topic=topic, sub_string="*") for topic in topics]
    return MemberWish.of("CONSUME_PASSIVELY", "CLUSTERING", subscriptions)


def test_the_words_name_what_the_other_has_not() -> None:
    text = discord("g", {wish("a", "b"): "one", wish("b", "c"): "two"})
    assert "group g disagree" in text
    assert "one subscribes a by '*', two c by '*'" in text


def test_hundreds_of_topics_make_no_long_text() -> None:
    many = wish(*(f"topic-{number}" for number in range(500)))
    text = discord("g", {wish(): "one", many: "two"})
    assert "one subscribes nothing else" in text
    assert "and 497 more" in text
    assert len(text) < 400


def test_the_same_wish_in_another_order_is_the_same() -> None:
    assert wish("a", "b") == wish("b", "a")
