"""What a broker elsewhere is told of a proxy's clients.

Our brokers are told of each client, so that operators see it there: what has changed since the last
time, in one request for many. Any other broker knows members by their connections, and the proxy
has one: there the proxy is the member of all groups that its clients are in, as RocketMQ's proxy is
of its producers' groups.
Source: ClusterTransactionService of RocketMQ 5.3 (module proxy).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sprocket.base.errors import RequestNotSupported, SprocketError
from sprocket.filter.tags import TagFilter
from sprocket.message.topic import fault_of_topic
from sprocket.protocol.bodies import (
    ConsumerData,
    HeartbeatBody,
    ProducerData,
    ProxiedClientBody,
    ProxiedClientsBody,
    SubscriptionData,
)
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.client import (
    Heartbeat,
    ProxiedClients,
    ProxiedClientsReply,
    Unregister,
)
from sprocket.proxy.brokers.brokers import Brokers
from sprocket.proxy.clients.served_clients import GroupKey, ServedClient
from sprocket.proxy.messages import rocketmq_pb2 as pb

logger = logging.getLogger(__name__)

#: Groups in one heartbeat, and clients in one list; and bytes of their settings.
_AT_ONCE = 100
_BYTES_AT_ONCE = 1 << 18
#: A broker that does not know lists of clients is asked again after so many seconds.
_PLAIN_SECONDS = 600.0
_LAST = "CONSUME_FROM_LAST_OFFSET"


def heartbeat_of(client: ServedClient) -> HeartbeatBody:
    """What a client would tell a broker over a connection of its own."""
    consumers = [consumer_of([client], client.group)] if client.is_consumer else []
    producers = [ProducerData(group_name=topic) for topic in client.topics]
    return HeartbeatBody(client_id=client.client_id, consumers=consumers, producers=producers)


def farewells(client_id: str, groups: Iterable[GroupKey]) -> list[Unregister]:
    """The requests by which a member leaves groups."""
    return [
        Unregister(
            client_id=client_id,
            consumer_group=name if is_consumer else None,
            producer_group=None if is_consumer else name,
        )
        for is_consumer, name in sorted(groups)
    ]


def subscription_of(entry: pb.SubscriptionEntry, version: int) -> SubscriptionData:
    """A subscription as brokers know it."""
    expression = entry.expression.expression or "*"
    if entry.expression.type == pb.SQL:
        return SubscriptionData(
            topic=entry.topic.name,
            sub_string=expression,
            expression_type="SQL92",
            sub_version=version,
        )
    parsed = TagFilter.parse(expression)
    return SubscriptionData(
        topic=entry.topic.name,
        sub_string=expression,
        tags_set=list(parsed.tags),
        code_set=sorted(parsed.codes),
        sub_version=version,
    )


def consumer_of(clients: Iterable[ServedClient], group: str) -> ConsumerData:
    """What the members of a group, all together, consume."""
    merged: dict[str, SubscriptionData] = {}
    for client in clients:
        for entry in client.settings.subscription.subscriptions:
            if fault_of_topic(entry.topic.name) is not None:
                continue
            known = merged.get(entry.topic.name)
            if known is None or known.sub_version < client.changed_ms:
                merged[entry.topic.name] = subscription_of(entry, client.changed_ms)
    return ConsumerData(
        group_name=group,
        consume_type="CONSUME_POP",
        message_model="CLUSTERING",
        consume_from_where=_LAST,
        subscriptions=[merged[topic] for topic in sorted(merged)],
    )


class MembersElsewhere:
    """What one broker has been told.

    Args:
        own_id: the proxy's id as a client of brokers.
    """

    def __init__(self, brokers: Brokers, address: str, own_id: str) -> None:
        self._brokers = brokers
        self._address = address
        self._own_id = own_id
        self._loop = asyncio.get_running_loop()
        #: By client id, the revision that the broker was told of.
        self._told: dict[str, int] = {}
        #: The groups in which the proxy is a member there.
        self._own: frozenset[GroupKey] = frozenset()
        self._plain_until = 0.0
        #: The clients that the broker is to know; None once it was told, or cannot be.
        self._wanted: Mapping[str, ServedClient] | None = None
        self._updating: asyncio.Task[None] | None = None

    def update(self, clients: Mapping[str, ServedClient]) -> None:
        """Has the broker told which clients there are. One that cannot be reached learns it with
        the next update; no other broker waits for it."""
        self._wanted = clients
        if self._updating is None or self._updating.done():
            self._updating = asyncio.ensure_future(self._update())

    async def leave(self, seconds: float) -> None:
        """Takes all clients' leave, if the broker answers in time."""
        self.update({})
        await self.close(seconds)

    async def close(self, seconds: float = 0.0) -> None:
        """Ends an update in progress, after that time at the latest."""
        if self._updating is None:
            return
        await asyncio.wait([self._updating], timeout=seconds)
        self._updating.cancel()
        await asyncio.gather(self._updating, return_exceptions=True)

    async def _update(self) -> None:
        while self._wanted is not None:
            clients, self._wanted = self._wanted, None
            await self._tell(clients)

    async def _tell(self, clients: Mapping[str, ServedClient]) -> None:
        try:
            if self._loop.time() >= self._plain_until:
                try:
                    await self._list(clients)
                    return
                except RequestNotSupported:
                    self._plain_until = self._loop.time() + _PLAIN_SECONDS
            await self._beat(clients.values())
        except SprocketError as error:
            logger.info("broker %s does not learn of the clients: %s", self._address, error)

    # A broker that was started again, or had given the proxy up, knows fewer than it was told of.
    async def _list(self, clients: Mapping[str, ServedClient]) -> None:
        if not clients and not self._told:
            return
        if await self._list_changes(clients, is_whole=False) != len(self._told):
            self._told.clear()
            await self._list_changes(clients, is_whole=True)

    async def _list_changes(self, clients: Mapping[str, ServedClient], *, is_whole: bool) -> int:
        """Sends what has changed; returns how many clients the broker knows then."""
        left = [each for each in self._told if each not in clients]
        changed = [
            each
            for name, each in clients.items()
            if self._told.get(name) != each.revision and each.groups
        ]
        known = 0
        for part in _parts(changed):
            body = ProxiedClientsBody(clients=[_described(each) for each in part], left=left)
            header = ProxiedClients(is_whole=is_whole)
            reply = await self._asked(header, body.encode())
            known = reply.read(ProxiedClientsReply).known
            for name in left:
                self._told.pop(name, None)
            self._told.update({each.client_id: each.revision for each in part})
            left, is_whole = [], False
        return known

    async def _beat(self, clients: Iterable[ServedClient]) -> None:
        members: dict[str, list[ServedClient]] = {}
        topics: dict[str, None] = {}
        for client in clients:
            if client.is_consumer:
                members.setdefault(client.group, []).append(client)
            else:
                topics.update(dict.fromkeys(client.topics))
        now = frozenset(GroupKey(True, group) for group in members)
        now |= {GroupKey(False, topic) for topic in topics}
        gone, self._own = self._own - now, now
        consumed = [consumer_of(each, group) for group, each in sorted(members.items())]
        produced = [ProducerData(group_name=topic) for topic in sorted(topics)]
        for at in range(0, max(len(consumed), len(produced)), _AT_ONCE):
            body = HeartbeatBody(
                client_id=self._own_id,
                consumers=consumed[at : at + _AT_ONCE],
                producers=produced[at : at + _AT_ONCE],
            )
            await self._asked(Heartbeat(), body.encode())
        for farewell in farewells(self._own_id, gone):
            await self._asked(farewell)

    async def _asked(self, header: Header, body: bytes = b"") -> Command:
        deadline = self._brokers.deadline()
        outcome = self._brokers.call(self._address, header, body=body, deadline=deadline)
        return (outcome if isinstance(outcome, Command) else await outcome).checked()


def _described(client: ServedClient) -> ProxiedClientBody:
    return ProxiedClientBody(
        address=client.peer.address,
        heartbeat=heartbeat_of(client),
        language=client.language,
        version=client.peer.version,
    )


def _parts(clients: Sequence[ServedClient]) -> Iterator[list[ServedClient]]:
    """The clients in lists that are not too large; an empty one if there are none."""
    part: list[ServedClient] = []
    size = 0
    for client in clients:
        if part and (len(part) >= _AT_ONCE or size + client.settings_bytes > _BYTES_AT_ONCE):
            yield part
            part, size = [], 0
        part.append(client)
        size += client.settings_bytes
    yield part
