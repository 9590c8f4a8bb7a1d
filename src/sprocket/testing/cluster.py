"""A cluster of name servers, brokers and clients on one loop, which a test starts, stops and kills.

Each is a process on a host of its own: a kill ends its tasks at once, drops its connections, and
leaves its disk to the next process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

from sprocket.base.ports import Disk
from sprocket.broker.broker import Broker
from sprocket.broker.config import BrokerConfig
from sprocket.client.base.world import ClientEnvironment
from sprocket.election.elector import Elector
from sprocket.nameserver.config import NameServerConfig
from sprocket.nameserver.nameserver import NameServer
from sprocket.store.config import StoreConfig
from sprocket.testing.clock import LoopClock
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.invariants import Violation
from sprocket.testing.journal import Journal
from sprocket.testing.network import Network
from sprocket.testing.process import SimulatedProcess

#: Between the name of a master and the number of its slave, in the name of a machine.
_SLAVE = "-slave-"

#: The name of brokers that elect their master.
GROUP_NAME = "group"

NAMESERVER_PORT = 9876
BROKER_PORT = 10911

#: Most seconds of virtual time from a server's start until it serves, whatever is on its disk.
START_SECONDS_MAX = 30.0
#: Pause between two checks for failed brokers, s.
_LOOK_SECONDS = 1.0

#: Small files, so that every run fills several.
SMALL_STORE = StoreConfig(
    log_file_bytes=32 * 1024, queue_file_bytes=100 * 20, index_slots=100, index_entries=400
)


class Machine:
    """A host with a disk and at most one server.

    Args:
        network: the network to which it belongs.
        name: its host name, and the name of its processes.
        serve: makes the server for a machine, as an async context manager.
        disk: the disk of its processes.
    """

    def __init__(
        self,
        network: Network,
        name: str,
        serve: Callable[[Machine], AbstractAsyncContextManager[Any]],
        disk: MemoryDisk,
    ) -> None:
        self.network = network
        self.name = name
        self.address = network.address_of(name)
        self.disk = disk
        self.clock = LoopClock()
        self.starts = 0
        #: The server on it, for tests that inspect it.
        self.server: Any = None
        self._serve = serve
        self._process: SimulatedProcess | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._has_stood_still = False

    @property
    def is_running(self) -> bool:
        """Whether its server was started, and was neither stopped nor killed."""
        return self._process is not None

    @property
    def is_paused(self) -> bool:
        """Whether its process stands still."""
        return self._process is not None and self._process.is_stopped

    @property
    def has_failed(self) -> bool:
        """Whether its server is a broker that ended because of a failure."""
        failure = getattr(self.server, "_failure", None)
        return failure is not None and failure.done() and not failure.cancelled()

    async def start(self) -> None:
        """Starts the server; returns when it serves.

        Raises:
            Violation: the start takes too long.
            Exception: whatever the start of the server raised.
        """
        # A machine that is paused during its start may take longer than the limit: then this waits
        # without one. A server that ends before it serves raises its error here.
        self.starts += 1
        self._has_stood_still = False
        self.network.note(f"start {self.name}")
        self._stopping.clear()
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._process = SimulatedProcess(self.name, self.name)
        self._task = self._process.start(self._main(ready))
        begun = [ready, self._task]
        done, _ = await asyncio.wait(
            begun, timeout=START_SECONDS_MAX, return_when=asyncio.FIRST_COMPLETED
        )
        if not done and not self._has_stood_still:
            raise Violation(f"{self.name} does not serve {START_SECONDS_MAX:g} s after its start")
        await asyncio.wait(begun, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            self._process = None
            await self._task

    async def stop(self) -> None:
        """Ends the server in order."""
        self.network.note(f"stop {self.name}")
        assert self._task is not None
        self._stopping.set()
        await self._task
        self._process = None

    def pause(self) -> None:
        """Stops the server's process, as by SIGSTOP, until `wake`."""
        assert self._process is not None
        self._has_stood_still = True
        self._process.stop()

    def wake(self, *, timers_first: bool = False) -> None:
        """Continues after `pause`; see `SimulatedProcess.wake`."""
        if self._process is not None:
            self._process.wake(timers_first=timers_first)

    def kill(self, *, power_lost: bool = False) -> None:
        """Kills the server.

        Args:
            power_lost: whether the machine loses power: bytes that are not synced may be lost, and
                peers get no end of connections.
        """
        process, self._process = self._process, None
        assert process is not None
        self.network.note(f"kill {self.name}")
        if power_lost:
            assert isinstance(self.disk, FaultyDisk)
            self.disk = self.disk.after_power_loss()
        else:
            self.disk = self.disk.after_kill()
        self.network.kill(process, silently=power_lost)
        process.kill()

    async def _main(self, ready: asyncio.Future[None]) -> None:
        async with self._serve(self) as self.server:
            ready.set_result(None)
            await self._stopping.wait()


