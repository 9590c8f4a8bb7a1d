"""What becomes of RocketMQ's settings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sprocket.base.config import settings_of
from sprocket.base.config_files import ConfigFile, load
from sprocket.base.errors import ConfigError
from sprocket.base.rocketmq_settings import rocketmq_settings
from sprocket.cli.loading import kinds

LINES = Path(__file__).with_name("rocketmq_names.txt").read_text().splitlines()
NAMES = {line.split()[0] for line in LINES if not line.startswith("#")}
MAPPED = {
    name for kind in kinds() for each in settings_of(kind).values() for name in each.rocketmq_names
}


def test_every_name_of_every_release_is_classified_once() -> None:
    table = rocketmq_settings()
    assert len(NAMES) > 600
    assert not NAMES - MAPPED - table.without_effect.keys()
    assert not MAPPED & table.without_effect.keys()
    assert table.demands.keys() <= table.without_effect.keys()


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("duplicationEnable", "true", "replication by its clients"),
        ("enableControllerInNamesrv", "TRUE", "a controller beside the name server"),
        ("enableDLegerCommitLog", " true ", "replication by DLedger"),
        ("storeType", "defaultRocksDB", "queues in RocksDB"),
        ("messageStorePlugIn", "org.example.Store", "a store of another kind"),
    ],
)
def test_what_asks_for_safety_is_demanded(name: str, value: str, what: str) -> None:
    assert rocketmq_settings().demanded(name, value) == what
    with pytest.raises(ConfigError, match=re.escape(f"asks for {what}, which there is not here")):
        load(kinds()[:2], file=ConfigFile("a.conf", f"{name}={value}"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("duplicationEnable", "false"),
        ("messageStorePlugIn", ""),
        ("tls.test.mode.enable", "true"),
        ("storeType", "default"),
        ("sendMessageThreadPoolNums", "16"),
    ],
)
def test_what_asks_for_nothing_is_passed_over(name: str, value: str) -> None:
    assert rocketmq_settings().demanded(name, value) is None
    assert name in load(kinds()[:2], file=ConfigFile("a.conf", f"{name}={value}")).notes[0]


def test_every_name_without_effect_is_taken_and_all_are_in_one_note() -> None:
    names = sorted(rocketmq_settings().without_effect)
    text = "".join(f"{name}=\n" for name in names)
    (note,) = load(kinds()[:2], file=ConfigFile("a.conf", text)).notes
    assert all(f"{name} (line {line})" in note for line, name in enumerate(names, 1))
