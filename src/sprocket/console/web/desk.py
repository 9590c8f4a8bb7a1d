"""What all pages of a console share: settings, operations, history, sessions."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from starlette.requests import Request

from sprocket.admin import brokers
from sprocket.admin.brokers import BrokerProcess
from sprocket.base.errors import SprocketError
from sprocket.console.api.callers import ApiCaller
from sprocket.console.api.running import ApiSettings, OperationRunner
from sprocket.console.history.sampler import HistorySampler
from sprocket.console.operations.declare import Operation
from sprocket.console.operations.table import OPERATIONS
from sprocket.console.web.entrance import ConsoleEntrance
from sprocket.console.web.login_routes import COOKIE
from sprocket.console.web.sessions import ConsoleSession, Sessions
from sprocket.console.web.settings import ConsoleSettings

logger = logging.getLogger(__name__)
# Changes are logged also where only warnings of others are.
logger.setLevel(logging.INFO)


class SessionEnded(SprocketError):
    """The session of a page has ended."""

    def __init__(self) -> None:
        super().__init__("the session has ended: log in again")


class ReadOnlyConsole(SprocketError):
    """The console was started without changes."""


class ConsoleDesk:
    """What pages work with.

    Args:
        sampler: the console's history and the last state of the brokers.

    Attributes:
        settings: of the console.
        sessions: who has logged in.
    """

    def __init__(
        self,
        settings: ConsoleSettings,
        sampler: HistorySampler,
        *,
        entrance: ConsoleEntrance,
        sessions: Sessions,
        now_ms: Callable[[], int],
    ) -> None:
        self.settings = settings
        self.sampler = sampler
        self.sessions = sessions
        self.now_ms = now_ms
        self._entrance = entrance
        self.runner = OperationRunner(
            ApiSettings(
                settings.nameservers,
                may_change=not settings.is_read_only,
                timeout_ms=settings.timeout_ms,
                audit_folder=settings.audit_folder,
                tls=settings.tls,
            ),
            now_ms=now_ms,
        )

    async def session_of(self, request: Request) -> ConsoleSession | None:
        """The session of a request; None if its sender must log in first."""
        session = self.sessions.of_token(request.cookies.get(COOKIE))
        if session is not None or await self._entrance.needs_user():
            return session
        return self.sessions.anybody

    async def ask(self, session: ConsoleSession, name: str, given: dict[str, Any]) -> Any:
        """Runs an operation in the name of a session and returns its result.

        Raises:
            SessionEnded: the session has ended.
            ReadOnlyConsole: it would change something, and the console only reads.
            SprocketError: the operation failed.
        """
        self._check_session(session)
        operation = OPERATIONS[name]
        session.use(self.now_ms())
        self._check_allowed(operation)
        return await self.runner.run(operation, given, session.caller, is_text=False)

    async def processes(self, session: ConsoleSession) -> list[BrokerProcess]:
        """The brokers with their figures, asked in the name of a session.

        Raises:
            SessionEnded: the session has ended.
            SprocketError: no name server answers, or it is not allowed.
        """
        self._check_session(session)
        return await brokers.processes(self.runner.caller_of(session.caller.signer))

    def _check_session(self, session: ConsoleSession) -> None:
        if not session.may_ask(self.now_ms()):
            session.end()
            raise SessionEnded

    def _check_allowed(self, operation: Operation) -> None:
        if operation.is_change and self.settings.is_read_only:
            raise ReadOnlyConsole("the console only reads: it was started with --read-only")

    def record(self, caller: ApiCaller, name: str, given: dict[str, Any], outcome: str) -> None:
        """Writes a line about a change into the console's log; secrets are not in it."""
        said = {key: "***" if key == "password" else value for key, value in given.items()}
        logger.info("change %s by %r: %s: %.500r", name, caller.name, outcome, said)
