"""Runs operations for callers: bounded, in each caller's own name, and only what is allowed."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from sprocket.admin.caller import Caller
from sprocket.base.errors import SprocketError
from sprocket.console.api.callers import ApiCaller
from sprocket.console.api.problems import ApiRefusal
from sprocket.console.operations.declare import Operation, OperationEnvironment
from sprocket.message.ids import UniqueIds
from sprocket.protocol.signing import Signer
from sprocket.remoting.pool import Pool
from sprocket.remoting.tls.settings import ClientTls
from sprocket.runtime.clock import SystemClock

logger = logging.getLogger(__name__)

#: Operations that run at the same time, and those that wait for their turn.
_AT_ONCE, _WAITING_MAX = 16, 64
#: Seconds that an operation may take, and those that it may wait before it begins.
_SECONDS, _WAITING_SECONDS = 60.0, 20.0


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """What an API works with.

    Attributes:
        nameservers: `host:port` of each.
        may_change: whether anything may be changed.
        timeout_ms: time limit of each request to a server.
        audit_folder: the audit logs of the servers of this machine; None for none.
        tls: how connections to the servers speak TLS; None for plain ones.
    """

    nameservers: Sequence[str]
    may_change: bool = False
    timeout_ms: float = 5_000
    audit_folder: Path | None = None
    tls: ClientTls | None = None


class OperationRunner:
    """Runs operations. Use it with `async with`, which closes its connections at the end.

    Args:
        now_ms: the time, ms since 1970 UTC; None for the machine's.
    """

    def __init__(self, settings: ApiSettings, *, now_ms: Callable[[], int] | None = None) -> None:
        self.settings = settings
        clock = SystemClock()
        self.now_ms = now_ms or clock.now_ms
        self._pools: dict[tuple[str, str] | None, Pool] = {}
        self._callers: dict[tuple[str, str] | None, Caller] = {}
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._waiting = 0
        self._ids = UniqueIds(address=bytes(4), process=os.getpid(), token=os.urandom(4))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pools = [*self._pools.values()]
        self._pools.clear()
        self._callers.clear()
        for pool in pools:
            await pool.close()

    async def run(
        self, operation: Operation, given: Mapping[str, Any], who: ApiCaller, *, is_text: bool
    ) -> Any:
        """Runs an operation and returns its result.

        Args:
            given: its parameters by name.
            is_text: whether numbers and the like may be texts, as in a query.

        Raises:
            ApiRefusal: a parameter is not valid, it is not allowed, or there is too much to do.
            SprocketError: the operation failed.
        """
        self.check_allowed(operation, who)
        try:
            asked = msgspec.convert(given, operation.parameters, strict=not is_text)
        except msgspec.ValidationError as error:
            raise ApiRefusal(400, str(error)) from None
        for name in given if is_text else ():
            value = getattr(asked, name)
            if value is None:  # `null` as a text
                raise ApiRefusal(400, f"{name} has no value: leave it out")
            if isinstance(value, datetime) and "-" not in str(given[name])[1:]:  # a number
                raise ApiRefusal(400, f"{name} is a time such as 2030-01-31T08:00:00Z")
        return await self._in_turn(operation, asked, who)

    def check_allowed(self, operation: Operation, who: ApiCaller) -> None:
        """Checks that a caller may use an operation, as far as that is the API's business.

        Raises:
            ApiRefusal: it changes something, and that is switched off.
        """
        if not operation.is_change:
            return
        if not self.settings.may_change:
            raise ApiRefusal(
                403, f"{operation.name} changes something, and changes are switched off",
                setting="--allow-changes",
            )  # fmt: skip
        if not who.may_change:
            raise ApiRefusal(
                403, f"{operation.name} changes something, and {who.name} may only read",
                setting="may_change of the caller in --callers FILE",
            )  # fmt: skip

    async def _in_turn(self, operation: Operation, asked: Any, who: ApiCaller) -> Any:
        if self._waiting >= _WAITING_MAX:
            raise ApiRefusal(503, "too many operations wait already: try later")
        self._waiting += 1
        try:
            async with asyncio.timeout(_WAITING_SECONDS):
                await self._turns.acquire()
        except TimeoutError:
            raise ApiRefusal(503, "other operations take all the time: try later") from None
        finally:
            self._waiting -= 1
        try:
            return await self._run(operation, asked, who)
        finally:
            self._turns.release()

    async def _run(self, operation: Operation, asked: Any, who: ApiCaller) -> Any:
        given = OperationEnvironment(
            caller=self.caller_of(who.signer),
            now_ms=self.now_ms,
            ids=self._ids,
            audit_folder=self.settings.audit_folder,
        )
        is_real = operation.is_change and not asked.dry_run
        try:
            result = await _in_time(operation, operation.run(given, asked))
        except SprocketError as error:
            if is_real:
                logger.info("%s by %s failed: %s", operation.name, who.name, error)
            raise
        if is_real:
            logger.info("%s by %s: %d changes", operation.name, who.name, len(result.changes))
        return result

    def caller_of(self, signer: Signer | None) -> Caller:
        """Asks in the name of a user, over connections that are never those of another."""
        key = None if signer is None else (signer.access_key, signer.secret_key)
        found = self._callers.get(key)
        if found is None:
            pool = self._pools[key] = Pool(signer=signer, tls=self.settings.tls)
            found = self._callers[key] = Caller(
                pool, self.settings.nameservers, timeout_ms=self.settings.timeout_ms
            )
        return found


async def _in_time(operation: Operation, result: Awaitable[Any]) -> Any:
    try:
        async with asyncio.timeout(_SECONDS):
            return await result
    except TimeoutError:
        raise ApiRefusal(504, f"{operation.name} took longer than {_SECONDS:.0f} s") from None
