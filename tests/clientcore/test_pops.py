from __future__ import annotations

import base64
import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import NoPermission, RemoteProtocolError, UsageError
from sprocket.clientcore.pops import (
    RETRY_SECONDS,
    PopStatus,
    ack_of,
    batch_of,
    change_of,
    changed,
    fits_batch,
    read_pop,
    retry_ms,
)
from sprocket.filter.tags import TagFilter
from sprocket.message.compression import Compression, compress
from sprocket.message.hosts import pack
from sprocket.message.opening import OPENED_AT_ONCE_BYTES
from sprocket.message.pop_handle import (
    NORMAL,
    ORDER_QUEUE,
    RETRY,
    PopHandle,
    PoppedSpan,
    message_offsets_text,
    order_counts_text,
    read_order_counts,
    start_offsets_text,
)
from sprocket.message.popped_message import PoppedMessage
from sprocket.message.properties import encode
from sprocket.message.record import Draft, Encoder, decode, topic_part
from sprocket.protocol.command import RESPONSE, Command
from sprocket.protocol.requests.pop import InvisibleReply, PopMessage, PopReply

ALL = TagFilter.parse("*")


def record(
    number: int, offset: int, *, topic: str = "t", body: bytes = b"x", flag: int = 0, **texts: str
) -> bytes:
    draft = Draft(topic, number, body, encode(texts).encode(), 0, 0, flag, 0, pack("1.1.1.1:1"))
    encoder = Encoder(pack("10.0.0.1:10911"))
    return encoder.encode(draft, topic_part(topic.encode()), 100 * offset, offset, 5)


def request(count: int = 32, *, order: bool = False) -> PopMessage:
    return PopMessage(
        consumer_group="g", topic="t", queue_id=-1, max_msg_nums=count, invisible_time=9,
        poll_time=0, born_time=0, init_mode=0, order=order,
    )  # fmt: skip


def reply(body: bytes, spans: list[PoppedSpan], code: int = 0, **fields: Any) -> Command:
    values = {
        "pop_time": 1000, "invisible_time": 60_000, "revive_qid": 3, "rest_num": 0,
        "start_offset_info": start_offsets_text(spans),
        "msg_offset_info": message_offsets_text(spans),
    }  # fmt: skip
    header = PopReply(**{**values, **fields})
    return Command(code, 1, RESPONSE, remark="why", source=header.to_fields(), body=body)


def read(answer: Command, asked: PopMessage | None = None, wanted: TagFilter = ALL) -> Any:
    return read_pop(answer, asked or request(), "broker-a", wanted=wanted, now=5.0)


def test_each_message_gets_its_handle_from_the_lists() -> None:
    spans = [PoppedSpan("t", 0, 5, [5, 7]), PoppedSpan("t", 2, 9, [9])]
    answer = read(reply(record(0, 5) + record(0, 7) + record(2, 9), spans))
    assert answer.status is PopStatus.FOUND
    assert [message.handle for message in answer.messages] == [
        PopHandle(5, 1000, 60_000, 3, NORMAL, "broker-a", 0, 5),
        PopHandle(5, 1000, 60_000, 3, NORMAL, "broker-a", 0, 7),
        PopHandle(9, 1000, 60_000, 3, NORMAL, "broker-a", 2, 9),
    ]
    first = answer.messages[0]
    assert (first.group, first.received, first.invisible_until) == ("g", 5.0, 65.0)
    assert first.stored_topic == "t"


def test_a_message_of_a_retry_topic_bears_its_handle() -> None:
    handle = PopHandle(4, 1000, 60_000, 3, RETRY, "broker-a", 0, 4)
    spans = [PoppedSpan("%RETRY%g_t", 0, 4, [4]), PoppedSpan("t", 0, 5, [5])]
    body = record(0, 4, POP_CK=handle.encode()) + record(0, 5, POP_CK="an old one")
    with pytest.raises(RemoteProtocolError):
        read(reply(body, spans))
    old = handle._replace(pop_ms=3, offset=5)
    body = record(0, 4, POP_CK=handle.encode()) + record(0, 5, POP_CK=old.encode())
    retried, plain = read(reply(body, spans)).messages
    assert (retried.handle, retried.stored_topic) == (handle, "%RETRY%g_t")
    assert (plain.handle.kind, plain.stored_topic) == (NORMAL, "t")


def test_in_order_the_reply_tells_how_often_each_was_given_out() -> None:
    spans = [PoppedSpan("t", 1, 5, [5, 6])]
    counts = order_counts_text("t", 1, [5, 6], {6: 3})
    fields = {"revive_qid": ORDER_QUEUE, "order_count_info": counts}
    body = record(1, 5) + record(1, 6)
    messages = read(reply(body, spans, **fields), request(order=True)).messages
    assert [message.reconsume_times for message in messages] == [0, 3]
    assert all(message.handle.is_in_order for message in messages)
    assert read_order_counts("0 qo1%6 3;0 1 2") == {("0", 1, 6): 3, ("0", 1, -1): 2}
    for wrong in ("x", "0 qo1%6", "0 1 -2", "0 qo%1 2"):
        with pytest.raises(UsageError):
            read_order_counts(wrong)


