"""Makes the elector that a setting names."""

from __future__ import annotations

from typing import NamedTuple

from sprocket.base.errors import ConfigError
from sprocket.base.ports import Disk, Entropy
from sprocket.election.elector import Elector
from sprocket.election.etcd import EtcdKeys, EtcdSecurity
from sprocket.election.identity import IdentityFile
from sprocket.election.key_elector import KeyElector
from sprocket.election.leased_keys import LeasedKeys
from sprocket.election.places import CONTROLLER, parse_place


class ElectorRequest(NamedTuple):
    """What an elector is made of.

    Attributes:
        place: who decides, as the setting says it; see `sprocket.election.places`.
        cluster, name: of the broker.
        disk, root: where the broker's folder is; it keeps its number there.
        entropy: the broker's.
        lease_ms, priority, elect_unclean: as `KeyElector` has them.
        security: certificates and password for etcd.
    """

    place: str
    cluster: str
    name: str
    disk: Disk
    root: str
    entropy: Entropy
    lease_ms: int = 3_000
    priority: int = (1 << 31) - 1
    elect_unclean: bool = False
    security: EtcdSecurity = EtcdSecurity()


def open_elector(request: ElectorRequest) -> Elector:
    """Makes the elector of one broker; it connects when the broker joins.

    Raises:
        ConfigError: the place is none, a certificate cannot be read, or etcd's extra is missing.
    """
    try:
        place = parse_place(request.place)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    if place.kind == CONTROLLER:
        raise ConfigError("brokers in RocketMQ's controller mode are not supported")
    return key_elector(EtcdKeys(place, request.security, lease_ms=request.lease_ms), request)


def key_elector(keys: LeasedKeys, request: ElectorRequest) -> KeyElector:
    """Makes the elector of one broker over a store of keys."""
    return KeyElector(
        keys,
        IdentityFile(request.disk, request.root, request.cluster, request.name),
        request.entropy,
        cluster=request.cluster,
        name=request.name,
        lease_ms=request.lease_ms,
        priority=request.priority,
        elect_unclean=request.elect_unclean,
    )
