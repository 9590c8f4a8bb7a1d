from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from sprocket.base.errors import ConfigError, UsageError
from sprocket.client.base.subscription import Later
from sprocket.client.config import ConsumerConfig
from sprocket.client.group.offsets import Start
from sprocket.client.push_consumer import PushConsumer
from sprocket.message.message import StoredMessage
from sprocket.protocol.requests.client import GroupMembers
from sprocket.protocol.requests.pull import PullMessage
from sprocket.protocol.requests.send import SendBack, SendMessageV2
from tests.client.fakes import FakeBroker, play, queue_of, until, world

RETRY = "%RETRY%readers"


def consumer_of(broker: FakeBroker, name: str = "c1", **settings: Any) -> PushConsumer:
    start: Start = settings.pop("start", "first")
    return PushConsumer(
        "readers",
        nameservers=broker.address,
        start=start,
        config=ConsumerConfig(**settings),
        world=world(name),
    )


def committed(broker: FakeBroker, topic: str = "orders", number: int = 0) -> int | None:
    return broker.committed.get(("readers", topic, number))


def test_a_listener_gets_what_lies_there_and_what_comes() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 2}) as broker:
            broker.put("orders", 0, body="old", TAGS="new", KEYS="k1 k2", color="red")
            got: list[StoredMessage] = []
            async with consumer_of(broker) as consumer:

                @consumer.on("orders")
                async def keep(message: StoredMessage) -> None:
                    got.append(message)

                await until(lambda: got)
                broker.put("orders", 1, body="fresh")
                await until(lambda: len(got) == 2)
            first, second = got
            assert (first.body, first.tag, first.keys) == (b"old", "new", ["k1", "k2"])
            assert first.properties["color"] == "red"
            assert first.queue == queue_of("orders", 0)
            assert (second.body, second.queue) == (b"fresh", queue_of("orders", 1))
            assert committed(broker) == 1

    play(main)


def test_held_pulls_deliver_at_once() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            loop = asyncio.get_running_loop()
            at: list[float] = []
            consumer.subscribe("orders", listener=_noting(lambda _: at.append(loop.time())))
            await until(lambda: broker.count(PullMessage) >= 2)
            await asyncio.sleep(7)
            began = loop.time()
            broker.put("orders")
            await until(lambda: at)
            assert at[0] - began < 0.1

    play(main)


def test_positions_are_committed_every_five_seconds_and_with_pulls() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            got: list[StoredMessage] = []
            consumer.subscribe("orders", listener=_noting(got.append))
            for _ in range(3):
                broker.put("orders")
            await until(lambda: len(got) == 3)
            await asyncio.sleep(5.1)
            assert committed(broker) == 3

    play(main)


def test_only_matching_tags_come_and_the_position_goes_on() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            got: list[str | None] = []
            consumer.subscribe(
                "orders", tags="a || b", listener=_noting(lambda m: got.append(m.tag))
            )
            for tag in "axbyc":
                broker.put("orders", TAGS=tag)
            await until(lambda: len(got) == 2)
            await asyncio.sleep(5.1)
            assert got == ["a", "b"]
            assert committed(broker) == 5
            subscriptions = {s.topic: s for s in broker.heartbeats[-1].consumers[0].subscriptions}
            assert subscriptions["orders"].sub_string == "a || b"
            assert subscriptions["orders"].tags_set == ["a", "b"]
            assert subscriptions["orders"].code_set == [97, 98]
            assert subscriptions[RETRY].sub_string == "*"

    play(main)


def test_what_failed_is_given_back_and_comes_again_under_its_own_topic() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            seen: list[tuple[str, int]] = []

            @consumer.on("orders")
            async def fail_first(message: StoredMessage) -> None:
                seen.append((message.topic, message.reconsume_times))
                if message.reconsume_times == 0:
                    raise ValueError("not today")

            broker.put("orders")
            await until(lambda: len(seen) == 2)
            assert seen == [("orders", 0), ("orders", 1)]
            header = broker.last(SendBack).read(SendBack)
            assert (header.group, header.delay_level) == ("readers", 0)
            assert (header.origin_topic, header.max_reconsume_times) == ("orders", 16)
            await asyncio.sleep(5.1)
            assert committed(broker) == 1
            assert committed(broker, RETRY) == 1

    play(main)


