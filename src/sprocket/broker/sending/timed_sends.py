"""Sends that ask for a time (TIMER_DELIVER_MS) and for nothing else that the broker looks at.

As with plain sends, those that come in one read are taken in together, and what they ask for is
written behind the text of their properties, which stays as it came. Nothing is decided here that
`send` would decide otherwise: at the first message that asks for more, or cannot be taken, a run
ends, and `send` answers that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sprocket.base.errors import SprocketError
from sprocket.broker.dispatch import Together
from sprocket.broker.sending.ingress import Ingress, WaitsFor, after
from sprocket.broker.sending.plain import Plain, PlainTexts
from sprocket.broker.sending.send import Placing, SendHeader, stored_flag
from sprocket.broker.sending.stamp import Stamp
from sprocket.delay.timers.timed import QUEUE, waiting_text
from sprocket.message.hosts import pack
from sprocket.message.properties import (
    NAME_END,
    PAIR_END,
    PROPERTIES_BYTES_MAX,
    TIMER_DELIVER_MS,
    WAIT,
)
from sprocket.message.recall import encode_handle
from sprocket.message.record import TRANSACTION_MASK, Draft
from sprocket.message.topic import RETRY_PREFIX, TIMER
from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.command import JSON, ONEWAY, Command, Reply
from sprocket.remoting.answers import Answered, Outcome
from sprocket.remoting.transport import Peer
from sprocket.store.writing.appending import Appended

_MARK = TIMER_DELIVER_MS + NAME_END
#: Digits of a time in ms from 2001 to 2286.
_TIME_DIGITS = 13


class TimedSends:
    """Answers such sends, as many as come one after the other."""

    def __init__(
        self, ingress: Ingress, placing: Placing, stamp: Stamp, *, texts: PlainTexts
    ) -> None:
        self._ingress = ingress
        self._placing = placing
        self._stamp = stamp
        self._texts = texts

    def send(
        self, kind: type[SendHeader], commands: Sequence[Command], peer: Peer
    ) -> list[Outcome] | Together:
        """Answers the first of some sends: as many as only ask for a time and can be taken.

        Raises:
            IllegalMessage, DiskFull, StoreError, ClosedError: the store refuses the first.
        """
        drafts, waits, said = self._drafts(kind, commands, peer)
        if not drafts:
            return []
        appended = self._ingress.accept_waiting(drafts, waits)
        if self._ingress.is_settling:
            if any(each.properties.get(WAIT) == "false" for each in said):
                return list(map(self._settling, appended, waits, said))
            settled = self._ingress.settled(appended[-1], {})
            if settled is not None:
                answers = partial(self._answers, commands, appended, waits)
                return Together(len(appended), settled, answers)
        return list(map(self._reply, commands, appended, waits))

    def _drafts(
        self, kind: type[SendHeader], commands: Sequence[Command], peer: Peer
    ) -> tuple[list[Draft], list[WaitsFor], list[Plain]]:
        """The messages, when they are due and what they say, up to the first that is another."""
        drafts: list[Draft] = []
        waits: list[WaitsFor] = []
        said: list[Plain] = []
        read, behind, slot_in = self._texts.read, self._stamp.behind, self._ingress.slots()
        name, queues, more_flags = "", 0, 0  # of the topic of the message before
        try:
            born_host = pack(peer.address)
            for command in commands:
                if command.code != kind.code:
                    break
                header = command.read(kind)
                if header.topic != name:
                    name = header.topic
                    topic = self._placing.open_topic(name)
                    if topic is None or name == TIMER or name.startswith(RETRY_PREFIX):
                        break
                    queues, more_flags = topic.write_queue_nums, stored_flag(0, topic)
                text, due_ms, others = _asked(header.properties or "")
                slot_ms, plain = slot_in(due_ms), read(others)
                if slot_ms is None or plain is None or header.batch or not command.body:
                    break
                unique_key, rest = plain
                number = header.queue_id
                is_plain = rest.may_wait and unique_key.isascii() and 0 <= number < queues
                if not is_plain or len(text) > PROPERTIES_BYTES_MAX:
                    break
                draft = Draft(
                    TIMER,
                    QUEUE,
                    command.body,
                    behind(text, waiting_text(slot_ms, name, number)),
                    rest.tag_code,
                    header.flag,
                    header.sys_flag & ~TRANSACTION_MASK | more_flags,
                    header.born_timestamp,
                    born_host,
                    header.reconsume_times,
                    0,
                    rest.keys,
                    unique_key,
                )
                drafts.append(draft)
                waits.append(WaitsFor(slot_ms, due_ms, name, number))
                said.append(rest)
        except SprocketError:  # raised again when that one is answered by itself
            pass
        return drafts, waits, said

    def _settling(self, appended: Appended, waits: WaitsFor, said: Plain) -> Outcome:
        """The answer to a send that may have to wait for the disk."""
        reply = self._said(appended, waits, ResponseCode.SUCCESS)
        settled = self._ingress.settled(appended, said.properties)
        return reply if settled is None else after(settled, reply.header)

    def _answers(
        self,
        commands: Sequence[Command],
        appended: Sequence[Appended],
        waits: Sequence[WaitsFor],
        code: int,
    ) -> list[Answered]:
        """The answers to sends that waited together."""
        if code:
            return [
                self._said(place, each, code) for place, each in zip(appended, waits, strict=False)
            ]
        return list(map(self._reply, commands, appended, waits))

    def _reply(self, command: Command, appended: Appended, waits: WaitsFor) -> Answered:
        """The answer to a send that need not wait."""
        if command.flag & ONEWAY:
            return None
        if command.serialization != JSON:
            return self._said(appended, waits, ResponseCode.SUCCESS)
        slot_ms, _, topic, number = waits
        handle = encode_handle(topic, self._stamp.broker, slot_ms + 1, appended.unique_key)
        return self._stamp.form.frame(command.opaque, appended, queue_number=number, handle=handle)

    def _said(self, appended: Appended, waits: WaitsFor, code: int) -> Reply:
        slot_ms, _, topic, number = waits
        unique_key = appended.unique_key
        header = self._stamp.reply(appended, queue_number=number, unique_key=unique_key)
        handle = encode_handle(topic, self._stamp.broker, slot_ms + 1, unique_key)
        header.recall_handle = handle.decode("ascii")
        return Reply(header, code=code)


def _asked(text: str) -> tuple[str, int, str]:
    """The whole text of properties, the time that it asks for, and the text without that.

    A time that is none, or not written as the broker would write it, is 0: long ago.
    """
    if text and text[-1] != PAIR_END:
        text += PAIR_END
    before, _, rest = text.partition(_MARK)
    asked, _, others = rest.partition(PAIR_END)
    if (before and before[-1] != PAIR_END) or len(asked) != _TIME_DIGITS or asked[0] == "0":
        return text, 0, ""
    due_ms = int(asked) if asked.isdecimal() and asked.isascii() else 0
    return text, due_ms, before + others
