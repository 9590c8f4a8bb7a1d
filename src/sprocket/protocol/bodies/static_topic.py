"""Static topics: which queue of which broker holds which part of a logical queue.

Source: LogicQueueMappingItem, TopicQueueMappingInfo, TopicQueueMappingDetail,
TopicQueueMappingSerializeWrapper, TopicConfigAndQueueMapping, TopicRemappingDetailWrapper of
RocketMQ 5.3.
"""

from __future__ import annotations

from sprocket.protocol.bodies.body import Body, always
from sprocket.protocol.command import Long

#: The scope of a static topic that all clusters of a name server share.
GLOBAL_SCOPE = "__global__"


class MappingItem(Body):
    """A part of a logical queue: the messages of one queue of one broker.

    An item is never changed: a new state is a new item.

    Attributes:
        bname: the broker.
        end_offset: the queue offset behind the part; -1 while that is not known.
        gen: rises by one with each move of the logical queue.
        logic_offset: the logical offset at which the part begins; -1 until that is decided.
        queue_id: the number of the broker's queue.
        start_offset: the queue offset at which the part begins; always 0.
    """

    bname: str = always("")
    end_offset: Long = always(-1)
    gen: Long = always(0)
    logic_offset: Long = always(0)
    queue_id: Long = always(0)
    start_offset: Long = always(0)
    time_of_end: Long = always(-1)
    time_of_start: Long = always(-1)


class MappingInfo(Body):
    """What a name server and clients know of a static topic at one broker.

    Attributes:
        bname: the broker.
        curr_id_map: the broker's queues, by the number of the logical queue that it leads.
        epoch: rises with each change of the topic.
        total_queues: logical queues of the topic, on all brokers.
    """

    bname: str = always("")
    curr_id_map: dict[Long, Long] = always({})
    dirty: bool = always(False)
    epoch: Long = always(0)
    scope: str = always(GLOBAL_SCOPE)
    topic: str = always("")
    total_queues: Long = always(0)


class MappingDetail(Body):
    """What a broker knows of a static topic: the parts of the logical queues that it leads or led.

    Attributes:
        hosted_queues: by logical queue, its parts, oldest first; the last one is written to.
    """

    bname: str = always("")
    curr_id_map: dict[Long, Long] = always({})
    dirty: bool = always(False)
    epoch: Long = always(0)
    hosted_queues: dict[Long, list[MappingItem]] = always({})
    scope: str = always(GLOBAL_SCOPE)
    topic: str = always("")
    total_queues: Long = always(0)
