"""Settings from files, environment and command line."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sprocket.base.config import setting
from sprocket.base.config_files import ConfigFile, load
from sprocket.base.errors import ConfigError
from sprocket.base.loaded_config import LoadedConfig


@dataclass(frozen=True)
class BrokerConfig:
    """Like a broker's."""

    name: str = setting("broker-a", "What it is called.", rocketmq="brokerName")
    port: int = setting(10911, "", rocketmq="listenPort", minimum=0, maximum=65535)
    nameservers: tuple[str, ...] = setting((), "", rocketmq="namesrvAddr")
    is_open: bool = setting(True, "", rocketmq="isOpen")
    address: str | None = setting(None, "", rocketmq="brokerIP1")


@dataclass(frozen=True)
class StoreConfig:
    """Like a store's."""

    log_file_bytes: int = setting(1 << 30, "", rocketmq="mappedFileSizeCommitLog mapedFileSize")
    flush: str = setting("ASYNC_FLUSH", "", rocketmq="x", choices=("ASYNC_FLUSH", "SYNC_FLUSH"))
    ratio: float = setting(0.75, "", minimum=0, maximum=1)


KINDS = (BrokerConfig, StoreConfig)


def loads(name: str, text: str, **more: dict[str, str]) -> LoadedConfig:
    return load(KINDS, file=ConfigFile(name, text), **more)


