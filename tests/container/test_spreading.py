"""A topic that is made at one broker is made at all, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ConnectFailed, QueryNotFound, TopicNotFound
from sprocket.container.spreading import TopicSpread, is_ordered, order_of
from sprocket.message.topic import SELF_TEST, retry_topic
from sprocket.protocol.bodies import GroupConfig, GroupTable, KvTable, TopicConfig
from sprocket.protocol.command import Buffer, Command, Header
from sprocket.protocol.requests.group import AllGroupConfigs, CreateGroup
from sprocket.protocol.requests.route import GetKv, KvList, PutKv
from sprocket.protocol.requests.topic import CreateTopic, TopicConfigOf
from sprocket.testing.loop import simulate

NAMES = ("a", "b", "c")
NAMESERVER = "ns"


class PlayedBrokers:
    """Brokers with tables, that register as ours do; addresses are their names."""

    def __init__(self) -> None:
        self.topics: dict[str, dict[str, TopicConfig]] = {name: {} for name in NAMES}
        self.groups: dict[str, set[str]] = {name: set() for name in NAMES}
        self.down: set[str] = set()
        self.orders: dict[str, str] = {}
        self.made: list[tuple[str, str]] = []
        self.spread = TopicSpread(
            self.ask, [NAMESERVER], names=lambda: NAMES, is_common=lambda name: name not in NAMES
        )

    async def ask(
        self, address: str, header: Header, *, body: Buffer = b"", deadline: Deadline
    ) -> Command:
        await asyncio.sleep(0.01)
        if address in self.down:
            raise ConnectFailed(f"{address} is down")
        if isinstance(header, TopicConfigOf):
            if header.topic not in self.topics[address]:
                raise TopicNotFound(header.topic)
            return Command(0, body=self.topics[address][header.topic].encode())
        if isinstance(header, CreateTopic):
            self.made.append((address, header.topic))
            await self.make(address, header.topic, header.write_queue_nums, order=header.order)
        elif isinstance(header, AllGroupConfigs):
            table = {name: GroupConfig(group_name=name) for name in self.groups[address]}
            return Command(0, body=GroupTable(subscription_group_table=table).encode())
        elif isinstance(header, CreateGroup):
            self.groups[address].add(GroupConfig.decode(body).group_name)
        elif isinstance(header, GetKv):
            if header.key not in self.orders:
                raise QueryNotFound(header.key)
            return Command(0, source={"value": self.orders[header.key]})
        elif isinstance(header, KvList):
            if not self.orders:
                raise QueryNotFound(header.namespace)
            return Command(0, body=KvTable(table=dict(self.orders)).encode())
        elif isinstance(header, PutKv):
            self.orders[header.key] = header.value
        return Command(0)

    async def make(self, broker: str, topic: str, queues: int = 4, *, order: bool = False) -> None:
        """A topic is made at a broker, which registers it before it answers."""
        self.topics[broker][topic] = TopicConfig(
            topic_name=topic, read_queue_nums=queues, write_queue_nums=queues, perm=6, order=order
        )
        await self.spread.reported(broker, broker, [topic])

    async def register(self, *brokers: str) -> None:
        """Brokers register with all they have."""
        for broker in brokers:
            await self.spread.reported(broker, broker, [SELF_TEST, *self.topics[broker]])

    def having(self, topic: str) -> str:
        return "".join(name for name in NAMES if topic in self.topics[name])


def play(history: Callable[[PlayedBrokers], Awaitable[None]]) -> PlayedBrokers:
    async def main(network: object) -> PlayedBrokers:
        brokers = PlayedBrokers()
        await history(brokers)
        await brokers.spread.close()
        return brokers

    return simulate(main)


def test_whoever_made_a_topic_is_answered_when_all_have_it() -> None:
    async def history(brokers: PlayedBrokers) -> None:
        await brokers.register("a", "b", "c")
        await brokers.make("b", "orders", 7)
        assert brokers.having("orders") == "abc"
        assert brokers.topics["a"]["orders"].write_queue_nums == 7
        assert len(brokers.made) == 2, "each of the others made it once"
        await brokers.register("a", "b", "c")
        assert len(brokers.made) == 2

    play(history)


def test_one_that_hangs_keeps_nobody_waiting_for_long_and_gets_it_later() -> None:
    async def history(brokers: PlayedBrokers) -> None:
        await brokers.register("a", "b", "c")
        brokers.down.add("c")
        before = asyncio.get_running_loop().time()
        await brokers.make("a", "orders")
        assert asyncio.get_running_loop().time() - before < 1.0
        assert brokers.having("orders") == "ab"
        brokers.down.clear()
        await asyncio.sleep(10)
        assert brokers.having("orders") == "abc"

    play(history)


def test_one_that_was_away_gets_the_topics_and_groups_that_it_missed() -> None:
    async def history(brokers: PlayedBrokers) -> None:
        await brokers.register("a", "b", "c")
        brokers.down.add("c")
        brokers.spread.gone("c")
        await brokers.make("a", "orders")
        brokers.groups["a"] = brokers.groups["b"] = {"billing"}
        await asyncio.sleep(60)
        assert brokers.having("orders") == "ab"
        brokers.down.clear()
        await brokers.register("c")
        await asyncio.sleep(1)
        assert brokers.having("orders") == "abc"
        assert brokers.groups["c"] == {"billing"}

    play(history)


def test_a_topic_that_is_deleted_does_not_come_back_and_may_be_made_again() -> None:
    async def history(brokers: PlayedBrokers) -> None:
        await brokers.register("a", "b", "c")
        await brokers.make("a", "orders")
        for name in NAMES:  # an operator deletes it at one after the other
            del brokers.topics[name]["orders"]
            await brokers.register(name)
            await asyncio.sleep(1)
            await brokers.register("a", "b", "c")
        assert brokers.having("orders") == ""
        await brokers.make("c", "orders")
        assert brokers.having("orders") == "abc"

    play(history)


def test_topics_of_one_broker_of_the_system_and_of_groups_stay_where_they_are() -> None:
    async def history(brokers: PlayedBrokers) -> None:
        await brokers.register("a", "b", "c")
        for topic in ("a", retry_topic("g"), "rmq_sys_wheel_timer", "%DLQ%g"):
            await brokers.make("a", topic)
        await asyncio.sleep(10)

    assert play(history).made == []


def test_the_queues_of_an_ordered_topic_are_listed_with_those_of_a_broker_that_is_down() -> None:
    async def history(brokers: PlayedBrokers) -> None:
        await brokers.register("a", "b", "c")
        brokers.down.add("c")
        brokers.spread.gone("c")
        await brokers.make("a", "steps", 4, order=True)
        await brokers.make("a", "plain", 4)
        await asyncio.sleep(1)
        assert brokers.orders == {"steps": "a:4;b:4;c:4"}

    play(history)


def test_ordered_topics_no_longer_list_a_broker_that_takes_no_messages() -> None:
    async def history(brokers: PlayedBrokers) -> None:
        brokers.spread.withdraw(["c"])
        await asyncio.sleep(1)
        assert brokers.orders == {}
        brokers.orders = {"steps": "a:4;b:4;c:4", "others": "z:8", "last": "c:1"}
        brokers.spread.withdraw(["c"])
        await asyncio.sleep(1)
        assert brokers.orders == {"steps": "a:4;b:4", "others": "z:8", "last": ""}

    play(history)


def test_brokers_that_are_listed_keep_their_place() -> None:
    assert order_of("", {"b": 2, "a": 4}) == "a:4;b:2"
    assert order_of("z:8;a:3", {"a": 4, "b": 4}) == "z:8;a:3;b:4"
    assert order_of("a:4;b:4", {"a": 9, "b": 9}) == "a:4;b:4"


@pytest.mark.parametrize(
    ("config", "is_it"),
    [
        (TopicConfig(order=True), True),
        (TopicConfig(attributes={"message.type": "FIFO"}), True),
        (TopicConfig(attributes={"message.type": "DELAY"}), False),
        (TopicConfig(), False),
    ],
)
def test_a_topic_is_ordered_by_its_flag_or_by_its_type(config: TopicConfig, is_it: bool) -> None:
    assert is_ordered(config) is is_it
