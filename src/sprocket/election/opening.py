"""Makes the elector that a setting names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sprocket.base.errors import ConfigError
from sprocket.base.ports import Clock, Disk, Entropy
from sprocket.election.controller_elector import (
    ControllerElector,
    ControllerTimes,
    GroupOfBrokers,
)
from sprocket.election.elector import Elector
from sprocket.election.etcd import EtcdKeys, EtcdSecurity
from sprocket.election.identity import IdentityFile
from sprocket.election.key_elector import KeyElector
from sprocket.election.leased_keys import LeasedKeys
from sprocket.election.places import CONTROLLER, parse_place
from sprocket.protocol.signing import Signer
from sprocket.remoting.pool import Pool
from sprocket.remoting.tls.settings import ClientTls


class ElectorRequest(NamedTuple):
    """What an elector is made of.

    Attributes:
        place: who decides, as the setting says it; see `sprocket.election.places`.
        cluster, name: of the broker.
        disk, root: where the broker's folder is; it keeps its number there.
        entropy, clock: the broker's.
        lease_ms, priority, elect_unclean: as `KeyElector` has them.
        controller_times: how often RocketMQ's controller hears of this broker.
        security: certificates and password for etcd.
        tls: how calls to RocketMQ's controller speak TLS; None for plain ones.
        signer: signs these calls; None if they need not be signed.
    """

    place: str
    cluster: str
    name: str
    disk: Disk
    root: str
    entropy: Entropy
    clock: Clock
    lease_ms: int = 3_000
    priority: int = (1 << 31) - 1
    elect_unclean: bool = False
    controller_times: ControllerTimes = ControllerTimes()
    security: EtcdSecurity = EtcdSecurity()
    tls: ClientTls | None = None
    signer: Signer | None = None


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
        return controller_elector(place.addresses, request)
    return key_elector(EtcdKeys(place, request.security, lease_ms=request.lease_ms), request)


def controller_elector(addresses: Sequence[str], request: ElectorRequest) -> ControllerElector:
    """Makes the elector of one broker over RocketMQ's controllers."""
    return ControllerElector(
        addresses,
        GroupOfBrokers(request.cluster, request.name, request.priority),
        IdentityFile(request.disk, request.root, request.cluster, request.name),
        pool=Pool(entropy=request.entropy, tls=request.tls, signer=request.signer),
        clock=request.clock,
        times=request.controller_times,
    )


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
