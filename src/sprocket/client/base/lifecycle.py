"""Start and close of every client: `async with` starts it, and closes it at the end."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from functools import cached_property
from types import TracebackType
from typing import Any, NoReturn, Self

from sprocket.base.errors import SprocketError, UsageError
from sprocket.client.base.spans import Spans, spans_of


class Lifecycle(ABC):
    """A client that is started and closed, either explicitly or by `async with`."""

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """Makes a client; a setting that is given by itself is refused with a hint at `config`."""
        parameters = inspect.signature(cls.__init__).parameters
        config = parameters.get("config")
        if config is not None and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            kind = str(config.annotation).partition(" ")[0]
            for name in named.keys() - parameters.keys():
                raise UsageError(
                    f"{cls.__name__} has no parameter {name}; settings go into a configuration: "
                    f"{cls.__name__}(..., config={kind}({name}={named[name]!r}))"
                )
        return super().__new__(cls)

    @cached_property
    def _spans(self) -> Spans | None:
        """Makes its spans; None if it makes none."""
        return spans_of(self)

    def _check_loop(self) -> None:
        """Raises UsageError in another loop than the one that the client was started in."""
        session = getattr(self, "_session", None)
        if session is not None:
            session.check_loop()

    @property
    def refusal(self) -> SprocketError | None:
        """Why access control refuses something, if it does so now; the client goes on trying."""
        session = getattr(self, "_session", None)
        found: SprocketError | None = None if session is None else session.reachability.refusal
        return found

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
