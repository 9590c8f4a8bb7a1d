"""The functions that handle a peer's requests, and the encoding of their replies and errors."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.command import ONEWAY, Buffer, Command, Reply
from sprocket.protocol.frame import encode_reply

if TYPE_CHECKING:
    from sprocket.remoting.transport import Peer

logger = logging.getLogger(__name__)

#: A reply, or a whole encoded frame, or None for no reply.
Response = Reply | bytes | None
#: The same, or an awaitable for it. Awaitables become tasks of the connection.
EventualResponse = Response | Awaitable[Response]
#: Handles one request.
Endpoint = Callable[[Command, "Peer"], EventualResponse]
#: Receives requests that arrived together and handles the first of them, one or more: those that it
#: can handle together, or one that may take long. Returns the results of those, in their order.
BatchEndpoint = Callable[[Sequence[Command], "Peer"], Sequence[EventualResponse]]

#: Handles the first requests of a read before they are decoded, if it can: how many bytes it used,
#: and the frames that answer them. The read begins with a frame. It raises no error.
Shortcut = Callable[[bytes, "Peer"], tuple[int, bytes] | None]


def one_by_one(endpoint: Endpoint) -> BatchEndpoint:
    """Handles requests that arrived together one by one."""

    def answered(commands: Sequence[Command], peer: Peer) -> list[EventualResponse]:
        try:
            return [endpoint(commands[0], peer)]
        except Exception as error:  # one request must not affect the others
            return [error_reply(commands[0], error)]

    return answered


def frame_of(command: Command, reply: Reply) -> list[Buffer]:
    """A reply's frame: empty for a one-way request, an error reply if it cannot be encoded."""
    if command.flag & ONEWAY:
        return []
    try:
        return encode_reply(command, reply)
    except Exception as error:  # a reply that cannot be encoded must not affect the others
        return encode_reply(command, error_reply(command, error))


def join_frames(commands: Sequence[Command], answers: Sequence[Response]) -> bytes:
    """The frames of several replies, joined."""
    frames: list[Buffer] = []
    for command, answered in zip(commands, answers, strict=True):
        if isinstance(answered, Reply):
            frames += frame_of(command, answered)
        elif answered is not None:
            frames.append(answered)
    return b"".join(frames)


def error_reply(command: Command, error: Exception) -> Reply:
    """The error reply to a request whose handling raised an error, which it logs."""
    logger.error("request %d could not be answered", command.code, exc_info=error)
    return Reply(code=ResponseCode.SYSTEM_ERROR, remark=f"internal error: {type(error).__name__}")
