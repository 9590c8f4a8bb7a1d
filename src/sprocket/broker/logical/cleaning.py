"""Drops the oldest parts of logical queues when their messages have all been removed.

The leader of a queue asks once an hour, while it is the master. A part that is dropped is only
forgotten: the queue of its broker stays.
Source: TopicQueueMappingCleanService.cleanItemExpired of RocketMQ 5.3, which asks in the hour in
which files are deleted.
"""

from __future__ import annotations

import asyncio
import logging

from sprocket.base.errors import SprocketError
from sprocket.broker.logical.other_brokers import OtherBrokers
from sprocket.broker.tables.queue_mappings import QueueMappings
from sprocket.clientcore.logical_queues import decided, leader
from sprocket.protocol.bodies import MappingItem
from sprocket.protocol.requests.offset import MaxOffset, MinOffset, OffsetReply
from sprocket.store.store import Store

logger = logging.getLogger(__name__)

#: Pause between two checks, s.
_PAUSE_SECONDS = 3_600.0


class PartCleaning:
    """Cleans the mappings of one broker.

    Args:
        broker: its name.
    """

    def __init__(
        self, broker: str, store: Store, mappings: QueueMappings, others: OtherBrokers
    ) -> None:
        self._broker = broker
        self._store = store
        self._mappings = mappings
        self._others = others

    async def run(self) -> None:
        """Cleans after each pause, until cancelled."""
        while True:
            await asyncio.sleep(_PAUSE_SECONDS)
            for topic in list(self._mappings.by_topic):
                await self._clean(topic)

    async def _clean(self, topic: str) -> None:
        detail = self._mappings.get(topic)
        if detail is None:
            return
        for number in list(detail.hosted_queues):
            try:
                await self._clean_queue(topic, number)
            except SprocketError as error:
                logger.info("%s-%d: its oldest part is not checked: %s", topic, number, error)

    async def _clean_queue(self, topic: str, number: int) -> None:
        """Drops the oldest part of a queue that this broker leads, if it is empty and over."""
        detail = self._mappings.get(topic)
        if detail is None or leader(detail, number) is None:
            return
        parts = detail.hosted_queues[number]
        if len(decided(parts)) < 2 or not await self._is_empty(topic, parts[0]):
            return
        now = self._mappings.get(topic)  # it may have changed meanwhile
        if now is not None and now.hosted_queues.get(number) == parts:
            logger.info("%s-%d: its part in %s is empty and dropped", topic, number, parts[0].bname)
            self._mappings.replace(topic, {**now.hosted_queues, number: parts[1:]})

    async def _is_empty(self, topic: str, item: MappingItem) -> bool:
        if item.bname == self._broker:
            queue = item.queue_id
            low = self._store.min_offset(topic, queue)
            return low >= self._store.max_offset(topic, queue)
        first, end = [
            (await self._others.ask(item.bname, topic, asked)).checked().read(OffsetReply).offset
            for asked in (
                MinOffset(topic=topic, queue_id=item.queue_id, bname=item.bname, lo=False),
                MaxOffset(topic=topic, queue_id=item.queue_id, bname=item.bname, lo=False),
            )
        ]
        return first >= end
