"""State files: saved at the right time, and read whatever a crash left of them."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import pytest

from sprocket.base.errors import StoreError, UsageError
from sprocket.broker.config import BrokerConfig
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.broker.tables.state import StateFile
from sprocket.broker.tables.topics import Topics, new_topic
from sprocket.delay.levels.schedule import ScheduleProgress
from sprocket.protocol.bodies import (
    GroupConfig,
    GroupConfigList,
    TopicConfig,
    TopicConfigList,
)
from sprocket.protocol.command import Header
from sprocket.protocol.requests.group import CreateGroup, CreateGroups, ForbidGroup, GroupConfigOf
from sprocket.protocol.requests.topic import CreateTopic, CreateTopics, DeleteTopic, TopicConfigOf
from sprocket.store.state.snapshot import STEP_LENGTH, StateDraft, decode_state
from sprocket.testing.clock import ManualClock
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from sprocket.testing.loop import simulate
from tests.broker.parts import ROOT, STORE, SUCCESS, Asker, new_disk, serving
from tests.support import run

TOPIC_GONE = 17
NAMES = ("topics.json", "subscriptionGroup.json", "consumerOffset.json", "delayOffset.json")


def path(name: str) -> str:
    return f"{ROOT}/config/{name}"


def making(topic: str) -> CreateTopic:
    return CreateTopic(
        topic=topic,
        default_topic="TBW102",
        read_queue_nums=4,
        write_queue_nums=4,
        perm=6,
        topic_filter_type="SINGLE_TAG",
    )


#: What operators change; the last line says that something was changed already.
OPERATORS: list[tuple[Header, bytes]] = [
    (making("T"), b""),
    (making("kept"), b""),
    (CreateTopics(), TopicConfigList(topic_config_list=[TopicConfig(topic_name="S")]).encode()),
    (CreateGroup(), GroupConfig(group_name="G").encode()),
    (CreateGroups(), GroupConfigList(group_config_list=[GroupConfig(group_name="H")]).encode()),
    (ForbidGroup(group="TOOLS_CONSUMER", topic="kept", readable=False), b""),
]


async def fill(asker: Asker) -> None:
    """Something in every table, saved twice so that each file has its backup."""
    for topic in ("T", "U"):
        await asker.create(topic)
        await asker.send(topic, DELAY="1")
        await asker.beat(f"g{topic}", topics={topic: "*"})
        assert await asker.commit(f"g{topic}", "T", 1) == SUCCESS
        await asyncio.sleep(12)


def damaged(raw: bytes, how: str) -> bytes:
    return {"empty": b"", "zeros": bytes(len(raw)), "half": raw[: len(raw) // 2]}[how]


class RefusingDisk(MemoryDisk):
    """Has room or not for the tables."""

    def __init__(self) -> None:
        super().__init__()
        self.is_refusing = False
        self.make_directory(ROOT)

    def replace(self, path: str, content: bytes, *, backup: bool = True) -> None:
        if self.is_refusing and path.endswith(".json"):
            raise OSError("no room")
        super().replace(path, content, backup=backup)


@pytest.mark.parametrize("how", ["empty", "zeros", "half"])
def test_a_damaged_file_is_made_up_for_by_its_backup(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        disk = new_disk()
        async with serving(disk) as asker:
            await fill(asker)
        for name in NAMES:
            raw = disk.read(path(name))
            assert raw is not None
            disk.replace(path(name), damaged(raw, how), backup=False)
        async with serving(disk) as asker:
            assert await asker.committed("gT", "T") == 1
            assert (await asker.pull("T")).code == SUCCESS
            await asker.beat("gU", topics={"T": "*"})

    with caplog.at_level(logging.ERROR):
        simulate(lambda network: main())
    assert all(name in caplog.text for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_damaged_together_with_its_backup_stops_the_start_and_is_named(name: str) -> None:
    async def main() -> None:
        disk = new_disk()
        async with serving(disk) as asker:
            await fill(asker)
        for each in (path(name), f"{path(name)}.bak"):
            disk.replace(each, b'{"half', backup=False)
        with pytest.raises(StoreError, match=name):
            async with serving(disk):
                pass

    simulate(lambda network: main())


def test_a_file_that_holds_something_else_stops_the_start_and_is_named() -> None:
    async def main() -> None:
        disk = new_disk()
        disk.make_directory(f"{ROOT}/config")
        disk.replace(path("topics.json"), b'{"topicConfigTable":{"T":5}}')
        with pytest.raises(StoreError, match=r"topics\.json"):
            async with serving(disk):
                pass

    simulate(lambda network: main())


def test_a_topic_and_a_group_are_there_after_a_kill_right_behind_the_answer() -> None:
    async def main() -> None:
        disk = new_disk()
        async with serving(disk) as asker:
            await asker.create("T", 3)
            await asker.create("U", 4)
            await asker.beat("g", topics={"T": "*"})
            left = disk.after_kill()
        raw = left.read(path("topics.json"))
        assert raw is not None
        topics = decode_state(raw.decode())["topicConfigTable"]
        assert (topics["T"]["readQueueNums"], topics["U"]["readQueueNums"]) == (3, 4)
        raw = left.read(path("subscriptionGroup.json"))
        assert raw is not None
        assert "g" in decode_state(raw.decode())["subscriptionGroupTable"]

    simulate(lambda network: main())


def test_a_storm_of_new_topics_costs_few_saves_and_loses_none() -> None:
    class CountingDisk(MemoryDisk):
        saves = 0

        def replace(self, path: str, content: bytes, *, backup: bool = True) -> None:
            self.saves += path.endswith("topics.json")
            super().replace(path, content, backup=backup)

    async def main() -> None:
        disk = CountingDisk()
        disk.make_directory(ROOT)
        async with serving(disk) as asker:
            await asyncio.gather(*(asker.send(f"T{number}") for number in range(200)))
            assert disk.saves < 20
        async with serving(disk) as asker:
            assert (await asker.pull("T199")).code == SUCCESS

    simulate(lambda network: main())


def test_saves_on_a_slow_disk_leave_most_of_the_time_to_others() -> None:
    """One heartbeat may make a thousand groups; each with a save of 0.3 s would be minutes."""

    class SlowDisk(MemoryDisk):
        spent = 0.0

        def replace(self, path: str, content: bytes, *, backup: bool = True) -> None:
            asyncio.get_running_loop().advance(0.3)  # type: ignore[attr-defined]
            self.spent += 0.3
            super().replace(path, content, backup=backup)

    async def main() -> None:
        disk = SlowDisk()
        disk.make_directory(ROOT)
        async with serving(disk) as asker:
            await asker.create("T")
            await asyncio.sleep(10)
            began, disk.spent = asyncio.get_running_loop().time(), 0.0
            for number in range(50):
                await asker.beat(f"g{number}", topics={"T": "*"})
            await asyncio.sleep(10)
            took = asyncio.get_running_loop().time() - began
            assert disk.spent < took / 2
        async with serving(disk) as asker:
            assert await asker.commit("g49", "T", 1) == SUCCESS

    simulate(lambda network: main())


def test_offsets_are_saved_in_rounds_and_at_the_end() -> None:
    async def main() -> None:
        disk = new_disk()
        async with serving(disk) as asker:
            await asker.send("T")
            await asker.beat("g", topics={"T": "*"})
            await asker.commit("g", "T", 1)
            await asyncio.sleep(6)
            raw = disk.read(path("consumerOffset.json"))
            assert raw is not None
            assert decode_state(raw.decode())["offsetTable"] == {"T@g": {0: 1}}
            await asker.commit("g", "T", 2)
        async with serving(disk) as asker:
            assert await asker.committed("g", "T") == 2

    simulate(lambda network: main())


def test_no_saved_offset_points_at_messages_that_are_not_on_the_disk() -> None:
    disk = FaultyDisk("slow", sync_seconds=(20.0, 20.0))
    disk.make_directory(ROOT)

    async def main() -> None:
        async with serving(disk) as asker:
            await asker.send("T")
            await asker.beat("g", topics={"T": "*"})
            await asker.commit("g", "T", 1)
            await asyncio.sleep(8)
            assert disk.read(path("consumerOffset.json")) is None
            await asyncio.sleep(40)
            assert disk.read(path("consumerOffset.json")) is not None

    simulate(lambda network: main())


def test_nothing_is_saved_before_it_was_loaded() -> None:
    async def main() -> None:
        disk = new_disk()
        file = StateFile(disk, "/data/x.json", ScheduleProgress())
        with pytest.raises(UsageError):
            file.save()
        assert disk.read("/data/x.json") is None

    run(main())


def test_a_disk_that_refuses_a_save_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        disk = RefusingDisk()
        async with serving(disk) as asker:
            await asker.send("T")
            await asker.beat("g", topics={"T": "*"})
            disk.is_refusing = True
            await asker.commit("g", "T", 1)
            await asyncio.sleep(6)
            disk.is_refusing = False
            await asyncio.sleep(6)
            assert disk.read(path("consumerOffset.json")) is not None

    simulate(lambda network: main())
    assert "cannot be saved: no room" in caplog.text


def test_a_topic_that_the_disk_refuses_to_note_is_noted_once_it_does_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        disk = RefusingDisk()
        async with serving(disk) as asker:
            disk.is_refusing = True
            await asker.send("T")
            await asyncio.sleep(12)
            assert b'"T"' not in (disk.read(path("topics.json")) or b"")
            disk.is_refusing = False
            await asyncio.sleep(6)
            assert b'"T"' in (disk.read(path("topics.json")) or b"")

    simulate(lambda network: main())
    assert "cannot be saved: no room" in caplog.text


def test_what_an_operator_makes_is_saved_or_refused_and_never_half_made() -> None:
    async def main() -> None:
        disk = RefusingDisk()
        async with serving(disk) as asker:
            await asker.create("kept", queues=2)
            disk.is_refusing = True
            for header, body in OPERATORS:
                reply = await asker.call(header, body)
                assert reply.code != 0, header
                assert "cannot be saved: no room" in (reply.remark or "")
            assert await asker.code(TopicConfigOf(topic="T")) != 0
            assert await asker.code(GroupConfigOf(group="G")) != 0
            kept = await asker.call(TopicConfigOf(topic="kept"))
            assert TopicConfig.decode(kept.body).read_queue_nums == 2
            disk.is_refusing = False
            await asyncio.sleep(6)
            assert b'"T"' not in (disk.read(path("topics.json")) or b"")
            for header, body in OPERATORS[:-1]:
                assert await asker.code(header, body) == 0, header
            assert b'"T"' in (disk.read(path("topics.json")) or b"")
            assert b'"G"' in (disk.read(path("subscriptionGroup.json")) or b"")

    simulate(lambda network: main())


def test_a_topic_that_the_power_took_is_there_again_with_its_messages(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its messages were on the disk before the file that names it."""

    class ForgetfulDisk(FaultyDisk):
        is_forgetful = False

        def replace(self, path: str, content: bytes, *, backup: bool = True) -> None:
            if not (self.is_forgetful and path.endswith("topics.json")):
                super().replace(path, content, backup=backup)

    async def main() -> None:
        disk = ForgetfulDisk(1)
        disk.make_directory(ROOT)
        store = replace(STORE, flush="SYNC_FLUSH")
        async with serving(disk, store=store) as asker:
            await asker.create("U")
            await asker.send("U", b"another")
            disk.is_forgetful = True
            await asker.send("T", b"kept", queue=1)
            await asker.send("%RETRY%g", b"again")
            left = disk.after_power_loss()
        assert isinstance(left, ForgetfulDisk)
        left.is_forgetful = False
        async with serving(left, store=store) as asker:
            assert await asker.bodies("T", 1) == [b"kept"]
            assert await asker.bodies("%RETRY%g") == [b"again"]
            await asker.send("T", b"next", queue=3)  # as many queues as there would have been
            assert (await asker.pull("%RETRY%g", queue=1)).code != SUCCESS
            assert await asker.bodies("U") == [b"another"]
            await asyncio.sleep(1)
            raw = left.read(path("topics.json"))
            assert raw is not None
            assert {"T", "U"} <= decode_state(raw.decode())["topicConfigTable"].keys()

    simulate(lambda network: main())
    assert "topics with messages are made again: %RETRY%g, T" in caplog.text


