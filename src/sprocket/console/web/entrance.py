"""Whether brokers know users, and whether keys are those of a user: the brokers decide."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from sprocket.admin.caller import Caller
from sprocket.base.errors import NoPermission, ReplyError, SprocketError, TransportError
from sprocket.console.web.settings import ConsoleSettings
from sprocket.protocol.requests.admin import BrokerConfigOf
from sprocket.protocol.requests.route import ClusterOf
from sprocket.protocol.signing import Signer
from sprocket.remoting.pool import Pool

#: How long it is remembered that users are needed, or are not, ms.
_REMEMBERED_MS = 15_000
#: How RocketMQ begins a refusal of somebody whom it knows. Source: AuthorizationException of
#: DefaultAuthorizationContextBuilder, RocketMQ 5.3.
_KNOWN_BUT = "has no permission"


class ConsoleEntrance:
    """Asks name servers and brokers who may come in."""

    def __init__(self, settings: ConsoleSettings, *, now_ms: Callable[[], int]) -> None:
        self._settings = settings
        self._now_ms = now_ms
        self._needs_user = False
        self._asked_ms = -_REMEMBERED_MS

    async def needs_user(self) -> bool:
        """Whether a server refuses unsigned requests; what was last known if none answers."""
        now_ms = self._now_ms()
        if abs(now_ms - self._asked_ms) >= _REMEMBERED_MS:
            with contextlib.suppress(TransportError):
                try:
                    await self._try(None)
                    self._needs_user = False
                except NoPermission:
                    self._needs_user = True
                except ReplyError:
                    self._needs_user = False
            self._asked_ms = now_ms
        return self._needs_user

    async def check(self, signer: Signer) -> None:
        """Checks that keys are those of a user, whatever the user may do.

        Raises:
            NoPermission: they are nobody's.
            TransportError: no server answers.
        """
        try:
            await self._try(signer)
        except NoPermission as error:
            if _KNOWN_BUT not in str(error):
                raise
        except ReplyError:
            return

    async def _try(self, signer: Signer | None) -> None:
        """Asks a name server and a broker something that needs a signature if anything does."""
        async with Pool(signer=signer, tls=self._settings.tls) as pool:
            settings = self._settings
            caller = Caller(pool, settings.nameservers, timeout_ms=settings.timeout_ms)
            await caller.ask_nameserver(ClusterOf())
            try:
                masters = await caller.masters()
            except SprocketError:  # no broker is registered
                return
            failure: TransportError | None = None
            for address in masters.values():
                try:
                    await caller.ask(address, BrokerConfigOf())
                    return
                except TransportError as error:
                    failure = error
            if failure is not None:
                raise failure
