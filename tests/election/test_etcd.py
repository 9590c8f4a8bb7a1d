"""etcd as a store of leased keys, against real servers."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sprocket.base.errors import ConfigError
from sprocket.election.elector import ElectorUnavailable, GroupView
from sprocket.election.etcd import EtcdKeys, EtcdSecurity
from sprocket.election.key_elector import KeyElector
from sprocket.election.leased_keys import Put
from sprocket.election.opening import ElectorRequest, open_elector
from sprocket.election.places import parse_place
from sprocket.runtime.clock import SystemClock
from sprocket.runtime.disk import SystemDisk
from sprocket.runtime.entropy import SystemEntropy
from tests.election.contract import keeps_its_promises
from tests.election.etcds import Etcd, needs_etcd

pytest.importorskip("aiohttp", reason="needs the extra `etcd`")
pytestmark = [needs_etcd, pytest.mark.process]


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Etcd]:
    found = Etcd(tmp_path_factory.mktemp("etcd"))
    found.start()
    yield found
    found.close()


def keys_at(place: str, *, lease_ms: int = 60_000, **security: str) -> EtcdKeys:
    return EtcdKeys(parse_place(place), EtcdSecurity(**security), lease_ms=lease_ms)


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - what is waited for happens in another process
        await asyncio.sleep(0.01)


def elector_at(place: str, folder: Path, name: str = "b", lease_ms: int = 3_000) -> KeyElector:
    folder.mkdir(exist_ok=True)
    made = open_elector(
        ElectorRequest(
            place,
            "C",
            name,
            SystemDisk(),
            str(folder),
            SystemEntropy(),
            SystemClock(),
            lease_ms=lease_ms,
        )
    )
    assert isinstance(made, KeyElector)
    return made


async def shown(elector: KeyElector, epoch: int) -> GroupView:
    """The first view of an epoch, or of a later one."""
    await until(lambda: elector.view.epoch >= epoch)
    return elector.view


def test_etcd_keeps_what_a_store_of_leased_keys_promises(etcd: Etcd) -> None:
    async def play() -> None:
        one, other = keys_at(etcd.place), keys_at(etcd.place)
        try:
            await keeps_its_promises(one, other)
        finally:
            await one.close()
            await other.close()

    asyncio.run(play())


def test_a_watch_from_a_revision_that_is_forgotten_ends(etcd: Etcd) -> None:
    async def play() -> None:
        keys = keys_at(etcd.place)
        first = (await keys.transact([], [Put("/f/1", "")])).revision
        last = (await keys.transact([], [Put("/f/1", "2")])).revision
        await keys._ask("kv/compaction", {"revision": str(last)})
        assert [each async for each in keys.watch("/f/", first)] == []
        await keys.close()

    asyncio.run(play())


def test_brokers_elect_over_etcd(etcd: Etcd, tmp_path: Path) -> None:
    async def play() -> None:
        electors = [elector_at(etcd.place, tmp_path / f"{n}", "über/x") for n in range(3)]
        numbers = [await each.join(f"h{n}:1", f"h{n}:2") for n, each in enumerate(electors)]
        assert numbers == [1, 2, 3]
        runs = [asyncio.create_task(each.run()) for each in electors]
        one, two, three = electors
        view = await one.claim(one.view)
        assert one.writes_until > asyncio.get_running_loop().time()
        view = await one.set_in_sync(frozenset({1, 2, 3}), view)
        await shown(two, 1)
        await until(lambda: two.view.set_epoch >= view.set_epoch)
        await two.claim(two.view)
        assert (await shown(one, 2)).master == 2
        assert one.writes_until < 0
        await two.hand_over(3, two.view)
        assert (await shown(three, 3)).master == 3
        await three.leave()
        await until(lambda: not two.view.members[3].is_alive)
        for run in runs:
            run.cancel()
        again = elector_at(etcd.place, tmp_path / "1", "über/x")
        await two.leave()
        await one.leave()
        assert await again.join("elsewhere:1", "elsewhere:2") == 2
        assert again.view.members[2].address == "elsewhere:1"
        await again.leave()

    asyncio.run(play())


def test_the_right_to_write_goes_on_while_servers_of_etcd_are_lost(tmp_path: Path) -> None:
    async def play(etcd: Etcd) -> None:
        loop = asyncio.get_running_loop()
        elector = elector_at(etcd.place, tmp_path / "broker")
        await elector.join("h:1", "h:2")
        run = asyncio.create_task(elector.run())
        await elector.claim(elector.view)

        async def prolonged() -> None:
            before = elector.writes_until
            await until(lambda: elector.writes_until != before)

        await prolonged()
        etcd.kill(0)
        await prolonged()
        etcd.start()
        etcd.pause(1)
        await prolonged()
        assert elector.writes_until > loop.time()
        for n in range(3):
            etcd.kill(n)
        etcd.start()
        await prolonged()
        assert (await elector.claim(elector.view)).epoch == 2
        run.cancel()
        await elector.leave()

    etcd = Etcd(tmp_path, 3)
    etcd.start()
    try:
        asyncio.run(play(etcd))
    finally:
        etcd.close()


def test_a_user_with_a_password(tmp_path: Path) -> None:
    async def play(etcd: Etcd) -> None:
        root = keys_at(etcd.place)
        await root._ask("auth/user/add", {"name": "root", "password": "open sesame"})
        await root._ask("auth/role/add", {"name": "root"})
        await root._ask("auth/user/grant", {"user": "root", "role": "root"})
        await root._ask("auth/enable", {})
        with pytest.raises(ElectorUnavailable, match=r"refuses.*user name is empty"):
            await root.get("/")
        place = etcd.place.replace("://", "://root@")
        wrong = keys_at(place, password="guess")
        with pytest.raises(ElectorUnavailable, match=r"refuses.*invalid user ID or password"):
            await wrong.get("/")
        right = keys_at(place, password="open sesame")
        await right.transact([], [Put("/a", "")])
        right._token = "too.old"
        assert "/a" in (await right.get("/")).keys
        etcd.kill(0)
        etcd.start()  # it has forgotten its tokens
        assert "/a" in (await right.get("/")).keys
        lease = await right.grant(5)
        assert await right.keep_alive(lease.id) >= 5
        for each in (root, wrong, right):
            await each.close()

    etcd = Etcd(tmp_path)
    etcd.start()
    try:
        asyncio.run(play(etcd))
    finally:
        etcd.close()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_tls_with_certificates_on_both_sides(tmp_path: Path) -> None:
    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=tmp_path, check=True, capture_output=True)

    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out",
            "cert.pem", "-days", "2", "-subj", "/CN=localhost", "-addext",
            "subjectAltName=IP:127.0.0.1,DNS:localhost")  # fmt: skip
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    tls = ssl.create_default_context(cafile=cert)
    tls.load_cert_chain(cert, key)
    etcd = Etcd(
        tmp_path,
        options=("--cert-file", cert, "--key-file", key, "--trusted-ca-file", cert,
                 "--client-cert-auth"),
        tls=tls,
    )  # fmt: skip

    async def play() -> None:
        keys = keys_at(etcd.place, ca=cert, cert=cert, key=key)
        await keys.transact([], [Put("/a", "")])
        assert "/a" in (await keys.get("/")).keys
        stranger = keys_at(etcd.place)
        with pytest.raises(ElectorUnavailable, match="certificate"):
            await stranger.get("/")
        for each in (keys, stranger):
            await each.close()

    etcd.start()
    try:
        asyncio.run(play())
    finally:
        etcd.close()
    with pytest.raises(ConfigError, match=r"missing.pem"):
        keys_at(etcd.place, ca=str(tmp_path / "missing.pem"))
    with pytest.raises(ConfigError, match="go together"):
        keys_at(etcd.place, cert=cert)


def test_nobody_there_is_reported_within_the_time_of_a_lease() -> None:
    async def play() -> None:
        keys = keys_at("etcd://127.0.0.1:1,127.0.0.1:2", lease_ms=3_000)
        with pytest.raises(ElectorUnavailable, match=r"127.0.0.1:1.*127.0.0.1:2"):
            await keys.get("/")
        await keys.close()

    asyncio.run(play())


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(ConfigError, match=r"pip install 'sprocketmq\[etcd\]'"):
        keys_at("etcd://127.0.0.1:1")
