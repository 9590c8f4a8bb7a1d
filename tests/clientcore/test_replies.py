from __future__ import annotations

import pytest

from sprocket.base.errors import (
    CorruptRecord,
    NoPermission,
    RemoteProtocolError,
    SystemBusy,
    TopicNotFound,
)
from sprocket.clientcore.replies import (
    PullStatus,
    SendStatus,
    is_stored,
    read_pull,
    send_status,
)
from sprocket.filter.tags import TagFilter
from sprocket.message.opening import Opening
from sprocket.message.queue import QueueId
from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.command import RESPONSE, Command
from sprocket.protocol.requests.pull import PullReply
from tests.spark.support import record

QUEUE = QueueId("t", "b", 0)


def reply(code: int, body: bytes = b"", **fields: int) -> Command:
    values = {"suggest_which_broker_id": 1, "next_begin_offset": 7, "min_offset": 2}
    header = PullReply(**{**values, "max_offset": 9, **fields})
    return Command(code, 1, RESPONSE, remark="why", source=header.to_fields(), body=body)


def test_four_codes_say_that_a_message_is_stored() -> None:
    found = {code for code in ResponseCode if is_stored(code)}
    assert {ResponseCode(code).name for code in found} == {
        "SUCCESS", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE",
    }  # fmt: skip
    assert {send_status(reply(code)) for code in found} == set(SendStatus)


@pytest.mark.parametrize(
    ("code", "kind"), [(2, SystemBusy), (16, NoPermission), (17, TopicNotFound)]
)
def test_any_other_code_is_an_error_with_the_brokers_words(
    code: int, kind: type[Exception]
) -> None:
    for ask in (send_status, Command.checked, read_pull):
        with pytest.raises(kind, match="why"):
            ask(reply(code))


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (0, PullStatus.FOUND),
        (19, PullStatus.NO_NEW),
        (20, PullStatus.NO_MATCHED),
        (21, PullStatus.OFFSET_ILLEGAL),
    ],
)
def test_a_pull_says_where_to_continue(code: int, status: PullStatus) -> None:
    answer = read_pull(reply(code, b"records"))
    assert answer[:5] == (status, 7, 2, 9, 1)
    assert answer.records == (b"records" if code == 0 else b"")


@pytest.mark.parametrize("wrong", [reply(0), reply(19, next_begin_offset=-1)])
def test_nonsense_is_no_answer(wrong: Command) -> None:
    with pytest.raises(RemoteProtocolError):
        read_pull(wrong)


def test_messages_are_compared_with_the_filter_itself() -> None:
    body = b"".join(
        record(offset, properties=b"TAGS\x01%b\x02" % tag)
        for offset, tag in enumerate((b"new", b"paid", b"new"))
    )
    answer = read_pull(reply(0, body))
    wanted = TagFilter.parse("new")
    assert [one.queue_offset for one in answer.messages(QUEUE, wanted, Opening())] == [0, 2]
    assert [
        one.queue.broker for one in answer.messages(QUEUE, TagFilter.parse("*"), Opening())
    ] == ["b"] * 3
    broken = read_pull(reply(0, body[:-5])).messages(QUEUE, TagFilter.parse("*"), Opening())
    assert [next(broken).queue_offset for _ in range(2)] == [0, 1]
    with pytest.raises(CorruptRecord):
        next(broken)


def test_messages_of_a_logical_queue_have_its_name_and_offsets() -> None:
    queue = QueueId("t", "__syslo__global__", 3)
    body = record(0) + record(1)
    answer = read_pull(reply(0, body, offset_delta=10_000))
    found = list(answer.messages(queue, TagFilter.parse("*"), Opening()))
    assert [(one.queue, one.queue_offset) for one in found] == [(queue, 10_000), (queue, 10_001)]
    opening = Opening()
    opening.stopped_at = 5
    assert answer.after(opening) == 10_005