def test_what_does_not_match_and_what_is_not_opened_is_kept_apart() -> None:
    spans = [PoppedSpan("t", 0, 0, [0, 1, 2, 3])]
    flag = Compression.ZSTD.sys_flag
    large = compress(bytes(OPENED_AT_ONCE_BYTES - 1), Compression.ZSTD)
    body = record(0, 0, TAGS="a") + record(0, 1, TAGS="b")
    body += record(0, 2, body=large, flag=flag, TAGS="a")
    body += record(0, 3, body=compress(b"abc", Compression.ZSTD), flag=flag, TAGS="a")
    answer = read(reply(body, spans), wanted=TagFilter.parse("a"))
    offsets = [[message.queue_offset for message in some] for some in answer[1:]]
    assert offsets == [[0, 2, 3], [1], []]
    body = b"".join(record(0, n, body=large, flag=flag) for n in range(3))
    answer = read(reply(body, spans))
    assert [message.queue_offset for message in answer.messages] == [0, 1]
    assert [message.queue_offset for message in answer.unopened] == [2]


@pytest.mark.parametrize(
    ("code", "status"), [(19, PopStatus.NO_NEW), (210, PopStatus.NO_NEW), (209, PopStatus.FULL)]
)
def test_a_pop_may_find_nothing(code: int, status: PopStatus) -> None:
    assert read(reply(b"", [], code)) == (status, [], [], [])


def test_a_refusal_and_nonsense_are_errors() -> None:
    with pytest.raises(NoPermission, match="why"):
        read(reply(b"", [], 16))
    spans = [PoppedSpan("t", 0, 5, [5])]
    for body in (b"", record(0, 5)[:-3], record(0, 6), record(1, 5), record(0, 5, topic="u")):
        with pytest.raises(RemoteProtocolError):
            read(reply(body, spans))
    with pytest.raises(RemoteProtocolError, match="returned more"):
        read(reply(record(0, 5) * 3, spans), request(2))


@given(st.binary(max_size=300), st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_any_reply_is_read_or_refused(body: bytes, starts: str, offsets: str, counts: str) -> None:
    fields = {"start_offset_info": starts, "msg_offset_info": offsets, "order_count_info": counts}
    with contextlib.suppress(RemoteProtocolError):
        read(reply(body, [], **fields), request(order=True))


def message(start: int, offset: int, pop_ms: int = 1, kind: str = NORMAL) -> PoppedMessage:
    stored = decode(record(0, offset), 0, "broker-a")
    handle = PopHandle(start, pop_ms, 9, 3, kind, "broker-a", 0, offset)
    return PoppedMessage.of(stored, "g", handle, 0.0)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 90)), min_size=1, unique=True))
def test_a_batch_has_a_bit_for_each_message(places: list[tuple[int, int]]) -> None:
    messages = [message(10 * pop, 10 * pop + offset, pop) for pop, offset in places]
    body = batch_of(messages, "broker-a")
    found = set()
    for item in body.acks:
        raw = int.from_bytes(base64.b64decode(item.bits or ""), "little")
        offsets = {item.start_offset + bit for bit in range(raw.bit_length()) if raw >> bit & 1}
        found |= {(item.pop_time, offset) for offset in offsets}
        assert (item.topic, item.consumer_group, item.retry) == ("t", "g", "0")
    assert found == {(pop, 10 * pop + offset) for pop, offset in places}
    assert len(body.acks) == len({pop for pop, _ in places})


def test_requests_by_handle_go_to_the_topic_where_the_message_lies() -> None:
    retried = message(4, 4, kind=RETRY)
    ack = ack_of(retried)
    assert (ack.topic, ack.queue_id, ack.offset) == ("%RETRY%g_t", 0, 4)
    assert ack.extra_info == "4 1 9 3 1 broker-a 0 4"
    change = change_of(retried, 77)
    assert (change.topic, change.invisible_time, change.extra_info) == (
        "%RETRY%g_t", 77, ack.extra_info,
    )  # fmt: skip
    found = changed(
        message(2, 4).handle, InvisibleReply(pop_time=8, invisible_time=77, revive_qid=6)
    )
    assert found == PopHandle(4, 8, 77, 6, NORMAL, "broker-a", 0, 4)
    in_order = message(2, 4).handle._replace(revive_queue=ORDER_QUEUE)
    reply = InvisibleReply(pop_time=1, invisible_time=77, revive_qid=ORDER_QUEUE)
    assert changed(in_order, reply).start_offset == 2


def test_far_offsets_are_acknowledged_alone() -> None:
    assert fits_batch(message(0, 90))
    assert not fits_batch(message(0, 1_000_000))
    assert not fits_batch(message(5, 4))


def test_retries_grow_as_in_java_or_have_their_level() -> None:
    assert [retry_ms(n) for n in (0, 1, 15, 99)] == [10_000, 30_000, 7_200_000, 7_200_000]
    assert len(RETRY_SECONDS) == 16
    assert [retry_ms(5, level) for level in (1, 3, 18, 40)] == [1_000, 10_000, 7_200_000, 7_200_000]
