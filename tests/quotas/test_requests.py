"""What requests count as."""

from __future__ import annotations

from itertools import combinations

import pytest

from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command
from sprocket.protocol.requests.client import Heartbeat
from sprocket.protocol.requests.pop import PopMessage
from sprocket.protocol.requests.pull import SUSPEND, PullMessage
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.quotas.requests import (
    FREE,
    NOTHING,
    READS,
    SENDS,
    VITAL,
    Subject,
    less_patient,
    patience_ms,
    subject,
)


def pull(suspend_ms: int, flags: int = SUSPEND) -> Command:
    return Command.request(
        PullMessage(
            consumer_group="g", topic="t", queue_id=0, queue_offset=0, max_msg_nums=1,
            sys_flag=flags, suspend_timeout_millis=suspend_ms,
        )
    )  # fmt: skip


def pop(poll_ms: int) -> Command:
    return Command.request(
        PopMessage(
            consumer_group="g", topic="t", queue_id=0, max_msg_nums=1, invisible_time=1,
            poll_time=poll_ms, born_time=0, init_mode=0,
        )
    )  # fmt: skip


def test_no_request_is_of_two_classes() -> None:
    for one, other in combinations((set(SENDS), set(READS), VITAL, FREE), 2):
        assert not one & other


def test_declared_headers_are_those_of_their_codes() -> None:
    assert {header.code: header for header in (*SENDS.values(), *READS.values())} == {
        **SENDS,
        **READS,
    }


def test_sends_are_about_a_topic_and_reads_about_a_group_too() -> None:
    send = SendMessageV2(producer_group="p", topic="t", queue_id=0)
    assert subject(Command.request(send)) == Subject("t", "")
    assert subject(pull(0)) == subject(pop(0)) == Subject("t", "g")
    assert subject(Command.request(Heartbeat())) == NOTHING


def test_a_request_that_cannot_be_read_is_about_nothing() -> None:
    broken = Command(RequestCode.PULL_MESSAGE, source={"topic": "t"})
    assert subject(broken) == NOTHING
    assert patience_ms(broken) == 0


@pytest.mark.parametrize(
    ("command", "expected"),
    [(pull(15_000), 15_000), (pull(15_000, 0), 1_000), (pull(10**9), 30_000), (pop(0), 1_000),
     (pop(9_000), 9_000)],
)  # fmt: skip
def test_a_read_is_as_patient_as_it_says(command: Command, expected: int) -> None:
    assert patience_ms(command) == expected


def test_the_time_that_was_waited_is_not_waited_twice() -> None:
    command = pull(15_000)
    less_patient(command, 4_000)
    assert command.read(PullMessage).suspend_timeout_millis == 11_000
    less_patient(command, 40_000)
    assert command.read(PullMessage).suspend_timeout_millis == 0
    popping = pop(15_000)
    less_patient(popping, 5_000)
    assert popping.read(PopMessage).poll_time == 10_000
