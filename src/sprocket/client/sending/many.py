"""Sends many messages in few requests.

Messages with a queue of their own, by a key for instance, are sent in their order: the next request
to that queue follows when the one before is answered. Others go to the queues in turn, several
requests at a time. A message that cannot be sent costs no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ReplyError, SendFailed, SprocketError, UsageError
from sprocket.client.config import ProducerConfig
from sprocket.client.sending.sender import MessageSender, Sent
from sprocket.client.session.session import Session
from sprocket.clientcore.envelope import seal
from sprocket.clientcore.parcels import Parcel, Refused, parcels
from sprocket.message.message import Message
from sprocket.message.queue import QueueId
from sprocket.protocol.codes import ResponseCode

#: A message's key, by which its queue is chosen; None for any queue.
KeyOf = Callable[[Message], str | int | None]
#: So many requests to queues in turn are under way at once.
_AHEAD = 8
#: With these a broker refuses a batch for one of its messages, or because it takes no batches.
_BATCH_REFUSED = frozenset({ResponseCode.MESSAGE_ILLEGAL, ResponseCode.REQUEST_CODE_NOT_SUPPORTED})


class SomeNotSent(SendFailed):
    """Some of many messages were not sent, as far as is known; all others are stored.

    Attributes:
        sent: where the others are stored, by their places in the list.
        errors: why, by the places of those that were not sent.
    """

    def __init__(self, sent: Mapping[int, Sent], errors: Mapping[int, SprocketError]) -> None:
        place = min(errors)
        every = len(sent) + len(errors)
        super().__init__(
            f"{len(errors)} of {every} messages were not sent; the first is number {place}, "
            f"counted from 0: {errors[place]}"
        )
        self.sent = dict(sorted(sent.items()))
        self.errors = dict(sorted(errors.items()))
        self.__cause__ = errors[place]


class ManySends:
    """One list of messages on its way.

    Args:
        deadline: makes a deadline for each request.
    """

    def __init__(
        self,
        session: Session,
        sender: MessageSender,
        config: ProducerConfig,
        deadline: Callable[[], Deadline],
    ) -> None:
        self._session = session
        self._sender = sender
        self._config = config
        self._deadline = deadline
        self._sent: dict[int, Sent] = {}
        self._errors: dict[int, SprocketError] = {}

    async def send(
        self, messages: Iterable[Message], *, key_of: KeyOf | None, queue: QueueId | None
    ) -> list[Sent]:
        """Sends messages; returns where each is stored.

        Raises:
            SomeNotSent: this could not be confirmed for all of them.
        """
        groups: dict[tuple[str, QueueId | None], list[tuple[int, Message]]] = {}
        for place, message in enumerate(messages):
            if not isinstance(message, Message) or not isinstance(message.topic, str):
                self._errors[place] = UsageError(f"not a message with a topic: {message!r:.80}")
                continue
            key = None if key_of is None else key_of(message)
            fixed: QueueId | None = None
            try:
                if key is not None or queue is not None:
                    fixed = await self._sender.fixed(
                        message, self._deadline(), key=key, queue=queue
                    )
            except SprocketError as error:
                self._errors[place] = error
            else:
                groups.setdefault((message.topic, fixed), []).append((place, message))
        async with asyncio.TaskGroup() as tasks:
            for (_, fixed), group in groups.items():
                now_ms = self._session.world.clock.now_ms()
                requests = parcels(group, self._session.ids, now_ms, self._config, self._config)
                for _ in range(_AHEAD if fixed is None else 1):
                    tasks.create_task(self._work(requests, fixed))
        if self._errors:
            raise SomeNotSent(self._sent, self._errors)
        return [sent for _, sent in sorted(self._sent.items())]

    async def _work(self, requests: Iterator[Parcel | Refused], fixed: QueueId | None) -> None:
        for request in requests:
            if isinstance(request, Refused):
                self._errors[request.place] = request.error
            else:
                await self._send_parcel(request, fixed)

    async def _send_parcel(self, parcel: Parcel, fixed: QueueId | None) -> None:
        places = [place for place, _ in parcel.messages]
        try:
            sent = await self._sender.send(parcel.envelope, self._deadline(), fixed)
        except ReplyError as error:
            if len(places) == 1 or error.code not in _BATCH_REFUSED:
                self._errors.update(dict.fromkeys(places, error))
                return
        except SprocketError as error:
            self._errors.update(dict.fromkeys(places, error))
            return
        else:
            self._sent.update(zip(places, sent, strict=True))
            return
        # Nothing of the batch is stored: by itself, each message gets an answer of its own.
        now_ms = self._session.world.clock.now_ms()
        for place, message in parcel.messages:
            envelope = seal(message, self._session.ids, now_ms, self._config)
            await self._send_parcel(Parcel(envelope, [(place, message)]), fixed)
