"""Operators' requests about connected clients, and requests that the broker passes on to them.

Source: AdminBrokerProcessor, Broker2Client of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Awaitable

from sprocket.base.errors import (
    ConsumerOffline,
    OffsetOutOfRange,
    SystemFailure,
    UsageError,
)
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.members.callbacks import call_client
from sprocket.broker.operate.listings import in_turns, listed, listing
from sprocket.broker.tables.clients import ClientInfo, ClientTable
from sprocket.broker.tables.groups import Groups
from sprocket.broker.tables.topics import Topics
from sprocket.message.ids import parse_offset_id
from sprocket.protocol.bodies import (
    ClientConnection,
    ConsumerConnection,
    ConsumeStatusBody,
    ProducerConnection,
    ProducerInfo,
    ProducerTable,
)
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Buffer, Command, Header, Reply
from sprocket.protocol.requests.client import (
    ConsumeDirectly,
    ConsumerConnections,
    ConsumerRunning,
    ProducerConnections,
)
from sprocket.protocol.requests.offset import ClientConsumeStatus, ConsumeStatus
from sprocket.remoting.transport import Peer
from sprocket.store.store import Store


class ConnectionRequests:
    """Shows the connected clients, and passes requests on to them."""

    def __init__(
        self,
        clients: ClientTable,
        store: Store,
        *,
        topics: Topics,
        groups: Groups,
        broker_name: str,
    ) -> None:
        self._clients = clients
        self._store = store
        self._topics = topics
        self._groups = groups
        self._broker_name = broker_name

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {
            RequestCode.GET_CONSUMER_CONNECTION_LIST: self.consumers,
            RequestCode.GET_PRODUCER_CONNECTION_LIST: self.producers,
            RequestCode.GET_ALL_PRODUCER_INFO: self.every_producer,
            RequestCode.GET_CONSUMER_RUNNING_INFO: self.running,
            RequestCode.CONSUME_MESSAGE_DIRECTLY: self.consume_directly,
            RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: self.status,
        }

    def consumers(self, command: Command, peer: Peer) -> Reply | Awaitable[Reply]:
        """Members of a consumer group, and its subscriptions.

        Raises:
            ConsumerOffline: the group has no members.
        """
        name = command.read(ConsumerConnections).consumer_group
        group = self._clients.group(name)
        if group is None:
            raise ConsumerOffline(f"the consumer group[{name}] not online")
        answer = ConsumerConnection(
            connection_set=[_connection(client) for client in group.members.values()],
            consume_from_where=group.consume_from,
            consume_type=group.consume_type,
            message_model=group.message_model,
            subscription_table=group.subscriptions,
        )
        return listing(answer)

    def producers(self, command: Command, peer: Peer) -> Reply | Awaitable[Reply]:
        """Members of a producer group.

        Raises:
            SystemFailure: the group has no members.
        """
        name = command.read(ProducerConnections).producer_group
        members = self._clients.producers(name)
        if not members:
            raise SystemFailure(f"the producer group[{name}] not exist")
        return listing(
            ProducerConnection(connection_set=[_connection(client) for client in members])
        )

    async def every_producer(self, command: Command, peer: Peer) -> Reply:
        """Members of all producer groups."""
        table: dict[str, list[ProducerInfo]] = {}
        known = self._clients.producer_groups()
        async for name, client in in_turns((n, each) for n in known for each in known[n]):
            table.setdefault(name, []).append(_producer(client))
        return await listed(ProducerTable(data=table))

    def running(self, command: Command, peer: Peer) -> Awaitable[Reply]:
        """A consumer's state, which the consumer itself reports.

        Raises:
            SystemFailure: it is not connected, or does not answer.
        """
        header = command.read(ConsumerRunning)
        return _passed_on(self._member(header.consumer_group, header.client_id), header)

    def consume_directly(self, command: Command, peer: Peer) -> Awaitable[Reply]:
        """Sends a stored message to a consumer, which consumes it at once.

        Raises:
            SystemFailure: the consumer is not connected, or there is no such message.
        """
        header = command.read(ConsumeDirectly)
        client = self._member(header.consumer_group, header.client_id or "")
        try:
            _, log_offset = parse_offset_id(header.msg_id or "")
            record = self._store.lookup(log_offset)
        except (UsageError, OffsetOutOfRange) as error:
            raise SystemFailure(f"there is no message {header.msg_id}: {error}") from error
        topic = self._topics.get(header.topic or "")
        group = self._groups.get(header.consumer_group)
        header.broker_name = self._broker_name
        header.topic_sys_flag = None if topic is None else topic.topic_sys_flag
        header.group_sys_flag = None if group is None else group.group_sys_flag
        return _passed_on(client, header, bytes(record))

    def status(self, command: Command, peer: Peer) -> Awaitable[Reply]:
        """The offsets in a topic that the consumers of a group report.

        Raises:
            ConsumerOffline: the group has no such members.
        """
        header = command.read(ConsumeStatus)
        group = self._clients.group(header.group)
        wanted = header.client_addr or ""
        members = [] if group is None else list(group.members.values())
        if wanted:
            members = [client for client in members if client.client_id == wanted]
        if not members:
            raise ConsumerOffline(f"the consumer group[{header.group}] not online")
        return _statuses(members, ClientConsumeStatus(topic=header.topic, group=header.group))

    def _member(self, group_name: str, client_id: str) -> ClientInfo:
        group = self._clients.group(group_name)
        client = None if group is None else group.find(client_id)
        if client is None:
            raise SystemFailure(f"The Consumer <{group_name}> <{client_id}> not online")
        return client


async def _passed_on(client: ClientInfo, header: Header, body: Buffer = b"") -> Reply:
    answer = await call_client(client, header, body=body)
    return Reply(body=answer.body, code=answer.code, remark=answer.remark)


async def _statuses(members: list[ClientInfo], header: ClientConsumeStatus) -> Reply:
    """Asks one client after the other: an operator rarely asks about many."""
    table = {}
    for client in members:
        answer = await call_client(client, header)
        if not answer.code and answer.body:
            table[client.client_id] = ConsumeStatusBody.decode(answer.body).message_queue_table
    return Reply(body=ConsumeStatusBody(consumer_table=table).encode())


def _connection(client: ClientInfo) -> ClientConnection:
    return ClientConnection(
        client_addr=client.address,
        client_id=client.client_id,
        language=client.language,
        version=client.version,
    )


def _producer(client: ClientInfo) -> ProducerInfo:
    return ProducerInfo(
        client_id=client.client_id,
        language=client.language,
        last_update_timestamp=client.seen_ms,
        remote_ip=f"/{client.address}",
        version=client.version,
    )
