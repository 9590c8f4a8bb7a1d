"""The state of health of servers, for probes. RocketMQ has none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from sprocket.base.errors import SprocketError
from sprocket.message.topic import is_writable

if TYPE_CHECKING:
    from sprocket.broker.broker import Broker


class State(Enum):
    """What a server can do now."""

    STARTING = "starting"
    SERVING = "serving"
    READ_ONLY = "read-only"
    FULL = "full"
    NOT_IN_SYNC = "not in sync"
    FAILED = "failed"


#: In these a server does its work. A full disk and a lack of permission are no reason to start it
#: again; a lack of copies is one to wait before the next server is stopped.
_READY = frozenset({State.SERVING, State.READ_ONLY, State.FULL})


class Health(NamedTuple):
    """The health of a server.

    Attributes:
        why: what keeps it from serving; empty if nothing does.
    """

    state: State
    why: str = ""

    @property
    def is_live(self) -> bool:
        """Whether it is to go on; if not, only a new start helps."""
        return self.state is not State.FAILED

    @property
    def is_ready(self) -> bool:
        """Whether it does its work."""
        return self.state in _READY


#: Tells the health of a server.
Probe = Callable[[], Health]


def serving() -> Health:
    """The health of a server that serves as soon as it listens."""
    return Health(State.SERVING)


def starting() -> Health:
    """The health of a server that is not there yet."""
    return Health(State.STARTING, "it has not begun to serve")


def worst(states: Mapping[str, Health]) -> Health:
    """The health of all servers of a process."""
    if not states:
        return Health(State.STARTING, "nothing is open yet")
    return max(states.values(), key=lambda each: (not each.is_live, not each.is_ready))


class BrokerHealth:
    """Tells the health of a broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def __call__(self) -> Health:
        """The health now."""
        inside = self._broker.inside
        if inside is None or inside.dispatch is None:
            return Health(State.STARTING, "it opens its store, or changes its role")
        flags = inside.store.flags
        if flags.has_failed:
            return Health(State.FAILED, str(flags.blocked))
        if flags.is_full:
            return Health(State.FULL, str(flags.blocked))
        replication = inside.parts.replication
        if replication.is_slave:
            slave = replication.slave
            if slave is None or not slave.is_connected:
                return Health(State.NOT_IN_SYNC, "the slave is not connected to its master")
            return Health(State.READ_ONLY, "it is a slave")
        if not is_writable(self._broker.settings.config.permission):
            return Health(State.READ_ONLY, "broker.permission (brokerPermission) lacks writing")
        if replication.is_waiting:
            try:
                replication.check_copies()
            except SprocketError as error:
                return Health(State.NOT_IN_SYNC, str(error))
        return Health(State.SERVING)
