"""The pull consumer: reads any queues from any offsets, with one request for each call."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Unpack

from sprocket.base.deadline import Deadline
from sprocket.base.errors import (
    ClosedError,
    FilterMissing,
    GroupNotFound,
    UsageError,
)
from sprocket.client.base.arguments import (
    check_count,
    check_offset,
    check_queue,
    chosen,
    milliseconds,
    moment_ms,
    settings,
)
from sprocket.client.base.lifecycle import Lifecycle
from sprocket.client.base.nameservers import nameserver_addresses
from sprocket.client.base.spanned import receives, settles
from sprocket.client.base.world import ClientEnvironment
from sprocket.client.config import PullConfig
from sprocket.client.fetching.filter_upload import upload_filter
from sprocket.client.group.offsets import BrokerOffsets
from sprocket.client.session.session import Session
from sprocket.clientcore.replies import PullAnswer, PullStatus, read_pull
from sprocket.filter.choice import Filter, MessageSelector
from sprocket.message.message import StoredMessage
from sprocket.message.offsets import QueueOffset
from sprocket.message.opening import Opening
from sprocket.message.queue import QueueId
from sprocket.message.topic import check_consumer_group, check_topic
from sprocket.protocol.codes import MASTER
from sprocket.protocol.command import Command
from sprocket.protocol.requests.pull import SUBSCRIPTION, SUSPEND, PullMessage


class Pulled(NamedTuple):
    """The result of a pull.

    Attributes:
        status: see `PullStatus`.
        messages: in order of their offsets; empty unless the status is `FOUND`. It may be empty
            even then, if the broker found equal hashes of tags but the tags differ.
        next_offset: the offset for the next pull.
        min_offset: the offset of the oldest message in the queue.
        max_offset: the offset after its newest message.
    """

    status: PullStatus
    messages: list[StoredMessage]
    next_offset: QueueOffset
    min_offset: QueueOffset
    max_offset: QueueOffset


class PullConsumer(Lifecycle):
    """Reads queues on request; it shares no queues and commits nothing automatically.

    Example::

        import asyncio
        from sprocket import PullConsumer

        async def main():
            async with PullConsumer("audit", nameservers="127.0.0.1:9876") as consumer:
                for queue in await consumer.queues("orders"):
                    offset = await consumer.committed(queue)
                    if offset is None:
                        offset = await consumer.min_offset(queue)
                    while (pulled := await consumer.pull(queue, offset)).messages:
                        for message in pulled.messages:
                            print(message.queue_offset, message.body)
                        offset = pulled.next_offset
                    await consumer.commit(queue, offset)

        asyncio.run(main())

    Args:
        group: the consumer group's name; committed offsets belong to it.
        nameservers: `host:port`, or several, separated by `;` or as a list. None: the environment
            variable SPROCKET_NAMESERVERS, or else NAMESRV_ADDR.
        config: sizes and times.
        world: clock and randomness, for simulations.

    Raises:
        UsageError: the group's name is invalid.
        ConfigError: there is no name server, or an address is invalid.

    Methods raise `UsageError` for invalid arguments, `ClosedError` if the consumer is not started,
    `RouteNotFound` and `TransportError` if a topic or a broker cannot be found or reached, and
    `ReplyError` if a broker refuses.
    """

    def __init__(
        self,
        group: str,
        *,
        nameservers: str | Sequence[str] | None = None,
        config: PullConfig | None = None,
        world: ClientEnvironment | None = None,
    ) -> None:
        check_consumer_group(group)
        self.group = group
        self.config = settings(config, PullConfig)
        self._nameservers = nameserver_addresses(nameservers, os.environ)
        self._world = world
        self._session: Session | None = None

    async def start(self) -> None:
        """Starts the consumer. It connects when needed, so no server has to run yet."""
        if self._session is None:
            self._session = Session.join(self._nameservers, self.config, self._world)

    async def close(self) -> None:
        """Closes the consumer; the last client of the process closes the connections."""
        self._check_loop()
        session, self._session = self._session, None
        if session is not None:
            await session.leave()

    async def queues(self, topic: str) -> list[QueueId]:
        """Fetches and returns the topic's readable queues, sorted by broker name and number."""
        check_topic(topic)
        deadline = Deadline.after_ms(self.config.call_timeout_ms)
        return list((await self._joined().routes.fetch(topic, deadline)).readable)

    @receives
    async def pull(
        self,
        queue: QueueId,
        offset: int,
        *,
        count: int = 32,
        **choice: Unpack[MessageSelector],
    ) -> Pulled:
        """Requests messages from `offset` on; the broker replies at once.

        Args:
            queue: the queue to read.
            offset: the offset of the first message.
            count: how many messages at most; brokers return 32 at most by default.
            choice: which messages: by `tags`, `sql` or `code`, see `MessageSelector`.
        """
        deadline = Deadline.after_ms(self.config.pull_timeout_ms - self.config.hold_ms)
        wanted = chosen(choice)
        return await self._pull(self._request(queue, offset, count), wanted, deadline)

    @receives
    async def pull_blocking(
        self,
        queue: QueueId,
        offset: int,
        *,
        count: int = 32,
        wait_ms: int | None = None,
        **choice: Unpack[MessageSelector],
    ) -> Pulled:
        """As `pull`, but the broker waits for a message if there is none.

        Args:
            wait_ms: how long the broker waits; `config.hold_ms` is the default and the maximum.
        """
        hold_ms = self.config.hold_ms if wait_ms is None else int(milliseconds("wait_ms", wait_ms))
        if hold_ms > self.config.hold_ms:
            raise UsageError(f"wait_ms is 0 to {self.config.hold_ms} (hold_ms), not {wait_ms}")
        request = self._request(queue, offset, count)
        request.sys_flag |= SUSPEND
        request.suspend_timeout_millis = hold_ms
        spare_ms = self.config.pull_timeout_ms - self.config.hold_ms
        deadline = Deadline.after_ms(hold_ms + spare_ms)
        return await self._pull(request, chosen(choice), deadline)

    async def committed(self, queue: QueueId) -> QueueOffset | None:
        """Returns the group's committed offset, the next one to consume; None if it has none."""
        return await (await self._offsets(queue)).committed(queue)

    @settles("commit")
    async def commit(self, queue: QueueId, offset: int) -> None:
        """Commits the offset of the first message that the group has not consumed."""
        check_offset(offset)
        offsets = await self._offsets(queue)
        try:
            await offsets.commit(queue, offset)
        except GroupNotFound:
            await self.pull(queue, offset, count=1)  # creates the group, which a commit does not
            await offsets.commit(queue, offset)

    async def min_offset(self, queue: QueueId) -> QueueOffset:
        """Returns the offset of the oldest message in the queue."""
        return await (await self._offsets(queue)).first(queue)

    async def max_offset(self, queue: QueueId) -> QueueOffset:
        """Returns the offset after the newest message, which the next message will get."""
        return await (await self._offsets(queue)).end(queue)

    async def offset_at(self, queue: QueueId, at: datetime | int) -> QueueOffset:
        """Returns the offset of the first message stored at a time (or ms since 1970) or later.

        If there is none, it is the queue's end; if all messages are newer, its first offset.
        """
        at_ms = moment_ms(at)
        return await (await self._offsets(queue)).at(queue, at_ms)

    def _joined(self) -> Session:
        if self._session is None:
            raise ClosedError("the consumer is not started, or is closed")
        self._session.check_loop()
        return self._session

    async def _offsets(self, queue: QueueId) -> BrokerOffsets:
        session = self._joined()
        check_queue(queue)
        if session.routes.address(queue.place) is None:
            await session.routes.fetch(queue.topic, Deadline.after_ms(self.config.call_timeout_ms))
        return BrokerOffsets(session, self.group, self.config.call_timeout_ms, is_patient=True)

    def _request(self, queue: QueueId, offset: int, count: int) -> PullMessage:
        check_queue(queue)
        check_offset(offset)
        check_count("count", count)
        return PullMessage(
            consumer_group=self.group,
            topic=queue.topic,
            queue_id=queue.number,
            queue_offset=offset,
            max_msg_nums=count,
            sys_flag=SUBSCRIPTION,
            max_msg_bytes=self.config.pull_bytes_max,
            bname=queue.broker,
        )

    async def _pull(self, request: PullMessage, wanted: Filter, deadline: Deadline) -> Pulled:
        session = self._joined()
        request.expression_type, request.subscription = wanted.kind, wanted.expression
        queue = QueueId(request.topic, request.bname or "", request.queue_id)
        await self._offsets(queue)
        is_held = bool(request.sys_flag & SUSPEND)

        async def ask(master: str) -> PullAnswer:
            pool = session.pool
            reply = await pool.call(master, request, deadline=deadline, is_held=is_held)
            if reply.code == FilterMissing.code:
                await self._upload_filter(reply, master, request.topic, wanted)
                reply = await pool.call(master, request, deadline=deadline, is_held=is_held)
            return read_pull(reply)

        where = session.routes.nearest(queue.place, MASTER)
        if where is not None and where[0] != MASTER:
            answer = await ask(where[1])
        else:
            patience = self.config.call_timeout_ms / 1000
            answer = await session.search.call(
                queue.place, request.topic, ask, deadline, patience=patience
            )
        opening = Opening()
        first = request.queue_offset  # a batch begins with messages that were read before
        found = answer.messages(queue, wanted, opening)
        messages = [message for message in found if message.queue_offset >= first]
        return Pulled(
            answer.status,
            messages,
            QueueOffset(answer.after(opening)),
            QueueOffset(answer.min_offset),
            QueueOffset(answer.max_offset),
        )

    async def _upload_filter(
        self, reply: Command, address: str, topic: str, wanted: Filter
    ) -> None:
        session = self._joined()
        deadline = Deadline.after_ms(self.config.call_timeout_ms)
        await upload_filter(
            wanted,
            FilterMissing(reply.remark or ""),
            group=self.group,
            topic=topic,
            now_ms=session.world.clock.now_ms(),
            call=lambda header, body: session.pool.call(
                address, header, body=body, deadline=deadline
            ),
        )
