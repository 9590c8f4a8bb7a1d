"""Start and close of every client: `async with` starts it, and closes it at the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import NoReturn, Self


class Lifecycle(ABC):
    """A client that is started and closed, either explicitly or by `async with`."""

    @abstractmethod
    async def start(self) -> None:
        """Starts the client."""

    @abstractmethod
    async def close(self) -> None:
        """Stops the client in an orderly way."""

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} stays in its process: make one in the other")

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