def test_who_makes_a_topic_by_sending_is_answered_when_it_is_saved() -> None:
    """A message of it may wait for long, in another topic, before it has a queue."""

    async def main() -> None:
        disk = new_disk()
        async with serving(disk) as asker:
            for topic in ("T", "U", "V"):
                await asker.send(topic, DELAY="3")
            left = disk.after_kill()
        raw = left.read(path("topics.json"))
        assert raw is not None
        assert {"T", "U", "V"} <= decode_state(raw.decode())["topicConfigTable"].keys()

    simulate(lambda network: main())


def test_a_deleted_topic_stays_deleted_when_a_broker_starts() -> None:
    async def main() -> None:
        disk = new_disk()
        async with serving(disk) as asker:
            await asker.send("T")
            assert await asker.code(DeleteTopic(topic="T")) == SUCCESS
            left = disk.after_kill()
        async with serving(left) as asker:
            assert (await asker.pull("T")).code == TOPIC_GONE

    simulate(lambda network: main())


def many_topics(count: int) -> Topics:
    settings = BrokerSettings(BrokerConfig(), STORE)
    topics = Topics([], settings, clock=ManualClock(), on_change=lambda name: None)
    for number in range(count):
        topics.put(new_topic(f"topic-{number}", queues=4))
    return topics