@pytest.mark.parametrize("level", [0, 5, -1])
def test_a_listener_may_say_how_much_later(level: int) -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:

            @consumer.on("orders")
            async def later(message: StoredMessage) -> Later | None:
                return Later(level) if message.reconsume_times == 0 else None

            broker.put("orders")
            await until(lambda: broker.count(SendBack))
            assert broker.last(SendBack).read(SendBack).delay_level == level

    play(main)


def test_when_send_back_fails_the_message_goes_to_the_retry_topic_as_a_new_one() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            broker.refuse = lambda command, peer: 1 if command.code == SendBack.code else None
            seen: list[int] = []

            @consumer.on("orders")
            async def fail_first(message: StoredMessage) -> Later | None:
                seen.append(message.reconsume_times)
                return None if message.reconsume_times else Later()

            broker.put("orders", UNIQ_KEY="ABC", color="red")
            await until(lambda: len(seen) == 2)
            assert seen == [0, 1]
            sent = broker.last(SendMessageV2).read(SendMessageV2)
            assert (sent.topic, sent.reconsume_times, sent.max_reconsume_times) == (RETRY, 1, 16)
            assert "DELAY\x013\x02" in (sent.properties or "")
            assert "RETRY_TOPIC\x01orders\x02" in (sent.properties or "")
            assert "ORIGIN_MESSAGE_ID\x01ABC\x02" in (sent.properties or "")
            assert "color\x01red\x02" in (sent.properties or "")

    play(main)


def test_a_message_that_can_be_given_back_nowhere_is_kept_and_never_passed() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            refused = (SendBack.code, SendMessageV2.code)
            broker.refuse = lambda command, peer: 1 if command.code in refused else None
            tries: list[bytes] = []
            for body in ("good", "bad", "good"):
                broker.put("orders", body=body)

            async def listen(message: StoredMessage) -> None:
                tries.append(message.body)
                if message.body == b"bad" and len(tries) < 6:
                    raise ValueError("not today")

            async with consumer_of(broker) as consumer:
                consumer.subscribe("orders", listener=listen)
                await until(lambda: tries.count(b"bad") == 2)
                assert committed(broker) == 1, "it does not pass the bad one"
            assert committed(broker) == 1, "nor at the end"

            async with consumer_of(broker, "c2") as consumer:
                consumer.subscribe("orders", listener=listen)
                await until(lambda: tries.count(b"bad") >= 3)
                await until(lambda: committed(broker) == 3)

    play(main)


@pytest.mark.parametrize(
    ("start", "expected"),
    [("last", [10, 11, 12, 13, 14]), ("first", list(range(15)))],
)
def test_a_new_group_begins_where_it_was_told(start: Start, expected: list[int]) -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            for _ in range(10):
                broker.put("orders")
            async with consumer_of(broker, start=start) as consumer:
                got: list[int] = []
                consumer.subscribe("orders", listener=_noting(lambda m: got.append(m.queue_offset)))
                await until(lambda: consumer.queues.count(queue_of("orders")))
                for _ in range(5):
                    broker.put("orders")
                await asyncio.sleep(1)
                assert got == expected

    play(main)


def test_a_start_time_counts_also_in_the_future() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            for _ in range(10):
                broker.put("orders")
            await asyncio.sleep(60)
            clock = world().clock
            soon = datetime.fromtimestamp(clock.now_ms() / 1000, UTC)
            for start in (soon, clock.now_ms() + 86_400_000):
                broker.committed.clear()
                end = broker.queue("orders").end
                async with consumer_of(broker, start=start) as consumer:
                    got: list[StoredMessage] = []
                    consumer.subscribe("orders", listener=_noting(got.append))
                    await asyncio.sleep(5)
                    assert queue_of("orders") in consumer.queues
                    for _ in range(5):
                        broker.put("orders")
                    await asyncio.sleep(1)
                    assert [m.queue_offset for m in got] == list(range(end, end + 5))

    play(main)


