"""Staged batches through a broker's door: unseen before they are published, seen once after."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from sprocket.base.errors import StoreError
from sprocket.broker.sending import publication
from sprocket.broker.sending.publication import Publication, StagedTransaction
from sprocket.message.batch import BatchedMessage, encode
from sprocket.protocol.bodies.staged import AttemptEntry, AttemptList, AttemptsElsewhere
from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.requests.staged import Published, PublishStaged, StageBatch
from sprocket.store.config import StoreConfig
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.loop import simulate
from sprocket.transaction import staged_ledger
from tests.broker.parts import ROOT, STORE, SUCCESS, Asker, new_disk, play, serving, settle
from tests.broker.sending.test_transactions import send_half

STAGED = "rmq_sys_sprocket_staged"


def batch(bodies: Sequence[bytes], **properties: str) -> bytes:
    """The body of a batch, its messages as Spark's sink sends them."""
    parts = []
    for number, body in enumerate(bodies):
        named = {**properties, "WAIT": "true", "UNIQ_KEY": f"{body.decode()}-{number}"}
        text = "".join(f"{name}\x01{value}\x02" for name, value in named.items())
        parts.append(BatchedMessage(0, body, text))
    return encode(parts)


def staging(
    attempt: str = "a", number: int = 0, *, batch_id: int = 0, queue: int = 0, topic: str = "T",
    writer: str = "w",
) -> StageBatch:  # fmt: skip
    return StageBatch(
        topic=topic, queue_id=queue, born_timestamp=1, writer=writer, batch_id=batch_id,
        attempt=attempt, number=number,
    )  # fmt: skip


async def stage(asker: Asker, bodies: Sequence[bytes], **named: object) -> None:
    reply = await asker.call(staging(**named), batch(bodies))  # type: ignore[arg-type]
    assert reply.code == SUCCESS, reply.remark


async def publish(
    asker: Asker,
    attempts: dict[str, int],
    *,
    batch_id: int = 0,
    is_first: bool = True,
    writer: str = "w",
) -> Published:
    """Publishes until it is done."""
    named = AttemptList(attempts=[AttemptEntry(name=a, requests=n) for a, n in attempts.items()])
    header = PublishStaged(writer=writer, batch_id=batch_id, is_first=is_first)
    while True:
        reply = await asker.call(header, named.encode())
        assert reply.code == SUCCESS, reply.remark
        done = reply.read(Published)
        if done.is_finished:
            return done


async def refused(asker: Asker, attempts: dict[str, int], **named: object) -> str:
    """The reason for which a publication is refused."""
    with pytest.raises(AssertionError) as caught:
        await publish(asker, attempts, **named)  # type: ignore[arg-type]
    return str(caught.value)


def test_messages_are_seen_when_they_are_published_and_only_once() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T", 2)
        await stage(asker, [b"1", b"2"])
        await stage(asker, [b"3"], number=1, queue=1)
        await stage(asker, [b"1", b"2", b"3"], attempt="given-up")
        assert await asker.bodies("T") == await asker.bodies("T", 1) == []
        done = await publish(asker, {"a": 2})
        assert (done.messages, done.is_repeat) == (3, False)
        for again in ({"a": 2}, {"given-up": 1}, {}):
            done = await publish(asker, again, is_first=False)
            assert (done.messages, done.is_repeat) == (3, True)
        assert (await asker.bodies("T"), await asker.bodies("T", 1)) == ([b"1", b"2"], [b"3"])
        (first, _) = (await asker.pull("T")).messages
        assert (first.queue_offset, first.properties["UNIQ_KEY"]) == (0, "1-0")
        assert first.properties["MSG_REGION"] == "DefaultRegion"

    play(test)


def test_a_request_that_comes_again_is_stored_once() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T", 2)
        for queue in (0, 1, 1):
            await stage(asker, [b"1"], queue=queue)
        await publish(asker, {"a": 1})
        assert await asker.bodies("T") + await asker.bodies("T", 1) == [b"1"]

    play(test)


def test_what_is_over_is_over() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        await stage(asker, [b"1"], batch_id=7)
        await publish(asker, {"a": 1}, batch_id=7)
        await stage(asker, [b"x"], attempt="again", batch_id=7)  # who makes it again cannot know
        assert await asker.max_offset(STAGED) == 1
        reply = await asker.call(staging(batch_id=6), batch([b"x"]))
        assert "is over" in (reply.remark or "")
        assert "is over" in await refused(asker, {}, batch_id=6)
        await stage(asker, [b"2"], attempt="b", batch_id=8)
        await publish(asker, {"b": 1}, batch_id=8, is_first=False)
        assert await asker.bodies("T") == [b"1", b"2"]

    play(test)


