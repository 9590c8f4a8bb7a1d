"""What all methods have in common: requests are read, replies written, and errors become statuses.

The only place that turns an error into a status. A call that can be answered at once never becomes
a task.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from google.protobuf.message import DecodeError, Message

from sprocket.base.errors import SprocketError
from sprocket.proxy.brokers.accounts import KnownAccount
from sprocket.proxy.clients.served_clients import id_in
from sprocket.proxy.http2.call_form import Unary
from sprocket.proxy.http2.calls import GrpcCall
from sprocket.proxy.http2.status import GrpcError, GrpcStatus
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.statuses import status_of_error
from sprocket.proxy.methods.call_guard import CallGuard

logger = logging.getLogger(__name__)

M = TypeVar("M", bound=Message)
#: Answers a request that was read: with a reply, or an awaitable for one.
Answer = Callable[[GrpcCall, Any], Any]


def read(kind: type[M], data: bytes) -> M:
    """A message of a client.

    Raises:
        GrpcError: the bytes are none.
    """
    try:
        return kind.FromString(data)
    except DecodeError:
        raise GrpcError(GrpcStatus.UNKNOWN, "invalid protobuf byte sequence") from None


def status_of(call: GrpcCall, error: Exception) -> pb.Status:
    """The status for an error that ended a call. An unexpected one is logged."""
    if isinstance(error, SprocketError):
        logger.debug("%s asked %s: %s", call.address, call.method, error)
    else:
        logger.error("%s of %s failed", call.method, call.address, exc_info=error)
    return status_of_error(error)


def unary(
    request: type[Message], response: Any, answer: Answer, *, guard: CallGuard | None = None
) -> Unary:
    """A method with one request and one reply, whose reply has a status.

    Args:
        guard: checks who calls; None lets everybody.
    """

    def refused(call: GrpcCall, error: Exception) -> bytes:
        made: bytes = response(status=status_of(call, error)).SerializeToString()
        return made

    async def later(call: GrpcCall, outcome: Awaitable[Message]) -> bytes:
        try:
            return (await outcome).SerializeToString()
        except GrpcError:
            raise
        except Exception as error:  # every error becomes a status here
            return refused(call, error)

    def answered(
        call: GrpcCall, data: bytes, account: KnownAccount | None = None
    ) -> bytes | Awaitable[bytes]:
        asked = read(request, data)
        try:
            if guard is not None and account is not None:
                guard.judge(call, account, asked)
            id_in(call.metadata)
            outcome = answer(call, asked)
        except Exception as error:  # as above
            return refused(call, error)
        if isinstance(outcome, Message):
            return outcome.SerializeToString()
        return later(call, outcome)

    async def identified(call: GrpcCall, data: bytes, asked: Awaitable[KnownAccount]) -> bytes:
        try:
            account = await asked
        except Exception as error:  # as above
            return refused(call, error)
        outcome = answered(call, data, account)
        return outcome if isinstance(outcome, bytes) else await outcome

    def guarded(call: GrpcCall, data: bytes) -> bytes | Awaitable[bytes]:
        assert guard is not None
        try:
            account = guard.identify(call)
        except Exception as error:  # as above
            return refused(call, error)
        if isinstance(account, KnownAccount):
            return answered(call, data, account)
        return identified(call, data, account)

    return Unary(answered if guard is None else guarded)
