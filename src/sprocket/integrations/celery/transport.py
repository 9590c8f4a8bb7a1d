"""Kombu's transport: `sprocket+rocketmq://host:9876`.

It is non-blocking where Celery's worker has an event loop: a byte in a pair of sockets tells that
loop that something arrived. Elsewhere `drain_events` waits, without polling.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import weakref
from time import monotonic
from typing import Any

from kombu.transport import base, virtual

from sprocket.base.errors import NoPermission, RouteNotFound, SendFailed, TransportError
from sprocket.integrations.celery.channel import Channel
from sprocket.integrations.celery.settings import TransportSettings, settings_of
from sprocket.integrations.celery.shared_stations import leave, leave_soon, station_of
from sprocket.integrations.celery.station import BlockingStation


class Transport(virtual.Transport):
    """A connection of kombu; all of a process share what is behind it.

    One that nobody closes leaves that too, when Python collects it.
    """

    Channel = Channel
    default_port = 9876
    can_parse_url = True
    driver_type = "rocketmq"
    driver_name = "sprocket"
    connection_errors = (
        *base.Transport.connection_errors, TransportError, SendFailed, RouteNotFound, NoPermission
    )  # fmt: skip
    implements = base.Transport.implements.extend(
        asynchronous=True,
        exchange_type=frozenset(["direct", "topic", "fanout"]),
    )

    def __init__(self, client: Any, **named: Any) -> None:
        super().__init__(client, **named)
        self.settings: TransportSettings = settings_of(
            _urls(client), client.transport_options or {}, client.ssl, _keys(client)
        )
        self._station: BlockingStation | None = None
        self._process = os.getpid()
        self._leave: weakref.finalize[..., Any]
        self._rang = threading.Event()
        self._bell: tuple[socket.socket, socket.socket] | None = None
        self._turn = 0

    @property
    def station(self) -> BlockingStation:
        """What the connections of this process share."""
        if self._station is None:
            self._station = station_of(self.settings)
            self._process = os.getpid()
            self._leave = weakref.finalize(
                self, leave_soon, self._station, self.settings, self._process
            )
            self._leave.atexit = False  # when Python exits, the station closes by itself
        return self._station

    def driver_version(self) -> str:
        """Sprocket's version."""
        from importlib.metadata import version

        return version("sprocketmq")

    def establish_connection(self) -> Any:
        """Makes a connection, and sees that a name server answers."""
        if self._process != os.getpid():
            self._collect(None)
        try:
            self.station.check()
        except BaseException:  # raised again; only nothing must stay half open
            self._release()
            raise
        return super().establish_connection()

    def close_connection(self, connection: Any) -> None:
        """Closes it: what was delivered and not acknowledged goes back to its queues."""
        try:
            super().close_connection(connection)
        finally:
            self._release()

    def _collect(self, connection: Any) -> None:
        """Forgets everything, as after a fork; a parent's messages stay with it."""
        self._callbacks.clear()
        self._release()

    def verify_connection(self, connection: Any) -> bool:
        """Whether the connection can be used: it cannot in a child that inherited it."""
        return self._station is not None and self._process == os.getpid()

    def _release(self) -> None:
        for channel in self.channels:
            channel.drop()
        self.channels.clear()
        self._avail_channels.clear()
        station, self._station = self._station, None
        if station is not None:
            self._leave.detach()
            leave(self.settings, self._process)
        bell, self._bell = self._bell, None
        for end in bell or ():
            end.close()

    def as_uri(self, uri: str, include_password: bool = False, mask: str = "**") -> str:
        """The address for people, without the secret."""
        shown = ";".join(self.settings.nameservers)
        return f"sprocket+rocketmq://{shown}"

    # Waiting

    def ring(self) -> None:
        """Something arrived, or may be delivered now. Called in any thread."""
        self._rang.set()
        if (bell := self._bell) is not None:
            with contextlib.suppress(OSError):  # it is full, so it rings already; or is closed
                bell[1].send(b"\0")

    def _deliver_one(self) -> bool:
        channels = list(self.channels)
        for at in range(len(channels)):
            channel = channels[(self._turn + at) % len(channels)]
            if channel.deliver_next():
                self._turn += at + 1
                return True
        return False

    def drain_events(self, connection: Any, timeout: float | None = None) -> None:
        """Delivers one message; waits for it as long as `timeout` says, in seconds."""
        until = None if timeout is None else monotonic() + timeout
        while True:
            self._rang.clear()
            if self._deliver_one():
                return
            left = None if until is None else until - monotonic()
            if left is not None and left <= 0:
                raise TimeoutError("no message in time")
            self._rang.wait(left)

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        """Has Celery's event loop deliver what arrives."""
        if self._bell is None:
            reading, writing = socket.socketpair()
            reading.setblocking(False)
            writing.setblocking(False)
            self._bell = (reading, writing)
        loop.add_reader(self._bell[0].fileno(), self._on_ring)
        self.ring()

    def unregister_from_event_loop(self, connection: Any, loop: Any) -> None:
        """Ends that."""
        if self._bell is not None:
            loop.remove_reader(self._bell[0].fileno())

    def _on_ring(self) -> None:
        if self._bell is not None:
            with contextlib.suppress(BlockingIOError):
                self._bell[0].recv(4096)
        while self._deliver_one():
            pass


def _urls(client: Any) -> list[str]:
    """The URLs of a connection of kombu: those among which it would choose."""
    if "://" in (client.hostname or "") or client.alt:
        return [client.hostname, *(each for each in client.alt or () if each != client.hostname)]
    host = f"[{client.hostname}]" if ":" in (client.hostname or "") else client.hostname
    path = client.virtual_host if client.virtual_host not in (None, "/") else ""
    return [f"//{host}:{client.port or 9876}/{path}"]


def _keys(client: Any) -> tuple[str, str] | None:
    """The keys that a connection has beside its URL; the secret one may be a function of none."""
    if not client.userid:
        return None
    secret = client.password() if callable(client.password) else client.password
    return client.userid, secret or ""
