"""A container of brokers: what it starts with which settings, and its requests."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from sprocket.base.config_files import ConfigFile, load
from sprocket.base.deadline import Deadline
from sprocket.base.errors import DirectoryInUse, NoPermission, ReplyError, RequestNotSupported
from sprocket.base.loaded_config import LoadedConfig
from sprocket.container.children import ChildFailed, ChildSpec
from sprocket.container.container import Container, ContainerSetup
from sprocket.container.plan import broker_plans
from sprocket.container.remembered import ContainerFile, ContainerState, new_state
from sprocket.protocol.bodies import RegisterBody, TopicConfig, TopicTable
from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.command import Header
from sprocket.protocol.requests.admin import AddBroker, BrokerConfigOf, RemoveBroker
from sprocket.protocol.requests.route import RegisterBroker
from sprocket.protocol.signing import Signer
from sprocket.remoting.pool import Pool
from sprocket.testing.disk import MemoryDisk
from tests.cli.closed import INNER, ROOT
from tests.container.world import PlayedLauncher
from tests.support import run

from sprocket.cli.loading import Program, kinds_of  # isort: skip

FILES = {
    "/etc/b.conf": "brokerName=extra\nbrokerClusterName=c2\nlistenPort=30911\n",
    "/etc/slave.conf": "brokerName=b-0\nbrokerRole=SLAVE\nbrokerId=1\nlistenPort=30911\n",
    "/etc/one.conf": "brokerName=b-1\n",
    "/etc/wrong.conf": "listenPort=none\n",
}


class Played:
    """A container whose processes are played."""

    def __init__(self, disk: MemoryDisk | None = None, **values: object) -> None:
        self.disk = disk or MemoryDisk()
        self.launcher = PlayedLauncher(takes=0)
        overrides = {key.replace("__", "."): value for key, value in values.items()}
        loaded = self._load(None, {"broker.name": "b", "container.port": 0, **overrides})
        file = ContainerFile(self.disk, "/data")
        state = file.load() or new_state("b", 2)
        self.setup = ContainerSetup(
            loaded,
            file,
            state,
            broker_plans(loaded, state.brokers, root="/data"),
            ("broker",),
            lambda path: self._load(ConfigFile(path, FILES[path]), {}),
            {"store.flush": "SYNC_FLUSH"},
        )
        self.signer: Signer | None = None

    @staticmethod
    def _load(file: ConfigFile | None, overrides: dict[str, Any]) -> LoadedConfig:
        return load(kinds_of(Program.BROKER), file=file, overrides=overrides)

    def play(self, history: Callable[[Container], Awaitable[None]]) -> None:
        async def main() -> None:
            container = Container(self.setup, disk=self.disk, launcher=self.launcher)
            async with container, Pool(signer=self.signer) as pool:
                self._pool, self._address = pool, container.address
                await history(container)

        run(main())

    async def ask(self, header: Header, body: bytes = b"") -> None:
        deadline = Deadline.after(20)
        await self._pool.ask(self._address, header, body=body, deadline=deadline)

    async def refusal(self, header: Header) -> ReplyError:
        with pytest.raises(ReplyError) as raised:
            await self.ask(header)
        return raised.value


def removal(name: str, cluster: str = "DefaultCluster", number: int = 0) -> RemoveBroker:
    return RemoveBroker(broker_name=name, broker_cluster_name=cluster, broker_id=number)


def test_each_broker_gets_what_all_share_and_what_is_its_own() -> None:
    played = Played(container__pin_cpus=True, broker__nameservers=("n:1",))
    specs: list[ChildSpec] = []
    launch = played.launcher.launch

    async def noted(spec: ChildSpec) -> Any:
        specs.append(spec)
        return await launch(spec)

    played.launcher.launch = noted  # type: ignore[method-assign]

    async def history(container: Container) -> None:
        first, second = specs
        assert first.arguments == ("broker", "--name", "b-0")
        assert (first.core, second.core) == (0, 1)
        assert first.settings["SPROCKET_STORE_FLUSH"] == "SYNC_FLUSH"
        assert first.settings["SPROCKET_BROKER_NAMESERVERS"] == "n:1"
        assert first.settings["SPROCKET_BROKER_CONTAINER"] == container.address
        assert second.settings["SPROCKET_STORE_PATH"] == "/data/1"
        assert second.settings["SPROCKET_BROKER_PORT"] == "10931"
        assert container.brokers == {"b-0": "127.0.0.1:b-0", "b-1": "127.0.0.1:b-1"}

    played.play(history)
    assert played.setup.file.load() == new_state("b", 2)


def test_a_folder_has_one_container_at_a_time() -> None:
    played = Played()

    async def history(container: Container) -> None:
        other = Container(played.setup, disk=played.disk, launcher=played.launcher)
        with pytest.raises(DirectoryInUse):
            async with other:
                pass

    played.play(history)


def test_a_broker_is_added_remembered_and_removed_as_by_mqadmin() -> None:
    played = Played()

    async def history(container: Container) -> None:
        await played.ask(AddBroker(config_path="/etc/b.conf"))
        assert played.launcher.now("extra").is_running
        error = await played.refusal(AddBroker(config_path="/etc/b.conf"))
        assert (error.code, "extra runs here already" in error.remark) == (1, True)

    played.play(history)
    again = Played(played.disk)

    async def later(container: Container) -> None:
        assert set(container.brokers) == {"b-0", "b-1", "extra"}
        error = await again.refusal(removal("extra"))
        assert (error.code, error.remark) == (ResponseCode.BROKER_NOT_EXIST, "Broker not exist")
        await again.ask(removal("extra", cluster="c2"))
        assert not again.launcher.now("extra").is_running
        assert set(container.brokers) == {"b-0", "b-1"}

    again.play(later)
    state = played.setup.file.load()
    assert state is not None
    assert state.added == ()


def test_one_of_its_own_brokers_is_removed_until_it_is_added_or_all_start_again() -> None:
    played = Played()

    async def history(container: Container) -> None:
        await played.ask(removal("b-1"))
        assert container.brokers == {"b-0": "127.0.0.1:b-0", "b-1": None}
        assert (await played.refusal(removal("b-1"))).code == ResponseCode.BROKER_NOT_EXIST
        await played.ask(AddBroker(config_path="/etc/one.conf"))
        assert container.brokers["b-1"] == "127.0.0.1:b-1"

    played.play(history)


def test_a_slave_of_one_of_its_brokers_may_be_added() -> None:
    played = Played()

    async def history(container: Container) -> None:
        await played.ask(AddBroker(config_path="/etc/slave.conf"))
        assert played.launcher.now("b-0#1").is_running
        await played.ask(removal("b-0", number=1))
        assert set(container.brokers) == {"b-0", "b-1"}

    played.play(history)


def test_what_cannot_be_added_is_refused_with_the_reason_and_not_remembered() -> None:
    played = Played()

    async def history(container: Container) -> None:
        assert "path is empty" in (await played.refusal(AddBroker())).remark
        wrong = await played.refusal(AddBroker(config_path="/etc/wrong.conf"))
        assert "listenPort" in wrong.remark
        played.launcher.faults["extra"] = "cannot listen at 127.0.0.1:30911"
        refused = await played.refusal(AddBroker(config_path="/etc/b.conf"))
        assert refused.remark == "cannot listen at 127.0.0.1:30911"
        with pytest.raises(RequestNotSupported):
            await played.ask(BrokerConfigOf())

    played.play(history)
    assert played.setup.file.load() == new_state("b", 2)


def test_only_those_who_may_change_a_cluster_add_and_remove() -> None:
    closed: dict[str, object] = {
        "broker__authentication": True, "broker__authorization": True,
        "broker__first_user": ROOT, "broker__inner_keys": INNER,
    }  # fmt: skip
    played = Played(audit__enabled=True, **closed)

    async def nobody(container: Container) -> None:
        for header in (removal("b-1"), AddBroker(config_path="/etc/b.conf")):
            with pytest.raises(NoPermission):
                await played.ask(header)
        assert played.launcher.now("b-1").is_running

    played.play(nobody)
    first = msgspec.json.decode(ROOT)
    played.signer = Signer(first["username"], first["password"])

    async def root(container: Container) -> None:
        await played.ask(removal("b-1"))

    played.play(root)
    names = played.disk.names("/data/audit/container")
    recorded = b"".join(played.disk.read(f"/data/audit/container/{each}") or b"" for each in names)
    lines = [json.loads(line) for line in recorded.splitlines()]
    assert [(each["request"], each["result"]) for each in lines] == [
        ("REMOVE_BROKER", 16), ("ADD_BROKER", 16), ("REMOVE_BROKER", 0),
    ]  # fmt: skip
    assert lines[-1]["user"] == "root"


def test_users_made_while_a_broker_was_away_are_there_when_it_is_back() -> None:
    played = Played()
    users = b'{"users":{},"policies":{}}'

    async def history(container: Container) -> None:
        played.disk.make_directory("/data/0/config")
        played.disk.replace_secret("/data/0/config/accounts.json", users)
        await played.ask(removal("b-1"))
        assert played.disk.read("/data/1/config/accounts.json") is None
        await played.ask(AddBroker(config_path="/etc/one.conf"))
        assert played.disk.read("/data/1/config/accounts.json") == users

    played.play(history)


def test_what_a_stranger_registers_is_not_believed() -> None:
    played = Played()
    table = TopicTable(topic_config_table={"t": TopicConfig(topic_name="t")})
    body = RegisterBody(topics=table).encode()
    header = RegisterBroker(
        broker_name="b-0", broker_addr="127.0.0.1:1", cluster_name="c", broker_id=0
    )

    async def history(container: Container) -> None:
        reported: list[str] = []

        async def note(broker: str, address: str, names: object) -> None:
            reported.append(broker)

        container._spread.reported = note  # type: ignore[assignment]
        await played.ask(header, body)
        for name, number in (("b-0", 1), ("stranger", 0)):
            other = msgspec.structs.replace(header, broker_name=name, broker_id=number)
            await played.ask(other, body)
        assert reported == ["b-0"]

    played.play(history)


@pytest.mark.parametrize("needs_proxy", [False, True])
def test_brokers_go_on_without_a_proxy_unless_it_was_asked_for(needs_proxy: bool) -> None:
    played = Played()
    played.launcher.faults["proxy"] = "cannot listen at 127.0.0.1:8081"
    played.setup = replace(
        played.setup,
        proxy=lambda nameservers: ChildSpec("proxy", ("proxy",), rank=1),
        needs_proxy=needs_proxy,
    )

    async def history(container: Container) -> None:
        assert container.proxy_address is None
        assert all(container.brokers.values())

    if needs_proxy:
        with pytest.raises(ChildFailed, match="8081"):
            played.play(history)
        assert not any(
            each.is_running for many in played.launcher.started.values() for each in many
        )
    else:
        played.play(history)


def test_a_broker_that_leaves_is_read_only_and_its_topics_are_its_own() -> None:
    played = Played()
    first, second = new_state("b", 2).brokers
    state = ContainerState(brokers=(first, msgspec.structs.replace(second, leaves=True)))
    plans = broker_plans(played.setup.loaded, state.brokers, root="/data")
    assert plans[1].settings["broker.permission"] == "4"
    played.setup = replace(played.setup, state=state, brokers=plans)

    async def history(container: Container) -> None:
        assert container._names() == ["b-0"]
        container._drained("b-1", {})
        state = played.setup.file.load()
        assert state is not None
        assert [each.drained for each in state.brokers] == [False, True]

    played.play(history)
