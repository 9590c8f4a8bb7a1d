"""Names, ports, folders and shares of the brokers of a container."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.audit.config import AuditConfig
from sprocket.base import setting_forms as forms
from sprocket.base.config import settings_of
from sprocket.base.config_files import load
from sprocket.base.errors import ConfigError
from sprocket.base.loaded_config import LoadedConfig
from sprocket.broker.config import BrokerConfig
from sprocket.container.plan import FOLDERS, as_text, broker_plans, check_ports, variables
from sprocket.container.remembered import ROOT, BrokerEntry, new_state
from sprocket.metrics.config import MetricsConfig
from sprocket.store.config import StoreConfig

KINDS = (BrokerConfig, StoreConfig, AuditConfig, MetricsConfig)


def loaded(**values: object) -> LoadedConfig:
    """Settings, with `__` for the dot in their names."""
    return load(KINDS, overrides={key.replace("__", "."): v for key, v in values.items()})


@given(count=st.integers(1, 64), port=st.integers(1, 60_000), queues=st.integers(1, 64))
def test_no_two_brokers_share_a_name_a_folder_or_a_port(count: int, port: int, queues: int) -> None:
    config = loaded(broker__port=port + 2, broker__template_queues=queues)
    plans = broker_plans(config, new_state("broker-a", count).brokers, root="/data")
    ports = [p for plan in plans for p in (plan.port - 2, plan.port, plan.port + 1)]
    assert len(set(ports)) == 3 * count
    for key in ("broker.name", "store.path", "broker.port"):
        assert len({plan.settings[key] for plan in plans}) == count
    total = sum(int(plan.settings["broker.template_queues"]) for plan in plans)
    assert queues <= total < queues + count


@given(count=st.integers(1, 64))
def test_memory_and_bytes_of_all_together_are_about_those_of_one(count: int) -> None:
    config = loaded(store__log_bytes_max=10 << 30)
    plans = broker_plans(config, new_state("b", count).brokers, root="/data")
    sums = {
        key: sum(int(plan.settings[key]) for plan in plans)
        for key in ("store.log_bytes_max", "broker.memory_percent", "broker.unfinished_bytes_max")
    }
    assert sums["store.log_bytes_max"] <= 10 << 30
    assert 40 <= sums["broker.memory_percent"] < 40 + count
    assert sums["broker.unfinished_bytes_max"] <= max(128 << 20, count << 20)
    for plan in plans:
        load(KINDS, overrides=dict(plan.settings))  # each value is allowed


def test_ratios_of_the_disk_and_what_is_not_set_stay_as_they_are() -> None:
    plan = broker_plans(loaded(), new_state("b", 4).brokers, root="/data")[1]
    assert not any("percent" in key for key in plan.settings if key.startswith("store."))
    assert "store.log_bytes_max" not in plan.settings
    assert "audit.path" not in plan.settings
    assert plan.port == 10931


def test_a_free_port_stays_one_for_each() -> None:
    plans = broker_plans(loaded(broker__port=0), new_state("b", 3).brokers, root="/data")
    assert [plan.port for plan in plans] == [0, 0, 0]


def test_other_ports_and_folders_of_a_broker_follow_its_number() -> None:
    config = loaded(
        broker__replication_port=30_000,
        broker__replication_master="10.0.0.7:31000",
        broker__role="SLAVE",
        broker__id=1,
        store__log_paths=("/d1/log", "/d2/log"),
        audit__path="/var/audit",
    )
    settings = broker_plans(config, new_state("b", 3).brokers, root="/data")[2].settings
    assert settings["broker.replication_port"] == "30040"
    assert settings["broker.replication_master"] == "10.0.0.7:31040"
    assert settings["store.log_paths"] == "/d1/log/2;/d2/log/2"
    assert settings["audit.path"] == "/var/audit/2"


def test_a_broker_that_was_there_before_keeps_its_folders() -> None:
    config = loaded(store__log_paths=("/d1/log",))
    entries = [
        BrokerEntry(number=0, name="b", folder=ROOT),
        BrokerEntry(number=1, name="b-1", folder="1"),
    ]
    first, second = broker_plans(config, entries, root="/data")
    assert (first.settings["store.path"], second.settings["store.path"]) == ("/data", "/data/1")
    assert "store.log_paths" not in first.settings
    assert second.settings["store.log_paths"] == "/d1/log/1"


def test_one_broker_has_settings_of_its_own() -> None:
    own = {"b-1": {"broker.port": "4000", "store.flush": "SYNC_FLUSH"}}
    plans = broker_plans(loaded(), new_state("b", 2).brokers, root="/data", own=own)
    assert [plan.port for plan in plans] == [10911, 4000]
    assert "store.flush" not in plans[0].settings


@pytest.mark.parametrize(
    ("brokers", "others", "text"),
    [
        ({"a": 65_535}, {}, "a would listen at port 65536"),
        ({"a": 10911, "b": 10912}, {}, "b and a would both listen at port 10912"),
        ({"a": 10811}, {"the container": 10811}, "a and the container would both"),
    ],
)
def test_ports_that_cannot_be_are_refused(
    brokers: dict[str, int], others: dict[str, int], text: str
) -> None:
    with pytest.raises(ConfigError, match=text):
        check_ports(brokers, others)


def test_each_setting_that_names_a_folder_is_known_to_be_shared_or_not() -> None:
    shared = {
        "store.path",  # each gets another
        "broker.elector_ca", "broker.elector_cert", "broker.elector_key",  # files, only read
    }  # fmt: skip
    named = {
        each.key
        for kind in KINDS
        for each in settings_of(kind).values()
        if each.about.form in (forms.folder, forms.folders)
    }
    assert named == shared | set(FOLDERS)


def test_settings_become_variables_that_are_read_as_the_same_values() -> None:
    config = loaded()
    given = {
        "broker.nameservers": as_text(("a:1", "b:2")),
        "broker.authentication": as_text(True),
        "store.log_bytes_max": as_text(1 << 30),
        "nameserver.port": "9876",
    }
    found = variables(config, given)
    assert "SPROCKET_NAMESERVER_PORT" not in found, "it is none of a broker"
    again = load(KINDS, environment=found)
    assert again.of(BrokerConfig).nameservers == ("a:1", "b:2")
    assert again.of(BrokerConfig).authentication
    assert again.of(StoreConfig).log_bytes_max == 1 << 30
