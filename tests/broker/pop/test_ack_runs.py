"""Acknowledgements that arrive in one read: few records, and the same as one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from sprocket.message.properties import decode_bytes
from sprocket.message.record import scan
from sprocket.message.topic import TIMER
from sprocket.protocol.requests.pop import AckMessage
from sprocket.store.config import StoreConfig
from tests.broker.parts import Asker, play
from tests.broker.pop.popping import FOUND, GONE, POLLING_TIMEOUT, Popped, ack, lag, pop
from tests.broker.pop.test_pops import crashing, filled


def header_of(found: Popped, place: int, **more: object) -> AckMessage:
    handle = found.handles[place]
    fields: dict[str, object] = {
        "consumer_group": "g", "topic": "t", "queue_id": handle.queue_number,
        "extra_info": handle.encode(), "offset": handle.offset, **more,
    }  # fmt: skip
    return AckMessage(**fields)  # type: ignore[arg-type]


async def ack_together(asker: Asker, headers: Sequence[AckMessage]) -> list[int]:
    """The reply's codes of requests that leave in one write."""
    return list(await asyncio.gather(*map(asker.code, headers)))


def timed(asker: Asker) -> int:
    return int(asker.broker._parts.ingress.count)


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
@pytest.mark.parametrize("order", [False, True])
def test_all_of_a_pop_are_one_record(order: bool, flush: str) -> None:
    async def test(asker: Asker) -> None:
        await filled(asker, 8)
        found = await pop(asker, count=8, order=order)
        before = timed(asker)
        headers = [header_of(found, place) for place in range(7)]
        assert await ack_together(asker, headers) == [0] * 7
        assert timed(asker) - before <= 2
        assert await lag(asker) == 1
        again = await pop(asker, count=8, order=order, hold_ms=30_000)
        assert again.bodies == [b"7"]
        assert await ack(asker, again) == [0]

    play(test, store=StoreConfig(flush=flush))


def test_a_wrong_one_is_refused_and_the_others_are_done() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker, 4)
        found = await pop(asker, count=4)
        headers = [
            header_of(found, 0), header_of(found, 1, offset=99), header_of(found, 2),
            header_of(found, 3, extra_info="none"), header_of(found, 3, topic="none"),
            header_of(found, 3, extra_info=f"{found.handles[3].encode()} 77"),
        ]  # fmt: skip
        codes = await ack_together(asker, headers)
        assert codes[1] == GONE
        assert [codes[0], codes[2], codes[5]] == [0, 0, 0]
        assert 0 not in codes[3:5]
        again = await pop(asker, count=4, hold_ms=30_000)
        assert again.bodies == [b"1"]

    play(test)


def test_those_of_several_pops_and_in_order_are_all_done() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker, 8, queues=2)
        some = [await pop(asker, count=1) for _ in range(3)]
        ordered = await pop(asker, count=32, order=True, group="h")
        headers = [header_of(each, 0) for each in some]
        headers[1:1] = [
            header_of(ordered, place, consumer_group="h") for place in range(len(ordered.handles))
        ]
        assert set(await ack_together(asker, headers)) == {0}
        assert await lag(asker, "h") == 0
        assert await lag(asker) == 5
        assert (await pop(asker, order=True, group="h")).code == POLLING_TIMEOUT
        await asyncio.sleep(15)
        assert (await pop(asker, count=32)).messages != []
        assert (await pop(asker, count=32)).code == POLLING_TIMEOUT

    play(test)


def test_a_crash_after_them_brings_none_back() -> None:
    async def before(asker: Asker) -> None:
        await filled(asker, 4)
        found = await pop(asker, count=4)
        headers = [header_of(found, place) for place in range(3)]
        assert await ack_together(asker, headers) == [0, 0, 0]

    async def after(asker: Asker) -> None:
        assert await lag(asker) == 1
        found = await pop(asker, count=4, hold_ms=30_000)
        assert (found.code, found.bodies) == (FOUND, [b"3"])

    crashing(before, after)


def test_an_acknowledgement_waits_in_the_timers_as_any_timed_message() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker, 2)
        found = await pop(asker, count=2)
        assert await ack(asker, found) == [0, 0]
        (*_, point, first, second) = scan(b"".join(records(asker)))
        due_ms = found.handles[0].due_ms
        assert first.properties["TIMER_DELIVER_MS"] == str(due_ms)
        assert list(first.properties) == list(point.properties)
        assert first.properties.keys() == second.properties.keys()
        assert first.properties["TAGS"] == "ack"

    def records(asker: Asker) -> list[bytes]:
        store = asker.broker._store
        read = store.read(TIMER, 0, 0, count_max=32, bytes_max=1 << 20)
        assert all(decode_bytes(each.properties) for each in read.records())
        return [bytes(part) for part in read.parts]

    play(test)
