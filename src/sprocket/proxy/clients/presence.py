"""Makes the clients of a proxy known to the brokers, so that operators see groups and members.

To a broker in the same process each client is a member of its own. A broker elsewhere knows members
by their connections, and the proxy has one: there the proxy is the member of all groups that its
clients are in.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Coroutine, Iterable

from sprocket.base.cancelling import cancel_begun
from sprocket.base.errors import SprocketError
from sprocket.filter.tags import TagFilter
from sprocket.message.topic import fault_of_topic
from sprocket.protocol.bodies import ConsumerData, HeartbeatBody, ProducerData, SubscriptionData
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.client import Heartbeat, Unregister
from sprocket.proxy.brokers.brokers import Brokers
from sprocket.proxy.clients.served_clients import ServedClient, ServedClients
from sprocket.proxy.messages import rocketmq_pb2 as pb

logger = logging.getLogger(__name__)

#: Seconds between heartbeats to brokers elsewhere. They forget a member after two minutes.
_BEAT_SECONDS = 20.0
#: A new group is told after so many seconds, with others that are new.
_SOON_SECONDS = 0.2
#: Groups in one heartbeat.
_GROUPS_AT_ONCE = 100
_LAST = "CONSUME_FROM_LAST_OFFSET"


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


class Presence:
    """Sends heartbeats and farewells.

    Args:
        own_id: the proxy's id as a client of brokers.
        inner: the address of a broker in the same process, if there is one.
    """

    def __init__(
        self, brokers: Brokers, clients: ServedClients, own_id: str, *, inner: str | None
    ) -> None:
        self._brokers = brokers
        self._clients = clients
        self._own_id = own_id
        self._inner = inner
        self._soon = asyncio.Event()
        #: Groups that brokers elsewhere know us by: (is consumer, name).
        self._told: set[tuple[bool, str]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def announce(self, client: ServedClient) -> None:
        """Makes a client known that is new, or shows that it lives."""
        if self._inner is not None:
            self._beat_inner(self._inner, client)
        if self._keys_of(client) - self._told:
            self._soon.set()

    def withdraw(self, client: ServedClient) -> None:
        """A client is gone. A broker in the same process learns it by the end of its peer."""
        if self._keys_of(client) & self._told:
            self._soon.set()

    @staticmethod
    def _keys_of(client: ServedClient) -> set[tuple[bool, str]]:
        if client.is_consumer:
            return {(True, client.group)}
        return {(False, topic) for topic in client.topics}

    def _beat_inner(self, address: str, client: ServedClient) -> None:
        consumers = [consumer_of([client], client.group)] if client.is_consumer else []
        producers = [ProducerData(group_name=topic) for topic in client.topics]
        body = HeartbeatBody(
            client_id=client.client_id, consumers=consumers, producers=producers
        ).encode()
        deadline = self._brokers.deadline()
        outcome = self._brokers.call(
            address, Heartbeat(), body=body, deadline=deadline, peer=client.peer
        )
        if not isinstance(outcome, Command):  # of a client with many groups
            self._start(self._until_known(client, outcome))

    async def _until_known(self, client: ServedClient, outcome: Awaitable[Command]) -> None:
        try:
            await outcome
        except SprocketError as error:
            logger.info("client %s is not made known: %s", client.client_id, error)

    async def run(self) -> None:
        """Sends the heartbeats to brokers elsewhere, until cancelled."""
        while True:
            try:
                async with asyncio.timeout(_BEAT_SECONDS):
                    await self._soon.wait()
                await asyncio.sleep(_SOON_SECONDS)
            except TimeoutError:
                pass
            self._soon.clear()
            await self._beat_all()

    async def _beat_all(self) -> None:
        members: dict[str, list[ServedClient]] = {}
        producers: dict[str, None] = {}
        for client in self._clients:
            if client.is_consumer:
                members.setdefault(client.group, []).append(client)
            else:
                producers.update(dict.fromkeys(client.topics))
        now = {(True, group) for group in members} | {(False, topic) for topic in producers}
        gone, self._told = self._told - now, now
        addresses = set(self._brokers.masters().values()) - {self._inner}
        if not addresses or not (now or gone):
            return
        consumed = [consumer_of(each, group) for group, each in sorted(members.items())]
        produced = [ProducerData(group_name=topic) for topic in sorted(producers)]
        bodies = [
            HeartbeatBody(
                client_id=self._own_id,
                consumers=consumed[at : at + _GROUPS_AT_ONCE],
                producers=produced[at : at + _GROUPS_AT_ONCE],
            ).encode()
            for at in range(0, max(len(consumed), len(produced)), _GROUPS_AT_ONCE)
        ]
        farewells = [
            Unregister(
                client_id=self._own_id,
                consumer_group=name if is_consumer else None,
                producer_group=None if is_consumer else name,
            )
            for is_consumer, name in sorted(gone)
        ]
        await asyncio.gather(*(self._tell(each, bodies, farewells) for each in sorted(addresses)))

    async def _tell(self, address: str, bodies: list[bytes], farewells: list[Unregister]) -> None:
        try:
            for body in bodies:
                await self._told_one(address, Heartbeat(), body)
            for farewell in farewells:
                await self._told_one(address, farewell, b"")
        except SprocketError as error:
            logger.info("broker %s does not learn of the clients: %s", address, error)

    async def _told_one(self, address: str, header: Header, body: bytes) -> None:
        outcome = self._brokers.call(address, header, body=body, deadline=self._brokers.deadline())
        if not isinstance(outcome, Command):
            await outcome

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Takes the proxy's leave of the brokers."""
        self._told, gone = set(), self._told
        addresses = set(self._brokers.masters().values()) - {self._inner}
        farewells = [
            Unregister(
                client_id=self._own_id,
                consumer_group=name if is_consumer else None,
                producer_group=None if is_consumer else name,
            )
            for is_consumer, name in sorted(gone)
        ]
        await asyncio.gather(*(self._tell(each, [], farewells) for each in sorted(addresses)))
        for task in tuple(self._tasks):
            cancel_begun(task)
        await asyncio.gather(*self._tasks, return_exceptions=True)
