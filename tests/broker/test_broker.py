"""A broker's life: starting, stopping, being killed, and what goes wrong."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import replace

import pytest

from sprocket.base.errors import ConfigError, DirectoryInUse, StoreError, UsageError
from sprocket.broker.broker import Broker
from sprocket.protocol.requests.offset import MaxOffset
from sprocket.store.config import StoreConfig
from sprocket.testing.clock import LoopClock
from sprocket.testing.disk import MemoryDisk
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.loop import simulate
from tests.broker.parts import (
    CONFIG,
    NOT_FOUND,
    ROOT,
    STORE,
    SUCCESS,
    Asker,
    another,
    new_disk,
    play,
    serving,
    settle,
)
from tests.support import run


def broker(disk: MemoryDisk, store: StoreConfig = STORE, **settings: object) -> Broker:
    config = replace(CONFIG, **settings)  # type: ignore[arg-type]
    return Broker(
        config, store=store, root=ROOT, disk=disk, clock=LoopClock(), entropy=SeededEntropy(1)
    )


@pytest.mark.parametrize(
    ("role", "number", "told"),
    [
        ("ASYNC_MASTER", 1, r"brokerId\) is 1: only a slave"),
        ("SYNC_MASTER", 1, r"brokerId\) is 1: only a slave"),
        ("SLAVE", 0, r"\(brokerId\) of a slave"),
    ],
)
def test_role_and_number_must_agree(role: str, number: int, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        broker(new_disk(), id=number, role=role)


def test_the_address_that_clients_are_told_may_stand_in_brackets() -> None:
    assert broker(new_disk(), advertised_host="[::1]").address == "[::1]:10911"
    with pytest.raises(ConfigError, match="opens the broker to every address"):
        broker(new_disk(), host="[::]")


def test_messages_topics_groups_and_offsets_are_there_after_a_stop() -> None:
    async def main() -> None:
        disk = new_disk()
        async with serving(disk) as asker:
            await asker.create("T", 2)
            await asker.send("T", b"kept", queue=1)
            await asker.beat("g", topics={"T": "*"})
            await asker.commit("g", "T", 1, queue=1)
        async with serving(disk) as asker:
            assert await asker.bodies("T", 1) == [b"kept"]
            assert await asker.committed("g", "T", 1) == 1
            await asker.send("T", b"next", queue=1)
            assert await asker.bodies("T", 1) == [b"kept", b"next"]

    simulate(lambda network: main())


def test_acknowledged_messages_are_there_after_a_kill() -> None:
    async def main() -> None:
        disk = new_disk()
        async with serving(disk) as asker:
            for number in range(50):
                await asker.send("T", str(number).encode())
            left = disk.after_kill()
        async with serving(left) as asker:
            assert await asker.bodies("T") == [str(number).encode() for number in range(50)]

    simulate(lambda network: main())


def test_a_stop_answers_held_pulls_and_is_quick() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        made = broker(new_disk())
        async with made:
            asker = Asker(made)
            await asker.create("T")
            held = [asyncio.create_task(asker.pull("T", hold_ms=60_000)) for _ in range(3)]
            await settle()
            began = loop.time()
        assert loop.time() - began < 2
        assert [(await each).code for each in held] == [NOT_FOUND] * 3
        await asker.pool.close()

    simulate(lambda network: main())


def test_a_client_that_is_gone_before_its_new_topic_is_saved_leaves_no_trace(
    recwarn: pytest.WarningsRecorder,
) -> None:
    async def main() -> None:
        async with serving(new_disk()) as asker:
            await asker.send("T")
            async with another(asker) as other:
                creating = asyncio.create_task(other.create("New"))
                await asyncio.sleep(0.001)
                assert not creating.done()
            await asyncio.gather(creating, return_exceptions=True)
            await asyncio.sleep(1)
            await asker.send("New")

    simulate(lambda network: main())
    gc.collect()
    assert not recwarn.list


def test_a_directory_has_one_broker() -> None:
    async def main() -> None:
        disk = new_disk()
        async with serving(disk):
            with pytest.raises(DirectoryInUse):
                async with broker(disk, port=10921):
                    pass
        async with serving(disk):
            pass

    simulate(lambda network: main())


def test_an_address_has_one_broker() -> None:
    async def main() -> None:
        async with serving():
            with pytest.raises(UsageError, match="cannot listen"):
                async with broker(new_disk()):
                    pass

    simulate(lambda network: main())


def test_files_of_another_size_are_refused_and_nothing_stays_open() -> None:
    async def main() -> None:
        disk = new_disk()
        async with serving(disk) as asker:
            await asker.send("T")
        other = replace(STORE, log_file_bytes=64 * 1024)
        with pytest.raises((ConfigError, StoreError)):
            async with broker(disk, other):
                pass
        async with serving(disk) as asker:
            assert len(await asker.bodies("T")) == 1

    simulate(lambda network: main())


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::"])
def test_a_broker_open_to_all_addresses_must_know_the_one_to_tell(host: str) -> None:
    with pytest.raises(ConfigError, match="advertised_host"):
        broker(new_disk(), host=host)
    broker(new_disk(), host=host, advertised_host="192.0.2.1")


def test_a_setting_out_of_bounds_is_named() -> None:
    with pytest.raises(ConfigError, match=r"broker\.port"):
        broker(new_disk(), port=99999)


def test_delay_levels_that_are_none_are_found_before_the_store_is_touched() -> None:
    async def main() -> None:
        disk = new_disk()
        with pytest.raises(ConfigError, match=r"store\.delay_levels"):
            async with broker(disk, replace(STORE, delay_levels="1x")):
                pass
        assert disk.names(f"{ROOT}/commitlog") == []

    simulate(lambda network: main())


def test_a_disk_that_fails_ends_the_service_with_its_error() -> None:
    class BrokenDisk(MemoryDisk):
        is_broken = False

        def usage(self, path: str) -> float:
            if self.is_broken:
                raise OSError("the disk is gone")
            return super().usage(path)

    async def main() -> None:
        disk = BrokenDisk()
        disk.make_directory(ROOT)
        made = broker(disk)
        async with made:
            asker = Asker(made)
            await asker.send("T")
            disk.is_broken = True
            with pytest.raises(StoreError, match="gone"):
                await made.serve()
            disk.is_broken = False
            assert (await asker.pull("T")).code == SUCCESS
            await asker.pool.close()

    simulate(lambda network: main())


def test_it_serves_over_real_sockets_too() -> None:
    async def main() -> None:
        for host in ("127.0.0.1", "localhost"):
            made = broker(new_disk(), port=0, host=host)
            async with made:
                asker = Asker(made)
                async with asker.pool:
                    await asker.send("T", b"x" * 100_000)
                    assert await asker.bodies("T") == [b"x" * 100_000]
                    assert await asker.code(MaxOffset(topic="T", queue_id=0)) == SUCCESS

    run(main())


def test_many_clients_at_once_each_get_their_own() -> None:
    async def test(asker: Asker) -> None:
        async def one(number: int) -> None:
            topic = f"T{number % 7}"
            sent = await asker.send(topic, str(number).encode(), queue=number % 4)
            pulled = await asker.pull(topic, int(sent["queueOffset"]), queue=number % 4)
            assert pulled.messages[0].body == str(number).encode()

        for topic in range(7):
            await asker.create(f"T{topic}", 4)
        await asyncio.gather(*(one(number) for number in range(300)))

    play(test)


def test_a_broker_takes_as_many_connections_as_are_set() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        host, port = asker.broker.address.rsplit(":", 1)
        lines = [await asyncio.open_connection(host, int(port)) for _ in range(2)]
        await asyncio.sleep(1)
        assert not lines[0][0].at_eof()
        assert await lines[1][0].read() == b""
        for _, writer in lines:
            writer.close()

    play(test, connections_max=2)