def test_a_large_table_is_saved_in_turns_as_it_was_when_the_save_began() -> None:
    async def main() -> None:
        disk, topics = new_disk(), many_topics(3_000)
        file = StateFile(disk, f"{ROOT}/topics.json", topics)
        file.load()
        for number in range(3_000):
            topics.put(new_topic(f"topic-{number}", queues=4))
        file.changed()
        turns = 0
        while disk.read(file.path) is None:
            assert file.is_due
            topics.make_for_group(f"topic-{2_999 - turns}", queues=8)
            topics.remove(f"topic-{1_000 + turns}")
            file.changed()
            turns += 1
            await asyncio.sleep(0)
        assert turns > 5
        table = decode_state((disk.read(file.path) or b"").decode())["topicConfigTable"]
        assert table.keys() == {f"topic-{number}" for number in range(3_000)}
        assert {row["readQueueNums"] for row in table.values()} == {4}
        await file.saved()
        table = decode_state((disk.read(file.path) or b"").decode())["topicConfigTable"]
        assert (len(table), table["topic-2999"]["readQueueNums"]) == (3_000 - turns, 8)
        assert not file.is_due

    simulate(lambda network: main())


def test_who_changes_a_table_during_a_save_waits_for_the_next_one() -> None:
    async def main() -> None:
        disk, topics = new_disk(), many_topics(3_000)
        file = StateFile(disk, f"{ROOT}/topics.json", topics)
        file.load()
        topics.put(new_topic("first", queues=1))
        file.changed()
        topics.put(new_topic("second", queues=1))
        file.changed()
        await file.saved()
        assert b'"second"' in (disk.read(file.path) or b"")
        topics.put(new_topic("third", queues=1))
        file.changed()
        await file.idle()
        file.save()
        assert b'"third"' in (disk.read(file.path) or b"")

    simulate(lambda network: main())


