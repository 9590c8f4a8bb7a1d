"""Operators' requests about topics.

Source: AdminBrokerProcessor of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from sprocket.base.errors import (
    InvalidParameter,
    SprocketError,
    SystemFailure,
    TopicNotFound,
)
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.operate.listings import in_turns, listing
from sprocket.broker.pop.parts import PopParts
from sprocket.broker.reading.pull import PullRequests
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.attributes import altered, parse
from sprocket.broker.tables.clients import ClientTable
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.broker.tables.queue_mappings import QueueMappings
from sprocket.broker.tables.topics import Topics
from sprocket.broker.tables.volumes import Volumes
from sprocket.clientcore.logical_queues import queues_used
from sprocket.message.topic import pop_retry_topic
from sprocket.message.topic_attributes import MESSAGE_TYPE, MessageType
from sprocket.protocol.bodies import (
    GroupList,
    MappedTopic,
    MappingDetail,
    TopicConfig,
    TopicConfigList,
    TopicList,
    TopicTable,
)
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.topic import (
    CreateStaticTopic,
    CreateTopic,
    DeleteTopic,
    TopicConfigOf,
    TopicConsumers,
)
from sprocket.remoting.transport import Peer
from sprocket.store.store import Store

_FILTER_TYPES = ("SINGLE_TAG", "MULTI_TAG")


class TopicRequests:
    """Creates, changes, shows and deletes topics."""

    def __init__(
        self,
        topics: Topics,
        mappings: QueueMappings,
        store: Store,
        pulls: PullRequests,
        pops: PopParts,
        *,
        offsets: ConsumerOffsets,
        clients: ClientTable,
        volumes: Volumes,
        save_topics: Callable[[], Awaitable[None]],
        save_mappings: Callable[[], Awaitable[None]],
        save_offsets: Callable[[], Awaitable[None]],
        settings: BrokerSettings,
        on_removed: Callable[[str], None],
        before_delete: Callable[[str], Awaitable[None]],
    ) -> None:
        """
        Args:
            on_removed: called with an unknown topic whose queues were deleted.
            save_topics, save_mappings: return when the file contains all changes; raise
                `StoreError` if it cannot be written.
            before_delete: awaited with a topic that will be deleted, for what is under it.
        """
        self._topics, self._mappings = topics, mappings
        self._store = store
        self._pulls, self._pops = pulls, pops
        self._offsets = offsets
        self._clients = clients
        self._volumes = volumes
        self._save_topics, self._save_mappings = save_topics, save_mappings
        self._save_offsets = save_offsets
        self._settings = settings
        self._on_removed = on_removed
        self._before_delete = before_delete

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {
            RequestCode.UPDATE_AND_CREATE_TOPIC: self.create,
            RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: self.create_several,
            RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC: self.create_static,
            RequestCode.GET_ALL_TOPIC_CONFIG: self.every,
            RequestCode.GET_TOPIC_CONFIG: self.one,
            RequestCode.DELETE_TOPIC_IN_BROKER: self.delete,
            RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: self.consumers,
            RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: self.own,
            RequestCode.CLEAN_UNUSED_TOPIC: self.clean,
        }

    def create(self, command: Command, peer: Peer) -> Awaitable[Reply]:
        """Creates or changes a topic.

        Raises:
            InvalidParameter: its name or numbers are invalid, or it is for messages of all types,
                which is switched off.
            SystemFailure: its filter type or attributes are invalid.
            StoreError: it cannot be saved, and is as it was before.
        """
        header = command.read(CreateTopic)
        return self._put_all([(_asked(header), parse(header.attributes))])

    # The mapping is put first and saved first: a topic without it would be taken for a usual one,
    # and messages would go to the queues that have the numbers of logical ones.
    async def create_static(self, command: Command, peer: Peer) -> Reply:
        """Creates a static topic, or changes which logical queues this broker leads.

        The reply is sent once both files are saved, and held pulls of the topic are answered: their
        clients may have to ask another broker.

        Raises:
            InvalidParameter: as `create`; or the topic has fewer queues than its mapping uses.
            SystemFailure: as `create`; or the mapping contradicts itself or what is known.
            StoreError: it cannot be saved.
        """
        header = command.read(CreateStaticTopic)
        topic, detail = _asked(header), MappingDetail.of_request(command.body)
        if detail.topic != header.topic:
            raise InvalidParameter(f"the mapping is that of topic {detail.topic}")
        known = self._topics.get(header.topic)
        topic.attributes = {} if known is None else known.attributes
        self._topics.check(topic)
        _check_numbers(topic, detail)
        before = self._mappings.get(header.topic)
        self._mappings.put(detail, is_forced=bool(header.force))
        self._pulls.end_held_of(header.topic)
        try:
            await self._save_mappings()
            self._topics.put(topic)
            return await self._once_saved([topic], {header.topic: known})
        except SprocketError:
            self._mappings.copy(header.topic, before)
            raise

    def create_several(self, command: Command, peer: Peer) -> Awaitable[Reply]:
        """Creates or changes topics, one after the other; stops at the first invalid one.

        Raises:
            InvalidParameter, SystemFailure: as `create`, for one of them.
            StoreError: they cannot be saved, and are as they were before.
        """
        topics = TopicConfigList.of_request(command.body).topic_config_list
        return self._put_all(
            [
                (
                    topic,
                    {
                        key if key[:1] in ("+", "-") else f"+{key}": value
                        for key, value in topic.attributes.items()
                    },
                )
                for topic in topics
            ]
        )

    # Topics are put at once, so that the reply also waits until the name servers know them.
    def _put_all(self, wanted: Sequence[tuple[TopicConfig, dict[str, str]]]) -> Awaitable[Reply]:
        """Creates or changes topics, each with the attributes it asks for."""
        before = {topic.topic_name: self._topics.get(topic.topic_name) for topic, _ in wanted}
        for topic, asked in wanted:
            self._put(topic, asked)
        return self._once_saved([topic for topic, _ in wanted], before)

    async def _once_saved(
        self, wanted: Sequence[TopicConfig], before: Mapping[str, TopicConfig | None]
    ) -> Reply:
        made = {topic.topic_name: topic for topic in wanted}
        await self._topics.save_or_undo(self._save_topics, made, before)
        return Reply()

    def _put(self, topic: TopicConfig, asked: dict[str, str]) -> None:
        is_mixed = asked.get(f"+{MESSAGE_TYPE}") == MessageType.MIXED.value
        if is_mixed and not self._settings.config.mixed_message_type:
            raise InvalidParameter("MIXED message type is not supported.")
        known = self._topics.get(topic.topic_name)
        topic.attributes = altered(None if known is None else known.attributes, asked)
        if (detail := self._mappings.get(topic.topic_name)) is not None:
            _check_numbers(topic, detail)
        self._topics.put(topic)

    def every(self, command: Command, peer: Peer) -> Reply | Awaitable[Reply]:
        """All topics."""
        table = TopicTable(
            data_version=self._topics.version,
            mapping_data_version=self._mappings.version,
            topic_config_table=dict(self._topics.by_name),
            topic_queue_mapping_detail_map=dict(self._mappings.by_topic),
            topic_queue_mapping_info_map={},
        )
        return listing(table)

    def one(self, command: Command, peer: Peer) -> Reply:
        """One topic, with its mapping if that is asked for.

        Raises:
            TopicNotFound: there is no such topic.
        """
        header = command.read(TopicConfigOf)
        topic = self._topics.get(header.topic)
        if topic is None:
            raise TopicNotFound(f"No topic in this broker. topic: {header.topic}")
        if not header.lo or (detail := self._mappings.get(header.topic)) is None:
            return Reply(body=topic.encode())
        shown = {name: getattr(topic, name) for name in topic.__struct_fields__}
        return Reply(body=MappedTopic(**shown, mapping_detail=detail).encode())

    async def delete(self, command: Command, peer: Peer) -> Reply:
        """Deletes a topic with its queues, its offsets and the retry topics of groups that popped
        it; no error if there is no such topic.

        The reply is sent once the files no longer contain them.

        Raises:
            InvalidParameter: the topic is the broker's own, or the name is invalid.
            StoreError, ClosedError: the deletion cannot be saved.
        """
        name = command.read(DeleteTopic).topic
        if any(sign in name for sign in "/\\\0"):
            raise InvalidParameter(f"no topic is called {name!r}")
        await self._before_delete(name)
        for each in (name, *self._pop_retries(name)):
            self._topics.remove(each)
            self._mappings.remove(each)
            self._offsets.forget_topic(each)
            self._volumes.forget_topic(each)
            self._store.delete_topic(each)
            self._pulls.end_held_of(each)
        self._pops.end_held(name)
        self._pops.forget_topic(name)
        await self._save_offsets()
        return Reply()

    def _pop_retries(self, name: str) -> list[str]:
        """The topics through which groups pop failed messages of a topic again."""
        retries = [
            pop_retry_topic(name, group, is_v2=is_v2)
            for group in self._offsets.groups_of(name)
            for is_v2 in (False, True)
        ]
        return [each for each in retries if self._topics.get(each) is not None]

    def consumers(self, command: Command, peer: Peer) -> Reply | Awaitable[Reply]:
        """Groups that consume a topic, online or not."""
        topic = command.read(TopicConsumers).topic
        groups = {*self._clients.groups_of(topic), *self._offsets.groups_of(topic)}
        return listing(GroupList(group_list=sorted(groups)))

    def own(self, command: Command, peer: Peer) -> Reply:
        """The broker's own topics."""
        return Reply(body=TopicList(topic_list=sorted(self._topics.own_names)).encode())

    async def clean(self, command: Command, peer: Peer) -> Reply:
        """Deletes the queues of topics that no longer exist."""
        async for name in in_turns(list(self._store.queues())):
            if self._topics.get(name) is None and not self._topics.is_own(name):
                self._store.delete_topic(name)
                self._on_removed(name)
        return Reply()


def _asked(header: CreateTopic) -> TopicConfig:
    """The topic that a request asks for, without attributes.

    Raises:
        SystemFailure: its filter type is invalid.
    """
    if header.topic_filter_type not in _FILTER_TYPES:
        raise SystemFailure(f"topicFilterType = [{header.topic_filter_type}] value invalid")
    return TopicConfig(
        order=header.order,
        perm=header.perm,
        read_queue_nums=header.read_queue_nums,
        topic_filter_type=header.topic_filter_type,
        topic_name=header.topic,
        topic_sys_flag=header.topic_sys_flag or 0,
        write_queue_nums=header.write_queue_nums,
    )


def _check_numbers(topic: TopicConfig, detail: MappingDetail) -> None:
    """Refuses a static topic with fewer queues than hold its messages.

    Raises:
        InvalidParameter: there are too few.
    """
    used = queues_used([detail]).get(detail.bname, 0)
    if min(topic.read_queue_nums, topic.write_queue_nums) < used:
        raise InvalidParameter(
            f"static topic {topic.topic_name} uses {used} queues of this broker, it cannot have "
            f"{topic.read_queue_nums} to read and {topic.write_queue_nums} to write"
        )