def refusal(name: str, text: str, **more: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as raised:
        loads(name, text, **more)
    return str(raised.value)


def test_toml_has_a_table_for_each_part() -> None:
    loaded = loads(
        "sprocket.toml",
        '[broker]\nname = "b"\nport = 0\nnameservers = ["a:1", "b:2"]\n'
        '[store]\nlog_file_bytes = "64MiB"\nflush = "sync_flush"\nratio = 1\n[nameserver]\nx = 1\n',
    )
    assert loaded.of(BrokerConfig) == BrokerConfig("b", 0, ("a:1", "b:2"))
    assert loaded.of(StoreConfig) == StoreConfig(64 << 20, "SYNC_FLUSH", 1)
    assert loaded.origins["broker.port"] == "sprocket.toml:3"
    assert loaded.origins["broker.is_open"] == "default"


def test_a_broker_conf_of_rocketmq_is_read_by_its_own_names() -> None:
    loaded = loads(
        "broker.conf",
        "# comment\n! another\nbrokerName = b\nlistenPort:1\nnamesrvAddr=a:1;b:2\n"
        "isOpen=false\nmapedFileSize=1048576\nbrokerIP1=\n",
    )
    assert loaded.of(BrokerConfig) == BrokerConfig("b", 1, ("a:1", "b:2"), False, None)
    assert loaded.of(StoreConfig).log_file_bytes == 1 << 20


def test_a_broker_conf_may_set_what_rocketmq_does_not_know() -> None:
    loaded = loads("broker.conf", "brokerName=b\nstore.ratio=0.5\n")
    assert loaded.of(StoreConfig).ratio == 0.5


def test_a_setting_of_rocketmq_without_meaning_here_is_a_note() -> None:
    loaded = loads("broker.conf", "brokerName=b\nuseEpollNativeSelector=true\n")
    assert loaded.notes == [
        "broker.conf: these settings have no effect here: useEpollNativeSelector (line 2), since "
        "asyncio and the operating system run the connections"
    ]


@pytest.mark.parametrize(
    "line",
    [
        "duplicationEnable=true",
        "enableDLegerCommitLog=TRUE",
        "storeType=defaultRocksDB",
    ],
)
def test_a_broker_is_not_open_or_alone_against_its_file(line: str) -> None:
    assert "which there is not here; take the line out" in refusal("broker.conf", line)


@pytest.mark.parametrize(
    "line", ["duplicationEnable=false", "enableDLegerCommitLog=false", "storeType=default"]
)
def test_what_it_does_without_may_stand_in_the_file(line: str) -> None:
    assert len(loads("broker.conf", line).notes) == 1


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        (
            "broker.conf",
            "\nbrokerNmae=b\n",
            "broker.conf:2: unknown setting 'brokerNmae'; did you mean 'brokerName'?",
        ),
        (
            "s.toml",
            "[store]\nlog_file_byte = 1\n",
            "s.toml:2: unknown setting 'store.log_file_byte'; did you mean 'log_file_bytes'?",
        ),
        ("s.toml", "a = " + "[" * 5000, "s.toml: not valid TOML: it is nested too deep"),
        ("s.toml", "[brokre]\n", "s.toml:1: unknown table [brokre]; did you mean 'broker'?"),
        (
            "s.toml",
            "port = 1\n",
            "s.toml:1: 'port' stands outside a table; it belongs into the table [broker]",
        ),
        (
            "s.toml",
            '[broker]\nname = "x"\nport = "no"\n',
            "s.toml:3: broker.port takes a whole number, not 'no'",
        ),
        (
            "s.toml",
            "[broker]\nport = 70000",
            "s.toml:2: broker.port is at most 65535, not 70000",
        ),
        (
            "a.conf",
            "listenPort=70k",
            "a.conf:1: listenPort (broker.port) takes a whole number, not '70k'",
        ),
        (
            "a.conf",
            "[store]\nflush = 'SOME'",
            "a.conf:2: store.flush is one of ASYNC_FLUSH, SYNC_FLUSH, not 'SOME'",
        ),
        (
            "s.toml",
            "[store]\nlog_file_bytes = '1 cup'",
            "s.toml:2: store.log_file_bytes takes a size in bytes "
            "(a whole number, or text like 64MiB), not '1 cup'",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_place_and_key(name: str, text: str, complaint: str) -> None:
    assert refusal(name, text) == complaint


def test_broken_toml_is_refused_with_the_place() -> None:
    assert refusal("s.toml", "[broker\n").startswith("s.toml: not valid TOML: ")


def test_command_line_beats_environment_beats_file() -> None:
    file = ConfigFile("s.toml", '[broker]\nname = "file"\nport = 1\n[store]\nratio = 0.1\n')
    loaded = load(
        KINDS,
        file=file,
        environment={"SPROCKET_BROKER_NAME": "env", "SPROCKET_BROKER_PORT": "2", "PATH": "/"},
        overrides={"broker.port": 3, "store.ratio": None, "store.log_file_bytes": "1K"},
    )
    assert loaded.of(BrokerConfig) == BrokerConfig("env", 3)
    assert loaded.of(StoreConfig) == StoreConfig(1024, ratio=0.1)
    assert loaded.origins["broker.name"] == "environment variable SPROCKET_BROKER_NAME"
    assert loaded.origins["broker.port"] == "command line (broker.port)"


def test_an_ill_typed_environment_variable_is_named() -> None:
    with pytest.raises(ConfigError, match=r"variable SPROCKET_BROKER_PORT: broker\.port takes"):
        load(KINDS, environment={"SPROCKET_BROKER_PORT": "tcp://10.0.0.1:10911"})


def test_an_environment_variable_that_sets_nothing_is_a_note() -> None:
    loaded = load(KINDS, environment={"SPROCKET_BROKER_PROT": "1"})
    assert loaded.notes == [
        "environment variable SPROCKET_BROKER_PROT sets nothing; "
        "did you mean 'SPROCKET_BROKER_PORT'?"
    ]


def test_an_unknown_override_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"unknown setting 'broker.prot'; did you mean 'broker"):
        load(KINDS, overrides={"broker.prot": "1"})


def test_all_faults_of_all_sources_are_reported_together() -> None:
    text = "brokerNmae=b\nlistenPort=70k\nisOpen=perhaps\nx=SYNK_FLUSH\nduplicationEnable=true\n"
    with pytest.raises(ConfigError) as raised:
        load(
            KINDS,
            file=ConfigFile("a.conf", text),
            environment={"SPROCKET_STORE_RATIO": "2"},
            overrides={"broker.prot": "1", "broker.port": "-1"},
        )
    assert str(raised.value).split("\n") == [
        "a.conf:1: unknown setting 'brokerNmae'; did you mean 'brokerName'?",
        "a.conf:2: listenPort (broker.port) takes a whole number, not '70k'",
        "a.conf:3: isOpen (broker.is_open) takes true or false, not 'perhaps'",
        "a.conf:4: x (store.flush) is one of ASYNC_FLUSH, SYNC_FLUSH, not 'SYNK_FLUSH'; "
        "did you mean 'SYNC_FLUSH'?",
        "a.conf:5: 'duplicationEnable=true' asks for replication by its clients, which there is "
        "not here; take the line out to go without",
        "environment variable SPROCKET_STORE_RATIO: store.ratio is at most 1, not 2.0",
        "command line (broker.prot): unknown setting 'broker.prot'; did you mean 'broker.port'?",
        "command line (broker.port): broker.port is at least 0, not -1",
    ]


def test_all_faults_of_a_toml_file_are_reported_together() -> None:
    text = '[broker]\nport = "no"\nnmae = "b"\n[store]\nratio = 2\n[stor]\n'
    assert refusal("s.toml", text).split("\n") == [
        "s.toml:2: broker.port takes a whole number, not 'no'",
        "s.toml:3: unknown setting 'broker.nmae'; did you mean 'name'?",
        "s.toml:5: store.ratio is at most 1, not 2",
        "s.toml:6: unknown table [stor]; did you mean 'store'?",
    ]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("[broker]\nlistenPort = 1\n", "RocketMQ's name for 'port' in the table [broker]"),
        ("[store]\nbrokerName = 'b'\n", "RocketMQ's name for 'name' in the table [broker]"),
        ("[broker]\nratio = 1\n", "it belongs into the table [store]"),
        ("listenPort = 1\n", "RocketMQ's name for 'port' in the table [broker]"),
        ("[broker]\nuseEpollNativeSelector = true\n", "setting of RocketMQ, which has no effect"),
    ],
)
def test_a_name_in_the_wrong_place_is_told_its_place(text: str, hint: str) -> None:
    assert hint in refusal("s.toml", text)


