"""Settings that change while the broker runs."""

from __future__ import annotations

import pytest

from sprocket.base.errors import InvalidParameter
from sprocket.broker.config import BrokerConfig
from sprocket.broker.settings import BrokerSettings
from sprocket.store.config import StoreConfig


def settings() -> BrokerSettings:
    return BrokerSettings(BrokerConfig(name="b", nameservers=("n:1", "m:2")), StoreConfig())


def test_what_is_looked_at_again_can_be_changed_and_the_rest_stays() -> None:
    changed = settings()
    changed.change("autoCreateTopicEnable=false\nbrokerPermission=4\n")
    assert not changed.config.auto_create_topics
    assert changed.config.permission == 4
    assert changed.config.name == "b"


def test_unknown_keys_change_nothing() -> None:
    changed = settings()
    before = changed.config
    changed.change("noSuchKey=1\n# a comment\n\n")
    assert changed.config == before


@pytest.mark.parametrize(
    "text", ["brokerName=c", "listenPort=1", "brokerPermission=9", "longPollingEnable=perhaps"]
)
def test_what_cannot_be_is_refused_and_changes_nothing(text: str) -> None:
    changed = settings()
    before = changed.config
    with pytest.raises(InvalidParameter):
        changed.change(f"autoCreateTopicEnable=false\n{text}\n")
    assert changed.config == before


def test_all_settings_are_listed_under_rocketmqs_names() -> None:
    lines = settings().lines()
    assert lines == sorted(lines)
    for line in ("brokerName=b", "longPollingEnable=true", "maxMessageSize=4194304"):
        assert line in lines
    assert "namesrvAddr=n:1;m:2" in lines
    assert "brokerIP1=" in lines
