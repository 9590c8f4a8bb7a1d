"""A disk that is full at any one moment: nothing acknowledged is lost, and it goes on with space.

Every call that needs new space on the disk fails once, together with those that follow it within
some seconds: the first call of a run in one history, the second in another, up to the last.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
from dataclasses import replace

import pytest

from sprocket.base.errors import SprocketError
from sprocket.broker.broker import Broker
from sprocket.message.message import StoredMessage
from sprocket.message.record import scan
from sprocket.protocol.requests.query import QueryMessage
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.testing.clock import EPOCH_MS, LoopClock
from sprocket.testing.disk import FaultyDisk, MemoryDisk, MemoryMappedFile
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.loop import simulate
from tests.broker.parts import CONFIG, ROOT, STORE, SUCCESS, Asker

SMALL = replace(
    STORE, log_file_bytes=4096, queue_file_bytes=160, index_slots=8, index_entries=40,
    timer_file_bytes=4096, timer_flush_interval_ms=1000, may_force=False,
)  # fmt: skip
#: `SPROCKET_LONG=1` for every call, and not only the first of each kind.
IS_LONG = bool(os.environ.get("SPROCKET_LONG"))
PARTS = 6
#: For so long the disk is full, in virtual time.
FULL_SECONDS = 4.0


class FillingFile(MemoryMappedFile):
    """A file whose bytes need space once."""

    def _room(self) -> FillingDisk:
        assert isinstance(self._disk, FillingDisk)
        return self._disk

    def zero(self, start: int, end: int) -> None:
        self._room().take(self.path, start, end, "zero")
        super().zero(start, end)

    async def prepare(self, start: int, end: int) -> None:
        self._room().take(self.path, start, end, "prepare")
        await super().prepare(start, end)

    def reserve(self, start: int, end: int) -> None:
        self._room().take(self.path, start, end, "reserve")

    def clear_from(self, start: int) -> None:
        super().clear_from(start)
        taken = self._room().taken[self.path]
        taken.difference_update([unit for unit in taken if unit >= start // UNIT])


#: Space is counted in pieces of so many bytes.
UNIT = 64


class FillingDisk(FaultyDisk):
    """A disk that has no space from the call with a number on, for some seconds.

    Attributes:
        calls: the calls so far that needed space, each with its file.
        full_from: number of the first call that fails.
    """

    def __init__(self) -> None:
        super().__init__()
        self.taken: dict[str, set[int]] = {}
        self.calls: list[str] = []
        self.full_from = 1 << 60
        self.full_until = 0.0

    def need(self, what: str, path: str) -> None:
        self.calls.append(f"{what} {path}")
        now = asyncio.get_running_loop().time()
        if len(self.calls) == self.full_from:
            self.full_until = now + FULL_SECONDS
        if now < self.full_until:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def take(self, path: str, start: int, end: int, what: str) -> None:
        taken = self.taken.setdefault(path, set())
        units = set(range(start // UNIT, -(-end // UNIT)))
        if not units <= taken:
            self.need(what, path)
            taken |= units

    def map(self, path: str, size: int) -> FillingFile:
        if not self.size(path):
            self.need("map", path)
        return FillingFile(path, MemoryDisk.map(self, path, size)._file, self)

    def replace(self, path: str, content: bytes, *, backup: bool = True) -> None:
        self.need("replace", path)
        super().replace(path, content, backup=backup)

    def make_directory(self, path: str) -> None:
        if path not in self._directories:
            self.need("make", path)
        super().make_directory(path)


class History:
    """Sends, kills and stops on one disk.

    Attributes:
        acknowledged: bodies by queue and offset, as producers were told.
        promised: bodies of acknowledged messages that come later.
        refused: how many sends were refused.
        calls_before_last: the calls that needed space before the last run.
    """

    def __init__(self, full_from: int) -> None:
        self.disk = FillingDisk()
        self.disk.full_from = full_from
        self.acknowledged: dict[tuple[int, int], bytes] = {}
        self.promised: set[bytes] = set()
        self.refused = 0
        self.calls_before_last: list[str] = []
        self._count = 0

    async def play(self) -> None:
        """Two runs, a kill, a run, a stop, and a run in which everything must be there."""
        await self._run(40, is_killed=False)
        await self._run(30, is_killed=True)
        await self._run(30, is_killed=False)
        await asyncio.sleep(FULL_SECONDS)
        self.calls_before_last = list(self.disk.calls)
        await self._run(3, is_killed=False, is_last=True)

    async def _run(self, count: int, *, is_killed: bool, is_last: bool = False) -> None:
        broker = await self._started(may_fail=not is_last)
        asker = Asker(broker)
        async with asker.pool:
            for number in range(count):
                await self._send(asker, number, must=is_last)
                await asyncio.sleep(0.2)
            await asyncio.sleep(12)
            if is_last:
                await self._check(asker)
        assert not broker._failure.done(), broker._failure.exception()
        left = self.disk.after_kill() if is_killed else None
        await broker.__aexit__(None, None, None)
        if left is not None:
            assert isinstance(left, FillingDisk)
            self.disk = left

    async def _started(self, *, may_fail: bool) -> Broker:
        for _ in range(5):
            broker = Broker(
                CONFIG,
                store=SMALL,
                root=ROOT,
                disk=self.disk,
                clock=LoopClock(),
                entropy=SeededEntropy(1),
            )
            try:
                return await broker.__aenter__()
            except SprocketError as error:
                reason = str(error)
                assert may_fail, reason
                assert "\n" not in reason
                assert "No space left on device" in reason
                await asyncio.sleep(FULL_SECONDS / 2)
        pytest.fail("it does not start although there is space")

    async def _send(self, asker: Asker, number: int, *, must: bool) -> None:
        self._count += 1
        body = b"%06d" % self._count
        properties = {"KEYS": f"k{self._count}", "UNIQ_KEY": f"u{self._count}"}
        if number % 10 == 7:
            properties["DELAY"] = "1"
        elif number % 10 == 3:
            now_ms = EPOCH_MS + int(asyncio.get_running_loop().time() * 1000)
            properties["TIMER_DELIVER_MS"] = str(now_ms + 3000)
        text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items())
        queue = self._count % 2
        header = SendMessageV2(
            producer_group="p", topic="T", queue_id=queue, properties=text, born_timestamp=1
        )
        reply = await asker.call(header, body)
        if reply.code != SUCCESS:
            assert not must, reply.remark
            self.refused += 1
        elif {"DELAY", "TIMER_DELIVER_MS"} & set(properties):
            self.promised.add(body)
        else:
            self.acknowledged[queue, int(reply.fields["queueOffset"])] = body

    async def _check(self, asker: Asker) -> None:
        found = {
            (message.queue.number, message.queue_offset): message.body
            for queue in (0, 1)
            for message in await everything(asker, queue)
        }
        assert {place: found.get(place) for place in self.acknowledged} == self.acknowledged
        assert self.promised <= set(found.values())
        for body in self.acknowledged.values():
            header = QueryMessage(
                topic="T", key=f"k{int(body)}", max_num=9, begin_timestamp=0, end_timestamp=1 << 60
            )
            reply = await asker.call(header)
            assert body in [message.body for message in scan(reply.body)], f"key of {body!r}"


async def everything(asker: Asker, queue: int) -> list[StoredMessage]:
    found: list[StoredMessage] = []
    offset = 0
    while (pulled := await asker.pull("T", offset, queue=queue)).code == SUCCESS:
        found += pulled.messages
        offset = found[-1].queue_offset + 1
    return found


def history(full_from: int) -> History:
    played = History(full_from)
    simulate(lambda _: played.play())
    return played


def kind_of(call: str) -> str:
    """The call without numbers; the small tables are all of one kind."""
    return re.sub(r"[a-z]+\.json|metrics", "", re.sub(r"[0-9]+", "", call))


@pytest.mark.parametrize("part", range(PARTS))
def test_each_call_that_needs_space_may_fail(part: int) -> None:
    calls = history(1 << 60).calls_before_last
    first = {kind_of(call): number for number, call in enumerate(reversed(calls))}
    assert len(first) > 20
    numbers = [len(calls) - number for number in first.values()]
    for number in range(1, len(calls) + 1) if IS_LONG else sorted(numbers):
        if number % PARTS != part:
            continue
        try:
            history(number)
        except BaseException as error:  # any: a reader needs the number
            error.add_note(f"the disk was full from call {number} on: {calls[number - 1]}")
            raise
