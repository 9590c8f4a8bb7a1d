"""Calls the endpoint of each request, and turns errors into response codes.

This is the only place that turns an error into a code. Every error that an endpoint raises becomes
a reply with a code and a clear remark, so that a failed request never harms another one.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from sprocket.audit.trail import AuditTrail
from sprocket.base.errors import (
    ClosedError,
    DiskFull,
    ProtocolError,
    ReplyError,
    SprocketError,
    UsageError,
)
from sprocket.broker.settings import BrokerSettings
from sprocket.protocol.codes import RequestCode, ResponseCode
from sprocket.protocol.command import Command, Header, Reply
from sprocket.protocol.unanswered import broker_remark
from sprocket.quotas.admission import Admission, AnswerFirst
from sprocket.quotas.refusals import QuotaExceeded
from sprocket.remoting.endpoints import Endpoint, EventualResponse, Response, join_frames
from sprocket.remoting.transport import Peer
from sprocket.store.log.drafts import IllegalDraft
from sprocket.store.writing.appender import Stored

logger = logging.getLogger(__name__)

#: The endpoints of a part of the broker, by request code.
Endpoints = Mapping[int, Endpoint]


class SharedWait(NamedTuple):
    """Replies to several requests that all wait for one event, such as a flush of the log.

    Attributes:
        size: how many requests.
        code: awaitable of the response code that all of them get.
        answers: makes the replies from that code.
    """

    size: int
    code: Awaitable[int]
    answers: Callable[[int], Sequence[Response]]


#: Endpoint that answers several requests of one code together: as many of the first as it can,
#: perhaps none. It raises a `SprocketError` only if it has changed nothing.
RunEndpoint = Callable[[Sequence[Command], Peer], Sequence[EventualResponse] | SharedWait]
RunEndpoints = Mapping[int, RunEndpoint]
#: Returns who signed a request, or raises an error if it may not pass.
Check = Callable[[Command, Peer], str]
#: Stores the first sends of a read that begins with a frame; None if it stores none.
TakeSends = Callable[[bytes, Peer], Stored | None]


class Quotas(NamedTuple):
    """What senders may take.

    Attributes:
        admission: admits requests, if there are any rules.
        settings: says whether there are; asking it costs less than asking the admission.
    """

    admission: Admission
    settings: BrokerSettings


#: The pointer to the FAQ with which some of RocketMQ's remarks end.
FAQ = "See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."

#: Types of outcomes that need no task: the others are awaitables.
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
    """Answers every request that a broker receives.

    Args:
        endpoints: the endpoints of all parts, by request code.
        refusals: headers of error replies, by request code.
        run_endpoints: faster endpoints for requests that arrive together, by request code.
        check: raises an error for a request that may not pass; None lets all pass.
        trail: records requests that change something; None records none.
        kernel: takes sends before they are decoded, where nothing is checked; None takes none.
        quotas: what senders may take; None for anything.

    Attributes:
        counts: requests since the start, by code; unknown codes are counted under -1.
        failures: how many of them ended in an error, by code.
    """

    def __init__(
        self,
        endpoints: Endpoints,
        *,
        refusals: Mapping[int, Header],
        run_endpoints: RunEndpoints | None = None,
        check: Check | None = None,
        trail: AuditTrail | None = None,
        quotas: Quotas | None = None,
        kernel: TakeSends | None = None,
    ) -> None:
        self._endpoints = dict(endpoints)
        for code in endpoints if trail is not None else ():
            if trail is not None and trail.is_recorded(code):
                self._endpoints[code] = self._recorded(endpoints[code], trail)
        self._refusals = dict(refusals)
        #: A request that may be recorded is answered alone.
        self._run_endpoints = {
            code: run
            for code, run in (run_endpoints or {}).items()
            if trail is None or not trail.is_recorded(code)
        }
        self._quotas = quotas
        self._kernel = kernel if check is None else None
        self._check = check
        self._trail = trail
        self.counts = dict.fromkeys([*endpoints, -1], 0)
        self.failures = dict.fromkeys([*endpoints, -1], 0)

    def take_first(self, data: bytes, peer: Peer) -> tuple[int, bytes] | None:
        """See `Shortcut`: takes sends that nothing is special about, while there are no quotas."""
        kernel, quotas = self._kernel, self._quotas
        if kernel is None or (quotas is not None and quotas.settings.config.quotas):
            return None
        try:
            stored = kernel(data, peer)
        except Exception:  # what is native must not end the connection
            self._kernel = None
            logger.exception("the kernel failed and is not used any more")
            return None
        if stored is None:
            return None
        self.counts[RequestCode.SEND_MESSAGE_V2] += stored.messages
        return stored.used, stored.replies

    def answer_first(self, commands: Sequence[Command], peer: Peer) -> Sequence[EventualResponse]:
        """The replies to the first of some requests that arrived together, in their order, as far
        as they may pass and quotas allow them.
        """
        first, may_pass = commands[0], True
        answer: AnswerFirst = self._answer_first
        if self._check is not None:
            try:
                commands = self._passing(commands, peer, self._check)
            except Exception as error:  # as below
                stopped, may_pass = self._stopped(first, peer, error), False
                commands, answer = commands[:1], lambda asked, peer: [stopped]
        quotas = self._quotas
        if quotas is None or not quotas.settings.config.quotas:
            return answer(commands, peer)
        # One that may not pass counts too, for its address and client, not for what it names.
        try:
            outcomes = quotas.admission.answer_first(commands, peer, answer, may_pass=may_pass)
        except QuotaExceeded as error:
            self.failures[first.code] += error.also
            return [self._refusal(first, peer, error)] * (1 + error.also)
        except Exception as error:  # as below
            return [self._refusal(first, peer, error)]
        if len(outcomes) == 1 and type(outcomes[0]) not in _READY:
            return [self._later(first, peer, outcomes[0])]  # type: ignore[arg-type]
        return outcomes

    # Sends that arrive in one read can share one append and one wait for the flush. A run endpoint
    # takes as many requests as it can. Any other request is answered alone, because it may take
    # long: the connection reads the clock after each call.
    def _answer_first(self, commands: Sequence[Command], peer: Peer) -> list[EventualResponse]:
        """The replies to the first of some requests that arrived together, in their order.

        These are the requests that a run endpoint takes, or else one.
        """
        first = commands[0]
        code = first.code
        run = self._run_endpoints.get(code)
        if run is None:
            return [self(first, peer)]
        done: Sequence[EventualResponse]
        try:
            ran = run(commands, peer)
            done = self._share_wait(commands, peer, ran) if isinstance(ran, SharedWait) else ran
            self.counts[code] += len(done)
        except SprocketError:
            # Nothing is done yet, and each request gets the reason alone. All of them at once: on
            # a full disk each would otherwise be tried twice, in a run and alone.
            return [self(each, peer) for each in _alike(commands)]
        except Exception as error:  # it is unknown what was done, so nothing is repeated
            done = [self._refusal(each, peer, error) for each in _alike(commands)]
        if not _READY.issuperset(map(type, done)):
            done = [
                outcome if type(outcome) in _READY else self._later(command, peer, outcome)  # type: ignore[arg-type]
                for command, outcome in zip(commands, done, strict=False)
            ]
        return list(done) or [self(first, peer)]

    def __call__(self, command: Command, peer: Peer) -> EventualResponse:
        """The reply to one request, or an awaitable of it."""
        code = command.code
        answer = self._endpoints.get(code)
        if answer is None:
            return self._unknown(code)
        self.counts[code] += 1
        try:
            outcome = answer(command, peer)
        except Exception as error:  # every error becomes a reply here, and only here
            return self._refusal(command, peer, error)
        if type(outcome) in _READY:
            return outcome
        return self._later(command, peer, outcome)  # type: ignore[arg-type]

    # A run endpoint may take fewer requests than it gets, so each remembers that it was checked.
    def _passing(self, commands: Sequence[Command], peer: Peer, check: Check) -> Sequence[Command]:
        """The first request and those after it of its code that may pass, up to one that may not.

        Only the first one, if each is answered alone: what it does may change who may pass.

        Raises:
            SprocketError: the first one may not.
        """
        code = commands[0].code
        count = len(commands) if code in self._run_endpoints else 1
        for number, command in enumerate(commands[:count]):
            if command.code != code:
                return commands[:number]
            if command.user is None:
                try:
                    command.user = check(command, peer)
                except SprocketError:
                    if number:
                        return commands[:number]
                    raise
        return commands[:count]

    def _stopped(self, command: Command, peer: Peer, error: Exception) -> Reply:
        """The refusal of a request that may not pass, which is recorded as if it had."""
        reply = self._refusal(command, peer, error)
        if self._trail is not None and self._trail.is_recorded(command.code):
            self._trail.refused(command, peer, reply, user=getattr(error, "user", ""))
        return reply

    def _recorded(self, endpoint: Endpoint, trail: AuditTrail) -> Endpoint:
        """The endpoint, whose requests are recorded with their response codes."""

        def answer(command: Command, peer: Peer) -> EventualResponse:
            outcome: EventualResponse
            try:
                outcome = endpoint(command, peer)
            except Exception as error:  # as above
                outcome = self._refusal(command, peer, error)
            if type(outcome) not in _READY:
                outcome = self._later(command, peer, outcome)  # type: ignore[arg-type]
            return trail.followed(command, peer, outcome)

        return answer

    def _share_wait(
        self, commands: Sequence[Command], peer: Peer, together: SharedWait
    ) -> list[EventualResponse]:
        """One task for all of them: the first outcome holds all replies, the others are None."""
        asked = commands[: together.size]

        async def answered(code: Awaitable[int]) -> bytes:
            answers: Sequence[Response]
            try:
                answers = together.answers(await code)
            except Exception as error:  # as above
                answers = [self._refusal(each, peer, error) for each in asked]
            return join_frames(asked, answers)

        return [answered(together.code), *[None] * (together.size - 1)]

    async def _later(self, command: Command, peer: Peer, outcome: Awaitable[Response]) -> Response:
        try:
            return await outcome
        except Exception as error:  # as above
            return self._refusal(command, peer, error)

    def _unknown(self, code: int) -> Reply:
        self.counts[-1] += 1
        return Reply(code=ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=broker_remark(code))

    def _refusal(self, command: Command, peer: Peer, error: Exception) -> Reply:
        self.failures[command.code if command.code in self.failures else -1] += 1
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
    """The first requests, as long as they have the same code."""
    return takewhile(lambda command: command.code == commands[0].code, commands)


def _short(remark: str) -> str:
    """A remark cut to a fixed length: a name in a request may be as long as a whole frame."""
    return remark if len(remark) <= _REMARK_MAX else f"{remark[:_REMARK_MAX]}…"
