"""Acknowledgements (200051) that arrive together: of each check point one record, and one append.

Consumers acknowledge the messages of a pop one after the other, so those of one read mostly belong
to few check points. The records are RocketMQ's: `bAck` for several messages, `ack` for one. What is
in order is one change of its row. A run ends before the first acknowledgement that must be refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from sprocket.base.errors import RemoteProtocolError, ReplyError, UsageError
from sprocket.broker.dispatch import RunEndpoints, SharedWait
from sprocket.broker.pop.acks import AckRequests
from sprocket.broker.pop.journal import DueAck, OrderRow, PopJournal
from sprocket.broker.sending.acknowledgement import Acknowledgement
from sprocket.message.pop_handle import PopHandle
from sprocket.protocol.bodies.pop import AckRecord
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.pop import AckMessage
from sprocket.remoting.endpoints import EventualResponse
from sprocket.remoting.transport import Peer

#: Blanks before the last word of a handle as a broker gives it out.
_BLANKS = 7


class AckRuns:
    """Answers acknowledgements that arrive together.

    Args:
        requests: checks each of them, and answers what is not taken here.
    """

    def __init__(
        self, requests: AckRequests, journal: PopJournal, acknowledgement: Acknowledgement
    ) -> None:
        self._requests = requests
        self._journal = journal
        self._acknowledgement = acknowledgement

    def runs(self) -> RunEndpoints:
        """The endpoint, by request code."""
        return {RequestCode.ACK_MESSAGE: self.ack_run}

    def ack_run(
        self, commands: Sequence[Command], peer: Peer
    ) -> Sequence[EventualResponse] | SharedWait:
        """Acknowledges the first messages of a run: as many as are of one kind and may be.

        Raises:
            ReplyError, DiskFull, StoreError: their records cannot be stored; nothing has changed.
        """
        if len(commands) < 2 or commands[1].code != commands[0].code:
            return ()
        taken = self._taken(commands, peer)
        if not taken:
            return ()
        if taken[0][1].is_in_order:
            end, count = self._in_order(taken)
        else:
            end, count = self._journal.acknowledge_all(_merged(taken)).end, len(taken)
        wait = self._acknowledgement.code_up_to(end) if count else None
        if wait is None:
            return [Reply() for _ in range(count)]
        return SharedWait(count, wait, lambda code: [Reply(code=code)] * count)

    def _taken(self, commands: Sequence[Command], peer: Peer) -> list[tuple[AckMessage, PopHandle]]:
        """The first ones that are right, either all in order or none, with their handles."""
        code, parsed = commands[0].code, dict[str, PopHandle]()
        taken: list[tuple[AckMessage, PopHandle]] = []
        for command in commands:
            if command.code != code:
                break
            try:
                header = command.read(AckMessage)
                if header.lite_topic:
                    break
                handle = self._requests.checked(header, peer, _parsed(header.extra_info, parsed))
            except (ReplyError, UsageError, RemoteProtocolError):
                break
            if taken and taken[0][1].is_in_order != handle.is_in_order:
                break
            taken.append((header, handle))
        return taken

    def _in_order(self, taken: Sequence[tuple[AckMessage, PopHandle]]) -> tuple[int, int]:
        """Acknowledges the first ones: one record for each pop from a queue.

        Returns:
            The end of what is stored, and how many they were.
        """
        if not self._journal.has_orders:
            return 0, 0
        wanted: dict[tuple[str, str, int], tuple[int, list[int]]] = {}
        count = 0
        for header, handle in taken:
            place = (header.consumer_group, header.topic, handle.queue_number)
            pop_ms, offsets = wanted.setdefault(place, (handle.pop_ms, []))
            if pop_ms != handle.pop_ms:
                break
            offsets.append(header.offset)
            count += 1
        rows = []
        for (group, topic, number), (pop_ms, offsets) in wanted.items():
            row = self._requests.row_of_those((group, topic, number), pop_ms, offsets)
            if row is None:
                return 0, 0
            rows.append(OrderRow(group, topic, number, row))
        return self._requests.keep_rows(rows).end, count


# The handles of one check point differ in their last word only.
def _parsed(text: str, parsed: dict[str, PopHandle]) -> PopHandle:
    start, _, _ = text.rpartition(" ")
    found = parsed.get(start)
    if found is None:
        found = PopHandle.parse(text)
        if text.count(" ") == _BLANKS:
            parsed[start] = found
    return found


def _merged(taken: Sequence[tuple[AckMessage, PopHandle]]) -> list[DueAck]:
    """One record for each check point."""
    offsets: dict[tuple[str, str, int, PopHandle], list[int]] = {}
    for header, handle in taken:
        key = (header.consumer_group, header.topic, header.queue_id, handle._replace(offset=0))
        offsets.setdefault(key, []).append(header.offset)
    return [
        DueAck(
            AckRecord(
                offset=done[0] if len(done) == 1 else -1,
                offsets=None if len(done) == 1 else done,
                broker=handle.broker, group=group, pop_ms=handle.pop_ms, queue_number=number,
                start_offset=handle.start_offset, topic=topic,
            ),
            handle.revive_queue,
            handle.due_ms,
        )
        for (group, topic, number, handle), done in offsets.items()
    ]  # fmt: skip
