"""A group of two fake brokers of one name, of which a test chooses the master at a name server.

They share messages and positions, as if all were copied at once; leases are each one's own. A test
kills or freezes them, or has them refuse as brokers do that are no masters.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from sprocket.client.base.world import ClientEnvironment
from sprocket.protocol.bodies import BrokerData, QueueData, Route
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.lock import LockQueues, UnlockQueues
from sprocket.protocol.requests.pull import PullMessage
from sprocket.protocol.requests.route import RouteOfTopic
from sprocket.protocol.requests.send import SendBatch, SendMessageV2
from sprocket.protocol.requests.transaction import EndTransaction
from sprocket.remoting.endpoints import one_by_one
from sprocket.remoting.server import Server
from sprocket.remoting.transport import Peer
from sprocket.testing.clock import LoopClock
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from sprocket.testing.process import SimulatedProcess
from tests.client.fakes import FakeBroker

TOPIC, NAME = "orders", "broker-a"
#: What a slave refuses with the code for a broker that is busy.
_WRITES = (SendMessageV2, SendBatch, PullMessage, LockQueues, UnlockQueues)


class GroupMember(FakeBroker):
    """One broker of the group, in a process of its own."""

    def __init__(self, network: Network, host: str, queues: int) -> None:
        super().__init__({TOPIC: queues}, NAME)
        self.network = network
        self.process = SimulatedProcess(host, host)
        self._server = Server(one_by_one(self._answer), host=network.address_of(host), port=10911)
        #: The code with which it refuses what only masters do; None at a master.
        self.refusal: int | None = None
        self.refuse = self._refused
        #: Ends of transactions that it has carried out.
        self.ended: list[Command] = []

    def _refused(self, command: Command, peer: Peer) -> int | None:
        if self.refusal is None:
            return None
        if command.code == EndTransaction.code:
            return 11
        return self.refusal if command.code in [each.code for each in _WRITES] else None

    def _answer(self, command: Command, peer: Peer) -> Any:
        if command.code == EndTransaction.code and self.refusal is None:
            self.ended.append(command)
            return Reply()
        return super()._answer(command, peer)

    async def begin(self) -> None:
        await self.process.run(self.__aenter__())

    def kill(self) -> None:
        self.network.kill(self.process)
        self.process.kill()


class FakeGroup(FakeBroker):
    """The name server of the group, and its two members, `a` and `b`; `a` is the master."""

    def __init__(self, network: Network, queues: int = 1) -> None:
        super().__init__()
        self.network = network
        self.process = SimulatedProcess("ns", "ns")
        self._server = Server(one_by_one(self._answer), host=network.address_of("ns"), port=9876)
        self.a, self.b = (GroupMember(network, host, queues) for host in ("host-a", "host-b"))
        self.b.queues, self.b.committed = self.a.queues, self.a.committed
        self.b._by_log_offset = self.a._by_log_offset
        self.b.refusal = 2
        self.count_of_queues = queues
        #: What the name server says: addresses by number.
        self.route: dict[int, str] = {}

    async def begin(self) -> None:
        await self.process.run(self.__aenter__())
        await self.a.begin()
        await self.b.begin()
        self.name_master(self.a, slave=self.b)

    def name_master(self, master: GroupMember | None, *, slave: GroupMember | None = None) -> None:
        """Has the name server tell another master, or none."""
        self.route = {}
        if master is not None:
            self.route[0] = master.address
        if slave is not None:
            self.route[1] = slave.address

    def promote(self) -> None:
        """Makes `b` the master."""
        self.b.refusal = None
        self.b._log_end = self.a._log_end

    def _route(self, command: Command, peer: Peer) -> Reply:
        count = self.count_of_queues
        topic = command.read(RouteOfTopic).topic or ""
        if topic.startswith("%RETRY%"):
            count = 1
        route = Route(
            broker_datas=[BrokerData(broker_addrs=self.route, broker_name=NAME)],
            queue_datas=[
                QueueData(broker_name=NAME, perm=6, read_queue_nums=count, write_queue_nums=count)
            ],
        )
        return Reply(body=route.encode())

    # Ways to lose a master.

    async def hand_over(self) -> None:
        """`a` refuses, `b` leads a moment later, and the name server learns it after that."""
        self.a.refusal = 2
        await asyncio.sleep(0.2)
        self.promote()
        await asyncio.sleep(0.1)
        self.name_master(self.b, slave=self.a)

    async def stop(self) -> None:
        """`a` hands over and ends."""
        self.a.refusal = 14
        await asyncio.sleep(0.1)
        self.name_master(None, slave=self.b)
        await asyncio.sleep(0.2)
        self.promote()
        self.name_master(self.b)
        self.a.kill()

    async def kill(self) -> None:
        """`a` is killed; half a second later `b` leads."""
        self.a.kill()
        self.name_master(None, slave=self.b)
        await asyncio.sleep(0.5)
        self.promote()
        self.name_master(self.b)

    async def freeze(self) -> None:
        """`a` stands still; the name server tells `b` after the time that an election takes."""
        self.a.process.stop()
        await asyncio.sleep(2.5)
        self.promote()
        self.name_master(self.b)


def play(
    test: Callable[[FakeGroup], Coroutine[Any, Any, None]], *, queues: int = 1, seed: int = 1
) -> None:
    """Runs a test with a group, in virtual time."""

    async def main(network: Network) -> None:
        group = FakeGroup(network, queues)
        await group.begin()
        await test(group)
        group.a.process.wake()

    simulate(main, seed=seed)


def client(group: FakeGroup, name: str) -> tuple[SimulatedProcess, ClientEnvironment]:
    """A process for a client, and its environment."""
    process = SimulatedProcess(name, name)
    address = group.network.address_of(name)
    return process, ClientEnvironment(LoopClock(), SeededEntropy(name), address, 1)
