"""The clients of a proxy, by their ids.

A client is known by the settings that it sends over a stream, its telemetry, through which the
proxy sends commands to it. It is gone when it says so, when it sends no heartbeat for long, or soon
after its stream has ended and no other one came.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import NamedTuple, Protocol

from sprocket.protocol.codes import version_number
from sprocket.protocol.command import Command
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.client_settings import LITE_CONSUMERS
from sprocket.proxy.messages.statuses import CallRefused
from sprocket.remoting.endpoints import EventualResponse
from sprocket.remoting.inner_peer import InnerPeer

logger = logging.getLogger(__name__)

#: A client whose stream has ended is gone after so many seconds without a sign of life. Clients
#: send heartbeats each 10 s, and open their streams again within some.
GRACE_SECONDS = 15.0
SCAN_SECONDS = 5.0
#: Clients that are looked at in one turn of the loop.
_AT_ONCE = 128
#: The longest id of a client, in characters.
ID_LENGTH_MAX = 512

CLIENT_ID = "x-mq-client-id"
_LANGUAGE = "x-mq-language"
_VERSION = "x-mq-client-version"


class GroupKey(NamedTuple):
    """A group that a client is in; a producer is in one for each of its topics."""

    is_consumer: bool
    name: str


class CommandStream(Protocol):
    """Takes encoded commands to a client."""

    def send(self, message: bytes) -> None: ...


class ServedClient:
    """A client.

    Args:
        receive: answers what a broker in the same process asks of the client.

    Attributes:
        settings: as it sent them.
        changed_ms: when it last sent other ones, ms since 1970 UTC.
        revision: another number after each change, and for each client; 0 without settings.
        groups: what it is in.
        stream: its telemetry; None while it has none.
        owner: the user whose keys it has; empty at an open proxy.
        peer: stands for it at a broker in the same process.
        heard: when it last gave a sign of life, in seconds on the loop's clock.
    """

    def __init__(
        self,
        client_id: str,
        *,
        language: str,
        version: str,
        address: str,
        owner: str,
        receive: Callable[[ServedClient, Command], EventualResponse],
    ) -> None:
        self.client_id = client_id
        self.owner = owner
        self.language = language
        self.version = version
        self.settings = pb.Settings()
        self.settings_bytes = 0
        self.changed_ms = 0
        self.revision = 0
        self.groups: frozenset[GroupKey] = frozenset()
        self.stream: CommandStream | None = None
        self.peer = InnerPeer(
            address,
            lambda command: receive(self, command),
            language=language,
            version=version_number(version),
        )
        self.heard = 0.0

    @property
    def is_consumer(self) -> bool:
        """Whether it is a member of a consumer group."""
        return bool(self.settings.WhichOneof("pub_sub") == "subscription")

    @property
    def consumes_lite(self) -> bool:
        """Whether it consumes lite topics."""
        return self.settings.client_type in LITE_CONSUMERS

    @property
    def group(self) -> str:
        """The consumer group of a consumer."""
        return self.settings.subscription.group.name

    @property
    def topics(self) -> list[str]:
        """The topics of a producer."""
        return [topic.name for topic in self.settings.publishing.topics]

    def accept(self, settings: pb.Settings, now_ms: int, revision: int) -> None:
        """Takes over settings; other ones get the revision."""
        if settings != self.settings or not self.revision:
            self.changed_ms, self.revision = now_ms, revision
        self.settings = settings
        self.settings_bytes = settings.ByteSize()
        if self.is_consumer:
            self.groups = frozenset({GroupKey(True, self.group)})
        else:
            self.groups = frozenset(GroupKey(False, topic) for topic in self.topics)

    def attach(self, stream: CommandStream | None) -> None:
        """Records the stream to it."""
        self.stream = stream

    def hear(self, now: float) -> None:
        """Records a sign of life."""
        self.heard = now

    def send(self, command: pb.TelemetryCommand) -> bool:
        """Sends it a command; returns whether it has a stream."""
        if self.stream is None:
            return False
        self.stream.send(command.SerializeToString())
        return True


class ServedClients:
    """All clients.

    Args:
        clients_max: how many may be known.
        connection_max: how many of them may have come first by one connection.
        settings_bytes_max: how many bytes the settings of all may have.
        expiry_seconds: silence after which a client is gone.
        receive: see `ServedClient`.
        on_gone: called with each client that is gone.
    """

    def __init__(
        self,
        *,
        clients_max: int,
        connection_max: int,
        settings_bytes_max: int,
        expiry_seconds: float,
        receive: Callable[[ServedClient, Command], EventualResponse],
        on_gone: Callable[[ServedClient], None],
    ) -> None:
        self._clients_max = clients_max
        self._connection_max = connection_max
        #: How many clients have come by each connection, by its address with the port.
        self._by_address: dict[str, int] = {}
        self._settings_bytes_max = settings_bytes_max
        self._settings_bytes = 0
        self._expiry_seconds = expiry_seconds
        self._receive = receive
        self._on_gone = on_gone
        self._loop = asyncio.get_running_loop()
        self._clients: dict[str, ServedClient] = {}
        #: The same by group, and those that send by topic; in the order of their turns.
        self._in_group: dict[GroupKey, dict[str, ServedClient]] = {}
        self._revisions = count(1)

    def __len__(self) -> int:
        return len(self._clients)

    def __iter__(self) -> Iterator[ServedClient]:
        return iter(tuple(self._clients.values()))

    def find(self, client_id: str) -> ServedClient | None:
        """A client, if it is known."""
        return self._clients.get(client_id)

    def find_own(self, client_id: str, owner: str) -> ServedClient | None:
        """A client of a user, if it is known.

        Raises:
            CallRefused: it is another user's.
        """
        client = self._clients.get(client_id)
        if client is not None and client.owner != owner:
            raise CallRefused(pb.UNAUTHORIZED, "the client id is one of another user's client")
        return client

    def known(self, metadata: Mapping[str, str], address: str, owner: str) -> ServedClient:
        """The client of a call; a new one if it is unknown.

        Raises:
            CallRefused: there are too many clients, or it is another user's.
        """
        client_id = id_in(metadata)
        client = self.find_own(client_id, owner)
        if client is None:
            if len(self._clients) >= self._clients_max:
                text = f"the proxy knows {len(self._clients)} clients, its limit"
                raise CallRefused(pb.TOO_MANY_REQUESTS, text)
            of_address = self._by_address.get(address, 0)
            if of_address >= self._connection_max:
                text = f"{of_address} clients have come by this connection, the limit"
                raise CallRefused(pb.TOO_MANY_REQUESTS, text)
            self._by_address[address] = of_address + 1
            client = self._clients[client_id] = ServedClient(
                client_id,
                language=metadata.get(_LANGUAGE, "")[:32].upper(),
                version=metadata.get(_VERSION, "")[:64],
                address=address,
                owner=owner,
                receive=self._receive,
            )
        client.hear(self._loop.time())
        return client

    def accept(self, client: ServedClient, given: pb.Settings, now_ms: int) -> None:
        """Takes over what is needed of a client's settings.

        Raises:
            CallRefused: those of all clients have too many bytes.
        """
        kept = pb.Settings(client_type=given.client_type)
        kept.request_timeout.CopyFrom(given.request_timeout)
        if given.HasField("subscription"):
            kept.subscription.CopyFrom(given.subscription)
        else:
            kept.publishing.CopyFrom(given.publishing)
        more = kept.ByteSize() - client.settings_bytes
        if self._settings_bytes + more > self._settings_bytes_max:
            if not client.settings_bytes:
                self.forget(client)
            text = "the settings of all clients have too many bytes"
            raise CallRefused(pb.TOO_MANY_REQUESTS, text)
        self._settings_bytes += more
        before = client.groups
        client.accept(kept, now_ms, next(self._revisions))
        for key in before - client.groups:
            self._leave(key, client)
        for key in client.groups:
            self._in_group.setdefault(key, {})[client.client_id] = client

    def _leave(self, key: GroupKey, client: ServedClient) -> None:
        members = self._in_group.get(key, {})
        members.pop(client.client_id, None)
        if not members:
            self._in_group.pop(key, None)

    def heard(self, client: ServedClient) -> None:
        """Records a sign of life."""
        client.hear(self._loop.time())

    def forget(self, client: ServedClient) -> None:
        """Removes a client: it is gone."""
        if self._clients.get(client.client_id) is client:
            del self._clients[client.client_id]
            self._settings_bytes -= client.settings_bytes
            self._left(client.peer.address)
            for key in client.groups:
                self._leave(key, client)
            self._on_gone(client)
            client.peer.close()

    def _left(self, address: str) -> None:
        rest = self._by_address.pop(address, 0) - 1
        if rest > 0:
            self._by_address[address] = rest

    # A broker that asks about a thousand transactions must not cost a search of all clients each.
    def next_producer(self, topic: str) -> ServedClient | None:
        """A producer of a topic that can be sent commands: each in turn."""
        return self._next(GroupKey(False, topic))

    def next_consumer(self, group: str) -> ServedClient | None:
        """A member of a group that can be sent commands: each in turn."""
        return self._next(GroupKey(True, group))

    def _next(self, key: GroupKey) -> ServedClient | None:
        members = self._in_group.get(key, {})
        for _ in range(len(members)):
            name = next(iter(members))
            client = members[name] = members.pop(name)
            if client.stream is not None:
                return client
        return None

    async def drop_silent(self) -> None:
        """Removes the clients that are gone without a word; if they are many, in several turns."""
        for place, client in enumerate(self, 1):
            if place % _AT_ONCE == 0:
                await asyncio.sleep(0)
            silence = self._loop.time() - client.heard
            if silence > self._expiry_seconds or (
                client.stream is None and silence > GRACE_SECONDS
            ):
                logger.info("client %s is gone: it is silent", client.client_id)
                self.forget(client)

    async def watch(self) -> None:
        """Removes silent clients, until cancelled."""
        while True:
            await asyncio.sleep(SCAN_SECONDS)
            await self.drop_silent()


def id_in(metadata: Mapping[str, str]) -> str:
    """The id of the client of a call.

    Raises:
        CallRefused: it has none, or too long a one.
    """
    client_id = metadata.get(CLIENT_ID, "")
    if not client_id or client_id.isspace():
        raise CallRefused(pb.CLIENT_ID_REQUIRED, "client id cannot be empty")
    if len(client_id) > ID_LENGTH_MAX:
        raise CallRefused(pb.CLIENT_ID_REQUIRED, f"a client id has at most {ID_LENGTH_MAX} bytes")
    return client_id
