from __future__ import annotations

import pytest

from sprocket.base.errors import LocalProtocolError
from sprocket.message.ids import offset_id
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.frame import encode_reply
from sprocket.protocol.requests.send import SendReply
from sprocket.protocol.sent import SentForm
from sprocket.store.views.entry import Entry

HOSTS = (b"\x7f\0\0\1\0\0\x2a\x9f", bytes(range(20)))


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("region", ["DefaultRegion", "100 % 'ü\"\\%s"])
@pytest.mark.parametrize("unique_key", ["7F0000010000", 'a"b\\c\n%d ä', ""])
@pytest.mark.parametrize("number", [0, 1, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize(("handle", "queue"), [("", 7), ("djEg-_=", 3)])
def test_the_quick_way_writes_what_the_general_way_does(
    host: bytes, region: str, unique_key: str, number: int, handle: str, queue: int
) -> None:
    form = SentForm(store_host=host, region=region, trace_on="true")
    offset = abs(number) << 20
    sent = Entry("t", 7, offset + 1, offset, 99, 0, 0, 0, "", unique_key)
    written = form.frame(number, sent, queue_number=queue, handle=handle.encode())
    reply = SendReply(
        msg_id=offset_id(host, offset),
        queue_id=queue,
        queue_offset=offset + 1,
        transaction_id=unique_key,
        recall_handle=handle or None,
        msg_region=region,
        trace_on="true",
    )
    assert [written] == encode_reply(Command(310, number), Reply(reply))


def test_a_unique_key_that_is_no_unicode_is_our_own_fault() -> None:
    form = SentForm(store_host=HOSTS[0], region="r", trace_on="true")
    with pytest.raises(LocalProtocolError):
        form.frame(1, Entry("t", 0, 0, 0, 99, 0, 0, 0, "", "\ud800"), queue_number=0)
