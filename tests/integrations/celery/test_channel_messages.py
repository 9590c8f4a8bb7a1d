"""What a channel of kombu has from the broker."""

from __future__ import annotations

from sprocket.base.errors import ClosedError
from sprocket.integrations.celery.channel_messages import ChannelMessages, Delivered
from tests.clientcore.test_pops import message


def test_what_can_be_given_back_is_taken_out_once() -> None:
    messages = ChannelMessages()
    a, b, held = (message(0, offset) for offset in range(3))
    messages.arrived.extend(
        [Delivered("one", a), Delivered("two", b), Delivered("one", ClosedError("refused"))]
    )
    messages.leases["tag"] = held
    assert messages.take_back("one") == [a]
    assert list(messages.arrived) == [Delivered("two", b)]
    assert messages.take_all() == [held, b]
    assert messages.take_all() == []
