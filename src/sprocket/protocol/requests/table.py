"""All declared requests by code, for logs, recordings and tests."""

from __future__ import annotations

from types import ModuleType

from sprocket.protocol.command import Header
from sprocket.protocol.requests import (
    admin,
    client,
    filter,
    group,
    lock,
    offset,
    pop,
    pull,
    query,
    replica,
    route,
    send,
    topic,
    transaction,
)


def _declared(*modules: ModuleType) -> dict[int, type[Header]]:
    found: dict[int, type[Header]] = {}
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Header) and value.code:
                assert found.setdefault(value.code, value) is value, f"{value.code} twice"
    return found


#: Request code to declared header.
REQUESTS: dict[int, type[Header]] = _declared(
    admin,
    client,
    filter,
    group,
    lock,
    offset,
    pop,
    pull,
    query,
    replica,
    route,
    send,
    topic,
    transaction,
)
