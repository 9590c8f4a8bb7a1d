"""What answers a peer's requests, and what is written where an answer fails."""

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

#: What is answered: a reply, or a whole frame that is written already; None: nothing.
Answered = Reply | bytes | None
#: The same, now or later. Awaitables become tasks of the connection.
Outcome = Answered | Awaitable[Answered]
#: Answers one request.
Answer = Callable[[Command, "Peer"], Outcome]
#: Answers requests that came together: gives as many outcomes, in their order.
AnswerAll = Callable[[Sequence[Command], "Peer"], Sequence[Outcome]]


def one_by_one(answer: Answer) -> AnswerAll:
    """Answers the requests of a read each by itself; one that cannot be costs no other."""

    def answered(command: Command, peer: Peer) -> Outcome:
        try:
            return answer(command, peer)
        except Exception as error:  # one request must not cost the others
            return apology(command, error)

    return lambda commands, peer: [answered(command, peer) for command in commands]


def frame_of(command: Command, reply: Reply) -> list[Buffer]:
    """What is written for a reply: nothing for a one-way request, an apology if it cannot be."""
    if command.flag & ONEWAY:
        return []
    try:
        return encode_reply(command, reply)
    except Exception as error:  # what cannot be written must not cost the others
        return encode_reply(command, apology(command, error))


def joined(commands: Sequence[Command], answers: Sequence[Answered]) -> bytes:
    """What is written for as many answers, in one piece."""
    frames: list[Buffer] = []
    for command, answered in zip(commands, answers, strict=True):
        if isinstance(answered, Reply):
            frames += frame_of(command, answered)
        elif answered is not None:
            frames.append(answered)
    return b"".join(frames)


def apology(command: Command, error: Exception) -> Reply:
    """The answer to a request whose answer failed."""
    logger.error("request %d could not be answered", command.code, exc_info=error)
    return Reply(code=ResponseCode.SYSTEM_ERROR, remark=f"internal error: {type(error).__name__}")
