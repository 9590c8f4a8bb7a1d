"""The demo itself: a node, a producer, a group of two members, a Spark job.

It reads from top to bottom like a user's own program. Its output is in `screen`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from itertools import islice

from sprocket.base.errors import SprocketError
from sprocket.base.ports import Clock, Entropy
from sprocket.client.config import ConsumerConfig
from sprocket.client.producer import Producer
from sprocket.client.push_consumer import PushConsumer
from sprocket.demo.child import Child
from sprocket.demo.events import DemoReport, DemoStep, Failure, Task, decode_event, encode
from sprocket.demo.orders import TOPIC, orders
from sprocket.demo.plan import BROKER_PORT, GROUP, NAMESERVER_PORT, MemberTally, Plan, Result
from sprocket.demo.screen import ProgressBars, Screen
from sprocket.message.message import Message, StoredMessage
from sprocket.standalone import Standalone

_HOST = "127.0.0.1"
#: Sends in flight at the same time.
_AT_ONCE = 256
_JOIN_S = 20.0
_BILL_S = 60.0
_LOOK_AGAIN_S = 0.02


async def tour(plan: Plan, screen: Screen, *, clock: Clock, entropy: Entropy) -> Result:
    """Runs the whole demo.

    Raises:
        SprocketError: a port or the store is in use, or a part failed; the text names it.
    """
    plan.store.mkdir(parents=True, exist_ok=True)
    node = Standalone(
        store=plan.store,
        nameserver_port=_port(plan.nameserver_port, NAMESERVER_PORT),
        broker_port=_port(plan.broker_port, BROKER_PORT),
    )
    made = orders(plan.messages, run=f"{clock.now_ms() // 1000:x}", entropy=entropy)
    async with node, _spark(plan) as spark:
        screen.started(node.nameserver_address, node.broker_address, plan.store)
        async with Producer("shop", nameservers=node.nameserver_address) as producer:
            tallies = await _sell_and_bill(producer, made, node.nameserver_address, screen, plan)
        report = None
        if spark is not None:
            task = Task(node.nameserver_address, TOPIC, str(plan.parquet))
            with screen.working() as show:
                report = await _report(spark, task, show)
    return Result(plan.messages, tallies, report)


async def _sell_and_bill(
    producer: Producer, made: Iterator[Message], nameserver: str, screen: Screen, plan: Plan
) -> list[MemberTally]:
    """Sends all orders while a group of two members consumes them."""
    first = next(made)
    await producer.send(first)  # creates the topic, so that the members find its queues
    queues = await producer.queues(TOPIC)
    with screen.bars(plan.messages) as bars:
        billing = Billing(bars)
        billing.expect([first])
        bars.sent(1)
        async with billing.members(nameserver, 2) as members:
            await _shared(members, len(queues))
            while some := list(islice(made, _AT_ONCE)):
                billing.expect(some)
                await asyncio.gather(*(producer.send(message) for message in some))
                bars.sent(len(some))
            await billing.finished()
            for tally, member in zip(billing.tallies, members, strict=True):
                tally.queues = [queue.number for queue in member.queues if queue.topic == TOPIC]
    return billing.tallies


async def _shared(members: list[PushConsumer], queues: int) -> None:
    """Returns when every member has its share of the queues."""
    try:
        async with asyncio.timeout(_JOIN_S):
            while not all(0 < len(one.queues) < queues for one in members):  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_AGAIN_S)
    except TimeoutError:
        raise SprocketError(
            f"the group's members do not share the queues after {_JOIN_S:g} s"
        ) from None


class Billing:
    """The consumer group: counts each member's messages, and knows which are still missing."""

    def __init__(self, bars: ProgressBars) -> None:
        self._bars = bars
        self._waiting: set[str] = set()
        self._is_done = asyncio.Event()
        self.tallies: list[MemberTally] = []

    def expect(self, messages: list[Message]) -> None:
        """Registers messages that are about to be sent."""
        self._waiting.update(key for message in messages for key in message.keys)
        self._is_done.clear()

    @contextlib.asynccontextmanager
    async def members(self, nameserver: str, count: int) -> AsyncIterator[list[PushConsumer]]:
        """Runs `count` members inside the block."""
        async with contextlib.AsyncExitStack() as stack:
            joined = []
            for number in range(1, count + 1):
                config = ConsumerConfig(instance=f"member-{number}")
                member = PushConsumer(GROUP, nameservers=nameserver, start="first", config=config)
                self._listen(member, MemberTally(f"member {number}"))
                joined.append(await stack.enter_async_context(member))
            yield joined

    def _listen(self, member: PushConsumer, tally: MemberTally) -> None:
        self.tallies.append(tally)

        @member.on(TOPIC)
        async def bill(message: StoredMessage) -> None:
            # A message may come twice, and messages of an earlier run may come now.
            for key in message.keys:
                if key in self._waiting:
                    self._waiting.discard(key)
                    self._bars.billed(1)
                    tally.orders += 1
            if not self._waiting:
                self._is_done.set()

    async def finished(self) -> None:
        """Returns when all expected messages have been billed."""
        try:
            async with asyncio.timeout(_BILL_S):
                await self._is_done.wait()
        except TimeoutError:
            raise SprocketError(
                f"{len(self._waiting)} orders did not reach the group within {_BILL_S:g} s"
            ) from None


@contextlib.asynccontextmanager
async def _spark(plan: Plan) -> AsyncIterator[Child | None]:
    """Runs the Spark process inside the block; it starts up while orders are sent."""
    if not plan.has_spark:
        yield None
        return
    async with Child([sys.executable, "-m", "sprocket.demo.report"], plan.spark_log) as child:
        try:
            yield child
        except SparkFailed as error:
            raise SprocketError(f"{error} (more in {plan.spark_log})") from None


class SparkFailed(SprocketError):
    """The Spark process could not carry out its task."""


async def _report(spark: Child, task: Task, show: Screen.Show) -> DemoReport:
    spark.tell(encode(task))
    async for line in spark.lines():
        event = decode_event(line)
        match event:
            case DemoStep(doing):
                show(doing)
            case DemoReport():
                return event
            case Failure(reason):
                raise SparkFailed(f"the Spark job failed: {reason}")
    raise SparkFailed("the Spark process ended without a report")


def _port(wanted: int | None, usual: int) -> int:
    """The wanted port; without one the default, or 0 (any free one) if that is taken."""
    if wanted is not None:
        return wanted
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, usual))
        except OSError:
            return 0
    return usual