def test_a_writer_of_which_nothing_is_known_must_say_that_it_is_new() -> None:
    async def test(asker: Asker) -> None:
        assert "nothing is known of writer w" in await refused(asker, {}, is_first=False)
        await publish(asker, {}, batch_id=3)
        await publish(asker, {}, batch_id=4, is_first=False)

    play(test)


def test_the_broker_that_decides_knows_what_others_publish() -> None:
    """Also after a start, and when its record was renewed; whoever asks again gets the first."""
    disk = new_disk()
    elsewhere = [
        AttemptsElsewhere(broker="b", attempts=[AttemptEntry(name="a", requests=3)]),
        AttemptsElsewhere(broker="c", attempts=[AttemptEntry(name="a", requests=1)]),
    ]

    async def decided(asker: Asker, name: str, others: list[AttemptsElsewhere]) -> AttemptList:
        header = PublishStaged(writer="w", batch_id=0, is_first=True)
        attempts = [AttemptEntry(name=name, requests=1)]
        body = AttemptList(attempts=attempts, elsewhere=others).encode()
        reply = await asker.call(header, body)
        assert (reply.code, reply.read(Published).is_finished) == (SUCCESS, True)
        return AttemptList.decode(reply.body or b"{}")

    async def main() -> None:
        async with serving(disk) as asker:
            await asker.create("T")
            await stage(asker, [b"1"])
            assert await decided(asker, "a", elsewhere) == AttemptList()
            assert (await decided(asker, "x", [])).elsewhere == elsewhere
            records = await asker.max_offset(STAGED, 1)
            await asyncio.sleep(staged_ledger.RENEW_MS / 1000 + 100)
            assert await asker.max_offset(STAGED, 1) > records
        async with serving(disk) as asker:
            assert (await decided(asker, "x", [])).elsewhere == elsewhere
            assert await asker.bodies("T") == [b"1"]

    simulate(lambda network: main())


def test_a_check_decides_nothing() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        await stage(asker, [b"1"])
        header = PublishStaged(writer="w", batch_id=0, is_first=True, checks_only=True)
        for requests, code in ((1, SUCCESS), (2, ResponseCode.INVALID_PARAMETER)):
            entry = AttemptEntry(name="a", requests=requests)
            assert await asker.code(header, AttemptList(attempts=[entry]).encode()) == code
        assert await asker.max_offset(STAGED, 1) == 0
        await publish(asker, {"a": 1})
        assert await asker.bodies("T") == [b"1"]

    play(test)


def test_who_does_not_wait_knows_that_it_is_decided() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        for batch_id in range(3):
            count = 5000
            for number in range(count // 500):
                bodies = [b"%d" % n for n in range(500)]
                await stage(asker, bodies, attempt=f"a{batch_id}", number=number, batch_id=batch_id)
            header = PublishStaged(writer="w", batch_id=batch_id, is_first=True, waits=False)
            named = AttemptList(attempts=[AttemptEntry(name=f"a{batch_id}", requests=10)])
            reply = await asker.call(header, named.encode())
            assert (reply.code, reply.read(Published).is_finished) == (SUCCESS, False)
        await settle(100)
        assert await asker.max_offset("T") == 15_000

    play(test, store=replace(STORE, log_file_bytes=1 << 23))


def test_missing_batches_are_not_published() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        await stage(asker, [b"1"])
        await stage(asker, [b"3"], number=2)
        await stage(asker, [b"1"], attempt="later", batch_id=1)
        for attempts in ({"a": 3}, {"a": 2}, {"b": 1}, {"later": 1}):
            assert "batch" in await refused(asker, attempts)
        assert await asker.bodies("T") == []
        await stage(asker, [b"2"], number=1)
        await publish(asker, {"a": 3})
        assert await asker.bodies("T") == [b"1", b"2", b"3"]

    play(test)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"", {}),
        (b"no batch", {}),
        (batch([b""]), {}),
        (batch([b"1"], DELAY="3"), {}),
        (batch([b"1"], TRAN_MSG="true"), {}),
        (batch([b"1"], TIMER_DELAY_SEC="3"), {}),
        (batch([b"1"], TIMER_DELAY_MS="3"), {}),
        (batch([b"1"], TIMER_DELIVER_MS="3"), {}),
        (batch([b"1"], __LITE_TOPIC="x"), {}),
        (batch([b"1"], long="x" * 32_000), {}),
        (batch([b"1"]), {"topic": "a b"}),
        (b"no batch", {"topic": "absent"}),
        (batch([b"1"]), {"topic": STAGED}),
        (batch([b"1"]), {"topic": "SCHEDULE_TOPIC_XXXX"}),
        (batch([b"1"]), {"topic": "%RETRY%g"}),
        (batch([b"1"]), {"queue": 1}),
        (batch([b"1"]), {"queue": -1}),
        (batch([b"1"]), {"writer": "a b"}),
        (batch([b"1"]), {"writer": ""}),
        (batch([b"1"]), {"attempt": "x" * 129}),
        (batch([b"1"]), {"number": -1}),
        (batch([b"1"]), {"batch_id": -1}),
    ],
)
def test_what_could_not_be_published_is_not_staged(body: bytes, named: dict[str, object]) -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        reply = await asker.call(staging(**named), body)  # type: ignore[arg-type]
        assert reply.code != SUCCESS
        assert reply.remark
        assert await asker.max_offset(STAGED) == 0

    play(test)


