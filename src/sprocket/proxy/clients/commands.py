"""What brokers ask of clients: passed on as commands over the clients' streams.

Checks of transactions, the stacks of a consumer's threads, and consuming one message now.
Source: GrpcClientChannel and ProxyClientRemotingProcessor of RocketMQ 5.3 (module proxy).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable

from sprocket.base.errors import CorruptRecord, ProtocolError
from sprocket.base.ports import Clock, Entropy
from sprocket.message.message import StoredMessage
from sprocket.message.properties import PRODUCER_GROUP
from sprocket.message.record import decode
from sprocket.protocol.bodies import ConsumeDirectlyResult, RunningInfo
from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.client import ConsumeDirectly, ConsumerRunning
from sprocket.protocol.requests.lite import NotifyUnsubscribeLite
from sprocket.protocol.requests.transaction import CheckTransaction
from sprocket.proxy.clients.ended_transactions import EndedTransactions
from sprocket.proxy.clients.served_clients import ServedClient, ServedClients
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.delivered_messages import fill_message, opening_of_answer
from sprocket.proxy.messages.transaction_ids import TransactionId
from sprocket.remoting.endpoints import EventualResponse

logger = logging.getLogger(__name__)

#: How long a client may take to answer. Source: ProxyConfig.grpcProxyRelayRequestTimeoutInSeconds.
_ANSWER_SECONDS = 5.0
_QUESTIONS_MAX = 1024

_VERDICTS = {
    pb.OK: "CR_SUCCESS",
    pb.FAILED_TO_CONSUME_MESSAGE: "CR_LATER",
    pb.MESSAGE_CORRUPTED: "CR_RETURN_NULL",
}


class ClientCommands:
    """Passes requests of brokers on, and the answers of clients back.

    Args:
        ended: transactions that a broker asks about may be ended again.
    """

    def __init__(self, ended: EndedTransactions, clock: Clock, entropy: Entropy) -> None:
        self._ended = ended
        self._clock = clock
        self._entropy = entropy
        #: By nonce, what a client was asked and has not answered.
        self._asked: dict[str, asyncio.Future[Reply]] = {}

    def answer(
        self,
        command: Command,
        clients: ServedClients,
        *,
        broker: str | None,
        client: ServedClient | None = None,
    ) -> EventualResponse:
        """Answers a request of a broker to a client.

        Args:
            broker: the name of the broker that asks, if it is known.
            client: whom it asks, at a broker in the same process.

        Raises:
            RemoteProtocolError: a field is missing or ill-typed.
        """
        if command.code == CheckTransaction.code:
            self._check(command, clients, broker)
            return None
        if command.code == ConsumerRunning.code:
            running = command.read(ConsumerRunning)
            asked = _able(client or clients.find(running.client_id))
            asked = asked or clients.next_consumer(running.consumer_group)
            return self._trace(asked, is_wanted=running.jstack_enable)
        if command.code == ConsumeDirectly.code:
            consume = command.read(ConsumeDirectly)
            asked = _able(client or clients.find(consume.client_id or ""))
            asked = asked or clients.next_consumer(consume.consumer_group)
            return self._verify(asked, command)
        if command.code == NotifyUnsubscribeLite.code:
            self._unsubscribe(command.read(NotifyUnsubscribeLite), clients, client)
            return None
        if command.is_oneway:  # that members have changed, or offsets: nothing to do for pops
            return None
        return Reply(
            code=ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
            remark=f"request type {command.code} not supported",
        )

    def _unsubscribe(
        self, header: NotifyUnsubscribeLite, clients: ServedClients, client: ServedClient | None
    ) -> None:
        client = client or clients.find(header.client_id)
        if client is not None and client.group == header.consumer_group:
            made = pb.TelemetryCommand()
            made.notify_unsubscribe_lite_command.lite_topic = header.lite_topic
            client.send(made)

    def _check(self, command: Command, clients: ServedClients, broker: str | None) -> None:
        header = command.read(CheckTransaction)
        message = _message(command)
        name = broker or header.bname
        if message is None or name is None:
            return
        topic = message.value(PRODUCER_GROUP) or message.topic
        client = clients.next_producer(topic)
        if client is None:
            logger.info("nobody here can say how a transaction of topic %s ended", topic)
            return
        made = pb.TelemetryCommand()
        asked = made.recover_orphaned_transaction_command
        fill_message(
            asked.message,
            message,
            handle=None,
            opening=opening_of_answer(),
            now_ms=self._clock.now_ms(),
        )
        half = TransactionId(name, header.commit_log_offset, header.tran_state_table_offset)
        self._ended.reopen(half)
        asked.transaction_id = half.encode()
        client.send(made)

    def _trace(self, client: ServedClient | None, *, is_wanted: bool) -> EventualResponse:
        if client is None:
            return _absent()
        if not is_wanted:
            properties = {"PROP_CLIENT_VERSION": client.version, "PROP_CONSUME_TYPE": "CONSUME_POP"}
            return Reply(body=RunningInfo(properties=properties).encode())
        made = pb.TelemetryCommand()
        nonce, answer = self._question()
        made.print_thread_stack_trace_command.nonce = nonce
        client.send(made)
        return answer

    def _verify(self, client: ServedClient | None, command: Command) -> EventualResponse:
        message = _message(command)
        if client is None or message is None:
            return _absent()
        made = pb.TelemetryCommand()
        nonce, answer = self._question()
        made.verify_message_command.nonce = nonce
        fill_message(
            made.verify_message_command.message,
            message,
            handle=None,
            opening=opening_of_answer(),
            now_ms=self._clock.now_ms(),
        )
        client.send(made)
        return answer

    def _question(self) -> tuple[str, Awaitable[Reply]]:
        nonce = self._entropy.token(16).hex()
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        if len(self._asked) < _QUESTIONS_MAX:
            self._asked[nonce] = future
        return nonce, self._awaited(nonce, future)

    async def _awaited(self, nonce: str, future: asyncio.Future[Reply]) -> Reply:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await future
        except TimeoutError:
            return Reply(code=ResponseCode.SYSTEM_ERROR, remark="the client does not answer")
        finally:
            self._asked.pop(nonce, None)

    def trace_answered(self, given: pb.Status, trace: pb.ThreadStackTrace) -> None:
        """A client has sent the stacks of its threads."""
        if given.code != pb.OK:
            self._settle(trace.nonce, _refused(given))
            return
        body = RunningInfo(jstack=trace.thread_stack_trace).encode()
        self._settle(trace.nonce, Reply(body=body))

    def verify_answered(self, given: pb.Status, result: pb.VerifyMessageResult) -> None:
        """A client has consumed a message that it was to consume at once."""
        verdict = _VERDICTS.get(given.code)
        if verdict is None:
            self._settle(result.nonce, _refused(given))
            return
        body = ConsumeDirectlyResult(consume_result=verdict, remark="from gRPC client").encode()
        self._settle(result.nonce, Reply(body=body))

    def _settle(self, nonce: str, reply: Reply) -> None:
        future = self._asked.pop(nonce, None)
        if future is not None and not future.done():
            future.set_result(reply)


def _refused(given: pb.Status) -> Reply:
    if given.code == pb.VERIFY_FIFO_MESSAGE_UNSUPPORTED:
        return Reply(code=ResponseCode.NO_PERMISSION, remark="forbidden to verify message")
    return Reply(code=ResponseCode.SYSTEM_ERROR, remark=given.message[:1000] or "it failed")


def _able(client: ServedClient | None) -> ServedClient | None:
    """The client, if it can be sent commands."""
    return client if client is not None and client.stream is not None else None


def _absent() -> Reply:
    return Reply(code=ResponseCode.SYSTEM_ERROR, remark="no client that can be asked is here")


def _message(command: Command) -> StoredMessage | None:
    try:
        return decode(command.body)
    except (CorruptRecord, ProtocolError) as error:
        logger.info("a broker sent a message that cannot be read: %s", error)
        return None
