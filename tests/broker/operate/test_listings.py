"""Long listings: the same bytes as in one go, and a bounded number of rows in one turn."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Awaitable
from typing import Any

import pytest

from sprocket.auth.accounts import User
from sprocket.auth.policies import PolicyEntry, UserPolicies
from sprocket.broker.operate.listings import ROWS_AT_ONCE, in_turns, listing
from sprocket.message.topic import retry_topic
from sprocket.protocol.bodies import (
    ConsumeStats,
    ConsumeStatsList,
    GroupConfig,
    GroupList,
    GroupTable,
    OffsetTable,
    Queue,
    QueueProgress,
    QueueRange,
    TopicStatsTable,
)
from sprocket.protocol.bodies.body import Body, DataVersion
from sprocket.protocol.codes import OwnRequestCode, RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.group import CreateGroup
from tests.broker.parts import Asker, play
from tests.support import run

MANY = 3 * ROWS_AT_ONCE
QUEUES = {
    Queue(broker_name="b", queue_id=n, topic="T"): QueueProgress(broker_offset=n)
    for n in range(MANY)
}
BODIES = [
    OffsetTable(data_version=DataVersion(), group_topic_map={}, offset_table={}),
    OffsetTable(
        group_topic_map={f"g{n}": ["T"] for n in range(MANY)},
        offset_table={
            "T@g": dict.fromkeys(range(5), 1),
            "U@g": dict.fromkeys(range(MANY), 7),
            "V@g": {0: 1},
        },
    ),
    OffsetTable(offset_table={f"T{n}@g": {0: n} for n in range(MANY)}),
    TopicStatsTable(offset_table=dict.fromkeys(QUEUES, QueueRange()), topic_put_tps=1.0),
    ConsumeStatsList(
        broker_addr="a",
        consume_stats_list=[
            {"g": [ConsumeStats(offset_table=QUEUES), ConsumeStats()]},
            {"h": []},
            *[{f"g{n}": [ConsumeStats(offset_table={})]} for n in range(MANY)],
        ],
    ),
    ConsumeStatsList(consume_stats_list=[{"g": [ConsumeStats(offset_table=QUEUES)]}]),
    GroupList(group_list=[f"g{n}" for n in range(MANY)]),
    GroupTable(
        data_version=DataVersion(),
        forbidden_table={f"g{n}": {"T": 4} for n in range(MANY)},
        subscription_group_table={f"g{n}": GroupConfig(group_name=f"g{n}") for n in range(MANY)},
    ),
]


async def whole(reply: Reply | Awaitable[Reply]) -> bytes:
    found = reply if isinstance(reply, Reply) else await reply
    assert isinstance(found.body, bytes)
    return found.body


@pytest.mark.parametrize("body", BODIES, ids=lambda body: type(body).__name__)
def test_a_listing_in_turns_is_the_same_text(body: Body) -> None:
    async def main() -> None:
        assert await whole(listing(body)) == body.encode()

    run(main())


def test_rows_come_in_turns() -> None:
    async def main() -> list[int]:
        async def count() -> None:
            while True:
                await asyncio.sleep(0)
                seen.append(len(rows))

        rows: list[int] = []
        seen: list[int] = []
        counting = asyncio.create_task(count())
        async for row in in_turns(range(MANY)):
            rows.append(row)
        counting.cancel()
        assert rows == list(range(MANY))
        return seen

    seen = run(main())
    assert seen[-1] - seen[0] > 0
    assert all(b - a <= ROWS_AT_ONCE for a, b in itertools.pairwise(seen))


def test_many_listings_make_no_more_rows_in_one_turn_than_one() -> None:
    async def main() -> list[int]:
        async def make() -> None:
            async for row in in_turns(range(MANY)):
                rows.append(row)

        rows: list[int] = []
        seen = [0]
        making = [asyncio.create_task(make()) for _ in range(20)]
        while not all(task.done() for task in making):
            await asyncio.sleep(0)
            seen.append(len(rows))
        assert sorted(rows) == sorted([*range(MANY)] * 20)
        return seen

    assert all(b - a <= ROWS_AT_ONCE for a, b in itertools.pairwise(run(main())))


def test_listings_are_finished_one_after_the_other_and_not_all_at_the_end() -> None:
    async def main() -> None:
        done: list[int] = []

        async def make(number: int) -> None:
            await whole(listing(GroupList(group_list=[f"g{n}" for n in range(MANY)])))
            done.append(number)

        making = [asyncio.create_task(make(number)) for number in range(20)]
        most = 0
        while not all(task.done() for task in making):
            before = len(done)
            await asyncio.sleep(0)
            most = max(most, len(done) - before)
        assert done == list(range(20))
        assert most == 1

    run(main())


#: Fields of the requests whose replies list what the broker has.
LISTINGS: dict[int, dict[str, str]] = {
    RequestCode.GET_ALL_TOPIC_CONFIG: {},
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: {},
    RequestCode.GET_ALL_CONSUMER_OFFSET: {},
    RequestCode.GET_TOPIC_STATS_INFO: {"topic": "wide"},
    RequestCode.GET_CONSUME_STATS: {"consumerGroup": "g"},
    RequestCode.GET_BROKER_CONSUME_STATS: {"isOrder": "false"},
    RequestCode.QUERY_CONSUME_TIME_SPAN: {"topic": "wide", "group": "g"},
    RequestCode.QUERY_CORRECTION_OFFSET: {"topic": "wide", "compareGroup": "g"},
    RequestCode.QUERY_TOPICS_BY_CONSUMER: {"group": "g"},
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: {"topic": "narrow"},
    RequestCode.GET_ALL_PRODUCER_INFO: {},
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: {},
    RequestCode.GET_BROKER_HA_STATUS: {},
    RequestCode.CLEAN_UNUSED_TOPIC: {},
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: {"consumerGroup": "g"},
    RequestCode.GET_CONSUMER_CONNECTION_LIST: {"consumerGroup": "g"},
    RequestCode.GET_PRODUCER_CONNECTION_LIST: {"producerGroup": "g"},
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: {
        "topic": "wide", "group": "g", "timestamp": "-1", "isForce": "true",
    },
    RequestCode.GET_ALL_DELAY_OFFSET: {},
    OwnRequestCode.STATE_CHANGES: {"brokerId": "1"},
    RequestCode.AUTH_LIST_USER: {},
    RequestCode.AUTH_LIST_ACL: {},
    RequestCode.CLONE_GROUP_OFFSET: {"srcGroup": "g", "destGroup": "h", "topic": "wide"},
}  # fmt: skip
#: The other requests: each is about one thing, or about as much as it brings.
OTHERS = {
    10, 11, 12, 14, 15, 17, 18, 25, 26, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 41, 42, 46,
    *range(50, 54), 60, 61, 200, 207, 215, 223, 225, 302, 306, 307, 309, 310, 315, 320, 321, 323,
    324, 325, 329, 345, 351, 352, 353, 361, 370, 400, 401, 402, 513, 905, 906, 1007, 2004,
    *range(200050, 200057), 200070, 200071, *range(200074, 200080), 200151, 30301, 30302, 30305,
    30306, 30307, 30312, 30321, 30331, 30332, *range(3001, 3005), *range(3006, 3010),
}  # fmt: skip
ENTRIES = [PolicyEntry.of(f"Topic:{name}", ["Pub"], "Allow") for name in "abc"]
#: Calls of functions in one turn of the loop: some milliseconds.
CALLS_MAX = 50_000


class Calls:
    """Counts calls of functions between two turns of the loop."""

    def __init__(self) -> None:
        self.now = self.most = 0

    def __enter__(self) -> Calls:
        sys.setprofile(self._count)
        return self

    def __exit__(self, *given: object) -> None:
        sys.setprofile(None)

    def _count(self, frame: Any, event: str, value: Any) -> None:
        if event in ("call", "c_call"):
            self.now += 1

    async def run(self) -> None:
        while True:
            self.most = max(self.most, self.now)
            self.now = 0
            await asyncio.sleep(0)


def test_no_listing_of_a_large_state_holds_the_loop() -> None:
    async def test(asker: Asker) -> None:
        tables = asker.broker._parts.tables
        await asker.create("wide", queues=5_000)
        await asker.create("narrow")
        for number in range(1_000):
            tables.topics.make_for_group(retry_topic(f"g{number}"), queues=1)
            tables.groups.find(f"g{number}")
            tables.offsets.put(f"g{number}", "narrow", queue_number=0, offset=0)
            tables.offsets.put("g", f"T{number}", queue_number=0, offset=0)
        assert await asker.code(CreateGroup(), GroupConfig(group_name="g").encode()) == 0
        for number in range(5_000):
            tables.offsets.put("g", "wide", queue_number=number, offset=0)
        await asker.beat("g", topics={"wide": "*"}, producer="g")
        for number in range(5_000):
            tables.accounts.users[f"u{number}"] = User(f"u{number}", "x")
            tables.accounts.policies[f"u{number}"] = UserPolicies(ENTRIES)
        await asyncio.sleep(10)
        dispatch = asker.broker._dispatch
        assert dispatch is not None
        served = dispatch.counts.keys() - {-1}
        assert served == OTHERS | {int(code) for code in LISTINGS}
        held = {}
        for code, fields in LISTINGS.items():
            outcome = dispatch(Command(int(code), source=fields), _Peer())  # type: ignore[arg-type]
            with Calls() as calls:
                counting = asyncio.create_task(calls.run())
                await asyncio.sleep(0)
                reply = await outcome if isinstance(outcome, Awaitable) else outcome
                await asyncio.sleep(0)
                counting.cancel()
            assert isinstance(reply, Reply)
            assert reply.code == 0, (code, reply.remark)
            if calls.most > CALLS_MAX:
                held[code] = calls.most
        assert not held

    play(test, filter_workers=1)


class _Peer:
    address = "10.0.0.1:1"
