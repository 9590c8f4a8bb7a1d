"""Sends of one message (codes 10 and 310) or of a batch (320).

A send is read, stored by `Ingress` and answered: alone, or in a run with the other sends of the
same read. It is answered at once, or with SYNC_FLUSH after the flush to the disk.
Source: SendMessageProcessor of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sprocket.broker.dispatch import Endpoints, RunEndpoints, SharedWait
from sprocket.broker.sending.acknowledgement import Acknowledgement
from sprocket.broker.sending.batch_reader import BatchReader
from sprocket.broker.sending.ingress import Ingress
from sprocket.broker.sending.intake import SendHeader, SendReader
from sprocket.broker.sending.run_reader import RunReader
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command
from sprocket.protocol.requests.send import SendBatch, SendMessage, SendMessageV2
from sprocket.remoting.endpoints import EventualResponse
from sprocket.remoting.transport import Peer


class Sends:
    """Answers sends."""

    def __init__(
        self,
        reader: SendReader,
        runs: RunReader,
        batches: BatchReader,
        ingress: Ingress,
        acknowledgement: Acknowledgement,
    ) -> None:
        self._reader = reader
        self._run_reader = runs
        self._batch_reader = batches
        self._ingress = ingress
        self._acknowledgement = acknowledgement

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {
            RequestCode.SEND_MESSAGE: partial(self.send, SendMessage),
            RequestCode.SEND_MESSAGE_V2: partial(self.send, SendMessageV2),
            RequestCode.SEND_BATCH_MESSAGE: partial(self.send, SendBatch),
        }

    def runs(self) -> RunEndpoints:
        """The endpoints for sends that arrive together, by request code."""
        return {
            RequestCode.SEND_MESSAGE: partial(self.send_run, SendMessage),
            RequestCode.SEND_MESSAGE_V2: partial(self.send_run, SendMessageV2),
            RequestCode.SEND_BATCH_MESSAGE: self.send_batches,
        }

    def send(self, kind: type[SendHeader], command: Command, peer: Peer) -> EventualResponse:
        """Stores one message or a batch."""
        header = command.read(kind)
        intake = self._reader.read_send(header, command, peer)
        return self._acknowledgement.of_one(command, self._ingress.accept(intake))

    def send_run(
        self, kind: type[SendHeader], commands: Sequence[Command], peer: Peer
    ) -> Sequence[EventualResponse] | SharedWait:
        """Stores the first messages of a run: as many as `RunReader` reads and the store accepts.

        Raises:
            IllegalMessage, DiskFull, StoreError, ClosedError: the store refuses the first.
        """
        destinations = self._run_reader.read_run(kind, commands, peer)
        if not destinations:
            return ()
        appended = self._ingress.store(destinations)
        return self._acknowledgement.of_run(commands, appended, destinations)

    def send_batches(
        self, commands: Sequence[Command], peer: Peer
    ) -> Sequence[EventualResponse] | SharedWait:
        """Stores the first batches of a run: as many as `BatchReader` reads and the store accepts.

        Raises:
            IllegalMessage, DiskFull, StoreError, ClosedError: the store refuses the first.
        """
        batches = self._batch_reader.read_run(commands, peer)
        if not batches:
            return ()
        stored = self._ingress.store_batches(batches)
        return self._acknowledgement.of_batches([each.destination for each in batches], stored)
