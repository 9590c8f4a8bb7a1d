"""What a parent knows of a process that it starts, and the port through which it starts one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sprocket.base.errors import SprocketError

#: The word by which a command learns that a parent started it and watches over it.
CHILD = "--child"


class ChildFailed(SprocketError):
    """A process did not start; the text is its own reason."""


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """A process that is to run.

    Attributes:
        name: stands before each line of its log.
        arguments: of the command `sprocket`.
        settings: environment variables of its settings; they win over those of the parent.
        core: the number of the core that it stays on, counted among those that the parent may use;
            None for any.
        rank: processes of a higher rank start after, and stop before those of a lower one.
        prepare: what is done before each start; it must not take long.
    """

    name: str
    arguments: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    core: int | None = None
    rank: int = 0
    prepare: Callable[[], None] | None = None


class RunningChild(Protocol):
    """A process that has started.

    Attributes:
        about: what it said when it was ready, such as its `address` and that of its `pages`.
    """

    @property
    def about(self) -> Mapping[str, str]: ...

    async def wait(self) -> int:
        """Returns when it has ended: its exit code, negative for the number of a signal."""
        ...

    def terminate(self) -> None:
        """Asks it to end in order."""
        ...

    def kill(self) -> None:
        """Ends it at once."""
        ...


class Launcher(Protocol):
    """Starts processes."""

    async def launch(self, spec: ChildSpec) -> RunningChild:
        """Starts one and returns it when it is ready. When cancelled, it ends the process.

        Raises:
            ChildFailed: it ended before.
        """
        ...
