"""Attributes of topics and groups."""

from __future__ import annotations

import re

import pytest

from sprocket.base.errors import SystemFailure
from sprocket.broker.tables.attributes import OF_GROUPS, altered, parse


def test_attributes_are_set_changed_and_taken_away() -> None:
    made = altered(None, parse("+message.type=FIFO,+queue.type=SimpleCQ"))
    assert made == {"message.type": "FIFO", "queue.type": "SimpleCQ"}
    assert altered(made, parse("+message.type=DELAY")) == {**made, "message.type": "DELAY"}
    assert altered(made, parse("-message.type")) == {"queue.type": "SimpleCQ"}
    assert altered({}, parse("+reserve.time=-1")) == {"reserve.time": "-1"}
    assert altered(made, parse(None)) == made
    every = "+message.type=PRIORITY,+queue.type=BatchCQ,+cleanup.policy=COMPACTION"
    assert len(altered(None, parse(f"{every},+lite.topic.expiration=43200"))) == 4


def test_those_of_groups_have_rules_of_their_own() -> None:
    made = altered(None, {"+priority.factor": "30", "+lite.bind.topic": "any"}, OF_GROUPS)
    assert made == {"priority.factor": "30", "lite.bind.topic": "any"}
    bad = ("priority.factor=101", "lite.sub.reset.offset.exclusive=1", "message.type=FIFO")
    for text in bad:
        with pytest.raises(SystemFailure):
            altered({}, parse(f"+{text}"), OF_GROUPS)


# The texts are RocketMQ's; where they show a value or a set, ours says more.
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("message.type=FIFO", "add/alter attribute format is wrong: message.type"),
        ("-message.type=x", "add/alter attribute format is wrong: -message.type"),
        ("+message.type", "delete attribute format is wrong: +message.type"),
        ("+a=1,+a=2", "key duplication: +a"),
    ],
)
def test_what_is_no_list_of_changes_is_refused(text: str, fault: str) -> None:
    with pytest.raises(SystemFailure, match=re.escape(fault)):
        parse(text)


@pytest.mark.parametrize(
    ("current", "text", "fault"),
    [
        ({}, "+nope=1", "unsupported key: nope"),
        ({}, "+message.type=LOUD", "value is not in set: ["),
        ({}, "+reserve.time=soon", 'For input string: "soon"'),
        ({}, "+reserve.time=-2", "value is not in range(-1, 9223372036854775807)"),
        ({}, "+reserve.time=9223372036854775808", "value is not in range("),
        ({}, "+lite.topic.expiration=43201", "value is not in range(-1, 43200)"),
        ({}, "+queue.type=BatchCQ", "attempt to update an unchangeable attribute. key: queue.type"),
        (
            {"cleanup.policy": "DELETE"}, "-cleanup.policy",
            "attempt to update an unchangeable attribute. key: cleanup.policy",
        ),
        ({}, "-message.type", "attempt to delete a nonexistent key: message.type"),
        ({}, "+message.type=FIFO,-message.type", "alter duplication key. key: message.type"),
        ({}, "+a+b=1", "kv string format wrong."),
        ({}, "+=1", "kv string format wrong."),
        (None, "-message.type", "only add attribute is supported while creating topic."),
    ],
)  # fmt: skip
def test_a_change_that_may_not_be_is_refused_in_rocketmq_s_words(
    current: dict[str, str] | None, text: str, fault: str
) -> None:
    with pytest.raises(SystemFailure, match=re.escape(fault)):
        altered(current, parse(text))


def test_a_key_without_a_sign_is_refused() -> None:
    with pytest.raises(SystemFailure, match=r"wrong format key: essage\.type"):
        altered({}, {"message.type": "FIFO"})
