"""What a member of a group asks brokers about popped messages: pops, acknowledgements, changes.

A reply to a pop that its caller does not wait for any more is not lost: its messages become visible
again at once, instead of after their invisible time. Acknowledgements go to the broker's newest
master, so they survive a failover.

Source: MQClientAPIImpl.popMessageAsync, ackMessageAsync, batchAckMessageAsync and
changeInvisibleTimeAsync of RocketMQ 5.3.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Sequence
from typing import NamedTuple

from sprocket.base.deadline import Deadline
from sprocket.base.errors import (
    ConnectFailed,
    HandleExpired,
    RequestNotSupported,
    SprocketError,
    TransportError,
    UsageError,
)
from sprocket.client.base.subscription import Subscription
from sprocket.client.session.session import Session
from sprocket.clientcore.attempts import is_refusal
from sprocket.clientcore.pops import (
    PopAnswer,
    ack_of,
    batch_of,
    change_of,
    changed,
    fits_batch,
    read_pop,
)
from sprocket.filter.choice import Filter
from sprocket.filter.python import PythonFilter
from sprocket.message.popped_message import PoppedMessage
from sprocket.message.properties import UNIQUE_KEY
from sprocket.message.queue import QueueId
from sprocket.protocol.bodies import AckBatchBody
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.pop import AckMessages, InvisibleReply, PopMessage
from sprocket.protocol.requests.send import SendBack

logger = logging.getLogger(__name__)

#: The number that stands for all queues of a topic at a broker.
ALL_QUEUES = -1
#: Where a group without offsets begins, by `Start`. Source: ConsumeInitMode.
INIT_MODES = {"first": 0, "last": 1}
#: A message that is given back is invisible for so long, ms: the shortest time.
_AT_ONCE_MS = 1
#: Messages that are given back at the same time.
_AT_ONCE = 32
#: Acknowledgements in one request at most.
_BATCH_MAX = 1024


class PopWish(NamedTuple):
    """What pops ask for.

    Attributes:
        count_max: messages at most.
        invisible_ms: for how long they are invisible to others.
        hold_ms: how long the broker waits for messages.
        attempt: the attempt id of a pop in order; None for one in no order.
    """

    count_max: int
    invisible_ms: int
    hold_ms: int
    init_mode: int
    attempt: str | None = None


def check_poppable(wanted: Filter) -> None:
    """Raises UsageError for a filter by which brokers do not pop."""
    if isinstance(wanted, PythonFilter):
        raise UsageError("filters in Python work for pulls only; pops take tags or sql")


class PopClient:
    """The requests of one group's member.

    Args:
        timeout_ms: how long one request may take, the hold of a pop excepted.
    """

    def __init__(self, session: Session, group: str, timeout_ms: int) -> None:
        self._session = session
        self.group = group
        self._timeout_ms = timeout_ms
        #: Addresses of brokers that do not know acknowledgements of several messages.
        self._one_by_one: set[str] = set()
        self._strays: set[asyncio.Task[None]] = set()

    async def pop(
        self, queue: QueueId, subscription: Subscription, wish: PopWish
    ) -> list[PoppedMessage]:
        """Asks the master of a broker for messages.

        Args:
            queue: a queue, or with the number -1 all queues of the topic at the broker.

        Raises:
            RequestNotSupported: the broker does not know pops.
            TransportError, ReplyError, RemoteProtocolError: it is away, refuses, or errs.
        """
        asking = asyncio.ensure_future(self._pop(queue, subscription, wish))
        try:
            answer = await asyncio.shield(asking)
        except asyncio.CancelledError:
            asking.add_done_callback(self._return)
            raise
        except RequestNotSupported as error:
            raise RequestNotSupported(
                f"broker {queue.broker} does not know pop consumption, which came with RocketMQ 5: "
                "update it, or take a PushConsumer, LitePullConsumer or PullConsumer, which pull"
            ) from error
        except SprocketError as error:
            if isinstance(error, TransportError) or is_refusal(error):
                self._session.search.suspect(queue.broker, queue.topic)
            raise
        if answer.unwanted:
            self._keep(self._acknowledge_quietly(answer.unwanted))
        if answer.unopened:
            self._keep(self.give_back(answer.unopened))
        return answer.messages

    async def _pop(self, queue: QueueId, subscription: Subscription, wish: PopWish) -> PopAnswer:
        session, wanted = self._session, subscription.filter
        address = session.address(queue.broker)
        peer = session.greeted(address) or await session.register(address)
        request = PopMessage(
            consumer_group=self.group,
            topic=queue.topic,
            queue_id=queue.number,
            max_msg_nums=wish.count_max,
            invisible_time=wish.invisible_ms,
            poll_time=wish.hold_ms,
            born_time=session.world.clock.now_ms(),
            init_mode=wish.init_mode,
            exp_type=wanted.kind,
            exp=wanted.expression,
            order=wish.attempt is not None,
            attempt_id=wish.attempt,
            bname=queue.broker,
        )
        deadline = Deadline.after_ms(wish.hold_ms + self._timeout_ms)
        reply = await peer.call(request, deadline=deadline, is_held=wish.hold_ms > 0)
        now = asyncio.get_running_loop().time()
        return read_pop(reply, request, queue.broker, wanted=wanted, now=now)

    async def acknowledge(
        self, messages: Sequence[PoppedMessage], deadline: Deadline
    ) -> list[tuple[PoppedMessage, SprocketError]]:
        """Acknowledges messages, those of one broker together if it knows how.

        Returns:
            The messages that are certainly or probably not acknowledged, with the reasons.
        """
        by_broker: dict[str, list[PoppedMessage]] = {}
        for message in messages:
            by_broker.setdefault(message.handle.broker, []).append(message)
        found = await asyncio.gather(
            *(self._acknowledge(broker, each, deadline) for broker, each in by_broker.items())
        )
        return [failure for failures in found for failure in failures]

    async def _acknowledge(
        self, broker: str, messages: Sequence[PoppedMessage], deadline: Deadline
    ) -> list[tuple[PoppedMessage, SprocketError]]:
        together = [each for each in messages if fits_batch(each)]
        if len(together) < 2 or self._session.routes.address(broker) in self._one_by_one:
            together = []
        chosen = set(map(id, together))
        alone = [each for each in messages if id(each) not in chosen]
        failures = []
        for at in range(0, len(together), _BATCH_MAX):
            batch = together[at : at + _BATCH_MAX]
            try:
                await self._acknowledge_batch(broker, batch, deadline)
            except RequestNotSupported:
                if (address := self._session.routes.address(broker)) is not None:
                    self._one_by_one.add(address)
                alone += batch
            except SprocketError as error:
                failures += [(message, error) for message in batch]
        for at in range(0, len(alone), _BATCH_MAX):
            some = alone[at : at + _BATCH_MAX]
            results = await asyncio.gather(*(self._acknowledge_one(m, deadline) for m in some))
            failures += [(m, error) for m, error in zip(some, results, strict=True) if error]
        now = asyncio.get_running_loop().time()
        failed = {id(message) for message, _ in failures}
        for message in messages:
            if id(message) not in failed and now >= message.invisible_until:
                failures.append((message, HandleExpired("acknowledged after its invisible time")))
        return failures

    async def _acknowledge_batch(
        self, broker: str, messages: Sequence[PoppedMessage], deadline: Deadline
    ) -> None:
        body = batch_of(messages, broker)
        await self._ask(messages[0].queue, broker, AckMessages(), deadline, body=body)

    async def _acknowledge_one(
        self, message: PoppedMessage, deadline: Deadline
    ) -> SprocketError | None:
        try:
            await self._ask(message.queue, message.handle.broker, ack_of(message), deadline)
        except SprocketError as error:
            return error
        return None

    async def hide(self, message: PoppedMessage, invisible_ms: int, deadline: Deadline) -> None:
        """Changes for how long a message is invisible, from now on; its handle is another then.

        Raises:
            HandleExpired: it is visible again already, or the group was reset.
            TransportError, ReplyError: the broker is away or refuses.
        """
        header = change_of(message, invisible_ms)
        reply = await self._ask(
            message.queue, message.handle.broker, header, deadline, is_repeatable=False
        )
        message.handle = changed(message.handle, reply.read(InvisibleReply))
        now = asyncio.get_running_loop().time()
        message.invisible_until = now + invisible_ms / 1000

    async def bury(self, message: PoppedMessage, deadline: Deadline) -> None:
        """Makes a message a dead letter of the group, and acknowledges it.

        Source: `forwardMessageToDeadLetterQueue` of RocketMQ's proxy, which does the same.

        Raises:
            TransportError, ReplyError: the broker is away or refuses.
        """
        header = SendBack(
            offset=message.log_offset,
            group=self.group,
            delay_level=-1,
            origin_msg_id=message.value(UNIQUE_KEY),
            origin_topic=message.stored_topic,
            max_reconsume_times=0,
            bname=message.handle.broker,
        )
        broker = message.handle.broker
        await self._ask(message.queue, broker, header, deadline, is_repeatable=False)
        for _, error in await self.acknowledge([message], deadline):
            raise error

    async def give_back(self, messages: Iterable[PoppedMessage]) -> None:
        """Makes messages visible again at once; those that cannot be reached are after their time.

        Messages in order are given back from the last to the first, so that the first is not given
        out while the others are hidden.
        """
        deadline = Deadline.after_ms(self._timeout_ms)
        listed = sorted(messages, key=lambda each: -each.handle.offset)
        in_order = [each for each in listed if each.handle.is_in_order]
        others = [each for each in listed if not each.handle.is_in_order]
        for message in in_order:
            await self._give_back_one(message, deadline)
        for at in range(0, len(others), _AT_ONCE):
            some = others[at : at + _AT_ONCE]
            await asyncio.gather(*(self._give_back_one(each, deadline) for each in some))

    async def _give_back_one(self, message: PoppedMessage, deadline: Deadline) -> None:
        try:
            await self.hide(message, _AT_ONCE_MS, deadline)
        except SprocketError as error:
            logger.debug("%s at %d: %s", message.queue, message.queue_offset, error)

    async def close(self, deadline: Deadline) -> None:
        """Waits for what is given back now; pops that brokers still hold are not waited for."""
        if self._strays:
            await asyncio.wait(self._strays, timeout=deadline.left())

    async def _acknowledge_quietly(self, messages: Sequence[PoppedMessage]) -> None:
        for message, error in await self.acknowledge(messages, Deadline.after_ms(self._timeout_ms)):
            logger.debug("%s at %d: %s", message.queue, message.queue_offset, error)

    def _return(self, asking: asyncio.Future[PopAnswer]) -> None:
        if not asking.cancelled() and asking.exception() is None:
            answer = asking.result()
            self._keep(self.give_back([*answer.messages, *answer.unopened]))
            self._keep(self._acknowledge_quietly(answer.unwanted))

    def _keep(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._strays.add(task)
        task.add_done_callback(self._strays.discard)

    async def _ask(
        self,
        queue: QueueId,
        broker: str,
        header: Header,
        deadline: Deadline,
        *,
        body: AckBatchBody | None = None,
        is_repeatable: bool = True,
    ) -> Command:
        pool, sent = self._session.pool, b"" if body is None else body.encode()

        async def ask(master: str) -> Command:
            limit = deadline.sooner(self._timeout_ms / 1000)
            return await pool.ask(master, header, body=sent, deadline=limit)

        return await self._session.search.call(
            broker, queue.topic, ask, deadline, is_repeatable=is_repeatable
        )


def no_place(topics: Iterable[str]) -> ConnectFailed:
    """The error when no broker of the subscribed topics has a master that can be asked."""
    return ConnectFailed(f"no broker with {', '.join(sorted(topics))} can be asked now")
