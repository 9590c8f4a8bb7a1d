"""Requests to RocketMQ's controllers: one of them leads, and only that one answers most requests.

Which one leads is asked again whenever a request fails or is refused for that reason. Refusals of
codes 2000 to 2016 become `ElectionRefused` with RocketMQ's name of the code.

Source: BrokerOuterAPI, ReplicasManager.updateControllerMetadata, DLedgerController of RocketMQ
5.3.3.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from sprocket.base.backoff import pauses
from sprocket.base.deadline import Deadline
from sprocket.base.errors import (
    CallTimeout,
    ConnectFailed,
    ConnectionLost,
    ProtocolError,
    SprocketError,
)
from sprocket.election.elector import ElectionRefused, ElectorUnavailable
from sprocket.protocol.codes import ResponseCode, response_name
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.election import ControllerMetadata, ControllerMetadataReply
from sprocket.remoting.pool import Pool

logger = logging.getLogger(__name__)

#: Seconds that one controller has to answer, and that a request has with all its repetitions.
ANSWER_SECONDS = 2.0
WHOLE_SECONDS = 5.0
#: Pauses between repetitions, s: an election among controllers takes about a second.
_PAUSE_FIRST, _PAUSE_LONGEST = 0.05, 0.5
#: Answers that leave open what happened, or that another controller may give differently.
_UNDECIDED = (ResponseCode.CONTROLLER_JRAFT_INTERNAL_ERROR,)
_REFUSALS = range(
    ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH,
    ResponseCode.CONTROLLER_BROKER_LIVE_INFO_NOT_EXISTS + 1,
)


class ControllerRefused(ElectionRefused):
    """The controller refuses a request; `code` is its response code."""

    def __init__(self, code: int, remark: str) -> None:
        super().__init__(f"the controller refuses it: {remark} ({response_name(code)})")
        self.code = code


class ControllerCalls:
    """Requests to the controllers of one cluster.

    Args:
        addresses: `host:port` of all controllers, or of some.
        pool: connections to them; it is not closed here.

    Attributes:
        leader: the controller that led when it was last asked; None if that is unknown.
    """

    def __init__(self, addresses: Sequence[str], pool: Pool) -> None:
        self.addresses = tuple(dict.fromkeys(addresses))
        self.leader: str | None = None
        self._pool = pool
        self._is_closed = False

    @property
    def others(self) -> list[str]:
        """The controllers that are not known to lead."""
        return [each for each in self.addresses if each != self.leader]

    async def ask(
        self,
        header: Header,
        *,
        body: bytes = b"",
        accepts: Sequence[int] = (),
        is_repeatable: bool = True,
    ) -> Command:
        """Asks the controller that leads.

        Args:
            accepts: response codes that are no refusal.
            is_repeatable: whether the request may be carried out twice.

        Raises:
            ElectionRefused: the controller refuses it.
            ElectorUnavailable: nobody that leads has answered in time; unless the request is
                repeatable, whether it was carried out is unknown.
        """
        deadline = Deadline.after(WHOLE_SECONDS)
        why: Exception | str = "none of them leads"
        for pause in pauses(_PAUSE_FIRST, _PAUSE_LONGEST):
            if self._is_closed:
                raise ElectorUnavailable("this broker has left its group")
            leader = self.leader or await self._find()
            if leader is not None:
                try:
                    reply = await self._call(leader, header, body, deadline)
                except ConnectFailed as error:
                    why = error
                except (ConnectionLost, CallTimeout) as error:
                    why = error
                    if not is_repeatable:
                        self.leader = None
                        break
                else:
                    if not reply.code or reply.code in accepts:
                        return reply
                    why = _reason(reply)
                    if reply.code != ResponseCode.CONTROLLER_NOT_LEADER and not is_repeatable:
                        break
                self.leader = None
            if deadline.left() <= pause:
                break
            await asyncio.sleep(pause)
        raise ElectorUnavailable(f"controllers {', '.join(self.addresses)}: {why}")

    def close(self) -> None:
        """Ends all asking; whoever still asks is refused."""
        self._is_closed = True

    async def _call(self, address: str, header: Header, body: bytes, deadline: Deadline) -> Command:
        deadline = deadline.sooner(ANSWER_SECONDS)
        return await self._pool.call(address, header, body=body, deadline=deadline)

    # The one that says of itself that it leads is asked at the address that is known here, since a
    # second connection, by the name that the others have for it, would be another one to lose.
    async def _find(self) -> str | None:
        """The controller that leads; None if no controller knows."""
        named: str | None = None
        tasks = {asyncio.ensure_future(self._metadata(each)): each for each in self.addresses}
        waiting: set[asyncio.Task[ControllerMetadataReply]] = set(tasks)
        try:
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    try:
                        reply = task.result()
                    except SprocketError as error:
                        logger.debug("controller %s: %s", tasks[task], error)
                        continue
                    if reply.is_leader:
                        named = tasks[task]
                        waiting = set()
                        break
                    named = named or reply.controller_leader_address or None
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if named is not None:
            logger.debug("controller %s leads", named)
        self.leader = named
        return named

    async def _metadata(self, address: str) -> ControllerMetadataReply:
        deadline = Deadline.after(ANSWER_SECONDS / 2)
        reply = await self._pool.ask(address, ControllerMetadata(), deadline=deadline)
        return reply.read(ControllerMetadataReply)


def _reason(reply: Command) -> str:
    """Why a reply is no answer.

    Raises:
        ElectionRefused: it is a refusal.
    """
    code, remark = reply.code, reply.remark or ""
    if code == ResponseCode.CONTROLLER_NOT_LEADER or code in _UNDECIDED or code not in _REFUSALS:
        return f"{response_name(code)}: {remark}"
    raise ControllerRefused(code, remark)


def unreadable(error: ProtocolError) -> ElectorUnavailable:
    """The error for an answer that cannot be read."""
    return ElectorUnavailable(f"the controller's answer cannot be read: {error}")
