"""Operators' requests about consumer groups.

Source: AdminBrokerProcessor of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from sprocket.base.errors import GroupNotFound
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.operate.listings import listing
from sprocket.broker.tables.attributes import OF_GROUPS, altered
from sprocket.broker.tables.clients import ClientTable
from sprocket.broker.tables.groups import Groups
from sprocket.broker.tables.locks import write_leases
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.broker.tables.queue_locks import QueueLocks
from sprocket.broker.tables.state import StateFile
from sprocket.broker.tables.volumes import Volumes
from sprocket.protocol.bodies import (
    GroupConfig,
    GroupConfigList,
    GroupForbidden,
    GroupTable,
    SubscriptionBody,
    TopicList,
)
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.group import (
    DeleteGroup,
    ForbidGroup,
    GroupConfigOf,
    GroupSubscription,
    GroupTopics,
)
from sprocket.remoting.transport import Peer


class GroupRequests:
    """Creates, changes, shows and deletes consumer groups."""

    def __init__(
        self,
        groups: Groups,
        clients: ClientTable,
        *,
        offsets: ConsumerOffsets,
        locks: QueueLocks,
        volumes: Volumes,
        address: str,
        lock_file: StateFile,
        save_groups: Callable[[], Awaitable[None]],
        save_offsets: Callable[[], Awaitable[None]],
        on_cleaned: Callable[[str], None],
    ) -> None:
        """
        Args:
            on_cleaned: is called with the name of a group that is deleted with its offsets.
            save_groups: returns when the file contains all changes of groups; raises `StoreError`
                if it cannot be written.
        """
        self._groups = groups
        self._clients = clients
        self._offsets = offsets
        self._locks = locks
        self._volumes = volumes
        self._address = address
        self._lock_file = lock_file
        self._save_groups = save_groups
        self._save_offsets = save_offsets
        self._on_cleaned = on_cleaned

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: self.create,
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: self.create_several,
            RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: self.every,
            RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: self.one,
            RequestCode.DELETE_SUBSCRIPTIONGROUP: self.delete,
            RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN: self.forbid,
            RequestCode.QUERY_TOPICS_BY_CONSUMER: self.topics,
            RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: self.subscription,
        }

    def create(self, command: Command, peer: Peer) -> Awaitable[Reply]:
        """Creates or changes a group.

        Raises:
            InvalidParameter: its name or numbers are invalid.
            SystemFailure: its attributes are invalid.
            StoreError: it cannot be saved, and is as it was before.
        """
        return self._put_all([GroupConfig.of_request(command.body)])

    def create_several(self, command: Command, peer: Peer) -> Awaitable[Reply]:
        """Creates or changes groups, one after the other; stops at the first invalid one.

        Raises:
            InvalidParameter, SystemFailure, StoreError: as `create`, for one of them; for all.
        """
        return self._put_all(GroupConfigList.of_request(command.body).group_config_list)

    def _put_all(self, wanted: Sequence[GroupConfig]) -> Awaitable[Reply]:
        before = {group.group_name: self._groups.get(group.group_name) for group in wanted}
        for group in wanted:
            known = self._groups.get(group.group_name)
            current = None if known is None else known.attributes
            group.attributes = altered(current, group.attributes, OF_GROUPS)
            self._groups.put(group)
        return self._once_saved(wanted, before)

    async def _once_saved(
        self, wanted: Sequence[GroupConfig], before: Mapping[str, GroupConfig | None]
    ) -> Reply:
        made = {group.group_name: group for group in wanted}
        await self._groups.save_or_undo(self._save_groups, made, before)
        return Reply()

    def every(self, command: Command, peer: Peer) -> Reply | Awaitable[Reply]:
        """All groups."""
        table = GroupTable(
            data_version=self._groups.version,
            forbidden_table=dict(self._groups.forbidden),
            subscription_group_table=dict(self._groups.by_name),
        )
        return listing(table)

    def one(self, command: Command, peer: Peer) -> Reply:
        """One group, which is created now if unknown groups are: a proxy asks before it consumes.

        Raises:
            GroupNotFound: there is no such group, and it may not be created.
            SystemBusy: there are too many groups.
        """
        name = command.read(GroupConfigOf).group
        group = self._groups.find(name)
        if group is None:
            raise GroupNotFound(f"No group in this broker. group: {name}")
        return Reply(body=group.encode())

    async def delete(self, command: Command, peer: Peer) -> Reply:
        """Deletes a group, and its offsets if requested; no error if there is no such group.

        The reply is sent once the files no longer contain them.

        Raises:
            StoreError, ClosedError: the group is deleted, but this cannot be saved.
        """
        header = command.read(DeleteGroup)
        self._groups.remove(header.group_name)
        self._locks.forget_group(header.group_name)
        write_leases(self._locks, self._lock_file)
        self._volumes.forget_group(header.group_name)
        if header.clean_offset:
            self._offsets.forget_group(header.group_name)
            self._on_cleaned(header.group_name)
            await self._save_offsets()
        return Reply()

    def forbid(self, command: Command, peer: Peer) -> Reply:
        """Forbids or allows a group to read a topic; without `readable` it only shows the state."""
        header = command.read(ForbidGroup)
        if header.readable is not None:
            self._groups.forbid(header.group, header.topic, readable=header.readable)
        is_readable = not self._groups.is_forbidden(header.group, header.topic)
        answer = GroupForbidden(group=header.group, readable=is_readable, topic=header.topic)
        return Reply(body=answer.encode())

    def topics(self, command: Command, peer: Peer) -> Reply | Awaitable[Reply]:
        """Topics in which a group has offsets."""
        topics = self._offsets.topics_of(command.read(GroupTopics).group)
        return listing(TopicList(broker_addr=self._address, topic_list=topics))

    def subscription(self, command: Command, peer: Peer) -> Reply:
        """A group's subscription to a topic, if the group is online."""
        header = command.read(GroupSubscription)
        group = self._clients.group(header.group)
        found = None if group is None else group.subscriptions.get(header.topic or "")
        answer = SubscriptionBody(group=header.group, subscription_data=found, topic=header.topic)
        return Reply(body=answer.encode())
