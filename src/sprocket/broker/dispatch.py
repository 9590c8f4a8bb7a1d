"""From a request's code to the function that answers it, and from errors to response codes.

The only place that turns an error into a code. Whatever an answer raises becomes a reply with a
code and clear words, so that one request never costs another.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from sprocket.base.errors import (
    ClosedError,
    DiskFull,
    ProtocolError,
    ReplyError,
    SprocketError,
    UsageError,
)
from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.command import Command, Header, Reply
from sprocket.remoting.endpoints import Endpoint, EventualResponse, Response, join_frames
from sprocket.remoting.transport import Peer
from sprocket.store.log.drafts import IllegalDraft

logger = logging.getLogger(__name__)

#: What a part of the broker answers, by request code.
Endpoints = Mapping[int, Endpoint]


class SharedWait(NamedTuple):
    """Answers that all wait for the same.

    Attributes:
        size: of how many requests.
        code: the response code of all of them, once it is known.
        answers: the answers, given that.
    """

    size: int
    code: Awaitable[int]
    answers: Callable[[int], Sequence[Response]]


#: Answers the first of several requests together, as many as it can: maybe none. It raises a
#: `SprocketError` only where it has done nothing.
RunEndpoint = Callable[[Sequence[Command], Peer], Sequence[EventualResponse] | SharedWait]
RunEndpoints = Mapping[int, RunEndpoint]

#: Ends a remark where RocketMQ's own points to its questions and answers.
FAQ = "See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."

#: What is no answer for later.
_READY = frozenset({Reply, bytes, type(None)})
_REMARK_MAX = 2000

_CODES: tuple[tuple[type[SprocketError], int], ...] = (
    (IllegalDraft, ResponseCode.MESSAGE_ILLEGAL),
    (DiskFull, ResponseCode.SERVICE_NOT_AVAILABLE),
    (ClosedError, ResponseCode.SERVICE_NOT_AVAILABLE),
    (UsageError, ResponseCode.INVALID_PARAMETER),
    (SprocketError, ResponseCode.SYSTEM_ERROR),
)


class Dispatch:
    """Answers every request that comes to a broker.

    Args:
        endpoints: what the broker can do, by request code.
        refusals: headers that go with an error, by request code.
        run_endpoints: what it can do quicker where requests come together, by request code.

    Attributes:
        counts: requests since the start, by code; unknown ones under -1.
        failures: those among them that ended in an error.
    """

    def __init__(
        self,
        endpoints: Endpoints,
        *,
        refusals: Mapping[int, Header],
        run_endpoints: RunEndpoints | None = None,
    ) -> None:
        self._endpoints = dict(endpoints)
        self._refusals = dict(refusals)
        self._run_endpoints = dict(run_endpoints or {})
        self.counts = dict.fromkeys([*endpoints, -1], 0)
        self.failures = dict.fromkeys([*endpoints, -1], 0)

    def dispatch_all(self, commands: Sequence[Command], peer: Peer) -> list[EventualResponse]:
        """The answers to requests that came together, in their order.

        What ends a run is answered by itself. After a refusal there are no more runs, so that
        nothing is tried again and again.
        """
        outcomes: list[EventualResponse] = []
        runs = self._run_endpoints
        while len(outcomes) < len(commands):
            first = commands[len(outcomes)]
            code = first.code
            if code not in runs:
                outcomes.append(self(first, peer))
                continue
            left = commands[len(outcomes) :] if outcomes else commands
            done: Sequence[EventualResponse] = ()
            try:
                ran = runs[code](left, peer)
                done = self._share_wait(left, peer, ran) if isinstance(ran, SharedWait) else ran
                self.counts[code] += len(done)
            except SprocketError:  # the first is refused: by itself it is told why
                runs = {}
            except Exception as error:  # nobody knows what it had done
                done = [self._refusal(each, peer, error) for each in _alike(left)]
            if not _READY.issuperset(map(type, done)):
                done = [
                    outcome if type(outcome) in _READY else self._later(command, peer, outcome)  # type: ignore[arg-type]
                    for command, outcome in zip(left, done, strict=False)
                ]
            outcomes += done or [self(first, peer)]
        return outcomes

    def __call__(self, command: Command, peer: Peer) -> EventualResponse:
        """The answer to a request, now or later."""
        code = command.code
        answer = self._endpoints.get(code)
        if answer is None:
            return self._unknown(code)
        self.counts[code] += 1
        try:
            outcome = answer(command, peer)
        except Exception as error:  # every error becomes an answer here, and only here
            return self._refusal(command, peer, error)
        if type(outcome) in _READY:
            return outcome
        return self._later(command, peer, outcome)  # type: ignore[arg-type]

    def _share_wait(
        self, commands: Sequence[Command], peer: Peer, together: SharedWait
    ) -> list[EventualResponse]:
        """One task for all of them: the first has the answers to the others with its own."""
        asked = commands[: together.size]

        async def answered() -> bytes:
            answers: Sequence[Response]
            try:
                answers = together.answers(await together.code)
            except Exception as error:  # as above
                answers = [self._refusal(each, peer, error) for each in asked]
            return join_frames(asked, answers)

        return [answered(), *[None] * (together.size - 1)]

    async def _later(self, command: Command, peer: Peer, outcome: Awaitable[Response]) -> Response:
        try:
            return await outcome
        except Exception as error:  # as above
            return self._refusal(command, peer, error)

    def _unknown(self, code: int) -> Reply:
        self.counts[-1] += 1
        return Reply(
            code=ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
            remark=f" request type {code} not supported",
        )

    def _refusal(self, command: Command, peer: Peer, error: Exception) -> Reply:
        self.failures[command.code] += 1
        header = getattr(error, "header", None)
        if header is None and not isinstance(error, ProtocolError):
            header = self._refusals.get(command.code)
        if isinstance(error, ReplyError):
            logger.debug("%s asked %d: code %d", peer.address, command.code, error.code)
            return Reply(header=header, code=error.code, remark=_short(error.remark))
        for kind, code in _CODES:
            if isinstance(error, kind):
                remark = _short(str(error))
                logger.info("%s asked %d: %s", peer.address, command.code, remark)
                return Reply(header=header, code=code, remark=remark)
        logger.exception("request %d of %s failed", command.code, peer.address, exc_info=error)
        return Reply(header=header, code=ResponseCode.SYSTEM_ERROR, remark=_short(repr(error)))


def _alike(commands: Sequence[Command]) -> Iterable[Command]:
    """The first of some requests that ask for the same."""
    return takewhile(lambda command: command.code == commands[0].code, commands)


def _short(remark: str) -> str:
    """Names in a request may be as long as a frame; words about them need not be."""
    return remark if len(remark) <= _REMARK_MAX else f"{remark[:_REMARK_MAX]}…"