class Cluster:
    """A whole cluster in one simulated network.

    Args:
        network: the network of the running simulation.
        seed: the seed of everything random in servers and clients.
        nameservers, brokers: their numbers; they are named `ns-0`, `broker-0` and so on.
        slaves: how many slaves each broker has; they are named `broker-0-slave-1` and so on.
        broker, nameserver: settings of all of them; names and addresses are filled in.
        elect: makes the elector of each broker; then all brokers are one group, `GROUP_NAME`.
        store: settings of their stores.
        sync_seconds: the shortest and the longest time of a sync of their disks.
    """

    def __init__(
        self,
        network: Network,
        seed: int | str = 0,
        *,
        nameservers: int = 1,
        brokers: int = 1,
        slaves: int = 0,
        broker: BrokerConfig | None = None,
        nameserver: NameServerConfig | None = None,
        store: StoreConfig = SMALL_STORE,
        sync_seconds: tuple[float, float] = (0.0005, 0.02),
        elect: Callable[[Machine], Elector] | None = None,
    ) -> None:
        self._elect = elect
        self.network = network
        self._entropy = SeededEntropy(f"cluster {seed}")
        self._broker_config = broker or BrokerConfig()
        self._nameserver_config = nameserver or NameServerConfig()
        self._store_config = store
        self._sync_seconds = sync_seconds
        self.nameservers = [self._machine(f"ns-{n}", self._nameserver) for n in range(nameservers)]
        self.brokers = [self._machine(f"broker-{n}", self._broker) for n in range(brokers)]
        self.slaves = [
            self._machine(f"{master.name}{_SLAVE}{n}", self._broker)
            for master in self.brokers
            for n in range(1, slaves + 1)
        ]
        self._clients = 0
        #: Settings of slaves that became masters, by the names of their machines.
        self._promoted: dict[str, dict[str, object]] = {}
        #: The wall clocks of all brokers and clients, with their names.
        self.clocks = [(machine.name, machine.clock) for machine in self.brokers]

    @property
    def machines(self) -> list[Machine]:
        """All name servers, then all brokers, then all slaves."""
        return [*self.nameservers, *self.brokers, *self.slaves]

    @property
    def nameserver_addresses(self) -> list[str]:
        """The name servers' addresses for clients."""
        return [f"{machine.address}:{NAMESERVER_PORT}" for machine in self.nameservers]

    async def start(self) -> None:
        """Starts all machines that do not run."""
        for machine in self.machines:
            if not machine.is_running:
                await machine.start()

    async def stop(self) -> None:
        """Stops all machines that run, brokers first."""
        for machine in reversed(self.machines):
            if machine.is_running:
                await machine.stop()

    async def promote(self, slave: Machine, **settings: object) -> None:
        """Starts a slave that does not run as the master of its name, with its folder.

        Args:
            settings: of its broker, which differ from those of all brokers.
        """
        self.network.note(f"promote {slave.name}")
        self._promoted[slave.name] = settings
        await slave.start()

    async def supervise(self, journal: Journal) -> None:
        """Restarts brokers that a disk failure ended, as an operator would; until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            for broker in [*self.brokers, *self.slaves]:
                if broker.is_running and broker.has_failed:
                    journal.note("supervisor", f"starts {broker.name} again")
                    broker.kill()
                    restarted = asyncio.ensure_future(broker.start())
                    await asyncio.wait([restarted])
                    if not restarted.cancelled():
                        restarted.exception()

    def client(
        self, name: str, *, disk: Disk | None = None
    ) -> tuple[SimulatedProcess, ClientEnvironment]:
        """A process on a host of its own, and the `world` for a client in it."""
        self._clients += 1
        process = SimulatedProcess(name, name)
        entropy = self._entropy.fork(name)
        address = self.network.address_of(name)
        clock = LoopClock()
        self.clocks.append((name, clock))
        return process, ClientEnvironment(clock, entropy, address, self._clients, disk)

    def _machine(
        self, name: str, serve: Callable[[Machine], AbstractAsyncContextManager[Any]]
    ) -> Machine:
        disk = FaultyDisk(f"{name} {self._entropy.below(1 << 30)}", sync_seconds=self._sync_seconds)
        disk.make_directory("/data")
        return Machine(self.network, name, serve, disk)

    def _broker(self, machine: Machine) -> AbstractAsyncContextManager[Any]:
        name, _, number = machine.name.partition(_SLAVE)
        role: dict[str, object] = {"id": int(number), "role": "SLAVE"} if number else {}
        role = self._promoted.get(machine.name, role)
        elector = None
        if self._elect is not None:
            name, elector = GROUP_NAME, self._elect(machine)
        config = replace(
            self._broker_config,
            **role,  # type: ignore[arg-type]
            name=name,
            host=machine.address,
            port=BROKER_PORT,
            nameservers=tuple(self.nameserver_addresses),
        )
        return Broker(
            config,
            store=self._store_config,
            root="/data",
            disk=machine.disk,
            clock=machine.clock,
            entropy=self._entropy.fork(f"{machine.name} {machine.starts}"),
            elector=elector,
        )

    def _nameserver(self, machine: Machine) -> AbstractAsyncContextManager[Any]:
        config = replace(self._nameserver_config, host=machine.address, port=NAMESERVER_PORT)
        return NameServer(config, disk=machine.disk)
