"""Where a broker runs: the ports to its machine, its folder and its addresses."""

from __future__ import annotations

from typing import NamedTuple

from sprocket.base.ports import Clock, Disk, Entropy


class Ports(NamedTuple):
    """The ports through which a broker reaches the machine, and how much memory that has."""

    disk: Disk
    clock: Clock
    entropy: Entropy
    memory_bytes: int


class Location(NamedTuple):
    """Where a broker keeps its files and where it is reached.

    Attributes:
        root: its folder.
        address, ha_address: `host:port` for clients and for slaves.
        packed: the address in the binary form of records.
    """

    root: str
    address: str
    ha_address: str
    packed: bytes
