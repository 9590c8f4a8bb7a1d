"""The dispatch of a name server's requests, and the conversion of errors to response codes.

Source: DefaultRequestProcessor and ClientRequestProcessor of RocketMQ's name server, 4.9 and 5.x.
"""

from __future__ import annotations

from collections.abc import Callable

from sprocket.audit.trail import AuditTrail
from sprocket.base.errors import RemoteProtocolError, ReplyError, SystemFailure, UsageError
from sprocket.nameserver.accounts import NameServerAccounts
from sprocket.nameserver.brokers import BrokerRequests
from sprocket.nameserver.config import NameServerConfig
from sprocket.nameserver.configuration import Configuration, ConfigurationRequests
from sprocket.nameserver.routes import RouteTable
from sprocket.nameserver.settings import KeyValueSettings
from sprocket.nameserver.topics import RouteRequests
from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.unanswered import name_server_remark
from sprocket.remoting.transport import Peer


class NameServerDispatch:
    """Handles requests with the tables of one name server.

    Args:
        routes, settings: the tables.
        configuration: the name server's current settings.
        now_ms: a clock that never jumps.
        save: writes the key-value settings to the disk; raises OSError if that fails.
        on_change: is called with the name server's settings when they have changed.
        accounts: the users, by whom each request is checked; None for an open name server without
            any.
        trail: records requests that change something; None records none.
    """

    def __init__(
        self,
        routes: RouteTable,
        settings: KeyValueSettings,
        *,
        configuration: Configuration,
        now_ms: Callable[[], int],
        save: Callable[[], None],
        on_change: Callable[[NameServerConfig], None] = lambda _: None,
        accounts: NameServerAccounts | None = None,
        trail: AuditTrail | None = None,
    ) -> None:
        self._trail = trail
        brokers = BrokerRequests(routes, settings, configuration=configuration, now_ms=now_ms)
        topics = RouteRequests(routes, settings, configuration=configuration)
        own = ConfigurationRequests(settings, configuration, save=save, on_change=on_change)
        self._table = {**brokers.table(), **topics.table(), **own.table()}
        self._check = None
        if accounts is not None:
            self._table |= accounts.table()
            self._check = accounts.check

    @property
    def codes(self) -> frozenset[int]:
        """The supported request codes."""
        return frozenset(self._table)

    def refusal(self, command: Command, peer: Peer) -> Reply | None:
        """The reply to a request that may not pass; None if it may, and then it has its user."""
        if self._check is None:
            return None
        try:
            command.user = self._check(command, peer)
            return None
        except ReplyError as error:
            command.user = getattr(error, "user", "")
            return self._recorded(command, peer, Reply(code=error.code, remark=error.remark))
        except RemoteProtocolError as error:
            return Reply(code=SystemFailure.code, remark=str(error))

    def __call__(self, command: Command, peer: Peer) -> Reply:
        """The reply to a request; errors become their response codes.

        It is checked first, unless `refusal` has done that.
        """
        if command.user is None and (refused := self.refusal(command, peer)) is not None:
            return refused
        return self._recorded(command, peer, self._reply(command, peer))

    def _recorded(self, command: Command, peer: Peer, reply: Reply) -> Reply:
        if self._trail is not None and self._trail.is_recorded(command.code):
            self._trail.followed(command, peer, reply)
        return reply

    def _reply(self, command: Command, peer: Peer) -> Reply:
        answer = self._table.get(command.code)
        try:
            if answer is None:
                return Reply(
                    code=ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
                    remark=name_server_remark(command.code),
                )
            return answer(command, peer)
        except ReplyError as error:
            return Reply(code=error.code, remark=error.remark)
        except RemoteProtocolError as error:
            return Reply(code=SystemFailure.code, remark=str(error))
        except UsageError as error:
            return Reply(code=ResponseCode.INVALID_PARAMETER, remark=str(error))
