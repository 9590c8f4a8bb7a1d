"""Topics, and a broker's registration with all of them.

Source: TopicConfig, TopicConfigSerializeWrapper, TopicConfigAndMappingSerializeWrapper,
RegisterBrokerBody, CreateTopicListRequestBody, TopicConfigAndQueueMapping of
RocketMQ 4.9 and 5.x; recorded frames.
"""

from __future__ import annotations

from typing import Any

import msgspec

from sprocket.protocol.bodies.body import Body, DataVersion, always
from sprocket.protocol.bodies.static_topic import MappingDetail
from sprocket.protocol.command import Long


class TopicConfig(Body):
    """A topic at a broker.

    Attributes:
        perm: 4 readable, 2 writable, 1 a template whose permission is inherited.
        topic_filter_type: `SINGLE_TAG`, `MULTI_TAG`.
    """

    attributes: dict[str, str] = always({})
    order: bool = always(False)
    perm: Long = always(6)
    read_queue_nums: Long = always(16)
    topic_filter_type: str = always("SINGLE_TAG")
    topic_name: str = always("")
    topic_sys_flag: Long = always(0)
    write_queue_nums: Long = always(16)


class MappedTopic(TopicConfig):
    """A topic with its mapping, if it is static; reply body of `TopicConfigOf`."""

    mapping_detail: MappingDetail | None = None


class TopicConfigList(Body):
    """Body of `CreateTopics`."""

    topic_config_list: list[TopicConfig] = always([])


class TopicTable(Body):
    """Topics by name, and the mappings of static topics.

    Reply body of `AllTopicConfigs`; part of a registration. Brokers of 4.9 have no mappings.

    Attributes:
        topic_queue_mapping_info_map: kept as received.
    """

    data_version: DataVersion = msgspec.field(default_factory=lambda: DataVersion())
    mapping_data_version: DataVersion | None = None
    topic_config_table: dict[str, TopicConfig] = always({})
    topic_queue_mapping_detail_map: dict[str, MappingDetail] | None = None
    topic_queue_mapping_info_map: dict[str, Any] | None = None


class RegisterBody(Body):
    """Body of `RegisterBroker`. Its compressed form is in `sprocket.protocol.registration`."""

    filter_server_list: list[str] = always([])
    topics: TopicTable = msgspec.field(
        default_factory=lambda: TopicTable(), name="topicConfigSerializeWrapper"
    )