def test_a_group_that_began_at_the_end_stays_there_though_it_consumed_nothing() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            broker.put("orders")
            async with consumer_of(broker, start="last") as consumer:
                consumer.subscribe("orders", listener=_noting(lambda _: None))
                await until(lambda: queue_of("orders") in consumer.queues)
            broker.put("orders")
            async with consumer_of(broker, "c2", start="last") as consumer:
                got: list[int] = []
                consumer.subscribe("orders", listener=_noting(lambda m: got.append(m.queue_offset)))
                await until(lambda: got)
                assert got == [1]

    play(main)


def test_a_topic_made_after_the_start_is_read_from_its_first_message() -> None:
    async def main() -> None:
        async with FakeBroker() as broker, consumer_of(broker, start="last") as consumer:
            got: list[bytes] = []
            consumer.subscribe("orders", listener=_noting(lambda m: got.append(m.body)))
            await asyncio.sleep(20)
            broker.topics["orders"] = 1
            broker.put("orders", body="the first")
            await until(lambda: got)
            assert got == [b"the first"]

    play(main)


def test_members_share_the_queues_and_take_over() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 4}) as broker:
            one, two = consumer_of(broker, "c1"), consumer_of(broker, "c2")
            for consumer in (one, two):
                consumer.subscribe("orders", listener=_noting(lambda _: None))
            async with one:
                await until(lambda: _numbers(one) == [0, 1, 2, 3])
                async with two:
                    await until(lambda: len(_numbers(one)) == len(_numbers(two)) == 2)
                    assert sorted(_numbers(one) + _numbers(two)) == [0, 1, 2, 3]
                    assert one.client_id != two.client_id
                await until(lambda: _numbers(one) == [0, 1, 2, 3])

    play(main)


def test_two_members_in_one_process_have_ids_and_connections_of_their_own() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 2}) as broker:
            shared = world()
            members = [
                PushConsumer("readers", nameservers=broker.address, world=shared) for _ in range(2)
            ]
            for member in members:
                member.subscribe("orders", listener=_noting(lambda _: None))
            await asyncio.gather(*(member.start() for member in members))
            await until(lambda: [len(_numbers(member)) for member in members] == [1, 1])
            assert members[0].client_id != members[1].client_id
            for member in members:
                await member.close()

    play(main)


def test_closing_waits_for_listeners_and_commits_what_they_did() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            finished: list[int] = []

            async def slow(message: StoredMessage) -> None:
                await asyncio.sleep(3)
                finished.append(message.queue_offset)

            for _ in range(3):
                broker.put("orders")
            async with consumer_of(broker, concurrency=1) as consumer:
                consumer.subscribe("orders", listener=slow)
                await until(lambda: len(finished) == 1)
                await asyncio.sleep(0.1)
            assert finished == [0, 1]
            assert committed(broker) == 2
            assert broker.members["readers"] == []

    play(main)


def test_a_listener_that_does_not_end_is_not_waited_for_for_ever() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            began: list[int] = []

            async def hang(message: StoredMessage) -> None:
                began.append(1)
                await asyncio.sleep(10_000)

            broker.put("orders")
            loop = asyncio.get_running_loop()
            async with consumer_of(broker) as consumer:
                consumer.subscribe("orders", listener=hang)
                await until(lambda: began)
                left = loop.time()
            assert 9 < loop.time() - left < 12
            assert committed(broker) == 0

    play(main)


def test_as_many_listeners_run_at_once_as_told() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 2}) as broker:
            running = most = ended = 0

            async def count(message: StoredMessage) -> None:
                nonlocal running, most, ended
                running += 1
                most = max(most, running)
                await asyncio.sleep(0.5)
                running -= 1
                ended += 1

            for number in range(40):
                broker.put("orders", number % 2)
            async with consumer_of(broker, concurrency=7) as consumer:
                consumer.subscribe("orders", listener=count)
                await until(lambda: ended == 40)
            assert most == 7

    play(main)


