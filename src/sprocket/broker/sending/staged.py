"""Requests about staged batches: they are staged (30331), and published together (30332).

RocketMQ has nothing like it. What a writer must know is in docs/flows/staged.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence

from sprocket.auth.needs import PUB
from sprocket.base.deadline import Deadline
from sprocket.base.errors import InvalidParameter
from sprocket.base.ports import Clock
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.sending.acknowledgement import Acknowledgement
from sprocket.broker.sending.publication import Publication, StagedTransaction
from sprocket.broker.tables.rights import Rights
from sprocket.message.hosts import pack
from sprocket.protocol.bodies.staged import AttemptEntry, AttemptList, AttemptsElsewhere
from sprocket.protocol.codes import OwnRequestCode, ResponseCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.staged import Published, PublishStaged, StageBatch
from sprocket.remoting.transport import Peer
from sprocket.store.store import Store
from sprocket.transaction.staged import StagedDecision, StagedHead

#: A reply comes after this time at the latest, s, and says how much is published.
_HOLD_S = 4.0


class StagedRequests:
    """Answers requests about staged batches."""

    def __init__(
        self,
        publication: Publication,
        store: Store,
        acknowledgement: Acknowledgement,
        *,
        rights: Rights,
        clock: Clock,
    ) -> None:
        self._publication = publication
        self._ledger = publication.ledger
        self._store = store
        self._acknowledgement = acknowledgement
        self._rights = rights
        self._clock = clock

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {
            OwnRequestCode.STAGE_BATCH: self.stage,
            OwnRequestCode.PUBLISH_STAGED: self.publish,
        }

    def stage(self, command: Command, peer: Peer) -> Reply | Awaitable[Reply]:
        """Stages a batch.

        Raises:
            TopicNotFound, InvalidParameter, IllegalMessage: it could not be published, or a later
                transaction of its writer is decided.
            NoPermission: the topic is the broker's own, or the writer is another user's.
            SystemBusy: too much is staged.
        """
        header = command.read(StageBatch)
        body = bytes(command.body)
        head = StagedHead(
            header.writer,
            command.user or "",
            header.batch_id,
            header.attempt,
            header.number,
            header.topic,
            header.queue_id,
            self._publication.reader.check(header, body),
        )
        if self._ledger.is_staged(head):
            return self._acknowledgement.up_to(self._store.log_end)
        born_host = pack(peer.address)
        appended = self._publication.stage(
            head, body, born_ms=header.born_timestamp, born_host=born_host
        )
        return self._acknowledgement.without_header(appended)

    async def publish(self, command: Command, peer: Peer) -> Reply:
        """Decides a transaction if it is not, and returns when it is published, or after a time.

        Raises:
            NoPermission: whoever asks may not send to its topics, or the writer is another user's.
            InvalidParameter: batches are missing, or it cannot be known whether it was decided
                before.
            SystemBusy: the writer's last transaction is not finished yet.
        """
        header = command.read(PublishStaged)
        asked = AttemptList.of_request(command.body)
        named, decided_by = _named(asked.attempts), header.decided_by or ""
        before = self._publication.of(header.writer)
        if before is not None and before.decision.batch < header.batch_id:
            await self._finished(before)
        decision = self._ledger.earlier(
            header.writer, command.user or "", header.batch_id, is_first=header.is_first,
            decided_by=decided_by,
        )  # fmt: skip
        is_repeat = decision is not None
        elsewhere = self._elsewhere(header.writer) if is_repeat else b""
        if decision is None:
            messages = self._checked(header, named, command, peer)
            if header.checks_only:
                return Reply(
                    Published(is_finished=False, is_repeat=False, messages=messages, published=0)
                )
            decision = StagedDecision(
                header.writer, command.user or "", header.batch_id, named, messages,
                is_finished=False, at_ms=self._clock.now_ms(), keep_ms=header.keep_seconds * 1000,
                staged_from=0, decided_from=0, decided_by=decided_by,
                elsewhere=[(each.broker, _named(each.attempts)) for each in asked.elsewhere],
            )  # fmt: skip
            self._publication.decide(decision)
        one = self._publication.of(header.writer)
        if one is not None and header.waits:
            await self._finished(one)
        writer = self._ledger.writers.get(header.writer)
        last = None if writer is None else writer.last
        is_finished = last is not None and last.batch == header.batch_id and last.is_finished
        reply = Published(
            is_finished=is_finished,
            is_repeat=is_repeat,
            messages=decision.messages,
            published=decision.messages if is_finished or one is None else one.published,
        )
        safe = self._acknowledgement.code_up_to(self._store.log_end)
        code = ResponseCode.SUCCESS if safe is None else await safe
        return Reply(reply, body=elsewhere, code=code)

    def _elsewhere(self, writer: str) -> bytes:
        """What other brokers publish of a transaction that was decided before."""
        found = [
            AttemptsElsewhere(
                broker=broker,
                attempts=[AttemptEntry(name=name, requests=count) for name, count in attempts],
            )
            for broker, attempts in self._publication.elsewhere(writer)
        ]
        return AttemptList(elsewhere=found).encode() if found else b""

    async def _finished(self, one: StagedTransaction) -> None:
        """Returns when a transaction is published, or after a time."""
        await self._publication.finished.reach(one.number, Deadline.after(_HOLD_S))

    def _checked(
        self, header: PublishStaged, named: list[tuple[str, int]], command: Command, peer: Peer
    ) -> int:
        """Checks that a transaction can be published; returns how many messages it has."""
        writer = self._ledger.writers.get(header.writer)
        if len({name for name, _ in named}) < len(named):
            raise InvalidParameter("an attempt is named twice")
        messages = 0
        for name, requests in named:
            attempt = None if writer is None else writer.attempts.get(name)
            found = 0 if attempt is None else len(attempt.batches)
            is_other = attempt is not None and attempt.batch != header.batch_id
            if found != requests or is_other:
                raise InvalidParameter(
                    f"of attempt {name} of writer {header.writer}, {found} batches are staged, not "
                    f"{requests}: they were lost, or belong to another transaction"
                )
            if attempt is None:
                continue
            if max(attempt.batches) >= requests:
                raise InvalidParameter(f"batches of attempt {name} are missing between others")
            for topic, queue in attempt.topics.items():
                self._rights.require(command, peer, topic, PUB, named=None)
                self._publication.reader.place(topic, queue)
            messages += sum(attempt.counts.values())
        return messages


def _named(attempts: Sequence[AttemptEntry]) -> list[tuple[str, int]]:
    return [(each.name, each.requests) for each in attempts]
