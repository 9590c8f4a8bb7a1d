"""The stations of a process: one for all connections with the same settings, closed by the last.

After a fork the child gets stations of its own, without anything that the parent consumed: a child
settles none of its parent's messages, and its first send makes its own connections.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field

from sprocket.integrations.celery.settings import TransportSettings
from sprocket.integrations.celery.station import BlockingStation


@dataclass
class _Shared:
    """A station, and how many connections use it."""

    station: BlockingStation
    users: int = 0
    is_started: bool = False
    starting: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        with self.starting:
            if not self.is_started:
                self.station.start()
                self.is_started = True


#: The open stations. The key has the process's number: after a fork the child makes its own.
_stations: dict[tuple[int, str], _Shared] = {}
#: Held while users are counted, and never while anything is waited for: the loop's thread takes it.
_counting = threading.Lock()


def _forget_parent() -> None:
    """Resets a forked child: another thread of the parent may have held the lock."""
    global _counting
    _counting = threading.Lock()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_forget_parent)


def station_of(settings: TransportSettings) -> BlockingStation:
    """The station for these settings, for one more connection."""
    process = os.getpid()
    key = (process, settings.identity)
    with _counting:
        shared = _stations.get(key)
        if shared is None:
            shared = _stations[key] = _Shared(BlockingStation(settings))
        shared.users += 1
    try:
        shared.start()
    except BaseException:  # raised again; only nothing must stay half open
        leave(settings, process)
        raise
    return shared.station


def leave(settings: TransportSettings, process: int) -> None:
    """One connection less uses the station; the last one closes it.

    Args:
        process: the one that opened the connection. A child that inherited it closes no more than
            what it has made of it.
    """
    if (station := _count_down(settings, process)) is not None:
        station.close()


def leave_soon(station: BlockingStation, settings: TransportSettings, process: int) -> None:
    """The same for a connection that nobody closed; a finalizer, so it neither waits nor locks."""

    def leave() -> None:
        if _count_down(settings, process) is not None:
            station.close_soon()

    station.call_soon(leave)


def _count_down(settings: TransportSettings, process: int) -> BlockingStation | None:
    """Counts one user less, and returns the station if it was the last."""
    key = (process, settings.identity)
    with _counting:
        shared = _stations.get(key)
        if shared is None:
            return None
        shared.users -= 1
        return None if shared.users else _stations.pop(key).station