def test_a_step_of_a_save_encodes_a_bounded_part() -> None:
    offsets = ConsumerOffsets(ManualClock(), entries_max=lambda: 100_000)
    for number in range(20_000):
        offsets.commit(f"group-{number % 50}", f"topic-{number // 50}", queue_number=0, offset=1)
    for table in (offsets.to_json(), many_topics(2_000).to_json()):
        draft, before, steps = StateDraft(table), 0, 0
        while not draft.step():
            done = sum(map(len, draft._parts))
            assert done - before <= STEP_LENGTH + 8_000
            before, steps = done, steps + 1
        assert steps > 3


def test_commits_do_not_change_a_picture_that_was_taken_before() -> None:
    offsets = ConsumerOffsets(ManualClock(), entries_max=lambda: 100)
    offsets.commit("g", "T", queue_number=0, offset=1)
    pictures = [offsets.to_json()]
    for offset in (2, 3):
        offsets.commit("g", "T", queue_number=0, offset=offset)
        offsets.put("g", "U", queue_number=offset, offset=offset)
        pictures.append(offsets.to_json())
    assert [each["offsetTable"] for each in pictures] == [
        {"T@g": {0: 1}},
        {"T@g": {0: 2}, "U@g": {2: 2}},
        {"T@g": {0: 3}, "U@g": {2: 2, 3: 3}},
    ]
    offsets.validate()