def test_a_window_that_is_full_stops_fetching_until_there_is_room() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            go_on = asyncio.Event()
            ended: list[int] = []

            async def wait(message: StoredMessage) -> None:
                await go_on.wait()
                ended.append(message.queue_offset)

            for _ in range(200):
                broker.put("orders")
            async with consumer_of(broker, window_count_max=50) as consumer:
                consumer.subscribe("orders", listener=wait)
                await asyncio.sleep(10)
                pulls = [c.read(PullMessage) for c in broker.asked if c.code == PullMessage.code]
                furthest = max(p.queue_offset for p in pulls if p.topic == "orders")
                assert furthest + 32 <= 50 + 32
                go_on.set()
                await until(lambda: len(ended) == 200)

    play(main)


def test_a_batch_listener_gets_lists() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            sizes: list[int] = []

            @consumer.on("orders", batch=10)
            async def take(messages: list[StoredMessage]) -> None:
                sizes.append(len(messages))

            for _ in range(25):
                broker.put("orders")
            await until(lambda: sum(sizes) == 25)
            assert max(sizes) == 10

    play(main)


def test_of_a_batch_each_message_has_its_own_result() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            levels: list[tuple[int, int]] = []
            got: list[int] = []
            async with consumer_of(broker) as consumer:

                @consumer.on("orders", batch=4)
                async def take(messages: list[StoredMessage]) -> list[Later | None]:
                    got.extend(each.queue_offset for each in messages if not each.reconsume_times)
                    return [
                        Later(each.queue_offset)
                        if each.queue_offset in (1, 2) and not each.reconsume_times
                        else None
                        for each in messages
                    ]

                for _ in range(4):
                    broker.put("orders")
                await until(lambda: broker.committed.get(("readers", "orders", 0)) == 4)
                for command in broker.asked:
                    if command.code == SendBack.code:
                        header = command.read(SendBack)
                        levels.append((header.offset, header.delay_level))
                told = consumer.statistics().topics["orders"]
                assert (told.consumed, told.failed) == (4, 2)
            assert [level for _, level in sorted(levels)] == [1, 2]
            assert sorted(got) == [0, 1, 2, 3]

    play(main)


def test_a_plain_function_is_a_listener_too() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            seen: list[int] = []

            @consumer.on("orders")
            def take(message: StoredMessage) -> Later | None:
                seen.append(message.reconsume_times)
                return None if message.reconsume_times else Later()

            broker.put("orders")
            await until(lambda: seen == [0, 1])

    play(main)


def test_iterating_consumes_each_message_when_the_next_is_asked_for() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            for body in "abc":
                broker.put("orders", body=body)
            async with consumer_of(broker) as consumer:
                consumer.subscribe("orders")
                seen = []
                async for message in consumer:
                    seen.append(message.body)
                    if len(seen) == 2:
                        break
                assert seen == [b"a", b"b"]
            assert committed(broker) == 1, "the one in hand when the loop was left comes again"

    play(main)


def test_while_iterating_a_message_can_be_given_back() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            broker.put("orders", body="a")
            async with consumer_of(broker) as consumer:
                consumer.subscribe("orders")
                times = []
                async for message in consumer:
                    times.append(message.reconsume_times)
                    if message.reconsume_times == 2:
                        break
                    consumer.later(message, delay_level=1)
                assert times == [0, 1, 2]
                told = consumer.statistics().topics["orders"]
                assert (told.consumed, told.failed) == (0, 2)

    play(main)


def test_iteration_ends_when_the_consumer_is_closed() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            consumer.subscribe("orders")

            async def iterate() -> int:
                return len([message async for message in consumer])

            task = asyncio.ensure_future(iterate())
            await asyncio.sleep(1)
            broker.put("orders")
            await asyncio.sleep(1)
            await consumer.close()
            assert await task == 1

    play(main)


def test_listeners_and_iteration_do_not_mix() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            consumer.subscribe("orders", listener=_noting(lambda _: None))
            with pytest.raises(UsageError, match="not both"):
                consumer.subscribe("others")
            with pytest.raises(UsageError, match="without a listener"):
                aiter(consumer)

    play(main)


