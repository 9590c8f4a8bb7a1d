"""Bodies of static topics."""

from __future__ import annotations

from sprocket.protocol.bodies import MappedTopic, MappingDetail, MappingInfo, MappingItem

#: As RocketMQ's `mqadmin` 5.3.3 sends it: fastjson's dialect, with numbers as keys.
FROM_MQADMIN = (
    b'{"bname":"broker-a","currIdMap":{},"dirty":false,"epoch":1700000000000,'
    b'"hostedQueues":{0:[{"bname":"broker-a","endOffset":-1,"gen":0,"logicOffset":0,"queueId":0,'
    b'"startOffset":0,"timeOfEnd":-1,"timeOfStart":-1}]},"scope":"__global__","topic":"T",'
    b'"totalQueues":2}'
)


def test_a_mapping_is_read_in_both_dialects() -> None:
    detail = MappingDetail.decode(FROM_MQADMIN)
    assert detail.hosted_queues == {0: [MappingItem(bname="broker-a")]}
    assert (detail.epoch, detail.total_queues, detail.scope) == (1700000000000, 2, "__global__")
    assert MappingDetail.decode(detail.encode()) == detail


def test_a_topic_is_shown_with_its_mapping() -> None:
    topic = MappedTopic(topic_name="T", mapping_detail=MappingDetail.decode(FROM_MQADMIN))
    assert MappedTopic.decode(topic.encode()) == topic
    assert b'"mappingDetail":{"bname":"broker-a"' in topic.encode()


def test_what_clients_learn_has_no_parts() -> None:
    info = MappingInfo(bname="a", curr_id_map={0: 3}, epoch=7, topic="T", total_queues=1)
    assert MappingInfo.decode(info.encode()) == info
    assert b"hostedQueues" not in info.encode()
