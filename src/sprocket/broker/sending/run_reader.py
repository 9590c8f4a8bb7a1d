"""Reads many sends of one read together, if the broker changes almost nothing in them: nearly all.

Sends of one read have much in common, which is looked up once. The text of the properties is stored
unchanged, followed by the broker's own properties, and by those of a waiting message if it asks for
a delivery time (TIMER_DELIVER_MS) and nothing else. The values are those that `SendReader` and
`destination` give for the same message; a message that asks for more ends the run.
"""

from __future__ import annotations

from collections.abc import Sequence

from sprocket.base.errors import SprocketError
from sprocket.base.ports import Clock
from sprocket.broker.sending.destination import DelayRules, Destination
from sprocket.broker.sending.intake import SENDERS_BITS, Placing, SendHeader
from sprocket.broker.sending.plain import Plain, PlainTexts
from sprocket.broker.sending.stamp import Stamp
from sprocket.delay.timers.timed import QUEUE, TimedWait, slot_of, waiting_text
from sprocket.message.hosts import pack
from sprocket.message.properties import (
    NAME_END,
    PAIR_END,
    SENT_TEXT_SHORT,
    TIMER_DELIVER_MS,
)
from sprocket.message.recall import encode_handle
from sprocket.message.record import Draft
from sprocket.message.topic import TIMER
from sprocket.protocol.command import Command
from sprocket.remoting.transport import Peer

_TIME_MARK = TIMER_DELIVER_MS + NAME_END
#: Digits of a time in ms from 2001 to 2286.
_TIME_DIGITS = 13


class RunReader:
    """Reads runs of sends."""

    def __init__(self, placing: Placing, stamp: Stamp, rules: DelayRules, clock: Clock) -> None:
        self._placing = placing
        self._stamp = stamp
        self._rules = rules
        self._clock = clock
        self._texts = PlainTexts()

    # One loop with few calls for each message: a broker does nothing more often. A draft by place
    # saves 30 ns of some 9 µs, a destination with few values too. No error leaves here: a message
    # that is refused ends the run, and the reader of single sends reports what is wrong.
    def read_run(
        self, kind: type[SendHeader], commands: Sequence[Command], peer: Peer
    ) -> list[Destination]:
        """The destinations of the first sends: up to one that must be read alone, or up to one
        without a delivery time after others that have one.
        """
        destinations: list[Destination] = []
        read, behind, put = self._texts.read, self._stamp.behind, destinations.append
        name, queues, more_flags = "", 0, 0  # of the topic of the message before
        wait: TimedWait | None = None
        now_ms = 0
        try:
            born_host = pack(peer.address)
            for command in commands:
                if command.code != kind.code:
                    break
                header = command.read(kind)
                if header.topic != name:
                    name = header.topic
                    topic = self._placing.plain_topic(name)
                    if topic is None:
                        break
                    queues, more_flags = topic
                text, number = header.properties or "", header.queue_id
                if text and text[-1] != PAIR_END:  # as clients of RocketMQ 4 send it
                    text += PAIR_END
                if len(text) > SENT_TEXT_SHORT or header.batch or not command.body:
                    break
                plain = read(text) if wait is None else None
                if plain is None:
                    now_ms = now_ms or self._clock.now_ms()
                    plain, wait = self._read_timed(text, name, now_ms)
                if plain is None or not 0 <= number < queues:
                    break
                unique_key, rest = plain
                draft = Draft(
                    name, number, command.body, behind(text) if wait is None else b"",
                    rest.tag_code, header.flag, header.sys_flag & SENDERS_BITS | more_flags,
                    header.born_timestamp, born_host, header.reconsume_times, 0, rest.keys,
                    unique_key,
                )  # fmt: skip
                if wait is None:
                    put(Destination(draft, name, number, rest.is_awaited))
                else:
                    put(self._put_off(draft, wait, text, rest.is_awaited))
        except SprocketError:
            pass
        return destinations

    def _put_off(self, draft: Draft, wait: TimedWait, text: str, is_awaited: bool) -> Destination:
        """The destination of a message that waits for a delivery time."""
        topic, number, slot_ms = draft.topic, draft.queue_number, wait.slot_ms
        draft.topic, draft.queue_number = TIMER, QUEUE
        draft.properties = self._stamp.behind(text, waiting_text(slot_ms, topic, number))
        handle = encode_handle(topic, self._rules.broker, slot_ms + 1, draft.unique_key)
        return Destination(draft, topic, number, is_awaited, handle, wait)

    def _read_timed(
        self, text: str, topic: str, now_ms: int
    ) -> tuple[tuple[str, Plain] | None, TimedWait | None]:
        """The unique key and the other properties of a text that asks for a delivery time, and
        that time.

        None for both if the message must be read alone: the time is past, is too far ahead or is
        not in the broker's form, or the text has properties of a message that already waits.
        """
        before, mark, rest = text.partition(_TIME_MARK)
        if not mark:
            return None, None
        asked, _, after = rest.partition(PAIR_END)
        limits, plain = self._rules.timer, self._texts.read(before + after)
        if (
            limits is None
            or plain is None
            or topic == TIMER
            or not plain[0].isascii()
            or before[-1:] not in ("", PAIR_END)
            or len(asked) != _TIME_DIGITS
            or asked[0] == "0"
            or not (asked.isdecimal() and asked.isascii())
        ):
            return None, None
        due_ms = int(asked)
        if not now_ms < due_ms <= now_ms + limits.delay_ms_max:
            return None, None
        return plain, TimedWait(slot_of(due_ms, limits.slot_ms), due_ms)
