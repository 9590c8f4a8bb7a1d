"""Sends that ask for a time (TIMER_DELIVER_MS) and for nothing else that the broker looks at.

As with plain sends, those that come in one read are taken in together, and what they ask for is
written behind the text of their properties, which stays as it came. Nothing is decided here that
`send` would decide otherwise: at the first message that asks for more, or cannot be taken, a run
ends, and `send` answers that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from sprocket.base.errors import SprocketError
from sprocket.broker.dispatch import Together
from sprocket.broker.ingress import Ingress, WaitsFor, after
from sprocket.broker.plain import Plain, PlainTexts
from sprocket.broker.send import Placing, SendHeader, stored_flag
from sprocket.broker.stamp import Stamp
from sprocket.delay.timed import QUEUE, waiting_text
from sprocket.message.hosts import pack
from sprocket.message.properties import (
    NAME_END,
    PAIR_END,
    PROPERTIES_BYTES_MAX,
    TIMER_DELIVER_MS,
    TIMER_OUT_MS,
    WAIT,
)
from sprocket.message.recall import encode_handle
from sprocket.message.record import Draft
from sprocket.message.topic import RETRY_PREFIX, TIMER
from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.command import JSON, ONEWAY, Buffer, Command, Reply
from sprocket.remoting.answers import Answered, Outcome, frame_of
from sprocket.remoting.transport import Peer
from sprocket.store.appending import Appended

_MARK = TIMER_DELIVER_MS + NAME_END
#: Digits of a time in ms from 2001 to 2286.
_TIME_DIGITS = 13


class _Timed(NamedTuple):
    """A message, and what its sender is told of it."""

    draft: Draft
    waits_for: WaitsFor
    queue_number: int
    said: Plain


class _Sent(NamedTuple):
    """What the answer says."""

    log_offset: int
    queue_number: int
    queue_offset: int
    unique_key: str


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
        messages: list[_Timed] = []
        try:
            born_host = pack(peer.address)
            for command in commands:
                if command.code != kind.code:
                    break
                message = self._read(command, command.read(kind), peer, born_host=born_host)
                if message is None:
                    break
                messages.append(message)
        except SprocketError:  # raised again when that one is answered by itself
            pass
        if not messages:
            return []
        appended = self._ingress.accept_waiting(
            [each.draft for each in messages], [each.waits_for for each in messages]
        )
        if self._ingress.is_settling:
            if any(each.said.properties.get(WAIT) == "false" for each in messages):
                return list(map(self._settling, appended, messages))
            settled = self._ingress.settled(appended[-1], {})
            if settled is not None:
                frames = partial(self._frames, commands, appended, messages)
                return Together(len(appended), settled, frames)
        return list(map(self._reply, commands, appended, messages))

    def _settling(self, appended: Appended, message: _Timed) -> Outcome:
        """The answer to a send that may have to wait for the disk."""
        reply = self._said(appended, message, ResponseCode.SUCCESS)
        settled = self._ingress.settled(appended, message.said.properties)
        return reply if settled is None else after(settled, reply.header)

    def _frames(
        self,
        commands: Sequence[Command],
        appended: Sequence[Appended],
        messages: Sequence[_Timed],
        code: int,
    ) -> bytes:
        """The answers to sends that waited together."""
        frames: list[Buffer] = []
        for command, place, message in zip(commands, appended, messages, strict=False):
            outcome = (
                self._said(place, message, code) if code else self._reply(command, place, message)
            )
            if isinstance(outcome, Reply):
                frames += frame_of(command, outcome)
            elif outcome is not None:
                frames.append(outcome)
        return b"".join(frames)

    def _reply(self, command: Command, appended: Appended, message: _Timed) -> Answered:
        """The answer to a send that need not wait."""
        if command.flag & ONEWAY:
            return None
        if command.serialization != JSON:
            return self._said(appended, message, ResponseCode.SUCCESS)
        sent = _Sent(
            appended.log_offset, message.queue_number, appended.queue_offset, appended.unique_key
        )
        handle = self._handle(appended, message)
        return self._stamp.form.frame(command.opaque, sent, recall_handle=handle)

    def _said(self, appended: Appended, message: _Timed, code: int) -> Reply:
        number, unique_key = message.queue_number, appended.unique_key
        header = self._stamp.reply(appended, queue_number=number, unique_key=unique_key)
        header.recall_handle = self._handle(appended, message)
        return Reply(header, code=code)

    def _handle(self, appended: Appended, message: _Timed) -> str:
        """What takes the message back."""
        topic, slot_ms, _ = message.waits_for
        return encode_handle(topic, self._stamp.broker, str(slot_ms + 1), appended.unique_key)

    def _read(
        self, command: Command, header: SendHeader, peer: Peer, *, born_host: bytes
    ) -> _Timed | None:
        """The message of a send; None if it has to be looked at closer."""
        text = header.properties or ""
        if text and text[-1] != PAIR_END:
            text += PAIR_END
        before, mark, rest = text.partition(_MARK)
        asked, _, behind = rest.partition(PAIR_END)
        if not mark or before[-1:] not in ("", PAIR_END) or not _is_time(asked):
            return None
        if len(text) > PROPERTIES_BYTES_MAX or header.batch or not command.body:
            return None
        topic, plain = header.topic, self._texts.read(before + behind)
        if plain is None or TIMER_OUT_MS in text or "REAL_" in text:
            return None
        unique_key, said = plain
        if topic == TIMER or topic.startswith(RETRY_PREFIX) or not unique_key.isascii():
            return None
        config, queue_number = self._placing.place(header, peer)
        due_ms = int(asked)
        slot_ms = self._ingress.slot_of(due_ms)
        if slot_ms is None:
            return None
        draft = Draft(
            TIMER,
            QUEUE,
            command.body,
            self._stamp.behind(text, waiting_text(slot_ms, topic, queue_number)),
            said.tag_code,
            header.flag,
            stored_flag(header.sys_flag, config),
            header.born_timestamp,
            born_host,
            header.reconsume_times,
            0,
            said.keys,
            unique_key,
        )
        return _Timed(draft, WaitsFor(topic, slot_ms, due_ms), queue_number, said)


def _is_time(text: str) -> bool:
    """Whether it is a time, written as the broker would write it."""
    is_number = len(text) == _TIME_DIGITS and text.isdecimal() and text.isascii()
    return is_number and text[0] != "0"
