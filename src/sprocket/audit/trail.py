"""Sees the requests that change something, at a server's dispatch, and records them.

A server gives it the endpoint that it would call, and calls what it gets back: so a request that is
not recorded costs nothing.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from sprocket.audit.codes import CHANGES, CHANGES_BY_OTHERS, CHANGES_BY_TOOLS, TOOLS
from sprocket.audit.entries import BODY_NAMES, BodyNames, name_of_code, named_by
from sprocket.audit.recorder import AuditRecorder
from sprocket.base.deadline import loop_ms
from sprocket.base.errors import RemoteProtocolError
from sprocket.protocol.command import Command, Reply
from sprocket.remoting.endpoints import EventualResponse, Response
from sprocket.remoting.transport import Peer

#: Requests of `CHANGES_BY_OTHERS` that are alike make one line in so long, ms; and how many kinds
#: of them are known at once.
_ALIKE_MS = 60_000
_ALIKE_MAX = 4_096
_REMARK_MAX = 400
#: The result of a request whose sender hung up before the reply; it may have been carried out.
NO_REPLY = -1
_HUNG_UP = "the sender hung up before the reply; it may have been carried out"


class AuditedClients(NamedTuple):
    """What a server knows of who asks.

    Attributes:
        user_of: the name of the user whose signature of a request was found right; empty if none.
        client_of: the id of a client by its connection; empty if it is not known.
        is_member: whether a connection is a member of a group.
    """

    user_of: Callable[[Command], str] = lambda command: ""
    client_of: Callable[[Peer], str] = lambda peer: ""
    is_member: Callable[[str, Peer], bool] = lambda group, peer: False


class AuditTrail:
    """Records requests.

    Args:
        log: keeps the entries.
        clients: what the server knows of who asks.
        bodies: what the bodies of further requests name, by code.
    """

    def __init__(
        self,
        log: AuditRecorder,
        clients: AuditedClients | None = None,
        *,
        bodies: BodyNames | None = None,
    ) -> None:
        self._log = log
        self._clients = clients or AuditedClients()
        self._bodies: BodyNames = {**BODY_NAMES, **(bodies or {})}
        self._under_way: set[asyncio.Future[Response]] = set()
        #: By sender, code and what it names: when the last line was made, and how many came since.
        self._alike: OrderedDict[tuple[Any, ...], list[int]] = OrderedDict()

    def is_recorded(self, code: int) -> bool:
        """Whether requests of this code may be recorded."""
        return code in CHANGES or code in CHANGES_BY_OTHERS or code in CHANGES_BY_TOOLS

    # A request whose sender hangs up is recorded too: a task of its own ends in any case, even if
    # the one that would have sent the reply is cancelled before its first step.
    def followed(
        self, command: Command, peer: Peer, response: EventualResponse
    ) -> EventualResponse:
        """Records a request with its response, now or when that is there.

        Args:
            response: what the server answers; no error comes out of it.
        """
        if not isinstance(response, Awaitable):
            self._see(command, peer, response)
            return response
        task = asyncio.ensure_future(response)
        self._under_way.add(task)
        task.add_done_callback(lambda task: self._ended(command, peer, task))
        return task

    def refused(self, command: Command, peer: Peer, reply: Reply, *, user: str) -> None:
        """Records a request that was refused before anything of it was done.

        Args:
            user: who signed it; empty if that is not known.
        """
        self._see(command, peer, reply, user)

    def _ended(self, command: Command, peer: Peer, task: asyncio.Future[Response]) -> None:
        self._under_way.discard(task)
        if task.cancelled():
            self._see(command, peer, Reply(code=NO_REPLY, remark=_HUNG_UP))
        elif task.exception() is None:
            self._see(command, peer, task.result())

    def _see(
        self, command: Command, peer: Peer, response: Response, user: str | None = None
    ) -> None:
        if command.code in CHANGES_BY_TOOLS and not _is_by_tools(command):
            return
        named = named_by(command, self._bodies)
        times = 1
        if command.code in CHANGES_BY_OTHERS:
            group = str(named.get("consumerGroup", ""))
            if self._clients.is_member(group, peer):
                return
            times = self._times((peer.address, command.code, group, named.get("topic")))
            if not times:
                return
        reply = response if isinstance(response, Reply) else Reply()
        remark = reply.remark if reply.code else None
        self._log.record(
            user=self._clients.user_of(command) if user is None else user,
            address=peer.address,
            client=self._clients.client_of(peer),
            request=name_of_code(command.code),
            code=command.code,
            named=named,
            result=reply.code,
            remark=remark and remark[:_REMARK_MAX].encode("utf-8", "replace").decode(),
            times=times,
        )

    def _times(self, alike: tuple[Any, ...]) -> int:
        """How many requests the next line stands for; 0 if there is none now."""
        now = loop_ms()
        known = self._alike.get(alike)
        if known is not None and now - known[0] < _ALIKE_MS:
            known[1] += 1
            return 0
        self._alike[alike] = [now, 0]
        self._alike.move_to_end(alike)
        if len(self._alike) > _ALIKE_MAX:
            self._alike.popitem(last=False)
        return 1 + (known[1] if known is not None else 0)


def _is_by_tools(command: Command) -> bool:
    try:
        return command.fields.get("producerGroup") == TOOLS
    except RemoteProtocolError:
        return False