def test_rocketmqs_name_on_the_command_line_is_told_ours() -> None:
    with pytest.raises(ConfigError, match=r"that is RocketMQ's name for 'broker\.port'"):
        load(KINDS, overrides={"listenPort": "1"})


def test_bytes_that_are_not_utf8_matter_only_where_they_are_used() -> None:
    comment = b"# caf\xe9 \xb9\xdc\xc0\xed\n".decode("utf-8", "surrogateescape")
    assert loads("a.conf", f"{comment}brokerName=b\n").of(BrokerConfig).name == "b"
    assert loads("a.toml", f'{comment}[broker]\nname = "b"\n').of(BrokerConfig).name == "b"
    for name, text in (
        ("a.conf", "brokerName=b\udce9\n"),
        ("a.toml", '[broker]\nname = "b\udce9"\n'),
        ("b.toml", '[broker]\nnameservers = ["a:1", "b\udce9:1"]\n'),
    ):
        assert "is not UTF-8 (byte 0xE9)" in refusal(name, text)


def test_a_variable_of_no_setting_is_a_note_whatever_part_it_seems_to_name() -> None:
    loaded = load(
        KINDS,
        environment={"SPROCKET_BROKR_NAME": "b", "SPROCKET_CLIENT_HEADER": "json"},
        variables={"SPROCKET_CLIENT_HEADER"},
    )
    assert loaded.notes == [
        "environment variable SPROCKET_BROKR_NAME sets nothing; "
        "did you mean 'SPROCKET_BROKER_NAME'?"
    ]


def test_a_common_prefix_is_no_similarity() -> None:
    loaded = load(KINDS, environment={"SPROCKET_FOO": "1"}, variables=())
    assert loaded.notes == ["environment variable SPROCKET_FOO sets nothing"]


def test_what_kubernetes_sets_for_a_service_is_passed_over_or_explained() -> None:
    passed = {"SPROCKET_BROKER_SERVICE_HOST": "10.0.0.1", "SPROCKET_BROKER_PORT_80_TCP": "tcp://"}
    assert load(KINDS, environment=passed, variables=()).notes == []
    with pytest.raises(ConfigError, match="enableServiceLinks"):
        load(KINDS, environment={"SPROCKET_BROKER_PORT": "tcp://10.0.0.1:10911"})


@given(some.text(max_size=200), some.sampled_from(["a.toml", "a.conf", "a.properties"]))
def test_any_text_loads_or_is_refused(text: str, name: str) -> None:
    with contextlib.suppress(ConfigError):
        loads(name, text)
