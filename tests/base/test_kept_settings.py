"""Changes of settings outlive the server, until its configuration is changed."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

import pytest

from sprocket.base.errors import StoreError
from sprocket.base.kept_settings import KeptSettings
from sprocket.broker.config import BrokerConfig
from sprocket.broker.live_settings import why_fixed
from sprocket.store.config import StoreConfig
from sprocket.testing.disk import MemoryDisk

PATH = "/data/config/changedSettings.json"
BROKER, STORE = BrokerConfig(nameservers=("n:1",)), StoreConfig()


def kept(
    disk: MemoryDisk, broker: BrokerConfig = BROKER, store: StoreConfig = STORE
) -> KeptSettings:
    return KeptSettings(disk, PATH, (broker, store), lambda each: why_fixed(each) is None)


def test_what_was_changed_counts_at_the_next_start(caplog: pytest.LogCaptureFixture) -> None:
    disk = MemoryDisk()
    assert kept(disk).load() == (BROKER, STORE)
    now = replace(BROKER, nameservers=("n:1", "m:2"), trace_on=False), replace(STORE, kept_hours=24)
    kept(disk).save(now)
    with caplog.at_level(logging.WARNING):
        assert kept(disk).load() == now
    assert "fileReservedTime is 24, as it was set while the server ran" in caplog.text
    assert json.loads(disk.read(PATH) or b"")["store.kept_hours"] == {
        "configured": "72",
        "changed": "24",
    }


def test_the_configuration_counts_once_it_was_changed_after_the_setting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = MemoryDisk()
    kept(disk).save((replace(BROKER, trace_on=False), replace(STORE, kept_hours=24)))
    edited = replace(STORE, kept_hours=48)
    with caplog.at_level(logging.WARNING):
        assert kept(disk, store=edited).load() == (replace(BROKER, trace_on=False), edited)
    assert "fileReservedTime is 48, as the configuration says" in caplog.text


def test_a_value_that_is_set_back_leaves_the_file() -> None:
    disk = MemoryDisk()
    kept(disk).save((BROKER, replace(STORE, kept_hours=24)))
    kept(disk).save((BROKER, STORE))
    assert json.loads(disk.read(PATH) or b"") == {}


def test_what_is_fixed_is_never_taken_from_the_file() -> None:
    disk = MemoryDisk()
    kept(disk).save((replace(BROKER, port=1), STORE))
    assert disk.read(PATH) is None
    disk.make_directory("/data/config")
    forged = {"broker.port": {"configured": "10911", "changed": "1"}}
    disk.replace(PATH, json.dumps(forged).encode())
    assert kept(disk).load() == (BROKER, STORE)


def test_changes_that_do_not_fit_the_configuration_any_more_are_left_out() -> None:
    disk = MemoryDisk()
    kept(disk).save((replace(BROKER, copies_min=3, copies=3), STORE))
    edited = replace(BROKER, role="SYNC_MASTER", copies=2)
    assert kept(disk, edited).load() == (edited, STORE)


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"a":1}', b"\xff"])
def test_a_damaged_file_is_an_error_that_names_it_unless_the_one_before_is_there(
    content: bytes,
) -> None:
    disk = MemoryDisk()
    now = (BROKER, replace(STORE, kept_hours=24))
    kept(disk).save(now)
    disk.replace(PATH, content)
    assert kept(disk).load() == now
    disk.replace(f"{PATH}.bak", content, backup=False)
    with pytest.raises(StoreError, match=PATH):
        kept(disk).load()
