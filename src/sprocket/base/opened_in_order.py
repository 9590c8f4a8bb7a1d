"""What opens its parts one after the other, and closes them in the opposite order."""

from __future__ import annotations

from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self


class OpenedInOrder:
    """The base of what is used with `async with` and consists of parts that are, too.

    If a part cannot be opened, those before it are closed.
    """

    _exit: AsyncExitStack | None = None

    async def _open(self, opened: AsyncExitStack) -> None:
        """Opens the parts, each of which it gives to `opened`."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        """Opens all parts."""
        async with AsyncExitStack() as opened:
            await self._open(opened)
            self._exit = opened.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes all parts, the last one first."""
        opened, self._exit = self._exit, None
        if opened is not None:
            await opened.__aexit__(kind, error, trace)
