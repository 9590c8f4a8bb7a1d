"""Async tests in virtual time: an hour of waiting takes no time, and a seed decides the history.

The test and a whole cluster run on one simulated loop, over a network in memory. Clients are the
ordinary ones: while the test runs, the clock, the randomness and the disk that they take by
themselves are simulated too, so the code under test need not know.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable
from typing import Any
from unittest import mock

from sprocket.base.errors import UsageError
from sprocket.client.base.world import ClientEnvironment
from sprocket.store.config import StoreConfig
from sprocket.testing.clock import LoopClock
from sprocket.testing.cluster import Cluster
from sprocket.testing.disk import MemoryDisk
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.isolated_topics import IsolatedTopics
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network

#: Files that a test hardly fills; they are in memory.
_STORE = StoreConfig(
    log_file_bytes=8 * 1024 * 1024, queue_file_bytes=2_000 * 20, index_slots=1_000,
    index_entries=4_000,
)  # fmt: skip
#: The host, in the simulated network, of the test and of the clients that it starts itself.
HOST = "test"
#: The environment variable from which clients take their name servers.
NAMESERVERS_VARIABLE = "SPROCKET_NAMESERVERS"
#: The parameter of a test that gets the cluster.
PARAMETER = "rocketmq"


class VirtualTopics(IsolatedTopics):
    """What a test in virtual time gets: topics of its own, and the cluster, to break it.

    Attributes:
        cluster: its brokers and name servers, which can be stopped, killed and started.
        network: delays, cuts and lost replies between hosts; the test's own is `HOST`.
    """

    def __init__(self, cluster: Cluster, world: ClientEnvironment) -> None:
        super().__init__(";".join(cluster.nameserver_addresses), world=world)
        self.cluster = cluster
        self.network = cluster.network


def virtual_time(
    test: Callable[..., Any] | None = None,
    /,
    *,
    seed: int | Iterable[int] = 0,
    brokers: int = 1,
    nameservers: int = 1,
) -> Any:
    """Decorates an async test, so that it runs in virtual time with a simulated cluster.

    Its parameter `rocketmq` is then the cluster, a `VirtualTopics`; others stay, for pytest's
    fixtures. The result is a plain function, for any test framework.

    Args:
        seed: decides delays, randomness and the order of what happens at the same time; several
            let the test run once for each.
        brokers, nameservers: how many there are.

    Raises:
        UsageError: the test is no async function, or there would be no seed or no server.
    """
    seeds = (seed,) if isinstance(seed, int) else tuple(seed)
    if not seeds:  # it would pass without being run
        raise UsageError("virtual time needs a seed")
    if brokers < 1 or nameservers < 1:
        raise UsageError("virtual time needs at least one broker and one name server")
    if test is None:
        return lambda found: virtual_time(
            found, seed=seeds, brokers=brokers, nameservers=nameservers
        )
    if not inspect.iscoroutinefunction(test):
        raise UsageError(f"virtual time needs an async test; {test.__qualname__} is none")
    signature = inspect.signature(test)
    takes_cluster = PARAMETER in signature.parameters

    def run(*args: Any, **named: Any) -> None:
        for each in seeds:
            try:
                _run(test, takes_cluster, each, (brokers, nameservers), args, named)
            except BaseException as error:  # it goes on, with what repeats its history
                error.add_note(f"in virtual time with seed={each}")
                raise

    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(run, name, getattr(test, name))
    vars(run).update(getattr(test, "__dict__", {}))  # marks of pytest
    others = [each for name, each in signature.parameters.items() if name != PARAMETER]
    vars(run)["__signature__"] = signature.replace(
        parameters=others, return_annotation=inspect.Signature.empty
    )
    return run


def _run(
    test: Callable[..., Any],
    takes_cluster: bool,
    seed: int,
    sizes: tuple[int, int],
    args: tuple[Any, ...],
    named: dict[str, Any],
) -> None:
    async def main(network: Network) -> None:
        brokers, nameservers = sizes
        cluster = Cluster(network, seed, brokers=brokers, nameservers=nameservers, store=_STORE)
        disk = MemoryDisk()
        world = ClientEnvironment(
            LoopClock(), SeededEntropy(f"test {seed}"), network.address_of(HOST), 1, disk
        )
        await cluster.start()
        addresses = ";".join(cluster.nameserver_addresses)
        process, _ = cluster.client(HOST)
        with (
            mock.patch.object(ClientEnvironment, "real", staticmethod(lambda: world)),
            mock.patch.object(ClientEnvironment, "real_disk", staticmethod(lambda: disk)),
            mock.patch.dict(os.environ, {NAMESERVERS_VARIABLE: addresses}),
        ):
            async with VirtualTopics(cluster, world) as topics:
                given = {**named, PARAMETER: topics} if takes_cluster else named
                await process.run(test(*args, **given))
        await cluster.stop()

    simulate(main, seed=seed)
