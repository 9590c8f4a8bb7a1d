"""The requests to a container: its brokers register, operators add and remove brokers (902, 903).

Source: BrokerContainerProcessor of RocketMQ 5.3, whose answers these are. What the requests need is
checked by the users of the brokers, as at each of them; a broker that registers is asked what it
has, so what anybody else could say in its name changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Protocol

import msgspec

from sprocket.audit.trail import AuditTrail
from sprocket.auth.accounts import AccountTable
from sprocket.auth.first_users import make_first_users
from sprocket.auth.guard import Guard, GuardRules
from sprocket.auth.needs import CHANGE_CLUSTER
from sprocket.base.errors import (
    CorruptRecord,
    RemoteProtocolError,
    ReplyError,
    SprocketError,
    UsageError,
)
from sprocket.broker.config import BrokerConfig, is_loopback
from sprocket.container.spreading import TopicSpread
from sprocket.protocol import registration
from sprocket.protocol.codes import MASTER, ResponseCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.admin import AddBroker, RemoveBroker
from sprocket.protocol.requests.route import (
    RegisterBroker,
    RegisterBrokerReply,
    UnregisterBroker,
)
from sprocket.remoting import address as addresses
from sprocket.remoting.transport import Peer

logger = logging.getLogger(__name__)

#: What operators' requests need.
RULES = {AddBroker.code: CHANGE_CLUSTER, RemoveBroker.code: CHANGE_CLUSTER}


class Changes(Protocol):
    """Adds and removes brokers while a container runs."""

    async def add(self, path: str) -> None:
        """Starts a broker by its configuration file.

        Raises:
            SprocketError: it cannot start, or is there already.
        """
        ...

    async def remove(self, cluster: str, name: str, number: int) -> bool:
        """Stops a broker; returns whether it was there."""
        ...


class ContainerAccess:
    """Checks who may add and remove brokers: the users are those of a broker.

    Args:
        read_users: reads the file of the users of a broker; None if there is none yet.
    """

    def __init__(self, config: BrokerConfig, read_users: Callable[[], bytes | None]) -> None:
        self._config = config
        self._read_users = read_users

    def check(self, command: Command, peer: Peer) -> str:
        """Returns if a request may pass: the user who signed it, or nobody, an empty text.

        Raises:
            NoPermission: it may not.
            CorruptRecord: the file of the users is damaged.
        """
        config = self._config
        if not config.authentication:
            return ""
        table = AccountTable()
        if content := self._read_users():
            try:
                table.load(msgspec.json.decode(content, type=dict))
            except (msgspec.MsgspecError, ValueError) as error:
                raise CorruptRecord(f"the file of the users is damaged: {error}") from error
        make_first_users(table, config.first_users(), is_on=True)
        none: frozenset[int] = frozenset()
        rules = GuardRules(True, config.authorization, none, none, config.cluster)
        host = addresses.bare(peer.address.rpartition(":")[0])
        return Guard(table, lambda: rules, RULES).check(command, host)


class ContainerRequests:
    """Answers requests.

    Args:
        trail: records who added and removed brokers; None records nobody.
        names: of the brokers whose topics are the same.
        host: the one at which this process reaches its brokers, and they reach it.
    """

    def __init__(
        self,
        changes: Changes,
        spread: TopicSpread,
        access: ContainerAccess,
        *,
        trail: AuditTrail | None = None,
        names: Callable[[], Collection[str]],
        host: str,
    ) -> None:
        self._changes = changes
        self._spread = spread
        self._access = access
        self._trail = trail
        self._names = names
        self._host = addresses.bare(host)
        self._table: Mapping[int, Callable[[Command, Peer], Awaitable[Reply]]] = {
            RegisterBroker.code: self._register,
            UnregisterBroker.code: self._unregister,
            AddBroker.code: self._add,
            RemoveBroker.code: self._remove,
        }

    async def answer(self, command: Command, peer: Peer) -> Reply:
        """The reply to a request; errors become their response codes."""
        reply = await self._answered(command, peer)
        if self._trail is not None and self._trail.is_recorded(command.code):
            self._trail.followed(command, peer, reply)
        return reply

    async def _answered(self, command: Command, peer: Peer) -> Reply:
        endpoint = self._table.get(command.code)
        if endpoint is None:
            return Reply(
                code=ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
                remark=f" request type {command.code} not supported by a container of brokers",
            )
        try:
            return await endpoint(command, peer)
        except ReplyError as error:
            command.user = command.user or getattr(error, "user", "")
            return Reply(code=error.code, remark=error.remark)
        except UsageError as error:
            return Reply(code=ResponseCode.SYSTEM_ERROR, remark=str(error))
        except (RemoteProtocolError, SprocketError, OSError) as error:
            logger.warning("request %d of %s failed: %s", command.code, peer.address, error)
            return Reply(code=ResponseCode.SYSTEM_ERROR, remark=str(error))

    async def _register(self, command: Command, peer: Peer) -> Reply:
        asked = command.read(RegisterBroker)
        is_ours = asked.broker_name in self._names() and self._is_near(peer)
        if is_ours and asked.broker_id == MASTER and command.body:
            body = registration.decode(command.body, compressed=asked.compressed)
            static = body.topics.topic_queue_mapping_info_map or {}
            topics = [name for name in body.topics.topic_config_table if name not in static]
            # Clients may reach it by an address that this machine does not have.
            address = addresses.join(self._host, addresses.split(asked.broker_addr)[1])
            await self._spread.reported(asked.broker_name, address, topics)
        return Reply(RegisterBrokerReply())

    def _is_near(self, peer: Peer) -> bool:
        host = addresses.bare(peer.address.rpartition(":")[0])
        return host == self._host or is_loopback(host)

    async def _unregister(self, command: Command, peer: Peer) -> Reply:
        command.read(UnregisterBroker)
        return Reply()

    async def _add(self, command: Command, peer: Peer) -> Reply:
        command.user = self._access.check(command, peer)
        path = command.read(AddBroker).config_path
        if not path:
            raise UsageError("addBroker config path is empty")
        logger.warning("%s adds a broker by %s", peer.address, path)
        await self._changes.add(path)
        return Reply()

    async def _remove(self, command: Command, peer: Peer) -> Reply:
        command.user = self._access.check(command, peer)
        asked = command.read(RemoveBroker)
        logger.warning("%s removes broker %s", peer.address, asked.broker_name)
        if await self._changes.remove(
            asked.broker_cluster_name, asked.broker_name, asked.broker_id
        ):
            return Reply()
        return Reply(code=ResponseCode.BROKER_NOT_EXIST, remark="Broker not exist")
