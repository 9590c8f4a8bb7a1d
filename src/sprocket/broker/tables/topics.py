"""The topics of a broker: their queues, their permissions, and the creation of new ones.

A topic is created by an operator, by a send (from the template that the producer names), or for a
consumer group (its retry topic and dead-letter topic). While automatic creation is off, no topic is
created from the template, and a template in the file is ignored.

File: `topics.json`, `{"dataVersion":{...},"topicConfigTable":{topic:{...}}}`.
Source: TopicConfigManager of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from sprocket.base.errors import InvalidParameter, SystemBusy
from sprocket.base.ports import Clock
from sprocket.broker.config import BrokerConfig
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.config_table import ConfigTable
from sprocket.message import topic as names
from sprocket.message.topic_attributes import BATCH_QUEUE, QUEUE_TYPE
from sprocket.protocol.bodies import TopicConfig
from sprocket.quotas.creation import check_creation
from sprocket.store.state.snapshot import ConvertedRows

#: The permission to read and to write.
READ_WRITE = names.READ | names.WRITE
#: Queues of one topic at most, so that a single name does not cost too much.
QUEUES_MAX = 16_384
#: How topics begin that are made for a group.
_OF_GROUPS = (names.RETRY_PREFIX, names.DEAD_LETTER_PREFIX)

#: Parts of the names of topics that brokers keep for themselves.
_MEMBERS_PREFIX = "rmq_sys_SYNC_BROKER_MEMBER_"
_BENCHMARK_QUEUES = 1024
_CLUSTER_QUEUES = 16


def own_topics(config: BrokerConfig, *, delay_levels: int) -> list[TopicConfig]:
    """The topics that every broker has from the start."""
    inherit = names.INHERIT

    def topic(name: str, queues: int = 1, permission: int = READ_WRITE) -> TopicConfig:
        return new_topic(name, queues=queues, permission=permission)

    made = [
        topic(names.SELF_TEST),
        topic(names.BENCHMARK, _BENCHMARK_QUEUES),
        topic(
            config.cluster, _CLUSTER_QUEUES, inherit | (READ_WRITE if config.cluster_topic else 0)
        ),
        topic(config.name, 1, inherit | (READ_WRITE if config.broker_topic else 0)),
        topic(names.OFFSET_MOVED),
        topic(names.SCHEDULE, delay_levels),
        topic(names.reply_topic(config.cluster)),
        topic(names.revive_topic(config.cluster), config.revive_queues),
        topic(_MEMBERS_PREFIX + config.name, 1, inherit),
        topic(names.HALF),
        topic(names.HALF_SETTLED),
        topic(names.TIMER),
    ]
    if config.auto_create_topics:
        made.append(topic(names.TEMPLATE, config.template_queues, inherit | READ_WRITE))
    if config.trace_topic:
        made.append(topic(config.trace_topic_name))
    if config.audit_topic is not None:
        made.append(topic(config.audit_topic, permission=names.READ))
    return made


def new_topic(
    name: str, *, queues: int, permission: int = READ_WRITE, sys_flag: int = 0, order: bool = False
) -> TopicConfig:
    """A topic with as many queues to read as to write."""
    return TopicConfig(
        topic_name=name,
        read_queue_nums=queues,
        write_queue_nums=queues,
        perm=permission,
        topic_sys_flag=sys_flag,
        order=order,
    )


class Topics(ConfigTable[TopicConfig]):
    """All topics of a broker.

    Args:
        own: the topics of the broker itself; they exist even if the file lacks them.

    Attributes:
        own_names: names of the broker's own topics.
    """

    def __init__(
        self,
        own: Iterable[TopicConfig],
        settings: BrokerSettings,
        *,
        clock: Clock,
        on_change: Callable[[str], None],
    ) -> None:
        super().__init__(
            {topic.topic_name: topic for topic in own}, clock=clock, on_change=on_change
        )
        self._settings = settings
        self.own_names = frozenset(self.by_name)
        #: Topics of copied messages of which the master has not said how many queues they have.
        self._guessed: set[str] = set()

    def is_own(self, name: str) -> bool:
        """Whether the topic belongs to the broker itself, so that no client may change it."""
        return name in self.own_names or names.is_system_topic(name)

    def put(self, topic: TopicConfig) -> None:
        """Creates or changes a topic for an operator.

        Raises:
            InvalidParameter: its name, numbers of queues or permission is invalid.
            SystemBusy: there are too many topics.
        """
        self.check(topic)
        self._store(topic)

    def check(self, topic: TopicConfig) -> None:
        """Checks a topic that an operator wants.

        Raises:
            InvalidParameter: its name, numbers of queues or permission is invalid.
        """
        if fault := names.fault_of_topic(topic.topic_name):
            raise InvalidParameter(fault)
        if self.is_own(topic.topic_name):
            raise InvalidParameter(f"The topic[{topic.topic_name}] is conflict with system topic.")
        for queues in (topic.read_queue_nums, topic.write_queue_nums):
            if not 0 <= queues <= QUEUES_MAX:
                raise InvalidParameter(f"a topic has 0 to {QUEUES_MAX} queues, not {queues}")
        if not 0 <= topic.perm <= 7:
            raise InvalidParameter(f"a permission is 0 to 7, not {topic.perm}")

    def change(self, before: BrokerConfig, config: BrokerConfig) -> None:
        """Makes the topics that settings ask for now: the template from which sends create topics,
        also if it gets another number of queues, and that of traces."""
        is_resized = config.template_queues != before.template_queues
        if config.auto_create_topics and (names.TEMPLATE not in self.by_name or is_resized):
            queues, permission = config.template_queues, names.INHERIT | READ_WRITE
            self._store(new_topic(names.TEMPLATE, queues=queues, permission=permission))
        if config.trace_topic and config.trace_topic_name not in self.by_name:
            self._store(new_topic(config.trace_topic_name, queues=1))

    def make_by_send(
        self, name: str, *, template: str, queues: int, sys_flag: int
    ) -> TopicConfig | None:
        """Creates a topic at the first send to it.

        Args:
            template: the topic whose settings are copied; the producer names it.
            queues: how many the producer asks for; it gets at most as many as the template has.

        Returns:
            The topic; None if it may not be created.
        """
        known = self.by_name.get(name)
        if known is not None:
            return known
        pattern = self.by_name.get(template)
        is_on = self._settings.config.auto_create_topics
        if is_on and pattern is not None and names.is_inherited(pattern.perm):
            made = new_topic(
                name,
                queues=max(0, min(queues, pattern.write_queue_nums)),
                permission=pattern.perm & ~names.INHERIT,
                sys_flag=sys_flag,
            )
            made.topic_filter_type = pattern.topic_filter_type
            return self._store(made)
        if names.is_retry_topic(name):
            return self._store(new_topic(name, queues=1, sys_flag=sys_flag))
        return None

    def make_for_group(
        self, name: str, *, queues: int, sys_flag: int = 0, order: bool | None = None
    ) -> TopicConfig:
        """A group's retry or dead-letter topic; created if it is missing.

        Args:
            queues: how many it has at least; consumers find new ones with their next route.
            order: whether it is consumed in order; None if that is unknown. A change is applied.
        """
        known = self.by_name.get(name)
        if known is None:
            made = new_topic(name, queues=queues, sys_flag=sys_flag, order=bool(order))
            return self._store(made)
        has_few = min(known.read_queue_nums, known.write_queue_nums) < queues
        has_other_order = order is not None and known.order != order
        if has_few or has_other_order:
            changed = replace(
                known,
                order=known.order if order is None else order,
                read_queue_nums=max(known.read_queue_nums, queues),
                write_queue_nums=max(known.write_queue_nums, queues),
            )
            return self._store(changed)
        return known

    def add_missing(
        self,
        queues: Mapping[str, Sequence[int]],
        *,
        is_copy: bool = False,
        is_batch: Callable[[str], bool] = lambda topic: False,
    ) -> list[str]:
        """Creates the unknown topics that have messages in the store.

        The power may have failed after a message was stored and before its new topic was saved.
        Such a topic gets as many queues as the template has, and never fewer than have messages.
        At a slave its master knows how many there are, and perhaps has not said so when it is lost.
        So there it gets only those that have messages, and more of them as messages come, until the
        master says how many there are: what is sent to others by then would not be read any more
        if the old master brings its own number back.

        Args:
            queues: numbers of the queues in the store, by topic.
            is_copy: whether the messages were copied from a master.
            is_batch: whether the queues of a topic keep batches as one record.

        Returns:
            Names of the topics created, or given more queues.
        """
        template = self.by_name.get(names.TEMPLATE)
        made = []
        for name, numbers in queues.items():
            count = max(numbers) + 1
            if (known := self.by_name.get(name)) is not None:
                if name not in self._guessed or known.read_queue_nums >= count:
                    continue
            elif self.is_own(name) or names.fault_of_topic(name):
                continue
            if is_copy:
                self._guessed.add(name)
            elif template is not None and names.group_of(name) is None:
                count = max(count, template.write_queue_nums)
            self.by_name[name] = new_topic(name, queues=count)
            if is_batch(name):
                self.by_name[name].attributes = {QUEUE_TYPE: BATCH_QUEUE}
            self._changed(name)
            made.append(name)
        return made

    def remove(self, name: str) -> bool:
        """Deletes a topic.

        Returns:
            Whether there was one.

        Raises:
            InvalidParameter: the topic is the broker's own, or the name is blank.
        """
        if not name.strip():
            raise InvalidParameter("The specified topic is blank.")
        if self.is_own(name):
            raise InvalidParameter(f"The topic[{name}] is conflict with system topic.")
        if self.by_name.pop(name, None) is None:
            return False
        self._changed(name)
        return True

    def copy(self, name: str, topic: TopicConfig | None) -> None:
        """Makes a topic as a master has it; None if it is gone. The broker's own stay."""
        self._guessed.discard(name)
        if self.is_own(name) or self.by_name.get(name) == topic:
            return
        self._replace(name, topic)

    def _store(self, topic: TopicConfig) -> TopicConfig:
        name, limit = topic.topic_name, self._settings.config.topics_max
        if name not in self.by_name:
            if len(self.by_name) >= limit:
                raise SystemBusy(f"the broker has {len(self.by_name)} topics, its limit")
            if not name.startswith(_OF_GROUPS):
                check_creation("new_topics")
        self._replace(name, topic)
        return topic

    def to_json(self) -> dict[str, Any]:
        """The table as JSON for its file."""
        table = ConvertedRows(dict(self.by_name), msgspec.to_builtins)
        return {"dataVersion": msgspec.to_builtins(self.version), "topicConfigTable": table}

    def load(self, state: Mapping[str, Any]) -> None:
        """Loads the table from the JSON of its file; the broker's own topics stay unchanged.

        Raises:
            msgspec.ValidationError: the JSON has another form.
        """
        table = msgspec.convert(
            state.get("topicConfigTable") or {}, dict[str, TopicConfig], strict=False
        )
        self._load_version(state)
        has_template = names.TEMPLATE in self.by_name
        for name, topic in table.items():
            topic.topic_name = name
            if name in self.own_names or (name == names.TEMPLATE and not has_template):
                continue
            self.by_name[name] = topic
