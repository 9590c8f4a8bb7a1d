"""SyncLiteSubscription: which lite topics a client subscribes, told to all brokers of their topic.

A client sends what it adds and removes at once, and all of it each half minute. When it is gone,
the brokers are told; those that do not hear it forget the client when it is silent.
Source: ClientActivity.syncLiteSubscription, LiteSubscriptionService of RocketMQ 5.5 (module proxy).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from sprocket.base.errors import SprocketError
from sprocket.message.lite import fault_of_lite_topic
from sprocket.protocol.bodies import lite as actions
from sprocket.protocol.bodies.lite import (
    LiteOffsetOption,
    LiteSubscriptionBody,
    LiteSubscriptionEntry,
)
from sprocket.protocol.command import Command
from sprocket.protocol.requests.lite import ChangeLiteSubscription
from sprocket.proxy.brokers.brokers import Brokers
from sprocket.proxy.clients.served_clients import CLIENT_ID, ServedClient, ServedClients
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.http2.calls import GrpcCall
from sprocket.proxy.messages import checks
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.statuses import CallRefused, status
from sprocket.remoting.transport import Peer

logger = logging.getLogger(__name__)

_ACTIONS = {
    pb.PARTIAL_ADD: actions.PARTIAL_ADD,
    pb.PARTIAL_REMOVE: actions.PARTIAL_REMOVE,
    pb.COMPLETE_ADD: actions.COMPLETE_ADD,
    pb.COMPLETE_REMOVE: actions.COMPLETE_REMOVE,
}
_TYPES = {
    "policy": actions.POLICY,
    "offset": actions.OFFSET,
    "tail_n": actions.TAIL,
    "timestamp": actions.TIME,
}


class LiteMethods:
    """Tells brokers what clients subscribe."""

    def __init__(self, brokers: Brokers, clients: ServedClients, config: ProxyConfig) -> None:
        self._brokers = brokers
        self._clients = clients
        self._config = config
        self._tasks: set[asyncio.Task[None]] = set()

    async def sync(
        self, call: GrpcCall, request: pb.SyncLiteSubscriptionRequest
    ) -> pb.SyncLiteSubscriptionResponse:
        """Changes the subscription of a client.

        Raises:
            CallRefused: topic, group or a lite topic cannot be one, or there is no such action.
            SprocketError: a broker refuses, or cannot be reached.
        """
        topic, group = checks.topic_name(request.topic), checks.group_name(request.group)
        action = _ACTIONS.get(request.action)
        if action is None:
            raise CallRefused(pb.BAD_REQUEST, f"there is no action {request.action}")
        if request.action in (pb.PARTIAL_ADD, pb.COMPLETE_ADD):
            for lite in request.lite_topic_set:
                if fault := fault_of_lite_topic(lite, self._config.lite_topic_max):
                    raise CallRefused(pb.ILLEGAL_LITE_TOPIC, fault)
        client_id = call.metadata[CLIENT_ID]
        entry = LiteSubscriptionEntry(
            action=action,
            client_id=client_id,
            group=group,
            topic=topic,
            lite_topic_set=list(dict.fromkeys(request.lite_topic_set)),
            version=request.version,
        )
        if request.action == pb.PARTIAL_ADD and request.HasField("offset_option"):
            entry.offset_option = _option(request.offset_option)
        client = self._clients.find(client_id)
        await self._tell_all(topic, entry, None if client is None else client.peer)
        return pb.SyncLiteSubscriptionResponse(status=status(pb.OK))

    async def _tell_all(self, topic: str, entry: LiteSubscriptionEntry, peer: Peer | None) -> None:
        known = self._brokers.topics.known(topic) or await self._brokers.topic(topic)
        body = LiteSubscriptionBody(subscription_set=[entry]).encode()
        if not known.readable:
            raise CallRefused(pb.FORBIDDEN, "no readable queue")
        addresses = [known.masters[broker] for broker in known.readable]
        for reply in await self._ask_all(addresses, body, peer):
            if isinstance(reply, BaseException):
                raise reply
            reply.checked()

    async def _ask_all(
        self, addresses: Sequence[str], body: bytes, peer: Peer | None
    ) -> list[Command | BaseException]:
        return await asyncio.gather(
            *(self._ask(address, body, peer) for address in addresses), return_exceptions=True
        )

    async def _ask(self, address: str, body: bytes, peer: Peer | None) -> Command:
        outcome = self._brokers.call(
            address, ChangeLiteSubscription(), body=body, deadline=self._brokers.deadline(),
            peer=peer,
        )  # fmt: skip
        return outcome if isinstance(outcome, Command) else await outcome

    def forget(self, client: ServedClient) -> None:
        """Tells the brokers that a client is gone."""
        entries = client.settings.subscription.subscriptions
        if not (client.consumes_lite and entries):
            return
        entry = LiteSubscriptionEntry(
            action=actions.COMPLETE_REMOVE,
            client_id=client.client_id,
            group=client.group,
            topic=entries[0].topic.name,
        )
        task = asyncio.ensure_future(self._forgotten(entries[0].topic.name, entry))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forgotten(self, topic: str, entry: LiteSubscriptionEntry) -> None:
        try:
            await self._tell_all(topic, entry, None)
        except SprocketError as error:
            logger.info("client %s is not taken leave of: %s", entry.client_id, error)

    async def close(self, seconds: float) -> None:
        """Waits for what brokers are being told, so long at most."""
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=seconds)
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _option(given: pb.OffsetOption) -> LiteOffsetOption | None:
    kind = given.WhichOneof("offset_type")
    if kind is None:
        return None
    return LiteOffsetOption(type=_TYPES[kind], value=int(getattr(given, kind)))
