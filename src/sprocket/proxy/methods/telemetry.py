"""Telemetry, Heartbeat and NotifyClientTermination: who the clients are, and commands to them.

Source: ClientActivity and GrpcClientChannel of RocketMQ 5.3 (module proxy).
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from sprocket.base.errors import SprocketError
from sprocket.base.ports import Clock
from sprocket.protocol.bodies import GroupConfig
from sprocket.proxy.brokers.brokers import Brokers
from sprocket.proxy.clients.commands import ClientCommands
from sprocket.proxy.clients.presence import Presence
from sprocket.proxy.clients.served_clients import ServedClient, ServedClients, id_in
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.http2.calls import GrpcCall
from sprocket.proxy.http2.status import GrpcError, GrpcStatus
from sprocket.proxy.messages import checks
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.client_settings import CONSUMERS, answered_settings
from sprocket.proxy.messages.signatures import signature_in
from sprocket.proxy.messages.statuses import CallRefused, status, status_of_error
from sprocket.proxy.methods.answering import read
from sprocket.proxy.methods.call_guard import CallGuard

logger = logging.getLogger(__name__)

#: Topics or subscriptions of one client at most, and characters of what it says about itself.
_TOPICS_MAX = 4096
_SETTINGS_BYTES_MAX = 1 << 18

_NO_SETTINGS = "cannot find client settings for this client"


class TelemetryMethods:
    """Knows the clients."""

    def __init__(
        self,
        brokers: Brokers,
        clients: ServedClients,
        presence: Presence,
        commands: ClientCommands,
        config: ProxyConfig,
        *,
        clock: Clock,
        guard: CallGuard | None = None,
    ) -> None:
        self._guard = guard
        self._brokers = brokers
        self._clients = clients
        self._presence = presence
        self._commands = commands
        self._config = config
        self._clock = clock
        self._stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def stop(self) -> None:
        """Ends all streams; clients open others, at another proxy if there is one."""
        if not self._stopped.done():
            self._stopped.set_result(None)

    async def _next(self, call: GrpcCall) -> bytes | None:
        """The next message of a client; None after the last one, and when the proxy stops."""
        message = asyncio.ensure_future(call.receive())
        try:
            either: list[asyncio.Future[Any]] = [message, self._stopped]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            return message.result() if message.done() else None
        finally:
            message.cancel()

    async def telemetry(self, call: GrpcCall) -> None:
        """Receives settings and answers them; passes the answers to commands on.

        Raises:
            GrpcError: what the client says of itself cannot be.
        """
        client: ServedClient | None = None
        try:
            id_in(call.metadata)
        except CallRefused as error:
            self._refuse(call, error)
            return
        try:
            while (data := await self._next(call)) is not None:
                command = read(pb.TelemetryCommand, data)
                if self._guard is not None:
                    try:
                        await self._guard.admit(call, command)
                    except SprocketError as error:
                        self._refuse(call, error)
                        return
                kind = command.WhichOneof("command")
                if kind == "settings":
                    client = await self._settings(call, command.settings, len(data))
                elif kind == "thread_stack_trace":
                    self._commands.trace_answered(command.status, command.thread_stack_trace)
                elif kind == "verify_message_result":
                    self._commands.verify_answered(command.status, command.verify_message_result)
        finally:
            if client is not None and client.stream is call:
                client.attach(None)

    def _owner(self, call: GrpcCall) -> str:
        """The user whose keys a client has; the signature is checked before."""
        return "" if self._guard is None else signature_in(call.metadata).user

    def _refuse(self, call: GrpcCall, error: SprocketError) -> None:
        made = pb.TelemetryCommand(status=status_of_error(error))
        call.send(made.SerializeToString())

    async def _settings(self, call: GrpcCall, given: pb.Settings, size: int) -> ServedClient:
        try:
            self._check(given, size)
            client = self._clients.known(call.metadata, call.address, self._owner(call))
            self._clients.accept(client, given, self._clock.now_ms())
            client.attach(call)
            self._presence.announce(client)
            group = None
            if client.is_consumer:
                entries = given.subscription.subscriptions
                topic = entries[0].topic.name if entries else None
                group = await self._group(client.group, topic)
        except SprocketError as error:
            raise _ending(error) from error
        answer = pb.TelemetryCommand(
            status=status(pb.OK), settings=answered_settings(given, self._config, group)
        )
        call.send(answer.SerializeToString())
        return client

    async def _group(self, name: str, topic: str | None) -> GroupConfig | None:
        """A consumer's group; a client can work without knowing it."""
        try:
            return await self._brokers.group(name, topic)
        except SprocketError as error:
            logger.info("the settings of group %s are not known: %s", name, error)
            return None

    def _check(self, given: pb.Settings, size: int) -> None:
        if size > _SETTINGS_BYTES_MAX:
            raise CallRefused(pb.BAD_REQUEST, f"settings have at most {_SETTINGS_BYTES_MAX} bytes")
        kind = given.WhichOneof("pub_sub")
        if given.client_type not in (pb.PRODUCER, *CONSUMERS):
            name = pb.ClientType.Name(given.client_type)
            raise CallRefused(pb.UNRECOGNIZED_CLIENT_TYPE, name)
        if kind == "publishing":
            if len(given.publishing.topics) > _TOPICS_MAX:
                raise CallRefused(pb.BAD_REQUEST, f"a client has at most {_TOPICS_MAX} topics")
            for topic in given.publishing.topics:
                checks.topic_name(topic)
        elif kind == "subscription":
            checks.group_name(given.subscription.group)
            if len(given.subscription.subscriptions) > _TOPICS_MAX:
                raise CallRefused(pb.BAD_REQUEST, f"a client has at most {_TOPICS_MAX} topics")
            for entry in given.subscription.subscriptions:
                checks.check_expression(entry.expression)
        else:
            text = "there is no publishing or subscription data in settings"
            raise CallRefused(pb.BAD_REQUEST, text)

    def heartbeat(self, call: GrpcCall, request: pb.HeartbeatRequest) -> pb.HeartbeatResponse:
        """Shows that a client lives.

        Raises:
            CallRefused: it has sent no settings.
        """
        client = self._clients.find_own(id_in(call.metadata), self._owner(call))
        if client is None:
            raise CallRefused(pb.UNRECOGNIZED_CLIENT_TYPE, _NO_SETTINGS)
        if client.is_consumer:
            checks.group_name(request.group)
        self._clients.heard(client)
        self._presence.announce(client)
        return pb.HeartbeatResponse(status=status(pb.OK))

    def terminate(
        self, call: GrpcCall, request: pb.NotifyClientTerminationRequest
    ) -> pb.NotifyClientTerminationResponse:
        """A client says that it is gone.

        Raises:
            CallRefused: it is unknown.
        """
        client = self._clients.find_own(id_in(call.metadata), self._owner(call))
        if client is None:
            raise CallRefused(pb.UNRECOGNIZED_CLIENT_TYPE, _NO_SETTINGS)
        self._clients.forget(client)
        return pb.NotifyClientTerminationResponse(status=status(pb.OK))


def _ending(error: SprocketError) -> GrpcError:
    """How the stream ends: with the client's fault, or with ours."""
    is_clients = isinstance(error, CallRefused) and error.code < pb.INTERNAL_ERROR
    code = GrpcStatus.INVALID_ARGUMENT if is_clients else GrpcStatus.INTERNAL
    return GrpcError(code, f"process client telemetryCommand failed. {error}")
