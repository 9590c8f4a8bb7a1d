"""What the clients of one process share: connections, routes, heartbeats and one client id.

Producers and consumers of one event loop with the same name servers and settings join one session;
the last one to leave closes it. After a fork the child gets a session of its own. Two members of
one consumer group never share a session, because brokers identify members by connection and client
id.

A broker registers a client by a heartbeat on the connection that the client uses. So a new
connection carries a heartbeat before it is used for pulls, and after a connection broke the next
heartbeat is sent at once.

Source: MQClientInstance, ClientConfig.buildMQClientId of RocketMQ 5.x.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Awaitable, Callable
from weakref import WeakKeyDictionary

from sprocket.base.backoff import pauses
from sprocket.base.deadline import Deadline
from sprocket.base.errors import ClosedError, ConnectFailed, TransportError, UsageError
from sprocket.client.base.waiting import either
from sprocket.client.base.world import ClientEnvironment, client_id_of
from sprocket.client.config import ClientConfig
from sprocket.client.session.master_search import MasterSearch
from sprocket.client.session.pending_replies import PendingReplies
from sprocket.client.session.reachability import Reachability
from sprocket.client.session.routes import RouteCache
from sprocket.client.session.session_member import SessionMember
from sprocket.client.session.transaction_checks import TransactionChecks, answer_check
from sprocket.message.ids import UniqueIds
from sprocket.message.queue import LOGICAL_PREFIX, QueueId
from sprocket.protocol.bodies import HeartbeatBody, ProducerData
from sprocket.protocol.codes import MASTER, ResponseCode
from sprocket.protocol.command import BINARY, JSON, Command, Reply
from sprocket.protocol.requests.client import Heartbeat, IdsChanged, Unregister
from sprocket.protocol.requests.send import PushReplyMessage
from sprocket.protocol.requests.transaction import CheckTransaction
from sprocket.remoting.pool import Pool
from sprocket.remoting.transport import Peer

logger = logging.getLogger(__name__)

#: Seconds before the first retry of a heartbeat that did not reach all brokers.
_HEARTBEAT_RETRY_FIRST = 1.0


_Key = tuple[int, tuple[str, ...], ClientConfig, ClientEnvironment | None]
#: Open sessions, by loop.
_open: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[_Key, list[Session]]] = WeakKeyDictionary()


class Session:
    """The shared part of clients; `join` returns one, and `leave` gives it up.

    Attributes:
        client_id: the id by which brokers and other members know this client.
        replies: pending replies to request messages.
        ids: makes the unique ids of messages.
        operated: by consumer group, answers the requests of operators to the member.
        checkers: by producer group, answer the transaction checks of brokers.
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
        self._loop = asyncio.get_running_loop()
        self.client_id = client_id_of(config.instance, world, place)
        self.ids = UniqueIds(
            address=world.packed_host, process=world.process, token=entropy.token(4)
        )
        signer = config.signer()
        #: Whether request headers are plain: JSON, and not signed.
        self.is_plain = config.header != "binary" and signer is None
        self.pool = Pool(
            endpoint=self._answer,
            entropy=entropy,
            serialization=BINARY if config.header == "binary" else JSON,
            signer=signer,
            tls=config.tls_of_client(),
        )
        self.reachability = Reachability(asyncio.get_running_loop().time)
        self.routes = RouteCache(
            self.pool,
            nameservers,
            first=entropy.below(len(nameservers)),
            timeout_ms=config.call_timeout_ms,
            reachability=self.reachability,
        )
        self.search = MasterSearch(self.routes, self.pool, entropy)
        self.replies = PendingReplies()
        self._config = config
        self._users = 0
        #: Consumer groups that have, or will have, a member here.
        self._groups: set[str] = set()
        self._producers: Counter[str] = Counter()
        self._consumers: dict[str, SessionMember] = {}
        self.operated: dict[str, Callable[[Command], Reply | Awaitable[Reply] | None]] = {}
        self.checkers: dict[str, list[TransactionChecks]] = {}
        #: By address, the connection on which the broker has received a heartbeat.
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
        """Returns a session for one more client of the running loop.

        Args:
            group: the consumer group that the client will join, if any.
        """
        of_loop = _open.setdefault(asyncio.get_running_loop(), {})
        key: _Key = (os.getpid(), nameservers, config.shared(), world)
        sessions = of_loop.setdefault(key, [])
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

    def check_loop(self) -> None:
        """Raises UsageError in another loop than the client's: a use there may break this one."""
        if asyncio._get_running_loop() is not self._loop:
            raise UsageError(
                "the client belongs to the event loop that it was started in; other threads and "
                "loops use the clients of sprocket.client.blocking"
            )

    async def leave(self, *, group: str = "") -> None:
        """Removes one client; the last one closes the session. Arguments as for `join`."""
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
        await self.search.close()
        await self.routes.close()
        await self.pool.close()

    # Groups.

    def add_producer(self, group: str) -> None:
        """Adds the producer group to the heartbeats."""
        self._producers[group] += 1
        if self._producers[group] == 1:
            self.heartbeat_soon()

    async def remove_producer(self, group: str) -> None:
        """Removes the producer group from the heartbeats, and unregisters it at the brokers."""
        self._producers[group] -= 1
        if not self._producers[group]:
            del self._producers[group]
            await self._send_to_all(Unregister(client_id=self.client_id, producer_group=group))

    def add_consumer(self, member: SessionMember) -> None:
        """Adds the member to the heartbeats."""
        self._consumers[member.group] = member

    async def remove_consumer(self, member: SessionMember) -> None:
        """Removes the member from the heartbeats, and unregisters it at the brokers."""
        if self._consumers.pop(member.group, None) is not None:
            header = Unregister(client_id=self.client_id, consumer_group=member.group)
            await self._send_to_all(header)

    async def _send_to_all(self, header: Unregister) -> None:
        """Sends the request to all brokers that have, or are just getting, a heartbeat of ours."""
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
        """Returns the address of a broker's master.

        Raises:
            ConnectFailed: no route has the broker.
        """
        address = self.routes.address(broker, MASTER)
        if address is None:
            raise ConnectFailed(f"no route has the address of broker {broker!r}")
        return address

    def address_of(self, queue: QueueId) -> str:
        """Returns the address of the master of a queue's broker.

        Raises:
            ConnectFailed: no route has it.
        """
        address = self.routes.address(queue.broker, MASTER)
        return self.address(queue.place) if address is None else address

    def greeted(self, address: str) -> Peer | None:
        """Returns the connection to a broker that has our heartbeat, if it is open."""
        peer = self._greeted.get(address)
        return None if peer is None or peer.is_closed else peer

    async def register(self, address: str) -> Peer:
        """Connects to a broker and sends a heartbeat; returns the connection afterwards.

        Raises:
            SprocketError: the broker cannot be reached, or refuses the heartbeat.
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
        try:
            peer = await self.pool.peer(address, deadline)
            reply = await peer.call(Heartbeat(), body=self._heartbeat(), deadline=deadline)
        except TransportError as error:
            self.reachability.failed(f"broker {address}", error)
            raise
        self.reachability.answered(f"broker {address}")
        self.reachability.registered(self.client_id, address, reply)
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
        known = self.routes.brokers()
        brokers = [name for name, number, each in known if (number, each) == (MASTER, address)]
        for broker in brokers:
            if not broker.startswith(LOGICAL_PREFIX):  # it moves with its broker's route
                self.search.suspect(broker)
        for member in self._consumers.values():
            member.lost(brokers)
        if self._consumers or self.checkers or self.replies.is_awaiting:
            self.heartbeat_soon()

    # Heartbeats and routes.

    def heartbeat_soon(self) -> None:
        """Has the heartbeat loop send to all brokers now instead of at the next interval."""
        self._heartbeat_now.set()

    # The heartbeats go to all brokers at once, each with its own timeout, so that one broker that
    # does not answer cannot make the others drop us. Slaves need a heartbeat only where consumers
    # may pull from them.
    async def heartbeat(self) -> bool:
        """Sends a heartbeat to all brokers; returns whether all of them accepted it.

        Slaves get heartbeats only if there are consumers.
        """
        if not self._producers and not self._consumers:
            return True
        addresses = {
            address
            for _, number, address in self.routes.brokers()
            if self._consumers or number == MASTER
        }
        # Heartbeats that are already on their way may describe us as we were, so new ones start.
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
        usual = self._config.heartbeat_ms / 1000
        retry_pauses = pauses(_HEARTBEAT_RETRY_FIRST, usual)
        while True:
            self._heartbeat_now.clear()
            beat = asyncio.ensure_future(self.heartbeat())
            now = asyncio.ensure_future(self._heartbeat_now.wait())
            try:
                await asyncio.wait([beat, now], return_when=asyncio.FIRST_COMPLETED)
            finally:  # also when the session is closed in between
                now.cancel()
            if not beat.done():  # a silent broker must not keep what is new from the others
                continue
            if beat.result():
                retry_pauses = pauses(_HEARTBEAT_RETRY_FIRST, usual)
            await either(self._heartbeat_now, usual if beat.result() else next(retry_pauses))

    async def _refresh_loop(self) -> None:
        while True:
            await asyncio.sleep(self._config.route_refresh_ms / 1000)
            await self.routes.refresh()

    def _route_changed(self, topic: str) -> None:
        if any(self.greeted(address) is None for _, _, address in self.routes.brokers()):
            self.heartbeat_soon()
        for member in self._consumers.values():
            member.rebalance_soon()

    def _new_master(self, broker: str, former: str) -> None:
        self.search.replaced(former)
        for member in self._consumers.values():
            member.lost([broker])

    def _start(self) -> None:
        self.routes.on_change = self._route_changed
        self.routes.on_new_master = self._new_master
        for work in (self._heartbeat_loop, self._refresh_loop, self.search.watch):
            self._tasks.append(asyncio.ensure_future(_guarded(work)))

    # Requests from brokers.

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


async def _guarded(work: Callable[[], Awaitable[None]]) -> None:
    try:
        await work()
    except Exception:  # root of a task: the error must be logged
        logger.exception("a task of the client ended")
