"""What the clients of one process share: connections, routes, heartbeats, one client id.

Producers and consumers of one event loop that name the same name servers and settings join one
session; the last to leave closes it. After a fork the child gets a session of its own. Two
members of one consumer group never share one: brokers know members by connection and client id.

A broker learns of us by a heartbeat on the very connection that we use, so a connection that was
made anew is greeted before it is used for pulls, and members whose connection broke tell the
broker again at once instead of at the next beat.

Source: MQClientInstance, ClientConfig.buildMQClientId of RocketMQ 5.x.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Protocol
from weakref import WeakKeyDictionary

from sprocket.base.backoff import pauses
from sprocket.base.deadline import Deadline
from sprocket.base.errors import ClosedError, ConnectFailed
from sprocket.client.base.world import ClientEnvironment
from sprocket.client.config import ClientConfig
from sprocket.client.session.pending_replies import PendingReplies
from sprocket.client.session.routes import RouteCache
from sprocket.client.session.transaction_checks import TransactionChecks, answer_check
from sprocket.message.ids import UniqueIds
from sprocket.protocol.bodies import ConsumerData, HeartbeatBody, ProducerData
from sprocket.protocol.codes import MASTER, ResponseCode
from sprocket.protocol.command import BINARY, JSON, Command, Reply
from sprocket.protocol.requests.client import Heartbeat, IdsChanged, Unregister
from sprocket.protocol.requests.send import PushReplyMessage
from sprocket.protocol.requests.transaction import CheckTransaction
from sprocket.remoting.pool import Pool
from sprocket.remoting.transport import Peer

logger = logging.getLogger(__name__)

#: Seconds before a heartbeat that did not reach everyone is tried again.
_BEAT_AGAIN_FIRST = 1.0


class SessionMember(Protocol):
    """A member of a consumer group, as its session sees it."""

    @property
    def group(self) -> str:
        """The group's name."""
        ...

    def describe(self) -> ConsumerData:
        """What heartbeats say of it."""
        ...

    def lost(self, address: str) -> None:
        """The connection to a broker broke: what it granted may be granted to others now."""
        ...

    def rebalance_soon(self) -> None:
        """Members of the group came or went, or a route changed: queues may be shared anew."""
        ...


_Key = tuple[int, tuple[str, ...], ClientConfig, ClientEnvironment | None]
#: Open sessions, by loop.
_open: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[_Key, list[Session]]] = WeakKeyDictionary()


