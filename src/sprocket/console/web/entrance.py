"""Whether brokers know users, and whether keys are those of a user: the brokers decide."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable

from sprocket.admin.caller import Caller
from sprocket.base.errors import (
    NoPermission,
    ReplyError,
    SprocketError,
    TransportError,
    UsageError,
)
from sprocket.console.web.settings import ConsoleSettings
from sprocket.protocol.command import Command
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
                    await self._try()
                    self._needs_user = False
                except NoPermission:
                    self._needs_user = True
                except ReplyError:
                    self._needs_user = False
            self._asked_ms = now_ms
        return self._needs_user

    async def check(self, signer: Signer) -> None:
        """Checks that keys are those of a user, whatever the user may do.

        A server that answers without a signature does not check one, so what it answers to a
        signed request says nothing. Where no server checks, nobody is let in.

        Raises:
            NoPermission: they are nobody's.
            UsageError: no server checks keys, or no broker is registered that could.
            TransportError: no server that would check them answers.
        """
        tls = self._settings.tls
        async with Pool(tls=tls) as unsigned, Pool(signer=signer, tls=tls) as signed:
            unknown, known = self._caller(unsigned), self._caller(signed)
            if await _is_refused(unknown.ask_nameserver(ClusterOf())):
                return await _admit(known.ask_nameserver(ClusterOf()))
            try:
                masters = await unknown.masters()
            except UsageError:
                masters = {}
            failure: SprocketError | None = None
            for address in masters.values():
                try:
                    if await _is_refused(unknown.ask(address, BrokerConfigOf())):
                        return await _admit(known.ask(address, BrokerConfigOf()))
                except NoPermission:
                    raise
                except (ReplyError, TransportError) as error:
                    failure = error
        if failure is not None:
            raise failure
        if not masters:
            raise UsageError("no broker is registered, so nobody can check these keys; try later")
        raise UsageError("the brokers here ask for no keys: no log-in is needed")

    def _caller(self, pool: Pool) -> Caller:
        settings = self._settings
        return Caller(pool, settings.nameservers, timeout_ms=settings.timeout_ms)

    async def _try(self) -> None:
        """Asks a name server and a broker something that needs a signature if anything does."""
        async with Pool(tls=self._settings.tls) as pool:
            caller = self._caller(pool)
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


async def _is_refused(unsigned: Awaitable[Command]) -> bool:
    """Whether a server refuses a request without a signature."""
    try:
        await unsigned
    except NoPermission:
        return True
    return False


async def _admit(signed: Awaitable[Command]) -> None:
    """Returns if a server that checks signatures knows this one.

    Raises:
        NoPermission: it does not.
    """
    try:
        await signed
    except NoPermission as error:
        if _KNOWN_BUT not in str(error):
            raise
