"""What a client takes from the world around it: clock, randomness, its machine and process.

Users need not give one; tests and simulations do, so that everything follows from a seed.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from ipaddress import ip_address

from sprocket.base.ports import Clock, Disk, Entropy

#: An address of documentation pages: nothing is ever sent to it, see `_own_address`.
_ELSEWHERE = ("192.0.2.1", 9)


@dataclass(frozen=True, slots=True)
class ClientEnvironment:
    """Where a client lives.

    Attributes:
        clock: wall clock, for birth times of messages.
        entropy: randomness, for ids, first turns and pauses.
        host: this machine's IP address, first part of the client id and of message ids.
        process: this process's number.
        disk: where broadcasting consumers keep their positions; without one they cannot be.
    """

    clock: Clock
    entropy: Entropy
    host: str
    process: int
    disk: Disk | None = None

    @staticmethod
    def real() -> ClientEnvironment:
        """This machine and process, without its disk."""
        from sprocket.runtime.clock import SystemClock
        from sprocket.runtime.entropy import SystemEntropy

        return ClientEnvironment(SystemClock(), SystemEntropy(), _own_address(), os.getpid())

    @staticmethod
    def real_disk() -> Disk:
        """This machine's disk; apart, since only few clients need one."""
        from sprocket.runtime.disk import SystemDisk

        return SystemDisk()

    @property
    def packed_host(self) -> bytes:
        """The address in 4 or 16 bytes."""
        return ip_address(self.host).packed


def _own_address() -> str:
    """The address by which this machine reaches others, or loopback if it reaches none.

    Connecting a datagram socket sends nothing; it only makes the system choose a route.
    """
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(_ELSEWHERE)
            return str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.1"
