"""Sends of which the broker changes nothing but to put its marks behind them: nearly all.

Those that come in one read are taken in together, and what they have in common is looked up once.
Nothing is decided here that `send` would decide otherwise: at the first message that asks for
more, or cannot be taken, a run ends, and `send` answers that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sprocket.base.errors import LocalProtocolError, SprocketError
from sprocket.broker.dispatch import Runs, Together
from sprocket.broker.sending.ingress import Ingress, after
from sprocket.broker.sending.plain import Plain, PlainTexts
from sprocket.broker.sending.send import Placing, SendHeader, stored_flag
from sprocket.broker.sending.stamp import Stamp
from sprocket.broker.sending.timed_sends import TimedSends
from sprocket.message.hosts import pack
from sprocket.message.properties import PAIR_END, PROPERTIES_BYTES_MAX, WAIT
from sprocket.message.record import TRANSACTION_MASK, Draft
from sprocket.message.topic import RETRY_PREFIX
from sprocket.protocol.codes import RequestCode, ResponseCode
from sprocket.protocol.command import JSON, ONEWAY, Command, Reply
from sprocket.protocol.requests.send import SendMessage, SendMessageV2
from sprocket.remoting.answers import Answered, Outcome
from sprocket.remoting.transport import Peer
from sprocket.store.writing.appending import Appended


class PlainSends:
    """Answers plain sends, as many as come one after the other."""

    def __init__(self, ingress: Ingress, placing: Placing, stamp: Stamp) -> None:
        self._ingress = ingress
        self._placing = placing
        self._stamp = stamp
        self._texts = PlainTexts()
        self._timed = TimedSends(ingress, placing, stamp, texts=self._texts)

    def runs(self) -> Runs:
        """By request code."""
        return {
            RequestCode.SEND_MESSAGE: partial(self._send, SendMessage),
            RequestCode.SEND_MESSAGE_V2: partial(self._send, SendMessageV2),
        }

    def _send(
        self, kind: type[SendHeader], commands: Sequence[Command], peer: Peer
    ) -> list[Outcome] | Together:
        """Answers the first of some sends: as many as are plain, or ask for a time, and can be
        taken.

        Raises:
            IllegalMessage, DiskFull, StoreError, ClosedError: the store refuses the first.
        """
        drafts, said = self._drafts(kind, commands, peer)
        if not drafts:
            return self._timed.send(kind, commands, peer)
        appended = self._ingress.accept_ready(drafts)
        if self._ingress.is_settling:
            if any(each.properties.get(WAIT) == "false" for each in said):
                return list(map(self._settling, appended, drafts, said))
            settled = self._ingress.settled(appended[-1], {})
            if settled is not None:
                return Together(len(appended), settled, partial(self._answers, commands, appended))
        return list(map(self._reply, commands, appended))

    def _drafts(
        self, kind: type[SendHeader], commands: Sequence[Command], peer: Peer
    ) -> tuple[list[Draft], list[Plain]]:
        """Plain messages, and what they say, up to the first that is none."""
        drafts: list[Draft] = []
        said: list[Plain] = []
        read, behind = self._texts.read, self._stamp.behind
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
                    if topic is None or name.startswith(RETRY_PREFIX):
                        break
                    queues, more_flags = topic.write_queue_nums, stored_flag(0, topic)
                text = header.properties or ""
                if text and text[-1] != PAIR_END:  # as clients of RocketMQ 4 send it
                    text += PAIR_END
                if len(text) > PROPERTIES_BYTES_MAX or header.batch or not command.body:
                    break
                plain = read(text)
                if plain is None or not 0 <= header.queue_id < queues:
                    break
                unique_key, rest = plain
                draft = Draft(
                    name,
                    header.queue_id,
                    command.body,
                    behind(text),
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
                said.append(rest)
        except SprocketError:  # raised again when that one is answered by itself
            return drafts, said
        return drafts, said

    def _settling(self, appended: Appended, draft: Draft, said: Plain) -> Outcome:
        """The answer to a send that may have to wait for the disk."""
        reply = self._stamp.reply(
            appended, queue_number=draft.queue_number, unique_key=draft.unique_key
        )
        settled = self._ingress.settled(appended, said.properties)
        return Reply(reply) if settled is None else after(settled, reply)

    def _answers(
        self, commands: Sequence[Command], appended: Sequence[Appended], code: int
    ) -> list[Answered]:
        """The answers to sends that waited together."""
        if code:
            return [self._said(each, code) for each in appended]
        return list(map(self._reply, commands, appended))

    def _reply(self, command: Command, appended: Appended) -> Answered:
        """The answer to a send that need not wait."""
        if command.flag & ONEWAY:
            return None
        try:
            if command.serialization == JSON:
                return self._stamp.form.frame(command.opaque, appended)
        except LocalProtocolError:  # so it cannot be written at all, which its connection tells
            pass
        return self._said(appended, ResponseCode.SUCCESS)

    def _said(self, appended: Appended, code: int) -> Reply:
        number, unique_key = appended.queue_number, appended.unique_key
        header = self._stamp.reply(appended, queue_number=number, unique_key=unique_key)
        return Reply(header, code=code)
