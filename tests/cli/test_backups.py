"""`sprocket backup` of a running broker, and `sprocket restore` of what it made."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import pytest

import sprocket as package
from sprocket import Message, Producer, PullConsumer, PullStatus
from tests.cli.parts import sprocket
from tests.cli.test_store import SET, folder, opened
from tests.store.making import a_draft
from tests.support import run

__all__ = ["folder"]


def test_a_backup_is_added_to_checked_and_restored(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("backups")
    backup, again = str(place / "backup"), str(place / "again")
    made = sprocket("backup", str(folder), "--to", backup, *SET)
    assert made.code == 0, made.err
    assert "1 states" in made.out

    async def add() -> None:
        store = await opened(folder)
        store.append(a_draft(b"one more"))
        await store.close()

    run(add())
    facts = json.loads(sprocket("backup", str(folder), "--to", backup, *SET, "--json").out)
    assert facts["states"] == 2
    assert 0 < facts["copied_bytes"] < facts["end"]
    checked = json.loads(sprocket("restore", backup, "--check", "--json").out)
    assert (checked["records"], len(checked["states"])) == (61, 2)
    assert "STATE OF" in sprocket("restore", backup, "--check").out
    restored = sprocket("restore", backup, "--to", again, *SET)
    assert restored.code == 0, restored.err
    assert restored.out.startswith("61 records, the last one stored ")
    assert "61 records" in sprocket("store", "verify", again, *SET).out
    first = checked["states"][0]["taken_ms"]
    assert sprocket("restore", backup, "--to", again, "--at", str(first), *SET).code == 2
    earlier = sprocket("restore", backup, "--to", again, "--at", str(first), "--yes", *SET)
    assert earlier.out.splitlines()[1].startswith("60 records, ")
    assert "what was there is in " in earlier.out


def test_a_time_from_before_the_backup_is_refused_with_its_earliest_time(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("backups")
    backup, again = str(place / "backup"), str(place / "again")
    assert sprocket("backup", str(folder), "--to", backup, *SET).code == 0
    for words in (("--to", again, *SET), ("--check",)):
        refused = sprocket("restore", backup, "--at", "2001-01-01", *words)
        assert refused.code == 2
        said = " ".join(refused.err.split())
        assert "the backup knows nothing of " in said
        earliest = re.search(r"its earliest time is (\S+ \S+)", said)
        assert earliest
    assert not Path(again).exists()
    # The time that it names is one that can be given.
    assert sprocket("restore", backup, "--to", again, "--at", earliest[1], *SET).code == 0


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("backup", "{folder}", "--to", "{folder}/backup"), "not in the store's own folder"),
        (("backup", "{folder}/commitlog", "--to", "{folder}"), "not in the store's own folder"),
        (("backup", "{folder}/nothing", "--to", "{other}"), "there is no store"),
        (("restore", "{other}", "--check"), "there is no backup"),
        (("restore", "{other}"), "give --to DIR, or --check"),
        (("restore", "{other}", "--to", "x", "--check"), "give --to DIR, or --check"),
        (("restore", "{other}", "--to", "x", "--at", "last"), "--at takes a time"),
    ],
)
def test_what_cannot_be_done_is_refused(
    words: tuple[str, ...], part: str, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    done = sprocket(*(each.format(folder=folder, other=other) for each in words))
    assert done.code != 0
    assert part in " ".join(done.err.split())


async def in_a_process(*words: str) -> str:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "sprocket", *words,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=dict(os.environ),
    )  # fmt: skip
    out, err = await child.communicate()
    assert child.returncode == 0, (out + err).decode()
    return out.decode()


@pytest.mark.process
def test_a_running_broker_loses_nothing_that_was_acknowledged_before(tmp_path: Path) -> None:
    backup, again = str(tmp_path / "backup"), str(tmp_path / "again")

    async def check() -> None:
        async with (
            package.Standalone(store=str(tmp_path / "store")) as node,
            Producer("shop", nameservers=node.nameserver_address) as producer,
        ):
            sent = 0

            async def send(count: int) -> None:
                nonlocal sent
                for _ in range(count):
                    await producer.send(Message("orders", b"%d" % sent), key="one")
                    sent += 1

            await send(200)
            sending = asyncio.ensure_future(send(1 << 30))
            await in_a_process("backup", node.store, "--to", backup)
            assert not sending.done()
            sending.cancel()
            await asyncio.wait([sending])
        await in_a_process("restore", backup, "--to", again)
        async with package.Standalone(store=again) as node:
            got = await everything(node.nameserver_address)
        assert len(got) >= 200
        assert got == [b"%d" % number for number in range(len(got))]

    run(check())


async def everything(nameservers: str) -> list[bytes]:
    """All messages of the topic, sorted by their numbers."""
    found: list[bytes] = []
    async with PullConsumer("audit", nameservers=nameservers) as consumer:
        for queue in await consumer.queues("orders"):
            offset = await consumer.min_offset(queue)
            while offset < await consumer.max_offset(queue):
                pulled = await consumer.pull(queue, offset)
                assert pulled.status is PullStatus.FOUND
                found += [each.body for each in pulled.messages]
                offset = pulled.next_offset
    return sorted(found, key=int)
