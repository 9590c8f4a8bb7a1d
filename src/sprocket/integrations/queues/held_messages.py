"""Messages that this process has and that nobody else may get: renewed until they are settled.

A popped message is invisible to others for some time only, so that it comes again when its process
dies. That time is short here, and is made longer while the process lives. So a task may take hours,
and the tasks of a process that was killed are back within half a minute.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from sprocket.base.errors import HandleExpired, SprocketError
from sprocket.client.simple_consumer import SimpleConsumer
from sprocket.message.popped_message import PoppedMessage

logger = logging.getLogger(__name__)

#: A message that is given back is invisible for so long, ms: the shortest time.
_AT_ONCE_MS = 1
#: A message is renewed when less than this part of its invisible time is left.
_RENEWED_BELOW = 0.65
#: How many looks there are in one invisible time.
_LOOKS = 6
#: Renewals that run at the same time.
_AT_ONCE = 32


class HeldMessages:
    """What one group's consumer received and has not settled; used on its event loop.

    Args:
        consumer: a consumer that is started.
        invisible_ms: after this time others get the messages of a process that died.
    """

    def __init__(self, consumer: SimpleConsumer, invisible_ms: int) -> None:
        self._consumer = consumer
        self._invisible_ms = invisible_ms
        self._held: dict[int, PoppedMessage] = {}
        #: Renewals that run, by message: a renewal changes the handle, so settling waits for it.
        self._renewals: dict[int, asyncio.Task[None]] = {}
        self._loop_task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._held)

    def start(self) -> None:
        """Begins to renew."""
        self._loop_task = asyncio.ensure_future(self._renew_all())

    async def close(self) -> None:
        """Gives back what is held, and stops."""
        if self._loop_task is not None:
            self._loop_task.cancel()
            self._loop_task = None
        await self.give_back(list(self._held.values()))

    async def receive(self, count: int, wait_ms: float) -> list[PoppedMessage]:
        """Receives messages, as `SimpleConsumer.receive`, and holds them."""
        messages = await self._consumer.receive(
            count, invisible_ms=self._invisible_ms, wait_ms=wait_ms
        )
        self._held.update((id(message), message) for message in messages)
        return messages

    async def acknowledge(self, messages: Iterable[PoppedMessage]) -> None:
        """Acknowledges messages. What is too late is logged: somebody else may have it by now.

        Raises:
            TransportError, ReplyError: a broker was not reached for the time that acknowledgements
                are repeated, or refused. The messages come again.
        """
        listed = await self._released(messages)
        if not listed:
            return
        try:
            await self._consumer.ack(listed)
        except HandleExpired as error:
            logger.warning(
                "%d messages of %s were done too late, so others get them again: %s",
                len(error.messages),
                listed[0].topic,
                error,
            )

    async def give_back(self, messages: Iterable[PoppedMessage]) -> None:
        """Has the group get messages again at once; this counts as one more delivery."""
        for message in await self._released(messages):
            try:
                await self._consumer.change_invisible_time(message, _AT_ONCE_MS)
            except SprocketError as error:  # it comes again after its time
                logger.debug("message %s is not given back: %s", message.message_id, error)

    async def bury(self, message: PoppedMessage) -> None:
        """Makes a message a dead letter of the group.

        Raises:
            TransportError, ReplyError: the broker was not reached, or refused.
        """
        for each in await self._released([message]):
            try:
                await self._consumer.forward_to_dead_letters(each)
            except HandleExpired as error:
                logger.warning("message %s is a dead letter, and may come again: %s",
                               each.message_id, error)  # fmt: skip

    async def _released(self, messages: Iterable[PoppedMessage]) -> list[PoppedMessage]:
        """Those that are held, now no more, with handles that count."""
        found = [each for each in messages if self._held.pop(id(each), None) is not None]
        renewals = [self._renewals[id(each)] for each in found if id(each) in self._renewals]
        if renewals:
            await asyncio.wait(renewals)
        return found

    async def _renew_all(self) -> None:
        seconds = self._invisible_ms / 1000
        while True:
            await asyncio.sleep(seconds / _LOOKS)
            late = asyncio.get_running_loop().time() + seconds * _RENEWED_BELOW
            due = [each for each in self._held.values() if each.invisible_until < late]
            for at in range(0, len(due), _AT_ONCE):
                tasks = []
                for message in due[at : at + _AT_ONCE]:
                    if id(message) in self._held:  # it was not settled meanwhile
                        task = asyncio.ensure_future(self._renew(message))
                        self._renewals[id(message)] = task
                        tasks.append(task)
                if tasks:
                    await asyncio.wait(tasks)

    async def _renew(self, message: PoppedMessage) -> None:
        try:
            await self._consumer.change_invisible_time(message, self._invisible_ms)
        except HandleExpired as error:
            self._held.pop(id(message), None)
            logger.warning("message %s of %s was delivered again while it is worked on: %s",
                           message.message_id, message.topic, error)  # fmt: skip
        except SprocketError as error:  # it is tried again with the next look
            logger.debug("message %s is not renewed: %s", message.message_id, error)
        finally:
            self._renewals.pop(id(message), None)