@pytest.mark.parametrize("may", [True, False])
def test_a_topic_is_created_as_a_send_creates_it(may: bool) -> None:
    async def test(asker: Asker) -> None:
        reply = await asker.call(staging(topic="new", queue=3), batch([b"1"]))
        if not may:
            assert (reply.code, "not exist" in reply.remark) == (ResponseCode.TOPIC_NOT_EXIST, True)
            return
        await publish(asker, {"a": 1})
        assert await asker.bodies("new", 3) == [b"1"]

    play(test, auto_create_topics=may)


def test_nobody_reads_what_is_staged() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        await stage(asker, [b"1"])
        assert (await asker.pull(STAGED)).code != SUCCESS

    play(test)


def test_unusual_messages_are_published_as_they_would_be_sent() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        own = {"MSG_REGION": "elsewhere", "long": "x" * 5000}
        text = "".join(f"{name}\x01{value}\x02" for name, value in own.items())
        body = encode([BatchedMessage(5, b"1", text), BatchedMessage(6, b"2", "")])
        assert await asker.code(staging(), body) == SUCCESS
        await publish(asker, {"a": 1})
        first, second = (await asker.pull("T")).messages
        assert (first.flag, first.body, first.properties["long"]) == (5, b"1", own["long"])
        assert first.properties["MSG_REGION"] == "DefaultRegion"
        assert (second.flag, second.body, bool(second.properties["UNIQ_KEY"])) == (6, b"2", True)

    play(test)


def test_what_is_known_outlives_a_start_and_ages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that is renewed does not begin the time anew for which it is kept."""
    monkeypatch.setattr(staged_ledger, "RENEW_MS", 1_000)
    monkeypatch.setattr(staged_ledger, "STAGED_MS_MAX", 100_000)
    disk = new_disk()

    async def main() -> None:
        async with serving(disk) as asker:
            await asker.create("T")
            await stage(asker, [b"1"])
            header = PublishStaged(writer="w", batch_id=0, is_first=True, keep_seconds=200)
            attempts = AttemptList(attempts=[AttemptEntry(name="a", requests=1)])
            assert await asker.code(header, attempts.encode()) == SUCCESS
            await stage(asker, [b"x"], writer="idle")
            records = await asker.max_offset(STAGED, 1)
            await asyncio.sleep(125)
            assert await asker.max_offset(STAGED, 1) > records
            assert "0 batches are staged" in await refused(asker, {"a": 1}, writer="idle")
        async with serving(disk) as asker:
            done = await publish(asker, {"other": 5}, is_first=False)
            assert (done.is_repeat, done.messages) == (True, 1)
            await asyncio.sleep(125)
            assert "nothing is known" in await refused(asker, {}, is_first=False)
            assert await asker.bodies("T") == [b"1"]

    simulate(lambda network: main())


def test_what_is_stored_beside_a_staged_record_is_not_taken_for_a_part_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A half message lies behind it, and is committed while the batch is published."""
    monkeypatch.setattr(publication, "_TURN_MESSAGES", 1)
    turns, publish_some = iter(range(3)), Publication._publish

    def until_the_store_refuses(one: Publication, transaction: StagedTransaction) -> bool:
        if next(turns, None) is None:
            raise StoreError("no more for now")
        return publish_some(one, transaction)

    monkeypatch.setattr(Publication, "_publish", until_the_store_refuses)
    disk = FaultyDisk("beside")
    disk.make_directory(ROOT)
    synced = replace(STORE, flush="SYNC_FLUSH")
    rows = [b"%d" % number for number in range(8)]

    async def main() -> None:
        async with serving(disk, store=synced) as asker:
            await asker.create("T")
            await asker.create("paid")
            await stage(asker, rows)
            end = await send_half(asker, topic="paid")
            header = PublishStaged(writer="w", batch_id=0, is_first=True, waits=False)
            named = AttemptList(attempts=[AttemptEntry(name="a", requests=1)])
            assert await asker.code(header, named.encode()) == SUCCESS
            assert await asker.code(end) == SUCCESS
            assert await asker.max_offset("T") == 3
            left = disk.after_power_loss()
        monkeypatch.undo()
        async with serving(left, store=synced) as asker:
            await settle(100)
            assert await asker.bodies("paid") == [b"paid"]
            assert await asker.bodies("T") == rows

    simulate(lambda network: main())


