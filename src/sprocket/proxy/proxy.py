"""A proxy: clients of RocketMQ's gRPC service on one side, brokers on the other.

`http2` is the engine, which knows bytes; `messages` says what they mean; `brokers` is the way to
the brokers, and `clients` knows who is connected. `methods` has the methods of the service, and
this module makes all of these.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import NamedTuple

from sprocket.auth.first_users import signer_in
from sprocket.auth.guard import KnownUsers
from sprocket.base.cancelling import end_all
from sprocket.base.config import check
from sprocket.base.deadline import Deadline
from sprocket.base.errors import ConfigError
from sprocket.base.opened_in_order import OpenedInOrder
from sprocket.base.ports import Clock, Entropy
from sprocket.protocol.command import Command
from sprocket.proxy.brokers.accounts import Accounts, BrokerAccounts, InnerAccounts
from sprocket.proxy.brokers.brokers import Brokers
from sprocket.proxy.brokers.calls import AnswerFirst, BrokerCalls, InnerCalls, PoolCalls
from sprocket.proxy.brokers.popped_replies import ReceiptHandle
from sprocket.proxy.brokers.receipts import Receipts
from sprocket.proxy.clients.commands import ClientCommands
from sprocket.proxy.clients.ended_transactions import EndedTransactions
from sprocket.proxy.clients.presence import Presence
from sprocket.proxy.clients.renewals import Renewals
from sprocket.proxy.clients.served_clients import ServedClient, ServedClients
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.http2.call_form import Method, Streaming
from sprocket.proxy.http2.limits import GrpcLimits
from sprocket.proxy.http2.server import GrpcServer
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.methods.acks import AckMethods
from sprocket.proxy.methods.answering import Answer, unary
from sprocket.proxy.methods.call_guard import CallGuard
from sprocket.proxy.methods.lites import LiteMethods
from sprocket.proxy.methods.receives import ReceiveMethods
from sprocket.proxy.methods.routes import RouteMethods
from sprocket.proxy.methods.sends import SendMethods
from sprocket.proxy.methods.telemetry import TelemetryMethods
from sprocket.proxy.methods.transactions import TransactionMethods
from sprocket.remoting.endpoints import EventualResponse
from sprocket.remoting.inner_peer import InnerPeer
from sprocket.remoting.ip_counts import IpCounts
from sprocket.remoting.limits import ConnectionLimits
from sprocket.remoting.pool import Pool
from sprocket.remoting.tls.settings import TlsConfig, checked_settings
from sprocket.remoting.transport import Peer

logger = logging.getLogger(__name__)

#: The path of the service; behind it stands the name of the method.
SERVICE = "/apache.rocketmq.v2.MessagingService/"
#: How long messages may take to be given back at the end, s.
_GIVE_BACK_SECONDS = 3.0
#: Requests of one connection to a broker that may wait: receives wait there.
_CALLS_MAX = 1 << 16


class InnerBroker(NamedTuple):
    """A broker in the same process.

    Attributes:
        answer: its answers to requests.
        address: under which the name servers have it.
        accounts: returns its users and policies; None while it opens.
        ips: counts its connections by IP address; those of the proxy count with them.
    """

    answer: AnswerFirst
    address: str
    accounts: Callable[[], KnownUsers | None] = lambda: None
    ips: IpCounts | None = None


class Proxy(OpenedInOrder):
    """A proxy. Use it with `async with`: inside, it serves.

    Args:
        config: its settings; with at least one name server.
        clock, entropy: the ports to the machine.
        inner: a broker in the same process, which is asked without a connection.
        tls: whether and how it speaks TLS.
        own_id: how brokers elsewhere know the proxy; drawn if it is empty.
        is_shared: whether other processes listen at the same port.

    Attributes:
        methods: what clients may call, by path; while it serves.

    Raises:
        ConfigError: a setting is invalid.
    """

    def __init__(
        self,
        config: ProxyConfig,
        *,
        clock: Clock,
        entropy: Entropy,
        inner: InnerBroker | None = None,
        tls: TlsConfig | None = None,
        own_id: str = "",
        is_shared: bool = False,
    ) -> None:
        check(config)
        if not config.nameservers:
            raise ConfigError("a proxy needs name servers, which know the brokers")
        self._config = config
        self._clock = clock
        self._entropy = entropy
        self._inner = inner
        self._tls = checked_settings(tls)
        self._own_id = own_id or f"proxy@{entropy.token(6).hex()}"
        self._is_shared = is_shared

    @property
    def address(self) -> str:
        """`host:port` at which it listens."""
        return self._server.address

    @property
    def is_inside(self) -> bool:
        """Whether it is in the process of a broker."""
        return self._inner is not None

    @property
    def clients(self) -> ServedClients:
        """The clients that it knows."""
        return self._clients

    async def _open(self, opened: AsyncExitStack) -> None:
        """Starts to listen.

        Raises:
            UsageError: the address is in use, or not one of this machine.
            ConfigError: a certificate or key cannot be used.
        """
        self._make()
        await opened.enter_async_context(self._pool)
        await opened.enter_async_context(self._server)
        self._tasks = [
            asyncio.ensure_future(work)
            for work in (self._clients.watch(), self._presence.run(), self._renewals.run())
        ]
        opened.push_async_callback(self._finish)
        logger.info("a proxy serves at %s", self.address)

    def _make(self) -> None:
        config, clock = self._config, self._clock
        self._ended = EndedTransactions()
        self._commands = ClientCommands(self._ended, clock, self._entropy)
        self._pool = Pool(
            endpoint=self._asked_by_broker,
            entropy=self._entropy,
            limits=ConnectionLimits(calls_max=_CALLS_MAX),
            tls=self._tls.outgoing_tls(),
            signer=signer_in(config.inner_keys),
        )
        inner = None if self._inner is None else self._inner.address
        self._brokers = brokers = Brokers(
            self._calls(), self._pool, config.nameservers, config, inner=inner
        )
        self._guard = self._new_guard()
        receipts = Receipts(brokers, clock)
        self._clients = clients = ServedClients(
            clients_max=config.clients_max,
            connection_max=config.connection_clients_max,
            settings_bytes_max=config.settings_bytes_max,
            expiry_seconds=config.client_expiry_ms / 1000,
            receive=self._asked_inside,
            on_gone=self._gone,
        )
        self._lites = LiteMethods(brokers, clients, config)
        self._presence = Presence(brokers, clients, self._own_id, inner=inner)

        async def change(group: str, topic: str, handle: str, milliseconds: int) -> str:
            changed = await receipts.hide(group, topic, ReceiptHandle.parse(handle), milliseconds)
            return changed.encode()

        self._renewals = Renewals(config, change=change, group_of=brokers.group)
        self._receives = ReceiveMethods(
            brokers, clients, receipts, self._renewals, config, clock=clock, guard=self._guard
        )
        self.methods = self._methods(receipts)
        self._server = GrpcServer(
            self.methods,
            host=config.host,
            port=config.port,
            limits=GrpcLimits(message_bytes_max=config.request_bytes_max),
            tls=self._tls,
            is_shared=self._is_shared,
            ips=None if self._inner is None else self._inner.ips,
        )

    def _calls(self) -> BrokerCalls:
        calls = PoolCalls(self._pool)
        if self._inner is None:
            return calls
        address = self._inner.address
        return InnerCalls(self._inner.answer, address, calls, own=InnerPeer(address))

    def _new_guard(self) -> CallGuard | None:
        """What checks who calls; None if everybody may."""
        config = self._config
        if not config.authentication:
            return None
        accounts: Accounts
        if self._inner is not None:
            accounts = InnerAccounts(self._inner.accounts)
        else:
            accounts = BrokerAccounts(
                self._brokers,
                fresh_seconds=config.user_refresh_seconds,
                users_max=config.users_max,
            )
        return CallGuard(accounts, authorizes=config.authorization)

    def _methods(self, receipts: Receipts) -> Mapping[str, Method]:
        brokers, clients, config = self._brokers, self._clients, self._config
        sends = SendMethods(brokers, clients, config, clock=self._clock, entropy=self._entropy)
        acks = AckMethods(receipts, self._renewals, config)
        routes = RouteMethods(brokers)
        transactions = TransactionMethods(brokers, self._ended, config)
        self._telemetry = telemetry = TelemetryMethods(
            brokers, clients, self._presence, self._commands, config, clock=self._clock,
            guard=self._guard,
        )  # fmt: skip
        unaries: dict[str, Answer] = {
            "QueryRoute": routes.route,
            "QueryAssignment": routes.assignment,
            "Heartbeat": telemetry.heartbeat,
            "NotifyClientTermination": telemetry.terminate,
            "SendMessage": sends.send,
            "RecallMessage": sends.recall,
            "EndTransaction": transactions.end,
            "AckMessage": acks.ack,
            "ChangeInvisibleDuration": acks.change,
            "ForwardMessageToDeadLetterQueue": acks.forward,
            "SyncLiteSubscription": self._lites.sync,
        }
        methods: dict[str, Method] = {
            f"{SERVICE}{name}": unary(
                getattr(pb, f"{name}Request"),
                getattr(pb, f"{name}Response"),
                answer,
                guard=self._guard,
            )
            for name, answer in unaries.items()
        }
        methods[f"{SERVICE}ReceiveMessage"] = Streaming(self._receives.receive)
        methods[f"{SERVICE}Telemetry"] = Streaming(telemetry.telemetry)
        return methods

    def _asked_by_broker(self, command: Command, peer: Peer) -> EventualResponse:
        broker = self._brokers.name_at(peer.address)
        return self._commands.answer(command, self._clients, broker=broker)

    def _asked_inside(self, client: ServedClient, command: Command) -> EventualResponse:
        broker = None if self._inner is None else self._brokers.name_at(self._inner.address)
        return self._commands.answer(command, self._clients, broker=broker, client=client)

    def _gone(self, client: ServedClient) -> None:
        self._renewals.give_back(client.client_id)
        self._lites.forget(client)
        self._presence.withdraw(client)

    async def _finish(self) -> None:
        """Lets calls end, and gives back what clients had in hand."""
        self._receives.stop()
        self._telemetry.stop()
        await self._server.drain(Deadline.after_ms(self._config.drain_ms))
        await end_all(self._tasks)
        await self._receives.close(_GIVE_BACK_SECONDS)
        await self._renewals.close(_GIVE_BACK_SECONDS)
        await self._presence.close()
        await self._lites.close(_GIVE_BACK_SECONDS)
        if self._guard is not None:
            await self._guard.close()
        await self._brokers.close()

    async def serve(self) -> None:
        """Never returns."""
        await asyncio.get_running_loop().create_future()
