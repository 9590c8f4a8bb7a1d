"""Histograms of a broker are bounded, and count sizes as volumes count messages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.broker.broker import Broker
from sprocket.broker.tables import measures as module
from sprocket.broker.tables.measures import BrokerMeasures, CallKind, MeasuredVolumes
from sprocket.broker.tables.volumes import Volumes
from sprocket.protocol.requests.topic import DeleteTopic
from sprocket.testing.clock import LoopClock
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.loop import simulate
from tests.broker.parts import CONFIG, ROOT, STORE, SUCCESS, Asker, new_disk

PUTS = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.integers(1, 6 << 20), st.integers(1, 5)), max_size=30
)


@given(PUTS)
def test_measured_volumes_are_volumes(puts: list[tuple[str, int, int]]) -> None:
    measures = BrokerMeasures()
    plain, measured = Volumes(0), MeasuredVolumes(0, measures)
    for topic, size, count in puts:
        plain.put(topic, size, count)
        measured.put(topic, size, count)
    for topic in ("a", "b"):
        here, there = plain.of_topic(topic), measured.of_topic(topic)
        assert (here is None) == (there is None)
        if here is None or there is None:
            continue
        assert (here.messages, here.bytes, here.calls) == (
            there.messages, there.bytes, there.calls,
        )  # fmt: skip
        sizes = measures.sizes[topic]
        assert sizes.count == here.messages
        assert round(sizes.total) == here.bytes
        means = [size / count for name, size, count in puts if name == topic for _ in range(count)]
        assert sizes.counts[0] == sum(mean <= 1024 for mean in means)
        assert sizes.counts[-1] == sum(mean > 4 << 20 for mean in means)


def test_a_topic_or_call_too_many_is_not_counted(monkeypatch: object) -> None:
    measures = BrokerMeasures()
    for number in range(module._MOST + 10):
        measures.called(CallKind(number, 0, False, "success"), 1)
    assert len(measures.calls) == module._MOST


def test_times_are_in_the_units_of_rocketmq() -> None:
    measures = BrokerMeasures()
    measures.committed("a", 7_900)
    measures.delayed("a", 61_000)
    measures.delayed("a", -5)
    assert (measures.commits["a"].counts[1], measures.commits["a"].total) == (1, 7)
    assert (measures.delays["a"].counts[:2], measures.delays["a"].total) == ([1, 1], 61)


def test_a_topic_that_was_deleted_makes_room_for_another() -> None:
    measures = BrokerMeasures()

    async def test(asker: Asker) -> None:
        for number in range(3):
            await asker.create(f"t{number}")
            await asker.send(f"t{number}", b"body", TIMER_DELAY_SEC="60")
            await asker.send(f"t{number}")
            assert f"t{number}" in measures.sizes
            assert await asker.code(DeleteTopic(topic=f"t{number}")) == SUCCESS
        assert [each for each in measures.sizes if each.startswith("t")] == []
        assert [each for each in measures.delays if each.startswith("t")] == []

    async def main() -> None:
        broker = Broker(
            CONFIG, store=STORE, root=ROOT, disk=new_disk(), clock=LoopClock(),
            entropy=SeededEntropy(1), measures=measures,
        )  # fmt: skip
        async with broker:
            asker = Asker(broker)
            async with asker.pool:
                await test(asker)

    simulate(lambda network: main())
