"""How an operation is declared: one function, from which the HTTP routes, the OpenAPI document and
the MCP tools are all made.

Its parameters and its result are the types of the function, what it does is its docstring, and the
rights that it needs are those of the requests that it makes.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any, TypeVar, get_type_hints

import msgspec

from sprocket.admin.caller import Caller
from sprocket.auth.needs import RULES
from sprocket.message.ids import UniqueIds

_SUPER = "a super user"


@dataclass(frozen=True, slots=True)
class OperationEnvironment:
    """What an operation works with.

    Attributes:
        caller: asks name servers and brokers, in the name of whoever asked for the operation.
        now_ms: the time, ms since 1970 UTC.
        ids: makes ids of messages.
        audit_folder: where the audit logs of the servers of this machine are; None if there are
            none.
    """

    caller: Caller
    now_ms: Callable[[], int]
    ids: UniqueIds
    audit_folder: Path | None = None


#: A function that does an operation.
Run = Callable[[OperationEnvironment, Any], Awaitable[Any]]
F = TypeVar("F", bound=Run)


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation.

    Attributes:
        name: `subject.verb`.
        method, path: of its HTTP route, below the API's own path.
        about: what it does: whole sentences, of which the first is a line.
        parameters, result: their types; both are structs.
        rights: what a user needs for it, for people, as brokers with users check it.
        run: does it.
        is_change: whether it can change something.
        is_destructive: whether it can destroy or repeat something.
    """

    name: str
    method: str
    path: str
    about: str
    parameters: type[msgspec.Struct]
    result: type
    rights: str
    run: Run
    is_change: bool
    is_destructive: bool

    @property
    def title(self) -> str:
        """The first sentence of what it does."""
        return self.about.partition("\n")[0]

    @property
    def in_path(self) -> tuple[str, ...]:
        """The parameters that are parts of the path."""
        return tuple(name for _, name, _, _ in Formatter().parse(self.path) if name)


class Declarations:
    """The operations of one module, in the order in which they are declared.

    Attributes:
        operations: those that are declared.
    """

    def __init__(self) -> None:
        self.operations: list[Operation] = []

    def reads(self, name: str, path: str, *, codes: Sequence[int]) -> Callable[[F], F]:
        """Declares an operation that changes nothing.

        Args:
            codes: the requests that it makes, which say the rights that it needs.
        """
        return self._declared(name, f"GET {path}", codes, is_change=False, is_destructive=False)

    def changes(
        self, name: str, route: str, *, codes: Sequence[int], is_destructive: bool = False
    ) -> Callable[[F], F]:
        """Declares an operation that changes something.

        Args:
            route: method and path.
            codes: the requests that it makes.
            is_destructive: whether what it does can lose or repeat messages, or shut somebody out.
        """
        return self._declared(name, route, codes, is_change=True, is_destructive=is_destructive)

    def _declared(
        self, name: str, route: str, codes: Sequence[int], *, is_change: bool, is_destructive: bool
    ) -> Callable[[F], F]:
        method, _, path = route.partition(" ")

        def declare(function: F) -> F:
            hints = get_type_hints(function)
            _, asked = inspect.signature(function).parameters
            self.operations.append(
                Operation(
                    name=name,
                    method=method,
                    path=path,
                    about=inspect.cleandoc(function.__doc__ or ""),
                    parameters=hints[asked],
                    result=hints["return"],
                    rights=_rights(codes),
                    run=function,
                    is_change=is_change,
                    is_destructive=is_destructive,
                )
            )
            return function

        return declare


def _rights(codes: Sequence[int]) -> str:
    """The rights that requests need, each once."""
    texts = (RULES[code].text if code in RULES else _SUPER for code in codes)
    return "; ".join(dict.fromkeys(each for text in texts for each in text.split("; ")))
