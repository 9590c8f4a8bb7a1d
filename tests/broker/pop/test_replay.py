"""What a start does with the records that its tables do not contain."""

from __future__ import annotations

import asyncio
import json

from sprocket.protocol.requests.offset import ResetOffset
from sprocket.testing.loop import simulate
from tests.broker.parts import Asker, new_disk, serving
from tests.broker.pop.popping import POLLING_TIMEOUT, ack, pop
from tests.broker.pop.test_pops import crashing, filled

ORDERS = "/data/config/consumerOrderInfo.json"


def test_a_row_that_is_not_in_the_file_is_in_the_log() -> None:
    async def before(asker: Asker) -> None:
        await filled(asker, 6)
        assert await ack(asker, await pop(asker, count=2, order=True)) == [0, 0]
        await asyncio.sleep(6)  # the file is saved
        found = await pop(asker, count=4, order=True)
        assert await ack(asker, found, 1, 2) == [0, 0]

    async def after(asker: Asker) -> None:
        assert (await pop(asker, count=4, order=True)).code == POLLING_TIMEOUT
        again = await pop(asker, count=4, order=True, hold_ms=30_000)
        assert again.bodies == [b"2", b"5"]

    crashing(before, after)


def test_a_folder_that_java_wrote_last_counts_as_java_left_it() -> None:
    """Its file has no marks: the records in the log are older than what it says."""

    async def main() -> None:
        disk = new_disk()
        async with serving(disk) as asker:
            await filled(asker, 4)
            await pop(asker, count=2, order=True)
        state = json.loads(disk.read(ORDERS) or b"{}")
        assert state["marks"]
        (row,) = state["table"]["t@g"].values()
        del state["marks"]
        row.update(cm=3)  # Java acknowledged both
        disk.replace(ORDERS, json.dumps(state).encode())
        async with serving(disk) as asker:
            assert (await pop(asker, count=4, order=True)).bodies == [b"2", b"3"]
        assert json.loads(disk.read(ORDERS) or b"")["marks"]

    simulate(lambda network: main())


def test_a_reset_row_does_not_come_back_from_the_log() -> None:
    async def before(asker: Asker) -> None:
        await filled(asker, 3)
        found = await pop(asker, count=3, order=True)
        assert await ack(asker, found, 1) == [0]
        reset = ResetOffset(topic="t", group="g", timestamp=-1, is_force=True, queue_id=0, offset=0)
        assert await asker.code(reset) == 0

    async def after(asker: Asker) -> None:
        assert (await pop(asker, count=3, order=True)).bodies == [b"0", b"1", b"2"]

    crashing(before, after)
