"""All operations, by name. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from sprocket.console.operations import (
    accounts,
    brokers,
    groups,
    messages,
    progress,
    settings,
    topics,
    traces,
    waiting,
)
from sprocket.console.operations.declare import Operation

_MODULES = (brokers, topics, messages, traces, groups, progress, waiting, accounts, settings)

#: The operations in the order in which they are declared.
OPERATIONS: Mapping[str, Operation] = {
    each.name: each for module in _MODULES for each in module.declared.operations
}
