"""The environment of a client: clock, randomness, its machine and process.

Users need not pass one. Tests and simulations do, so that everything follows from a seed.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from ipaddress import ip_address

from sprocket.base.ports import Clock, Disk, Entropy

#: How far the clocks of two machines may be apart where times of both are compared, ms.
CLOCKS_APART_MS = 10_000
#: An address reserved for documentation; nothing is sent to it, see `_own_address`.
_ELSEWHERE = ("192.0.2.1", 9)


@dataclass(frozen=True, slots=True)
class ClientEnvironment:
    """What a client needs from its machine and process.

    Attributes:
        clock: wall clock, for birth times of messages.
        entropy: randomness, for ids, for the first queue or server to use, and for pauses.
        host: this machine's IP address, the first part of the client id and of message ids.
        process: this process's number.
        disk: where broadcasting consumers store their offsets; they cannot start without one.
    """

    clock: Clock
    entropy: Entropy
    host: str
    process: int
    disk: Disk | None = None

    @staticmethod
    def real() -> ClientEnvironment:
        """Returns this machine and process, without its disk."""
        from sprocket.runtime.clock import SystemClock
        from sprocket.runtime.entropy import SystemEntropy

        return ClientEnvironment(SystemClock(), SystemEntropy(), _own_address(), os.getpid())

    @staticmethod
    def real_disk() -> Disk:
        """Returns this machine's disk; separate from `real`, because few clients need a disk."""
        from sprocket.runtime.disk import SystemDisk

        return SystemDisk()

    @property
    def packed_host(self) -> bytes:
        """The host's address in 4 or 16 bytes."""
        return ip_address(self.host).packed


def _own_address() -> str:
    """Returns the address from which this machine reaches others, or loopback if it reaches none.

    Connecting a datagram socket sends nothing; it only makes the system choose a route.
    """
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(_ELSEWHERE)
            return str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.1"


def client_id_of(configured: str | None, world: ClientEnvironment, place: int) -> str:
    """Returns `address@process#random`, or `address@instance` if an instance is configured.

    Two containers may have the same address and process number; the random part differs.
    """
    if configured is None:
        instance = f"{world.process}#{world.entropy.token(6).hex()}"
    else:
        instance = configured if not place else f"{configured}#{place}"
    return f"{world.host}@{instance}"