class Session:
    """Use `join` and `leave`.

    Attributes:
        client_id: as brokers and other members know us.
        replies: those to request messages that are awaited.
        ids: makes unique ids of messages.
        operated: by consumer group, who answers what operators ask of the member.
        checkers: by producer group, who answers what brokers ask about transactions.
    """

    def __init__(
        self,
        nameservers: tuple[str, ...],
        config: ClientConfig,
        world: ClientEnvironment,
        *,
        place: int,
    ) -> None:
        entropy = world.entropy
        self.world = world
        self.client_id = _client_id(config, world, place)
        self.ids = UniqueIds(
            address=world.packed_host, process=world.process, token=entropy.token(4)
        )
        signer = config.signer()
        #: Whether requests have plain headers: JSON, and not signed.
        self.is_plain = config.header != "binary" and signer is None
        self.pool = Pool(
            endpoint=self._answer,
            entropy=entropy,
            serialization=BINARY if config.header == "binary" else JSON,
            signer=signer,
        )
        self.routes = RouteCache(
            self.pool,
            nameservers,
            first=entropy.below(len(nameservers)),
            timeout_ms=config.call_timeout_ms,
        )
        self.replies = PendingReplies()
        self._config = config
        self._users = 0
        #: Consumer groups of which there is, or will be, a member.
        self._groups: set[str] = set()
        self._producers: Counter[str] = Counter()
        self._consumers: dict[str, SessionMember] = {}
        self.operated: dict[str, Callable[[Command], Reply | Awaitable[Reply] | None]] = {}
        self.checkers: dict[str, list[TransactionChecks]] = {}
        #: By address, the connection on which that broker has had our heartbeat.
        self._greeted: dict[str, Peer] = {}
        self._greeting: dict[str, asyncio.Task[Peer]] = {}
        self._heartbeat_now = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    def join(
        cls,
        nameservers: tuple[str, ...],
        config: ClientConfig,
        world: ClientEnvironment | None,
        *,
        group: str = "",
    ) -> Session:
        """A session for one more client of the running loop.

        Args:
            group: the consumer group of which the client will be a member, if any.
        """
        here = _open.setdefault(asyncio.get_running_loop(), {})
        key: _Key = (os.getpid(), nameservers, config.shared(), world)
        sessions = here.setdefault(key, [])
        for session in sessions:
            if group not in session._groups:
                break
        else:
            session = cls(
                nameservers, key[2], world or ClientEnvironment.real(), place=len(sessions)
            )
            sessions.append(session)
            session._start()
        session._users += 1
        if group:
            session._groups.add(group)
        return session

    async def leave(self, *, group: str = "") -> None:
        """One client less; the last one closes the session. Arguments as for `join`."""
        self._users -= 1
        self._groups.discard(group)
        if self._users:
            return
        for sessions in _open.get(asyncio.get_running_loop(), {}).values():
            if self in sessions:
                sessions.remove(self)
        tasks = [*self._tasks, *self._greeting.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.routes.close()
        await self.pool.close()

    # Groups.

    def add_producer(self, group: str) -> None:
        """From now on heartbeats name the producer group."""
        self._producers[group] += 1
        if self._producers[group] == 1:
            self.heartbeat_soon()

    async def remove_producer(self, group: str) -> None:
        """Heartbeats no longer name the group, and brokers are told."""
        self._producers[group] -= 1
        if not self._producers[group]:
            del self._producers[group]
            await self._send_to_all(Unregister(client_id=self.client_id, producer_group=group))

    def add_consumer(self, member: SessionMember) -> None:
        """From now on heartbeats describe the member."""
        self._consumers[member.group] = member

    async def remove_consumer(self, member: SessionMember) -> None:
        """Heartbeats no longer describe the member, and brokers are told."""
        if self._consumers.pop(member.group, None) is not None:
            header = Unregister(client_id=self.client_id, consumer_group=member.group)
            await self._send_to_all(header)

    async def _send_to_all(self, header: Unregister) -> None:
        """Tells all brokers that have heard of us, or are just hearing of us."""
        deadline = Deadline.after_ms(self._config.call_timeout_ms)
        addresses = sorted({*self._greeted, *self._greeting})
        await asyncio.gather(
            *(
                self.pool.ask(address, header, deadline=deadline)
                for address in addresses
                if self.pool.is_connected(address)
            ),
            return_exceptions=True,
        )

    # Brokers.

    def address(self, broker: str) -> str:
        """Where a broker's master is.

        Raises:
            ConnectFailed: no route says so.
        """
        address = self.routes.address(broker, MASTER)
        if address is None:
            raise ConnectFailed(f"no route says where broker {broker!r} is")
        return address

    def greeted(self, address: str) -> Peer | None:
        """The connection to a broker that knows us, if it stands."""
        peer = self._greeted.get(address)
        return None if peer is None or peer.is_closed else peer

    async def register(self, address: str) -> Peer:
        """The connection to a broker, which has our heartbeat when this returns.

        Raises:
            SprocketError: the broker cannot be reached, or refuses.
        """
        task = self._greeting.get(address) or self._start_greeting(address)
        await asyncio.wait([task])
        if task.cancelled():
            raise ClosedError("the client is closed")
        return task.result()

    def _start_greeting(self, address: str) -> asyncio.Task[Peer]:
        task = asyncio.ensure_future(self._register(address))
        task.add_done_callback(lambda done: self._greeted_now(address, done))
        self._greeting[address] = task
        return task

    async def _register(self, address: str) -> Peer:
        deadline = Deadline.after_ms(self._config.call_timeout_ms)
        peer = await self.pool.peer(address, deadline)
        reply = await peer.call(Heartbeat(), body=self._heartbeat(), deadline=deadline)
        if reply.code:
            raise ConnectFailed(f"{address} refused a heartbeat: {reply.remark} ({reply.code})")
        return peer

    def _greeted_now(self, address: str, task: asyncio.Task[Peer]) -> None:
        if self._greeting.get(address) is task:
            del self._greeting[address]
        if task.cancelled() or task.exception() is not None:
            return
        peer = task.result()
        if self._greeted.get(address) is not peer:
            self._greeted[address] = peer
            peer.on_close(lambda _: self._lost(address, peer))

    def _lost(self, address: str, peer: Peer) -> None:
        if self._greeted.get(address) is peer:
            del self._greeted[address]
        for member in self._consumers.values():
            member.lost(address)
        if self._consumers or self.checkers or self.replies.is_awaiting:
            self.heartbeat_soon()

    # Heartbeats and routes.

    def heartbeat_soon(self) -> None:
        """Tells all brokers of us now, and not only at the next beat."""
        self._heartbeat_now.set()

    async def heartbeat(self) -> bool:
        """Tells all brokers of us; whether all of them heard it. Slaves hear of consumers only."""
        if not self._producers and not self._consumers:
            return True
        addresses = {
            address
            for _, number, address in self.routes.brokers()
            if self._consumers or number == MASTER
        }
        # Not those under way: what they say of us may be old.
        results = await asyncio.gather(
            *(self._start_greeting(address) for address in sorted(addresses)),
            return_exceptions=True,
        )
        failures = [result for result in results if isinstance(result, BaseException)]
        for failure in failures:
            logger.debug("heartbeat: %s", failure)
        return not failures

    def _heartbeat(self) -> bytes:
        return HeartbeatBody(
            client_id=self.client_id,
            producers=[ProducerData(group_name=group) for group in sorted(self._producers)],
            consumers=[self._consumers[group].describe() for group in sorted(self._consumers)],
        ).encode()

    async def _heartbeat_loop(self) -> None:
        again = pauses(_BEAT_AGAIN_FIRST, self._config.heartbeat_ms / 1000)
        while True:
            self._heartbeat_now.clear()
            if await self.heartbeat():
                again = pauses(_BEAT_AGAIN_FIRST, self._config.heartbeat_ms / 1000)
                pause = self._config.heartbeat_ms / 1000
            else:
                pause = next(again)
            await either(self._heartbeat_now, pause)

    async def _refresh_loop(self) -> None:
        while True:
            await asyncio.sleep(self._config.route_refresh_ms / 1000)
            await self.routes.refresh()

    def _route_changed(self, topic: str) -> None:
        if any(self.greeted(address) is None for _, _, address in self.routes.brokers()):
            self.heartbeat_soon()
        for member in self._consumers.values():
            member.rebalance_soon()

    def _start(self) -> None:
        self.routes.on_change = self._route_changed
        for work in (self._heartbeat_loop, self._refresh_loop):
            self._tasks.append(asyncio.ensure_future(_guarded(work)))

    # What brokers ask us.

    def _answer(self, command: Command, peer: Peer) -> Reply | Awaitable[Reply] | None:
        if command.code == PushReplyMessage.code:
            return self.replies.receive(command)
        if command.code == IdsChanged.code:
            member = self._consumers.get(command.read(IdsChanged).consumer_group)
            if member is not None:
                member.rebalance_soon()
            return None
        if command.code == CheckTransaction.code:
            answer_check(self.checkers, command, peer)
            return None
        named = command.fields.get("consumerGroup") or command.fields.get("group", "")
        if (operated := self.operated.get(named)) is not None:
            return operated(command)
        return Reply(
            code=ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
            remark=f"request type {command.code} not supported",
        )


def _client_id(config: ClientConfig, world: ClientEnvironment, place: int) -> str:
    """`address@process#random`, or `address@name` where a name was set.

    Two containers may agree in address and process number; the random part keeps them apart.
    """
    if config.instance is None:
        instance = f"{world.process}#{world.entropy.token(6).hex()}"
    else:
        instance = config.instance if not place else f"{config.instance}#{place}"
    return f"{world.host}@{instance}"


async def either(event: asyncio.Event, seconds: float) -> None:
    """Returns when the event is set, or the time is over."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass


async def _guarded(work: Callable[[], Awaitable[None]]) -> None:
    try:
        await work()
    except Exception:  # root of a task: its end must not go unseen
        logger.exception("a task of the client ended")
