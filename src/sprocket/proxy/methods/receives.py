"""ReceiveMessage: pops messages at a broker and streams them to the client.

A receive waits at the broker as long as the client asks for. If the client is gone meanwhile, the
wait ends; what was popped for it nevertheless becomes visible again at once.
Source: ReceiveMessageActivity, ReceiveMessageResponseStreamWriter, PopMessageResultFilterImpl of
RocketMQ 5.3 (module proxy).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable

from sprocket.base.deadline import Deadline
from sprocket.base.errors import SprocketError, SubscriptionInvalid, TransportError
from sprocket.base.ports import Clock
from sprocket.protocol.bodies import GroupConfig
from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.command import Command
from sprocket.protocol.requests.lite import PopLite
from sprocket.protocol.requests.pop import PopMessage
from sprocket.proxy.brokers.brokers import Brokers, KnownTopic
from sprocket.proxy.brokers.popped_replies import PoppedOne
from sprocket.proxy.brokers.receipts import Receipts
from sprocket.proxy.clients.renewals import KeptMessage, Renewals
from sprocket.proxy.clients.served_clients import CLIENT_ID, ServedClient, ServedClients, id_in
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.http2.calls import GrpcCall
from sprocket.proxy.messages import checks
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.client_settings import attempts_max
from sprocket.proxy.messages.delivered_messages import fill_message, opening_of_answer
from sprocket.proxy.messages.statuses import CallRefused, status
from sprocket.proxy.messages.times import ms_of
from sprocket.proxy.methods.answering import read, status_of
from sprocket.proxy.methods.call_guard import CallGuard
from sprocket.proxy.methods.wishes import Wish, filter_of, popped_of

logger = logging.getLogger(__name__)

_VERSION = "x-mq-client-version"
#: The first version of clients that knows the code for a time to wait that is too short.
_KNOWS_POLLING_TIME = "5.0.3"
#: Messages of one receive at most. Source: ProxyUtils.
COUNT_MAX = 32
#: Where a group that is new in a topic begins: at its end.
_FROM_LAST = 1
_ATTEMPT_LENGTH_MAX = 256
_EMPTY_CODES = (ResponseCode.POLLING_TIMEOUT, ResponseCode.PULL_NOT_FOUND)


class ReceiveMethods:
    """Answers receives."""

    def __init__(
        self,
        brokers: Brokers,
        clients: ServedClients,
        receipts: Receipts,
        renewals: Renewals,
        config: ProxyConfig,
        *,
        clock: Clock,
        guard: CallGuard | None = None,
    ) -> None:
        self._guard = guard
        self._brokers = brokers
        self._clients = clients
        self._receipts = receipts
        self._renewals = renewals
        self._config = config
        self._clock = clock
        #: The tasks of receives that wait at a broker.
        self._waiting: set[asyncio.Task[object]] = set()
        self._is_stopped = False
        self._turn = 0
        self._tasks: set[asyncio.Future[None]] = set()
        #: They wait for pops whose clients are gone.
        self._abandoned: set[asyncio.Future[None]] = set()

    async def receive(self, call: GrpcCall) -> None:
        """Streams messages, or says that there are none, and when that was."""
        data = await call.receive()
        if data is None:
            return
        request = read(pb.ReceiveMessageRequest, data)
        try:
            if self._guard is not None:
                await self._guard.admit(call, request)
            id_in(call.metadata)
        except SprocketError as error:
            self._send_status(call, status_of(call, error))
            return
        try:
            found = await self._received(call, request)
        except Exception as error:  # every error becomes a status
            self._send_status(call, status_of(call, error))
        else:
            if found is None:
                self._send_status(call, status(pb.MESSAGE_NOT_FOUND, "no new message"))
            else:
                await self._send_all(call, *found)
        now_ms = self._clock.now_ms()
        last = pb.ReceiveMessageResponse()
        last.delivery_timestamp.seconds = now_ms // 1000
        last.delivery_timestamp.nanos = now_ms % 1000 * 1_000_000
        call.send(last.SerializeToString())

    def _send_status(self, call: GrpcCall, sent: pb.Status) -> None:
        call.send(pb.ReceiveMessageResponse(status=sent).SerializeToString())

    async def _received(
        self, call: GrpcCall, request: pb.ReceiveMessageRequest
    ) -> tuple[Wish, list[PoppedOne]] | None:
        hold_ms = self._hold_ms(call, request)
        wish = await self._wish(call, request, hold_ms)
        if len(self._waiting) + len(self._abandoned) >= self._config.receives_max:
            raise CallRefused(pb.TOO_MANY_REQUESTS, "polling full")
        if wish.kept_by is not None and self._renewals.is_full(wish.kept_by.client_id):
            raise CallRefused(pb.TOO_MANY_REQUESTS, "too many messages are kept invisible")
        reply = await self._popped(wish, hold_ms)
        if reply is None:
            return None
        if reply.code in _EMPTY_CODES:
            return None
        if reply.code == ResponseCode.POLLING_FULL:
            raise CallRefused(pb.TOO_MANY_REQUESTS, "polling full")
        if reply.code == ResponseCode.SERVICE_NOT_AVAILABLE:  # another one may be the master
            self._brokers.failed(wish.topic, wish.broker)
        if reply.code == ResponseCode.TOPIC_NOT_EXIST:
            self._brokers.lost(wish.topic)
        if reply.code == SubscriptionInvalid.code:
            raise CallRefused(pb.ILLEGAL_FILTER_EXPRESSION, reply.remark or "")
        return wish, self._sorted_out(wish, popped_of(reply.checked(), wish))

    async def _popped(self, wish: Wish, hold_ms: int) -> Command | None:
        """The broker's reply to the pop; None if the proxy stops before it is there."""
        task = asyncio.current_task()
        assert task is not None
        if self._is_stopped:
            return None
        self._waiting.add(task)
        try:
            return await self._reply(wish, hold_ms)
        except asyncio.CancelledError:
            if not self._is_stopped or task.uncancel():
                raise
            return None
        finally:
            self._waiting.discard(task)

    # A request to a broker elsewhere cannot be taken back. If its client is gone, the reply is
    # waited for, and its messages are given back.
    async def _reply(self, wish: Wish, hold_ms: int) -> Command:
        deadline = Deadline.after_ms(hold_ms + self._config.call_timeout_ms)
        client = wish.kept_by
        outcome = self._brokers.call(
            wish.address,
            wish.header,
            deadline=deadline,
            peer=None if client is None else client.peer,
            is_held=True,
        )
        if isinstance(outcome, Command):
            return outcome
        if self._brokers.is_inner(wish.address):
            return await outcome
        task = asyncio.ensure_future(outcome)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._start(self._abandon(wish, task), self._abandoned)
            raise
        except TransportError:
            self._brokers.failed(wish.topic, wish.broker)
            raise

    def _hold_ms(self, call: GrpcCall, request: pb.ReceiveMessageRequest) -> int:
        """For how long the receive may wait.

        Raises:
            CallRefused: the client's own deadline leaves too little time.
        """
        least, most = self._config.hold_ms_min, self._config.hold_ms_max
        left_ms = most if call.deadline.is_never else int(call.deadline.left() * 1000)
        if request.HasField("long_polling_timeout"):
            asked_ms = ms_of(request.long_polling_timeout)
        else:
            client = self._clients.find(call.metadata[CLIENT_ID])
            usual = pb.Settings() if client is None else client.settings
            asked_ms = left_ms - ms_of(usual.request_timeout) // 2
        hold_ms = max(least, min(asked_ms, most))
        if hold_ms <= left_ms:
            return hold_ms
        if left_ms >= least:
            return left_ms
        is_old = call.metadata.get(_VERSION, "") < _KNOWS_POLLING_TIME
        raise CallRefused(
            pb.BAD_REQUEST if is_old else pb.ILLEGAL_POLLING_TIME,
            "The deadline time remaining is not enough for polling, please check network condition",
        )

    async def _wish(self, call: GrpcCall, request: pb.ReceiveMessageRequest, hold_ms: int) -> Wish:
        topic = checks.topic_name(request.message_queue.topic)
        group = checks.group_name(request.group)
        invisible_ms, kept_by = self._invisible(call, request)
        kind, expression, tags = filter_of(request.filter_expression)
        config = await self._brokers.group(group, topic)
        known = self._brokers.topics.known(topic) or await self._brokers.topic(topic)
        broker = self._broker(known, request.message_queue.broker.name)
        client = self._clients.find(call.metadata[CLIENT_ID])
        header: PopMessage | PopLite
        if client is not None and client.consumes_lite:
            header = PopLite(
                client_id=client.client_id,
                consumer_group=group,
                topic=topic,
                max_msg_num=min(request.batch_size, COUNT_MAX),
                invisible_time=invisible_ms,
                poll_time=hold_ms,
                born_time=self._clock.now_ms(),
                attempt_id=request.attempt_id[:_ATTEMPT_LENGTH_MAX] or None,
            )
            return Wish(
                group, topic, broker, known.masters[broker], header, tags, kept_by,
                attempts_max(config or GroupConfig()),
            )  # fmt: skip
        is_fifo = self._is_fifo(call, config)
        header = PopMessage(
            consumer_group=group,
            topic=topic,
            queue_id=-1,
            max_msg_nums=min(request.batch_size, COUNT_MAX),
            invisible_time=invisible_ms,
            poll_time=hold_ms,
            born_time=self._clock.now_ms(),
            init_mode=_FROM_LAST,
            exp_type=kind,
            exp=expression,
            order=is_fifo,
            attempt_id=request.attempt_id[:_ATTEMPT_LENGTH_MAX] or None,
            bname=broker,
        )
        return Wish(
            group, topic, broker, known.masters[broker], header, tags, kept_by,
            attempts_max(config or GroupConfig()),
        )  # fmt: skip

    def _invisible(
        self, call: GrpcCall, request: pb.ReceiveMessageRequest
    ) -> tuple[int, ServedClient | None]:
        """How long messages stay invisible at first, and the client that keeps them so."""
        asked_ms = ms_of(request.invisible_duration)
        config = self._config
        if config.renew and request.auto_renew:
            client = self._clients.find(call.metadata[CLIENT_ID])
            return config.renewed_invisible_ms, client
        checks.check_invisible(asked_ms, config.invisible_ms_min, config.invisible_ms_max)
        return asked_ms, None

    def _is_fifo(self, call: GrpcCall, config: GroupConfig | None) -> bool:
        if config is not None:
            return config.consume_message_orderly
        client = self._clients.find(call.metadata[CLIENT_ID])
        return client is not None and client.settings.subscription.fifo

    def _broker(self, topic: KnownTopic, asked: str) -> str:
        if asked in topic.readable:
            return asked
        if not topic.readable:
            raise CallRefused(pb.FORBIDDEN, "no readable queue")
        self._turn += 1
        return topic.readable[self._turn % len(topic.readable)]

    # Brokers compare hashes of tags only, and RocketMQ's leave dead letters to whoever pops.
    def _sorted_out(self, wish: Wish, found: list[PoppedOne]) -> list[PoppedOne]:
        wanted = []
        for one in found:
            message = one.message
            if wish.tags is not None and (message.tag or "") not in wish.tags.tags:
                self._start(self._ended(wish, one, is_wanted=False))
            elif message.reconsume_times >= wish.attempts_max:
                self._start(self._ended(wish, one, is_wanted=True))
            else:
                wanted.append(one)
        return wanted

    async def _ended(self, wish: Wish, one: PoppedOne, *, is_wanted: bool) -> None:
        try:
            if is_wanted:
                message_id = one.message.message_id or ""
                await self._receipts.give_up(wish.group, wish.topic, one.receipt, message_id)
            else:
                outcome = self._receipts.acknowledge(wish.group, wish.topic, one.receipt)
                if not isinstance(outcome, Command):
                    await outcome
        except SprocketError as error:  # it comes again
            logger.info("a message of group %s is not taken away: %s", wish.group, error)

    async def _send_all(self, call: GrpcCall, wish: Wish, found: list[PoppedOne]) -> None:
        if not found:
            self._send_status(call, status(pb.MESSAGE_NOT_FOUND, "no match message"))
            return
        if call.is_over:
            self._give_back(wish, found)
            return
        self._keep(wish, found)
        try:
            self._send_status(call, status(pb.OK))
            opening, now_ms = opening_of_answer(), self._clock.now_ms()
            for message, receipt in found:
                made = pb.ReceiveMessageResponse()
                fill_message(
                    made.message, message, handle=receipt.encode(), opening=opening, now_ms=now_ms
                )
                made.message.system_properties.invisible_duration.seconds = (
                    receipt.handle.invisible_ms // 1000
                )
                call.send(made.SerializeToString())
                await call.drained()
        except asyncio.CancelledError:
            self._give_back(wish, found)
            raise

    def _keep(self, wish: Wish, found: list[PoppedOne]) -> None:
        client = wish.kept_by
        if client is None or self._clients.find(client.client_id) is None:
            return  # it has left meanwhile, and nobody would end the care for them
        now = asyncio.get_running_loop().time()
        for message, receipt in found:
            self._renewals.keep(
                KeptMessage(
                    client.client_id,
                    wish.group,
                    wish.topic,
                    receipt.encode(),
                    now=now,
                    failures_before=message.reconsume_times,
                )
            )

    def _give_back(self, wish: Wish, found: list[PoppedOne]) -> None:
        self._start(self._given_back(wish, found))

    async def _given_back(self, wish: Wish, found: list[PoppedOne]) -> None:
        for _, receipt in found:
            if wish.kept_by is not None:
                await self._renewals.take(wish.kept_by.client_id, receipt.encode())
            try:
                await self._receipts.hide(
                    wish.group, wish.topic, receipt, self._config.given_back_ms
                )
            except SprocketError as error:  # it comes again after its time
                logger.info("a message of group %s is not given back: %s", wish.group, error)

    async def _abandon(self, wish: Wish, task: asyncio.Task[Command]) -> None:
        try:
            reply = await task
            if reply.code == 0:
                await self._given_back(wish, popped_of(reply, wish))
        except SprocketError as error:
            logger.debug("nobody waits for a pop of group %s that failed: %s", wish.group, error)

    def _start(self, work: Awaitable[None], tasks: set[asyncio.Future[None]] | None = None) -> None:
        kept = self._tasks if tasks is None else tasks
        task = asyncio.ensure_future(work)
        kept.add(task)
        task.add_done_callback(kept.discard)

    def stop(self) -> None:
        """Ends all waits: those receives are answered as if their time were over."""
        self._is_stopped = True
        for task in tuple(self._waiting):
            task.cancel()

    async def close(self, seconds: float) -> None:
        """Waits for what is being given back, so long at most. Pops that still wait at brokers end
        with the connections."""
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=seconds)
        rest = [*self._tasks, *self._abandoned]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
