from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.integrations.queues.names import NAME_LENGTH_MAX, tag_of, topic_of
from sprocket.message.topic import TOPIC_LENGTH_MAX, fault_of_consumer_group, fault_of_topic


def test_a_plain_name_stays_and_other_characters_are_written_as_in_urls() -> None:
    assert topic_of("celery") == "celery"
    assert topic_of("mail", "shop-") == "shop-mail"
    assert topic_of("celery@host.pidbox") == "celery%40host%2Epidbox"
    assert topic_of("ü") == "%C3%BC"


@given(st.text(max_size=300), st.text(max_size=20))
def test_every_queue_has_a_topic_and_a_group_that_brokers_take(queue: str, prefix: str) -> None:
    name = topic_of(queue, prefix)
    assert fault_of_topic(name) is None
    assert fault_of_consumer_group(name) is None
    assert len(f"%RETRY%{name}_{name}") <= TOPIC_LENGTH_MAX
    assert len(name) <= NAME_LENGTH_MAX


@given(st.text(min_size=1, max_size=80), st.text(min_size=1, max_size=80))
def test_no_two_queues_share_a_topic(one: str, other: str) -> None:
    assert (topic_of(one) == topic_of(other)) == (one == other)


def test_the_tag_of_an_address_is_a_word() -> None:
    assert tag_of("queue a || b").isalnum()
    assert tag_of("a") != tag_of("b")
