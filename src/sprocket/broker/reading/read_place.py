"""Where a consumer reads next: at the master or at a slave; and what a slave answers differently.

With `slave_reads`, a consumer that is so far behind that the master would have to read from its
disk is sent to the slave that its group names, and back when it has caught up. A slave sends
whoever finds nothing new to the master, as long as it is connected to it. It never moves a
consumer's position: it may lack the newest messages, or have begun with a later file.

Source: PullMessageProcessor.composeResponseHeader, DefaultMessageStore.getMessage and
DefaultPullMessageResultHandler of RocketMQ 5.x. There the reply of a slave says 20 too, but its
next offset still moves a Java client.
"""

from __future__ import annotations

import msgspec

from sprocket.broker.members.replication import Replication
from sprocket.broker.settings import BrokerSettings
from sprocket.message.record import LOG_OFFSET_AT
from sprocket.protocol.bodies import GroupConfig
from sprocket.protocol.codes import MASTER
from sprocket.store.reading.queue_reader import ReadResult, ReadStatus
from sprocket.store.store import Store

_LONG_BYTES = 8
_MOVING = (ReadStatus.OFFSET_OVERFLOW_BADLY, ReadStatus.OFFSET_TOO_SMALL)
_EMPTY = (ReadStatus.NO_MESSAGE_IN_QUEUE, ReadStatus.NO_MATCHED_LOGIC_QUEUE)


class ReadPlaces:
    """Decides for the consumers of one broker.

    Args:
        memory_bytes: the memory of the machine.
    """

    def __init__(
        self,
        store: Store,
        settings: BrokerSettings,
        *,
        replication: Replication,
        memory_bytes: int,
    ) -> None:
        self._store = store
        self._settings = settings
        self._replication = replication
        self._memory_bytes = memory_bytes

    @property
    def is_slave(self) -> bool:
        """Whether this broker is a slave now."""
        return self._replication.is_slave

    def next_broker(self, found: ReadResult, group: GroupConfig) -> int:
        """The number of the broker that the consumer should ask next."""
        if not self._settings.config.slave_reads:
            return MASTER
        if found.parts and self._is_far_behind(found.parts[-1]):
            return group.which_broker_when_consume_slowly
        return MASTER if self._has_master() else group.broker_id

    def _is_far_behind(self, part: memoryview) -> bool:
        """Whether a record is further from the log's end than the part of memory that is set."""
        log_offset = int.from_bytes(part[LOG_OFFSET_AT : LOG_OFFSET_AT + _LONG_BYTES], "big")
        limit = self._memory_bytes * self._settings.config.memory_percent // 100
        return self._store.log_end - log_offset > limit

    def sends_back(self) -> bool:
        """Whether a consumer for which there is nothing here should ask the master at once."""
        return self.is_slave and self._has_master()

    def _has_master(self) -> bool:
        slave = self._replication.slave
        return slave is not None and slave.is_connected

    def unmoved(self, found: ReadResult, asked: int) -> ReadResult:
        """What a slave has found at an offset: nothing yet, instead of another offset."""
        if found.status in _MOVING or (found.status in _EMPTY and asked):
            return msgspec.structs.replace(
                found,
                status=ReadStatus.OFFSET_OVERFLOW_ONE,
                next_offset=asked,
            )
        return found
