"""Types of messages and of topics."""

from __future__ import annotations

import pytest

from sprocket.message.topic_attributes import (
    MessageType,
    has_batch_queues,
    is_compacted,
    message_type,
    priority_of,
    topic_type,
)


@pytest.mark.parametrize(
    ("properties", "kind"),
    [
        ({}, MessageType.NORMAL),
        ({"TAGS": "a", "KEYS": "k"}, MessageType.NORMAL),
        ({"TRAN_MSG": "true", "DELAY": "1", "__SHARDINGKEY": "k"}, MessageType.TRANSACTION),
        ({"TRAN_MSG": "True"}, MessageType.TRANSACTION),
        ({"TRAN_MSG": "false"}, MessageType.NORMAL),
        ({"DELAY": "0", "__SHARDINGKEY": "k"}, MessageType.DELAY),
        ({"TIMER_DELIVER_MS": "1"}, MessageType.DELAY),
        ({"TIMER_DELAY_SEC": "1"}, MessageType.DELAY),
        ({"TIMER_DELAY_MS": "1", "_SYS_MSG_PRIORITY_": "1"}, MessageType.DELAY),
        ({"__SHARDINGKEY": "k", "_SYS_MSG_PRIORITY_": "1"}, MessageType.FIFO),
        ({"_SYS_MSG_PRIORITY_": "x", "__LITE_TOPIC": "l"}, MessageType.PRIORITY),
        ({"__LITE_TOPIC": "l"}, MessageType.LITE),
    ],
)
def test_the_first_that_fits_is_the_type_of_a_message(
    properties: dict[str, str], kind: MessageType
) -> None:
    assert message_type(properties) is kind


def test_a_topic_without_a_type_is_for_normal_messages_and_an_unknown_type_is_any() -> None:
    assert topic_type(None) is topic_type({}) is MessageType.NORMAL
    assert topic_type({"message.type": "FIFO"}) is MessageType.FIFO
    assert topic_type({"message.type": "NEWER"}) is MessageType.UNSPECIFIED


def test_queues_and_what_is_kept_are_as_the_attributes_say() -> None:
    assert has_batch_queues({"queue.type": "BatchCQ"})
    assert not any(map(has_batch_queues, (None, {}, {"queue.type": "SimpleCQ"})))
    assert is_compacted({"cleanup.policy": "COMPACTION"})
    assert not any(map(is_compacted, (None, {}, {"cleanup.policy": "DELETE"})))


@pytest.mark.parametrize(
    ("text", "priority"),
    [
        ("0", 0), ("7", 7), ("+7", 7), ("007", 7), ("2147483647", 2147483647),
        ("-1", -1), ("-2147483648", -2147483648), ("2147483648", -1), ("", -1), ("x", -1),
        ("1.0", -1), ("--1", -1), ("٣", -1), ("9" * 5000, -1),
    ],
)  # fmt: skip
def test_a_priority_is_read_as_a_number_of_32_bits(text: str, priority: int) -> None:
    assert priority_of({"_SYS_MSG_PRIORITY_": text}) == priority