def bodies_of(attempt: str, number: int, count: int) -> list[bytes]:
    return [f"{attempt}-{number}-{n}".encode() for n in range(count)]


@pytest.mark.parametrize("seed", range(6))
def test_a_power_failure_at_any_moment_leaves_all_or_nothing(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer does again what was not answered, as Spark does; once from another attempt."""
    monkeypatch.setattr(publication, "_TURN_MESSAGES", (37, 2048)[seed % 2])
    entropy = SeededEntropy(f"staged {seed}")
    disk: MemoryDisk = FaultyDisk(f"staged {seed}", sync_seconds=(0.0, 0.003))
    disk.make_directory(ROOT)
    synced = StoreConfig(
        log_file_bytes=64 * 1024, queue_file_bytes=100 * 20, index_slots=50, index_entries=100,
        flush="SYNC_FLUSH",
    )  # fmt: skip
    counts = [1 + entropy.below(400) for _ in range(3)]
    wanted = Counter(b for number, n in enumerate(counts) for b in bodies_of("row", number, n))

    async def transaction(asker: Asker, name: str, batch_id: int) -> None:
        for number, count in enumerate(counts):
            await stage(
                asker, bodies_of("row", number, count), attempt=name, number=number,
                queue=entropy.below(2), batch_id=batch_id,
            )  # fmt: skip
        await publish(asker, {name: len(counts)}, batch_id=batch_id, is_first=batch_id == 0)

    async def is_decided(asker: Asker, batch_id: int) -> bool:
        before = await asker.max_offset(STAGED)
        await stage(asker, [b"x"], attempt="look", batch_id=batch_id)
        return await asker.max_offset(STAGED) == before

    async def seen(asker: Asker) -> Counter[bytes]:
        return Counter(await asker.bodies("T") + await asker.bodies("T", 1))

    async def cut_short(batch_id: int, name: str) -> None:
        async with serving(disk, store=synced) as asker:
            work = asyncio.ensure_future(transaction(asker, name, batch_id))
            await asyncio.sleep(entropy.between(0.0, 0.02))
            work.cancel()
            assert isinstance(disk, FaultyDisk)
            restored.append(disk.after_power_loss())

    restored: list[MemoryDisk] = []

    async def main() -> None:
        nonlocal disk
        async with serving(disk, store=synced) as asker:
            await asker.create("T", 2)
        for batch_id in range(3):
            for attempt in range(2):
                await cut_short(batch_id, f"a{batch_id}-{attempt}")
                disk = restored.pop()
            async with serving(disk, store=synced) as asker:
                if await is_decided(asker, batch_id):
                    assert (await publish(asker, {}, batch_id=batch_id)).is_repeat
                else:
                    await transaction(asker, f"last{batch_id}", batch_id)
                await settle()
                whole = Counter({body: n * (batch_id + 1) for body, n in wanted.items()})
                assert await seen(asker) == whole

    simulate(lambda network: main())