def test_a_position_that_the_broker_moves_is_taken_and_late_results_do_not_count() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            go_on = asyncio.Event()
            got: list[int] = []

            async def wait(message: StoredMessage) -> None:
                got.append(message.queue_offset)
                await go_on.wait()

            broker.queue("orders").first = 100
            for _ in range(3):
                broker.put("orders")
            async with consumer_of(broker, hold_ms=1000) as consumer:
                consumer.subscribe("orders", listener=wait)
                await until(lambda: len(got) == 3)
                broker.queue("orders").first = 40  # now 103 lies behind the end, which is 43
                await until(lambda: committed(broker) == 43)
                go_on.set()
                await asyncio.sleep(6)
                assert committed(broker) == 43
                broker.put("orders")
                await until(lambda: got[-1] == 43)

    play(main)


def test_a_broken_connection_is_made_again_and_the_broker_told_at_once() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            got: list[int] = []
            consumer.subscribe("orders", listener=_noting(lambda m: got.append(m.queue_offset)))
            await until(lambda: queue_of("orders") in consumer.queues)
            for peer in broker.peers:
                peer.abort()
            await asyncio.sleep(0.5)
            await until(lambda: broker.members["readers"], seconds=3)
            broker.put("orders")
            await until(lambda: got)
            assert got == [0]

    play(main)


def test_a_broker_that_forgot_the_group_hears_of_it_again() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            consumer.subscribe("orders", listener=_noting(lambda _: None))
            await until(lambda: queue_of("orders") in consumer.queues)
            broker.members.clear()
            await asyncio.sleep(21)
            assert broker.members["readers"] == [consumer.client_id]
            assert queue_of("orders") in consumer.queues

    play(main)


def test_pulls_that_fail_are_repeated_with_growing_pauses() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            broker.refuse = lambda command, peer: 1 if command.code == PullMessage.code else None
            got: list[int] = []
            consumer.subscribe("orders", listener=_noting(lambda m: got.append(m.queue_offset)))
            broker.put("orders")
            await asyncio.sleep(30)
            assert 10 <= broker.count(PullMessage) <= 50
            broker.refuse = lambda command, peer: None
            await until(lambda: got, seconds=4)

    play(main)


def test_an_answer_that_never_comes_is_given_up_after_the_hold_time() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            answer, silent = broker._pull, True

            async def pull(command: Any, peer: Any) -> Any:
                if silent:
                    await asyncio.sleep(10_000)
                return await answer(command, peer)

            broker._pull = pull  # type: ignore[method-assign]
            got: list[int] = []
            consumer.subscribe("orders", listener=_noting(lambda m: got.append(m.queue_offset)))
            broker.put("orders")
            await asyncio.sleep(25)
            silent = False
            assert not got
            await until(lambda: got, seconds=15)

    play(main)


def test_a_pull_time_out_below_the_hold_time_is_refused() -> None:
    with pytest.raises(ConfigError, match="pull_timeout_ms"):
        ConsumerConfig(hold_ms=20_000, pull_timeout_ms=10_000)


def test_an_unsubscribed_topic_is_given_up() -> None:
    async def main() -> None:
        topics = {"orders": 1, "others": 1}
        async with FakeBroker(topics) as broker, consumer_of(broker) as consumer:
            for topic in topics:
                consumer.subscribe(topic, listener=_noting(lambda _: None))
            await until(lambda: len(consumer.queues) == 3)
            consumer.unsubscribe("orders")
            await until(lambda: queue_of("orders") not in consumer.queues)
            assert queue_of("others") in consumer.queues

    play(main)


def test_servers_that_come_later_are_found() -> None:
    async def main() -> None:
        consumer = PushConsumer(
            "readers", nameservers="127.0.0.1:19876", start="first", world=world()
        )
        got: list[int] = []
        consumer.subscribe("orders", listener=_noting(lambda m: got.append(m.queue_offset)))
        async with consumer:
            await asyncio.sleep(60)
            broker = FakeBroker({"orders": 1})
            broker._server._port = 19876
            async with broker:
                broker.put("orders")
                await until(lambda: got)
                assert broker.count(GroupMembers)

    play(main)


def _noting(note: Any) -> Any:
    async def listener(message: StoredMessage) -> None:
        note(message)

    return listener


def _numbers(consumer: PushConsumer) -> list[int]:
    return [queue.number for queue in consumer.queues if queue.topic == "orders"]
