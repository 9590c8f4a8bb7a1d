"""Settings that change while the broker runs."""

from __future__ import annotations

import re

import pytest

from sprocket.base.config_files import ConfigFile, load
from sprocket.base.errors import ConfigError, InvalidParameter
from sprocket.broker.config import BrokerConfig
from sprocket.broker.settings import BrokerSettings, shown_lines
from sprocket.store.config import StoreConfig


def settings() -> BrokerSettings:
    return BrokerSettings(BrokerConfig(name="b", nameservers=("n:1", "m:2")), StoreConfig())


def test_what_is_looked_at_again_can_be_changed_and_the_rest_stays() -> None:
    changed = settings()
    changed.change("autoCreateTopicEnable=false\nbrokerPermission=4\n")
    assert not changed.config.auto_create_topics
    assert changed.config.permission == 4
    assert changed.config.name == "b"


def test_a_value_that_a_setting_has_is_no_change() -> None:
    changed = settings()
    before = changed.config, changed.store
    changed.change("".join(f"{line}\n" for line in changed.lines()) + "# a comment\n\n")
    assert (changed.config, changed.store) == before


def test_a_listing_that_is_sent_back_leaves_secrets_as_they_are() -> None:
    changed = BrokerSettings(BrokerConfig(filter_secret="Hunter2"), StoreConfig())
    lines = changed.lines()
    assert "broker.filter_secret=(secret)" in lines
    assert "broker.elector_password=" in lines
    changed.change("\n".join([*lines, "autoCreateTopicEnable=false"]))
    assert changed.config.filter_secret == "Hunter2"
    assert not changed.config.auto_create_topics


def test_what_a_request_wants_is_logged_without_secrets_and_unknown_values() -> None:
    text = "broker.filter_secret=Hunter2\nbrokerPermission=4\npassword=Hunter2\n"
    assert shown_lines(text) == "broker.filter_secret=(secret) brokerPermission=4 password"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("brokerName=c", "brokerName cannot be changed while the broker runs"),
        ("listenPort=1", "listenPort cannot"),
        ("useTLS=true", "useTLS cannot"),
        ("tls.server.mode=enforcing", "it is only read at its start"),
        ("auditLogEnable=true", "it is only read at its start"),
        ("messageDelayLevel=1s", "messageDelayLevel cannot"),
        ("brokerPermission=9", "brokerPermission is at most 7"),
        ("longPollingEnable=perhaps", "longPollingEnable takes true or false"),
        ("deleteWhen=25", "25"),
        ("fileReservdTime=24", "did you mean 'fileReservedTime'"),
        ("asyncLearner=true", "RocketMQ's and has no effect here"),
        ("broker.filter_secret=x", "filter_secret cannot"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(text: str, said: str) -> None:
    changed = settings()
    before = changed.config, changed.store
    with pytest.raises(InvalidParameter, match=re.escape(said)):
        changed.change(f"autoCreateTopicEnable=false\nfileReservedTime=1\n{text}\n")
    assert (changed.config, changed.store) == before


def test_all_settings_are_listed_under_rocketmqs_names() -> None:
    lines = settings().lines()
    assert lines == sorted(lines)
    for line in (
        "brokerName=b",
        "useTLS=false",
        "longPollingEnable=true",
        "maxMessageSize=4194304",
    ):
        assert line in lines
    assert "namesrvAddr=n:1;m:2" in lines
    assert "brokerIP1=" in lines


@pytest.mark.parametrize(
    ("lines", "role"),
    [
        ("brokerRole=SLAVE", "SYNC_MASTER"),
        ("brokerRole=SYNC_MASTER", "SYNC_MASTER"),
        ("brokerRole=ASYNC_MASTER", "ASYNC_MASTER"),
        ("allAckInSyncStateSet=true", "SYNC_MASTER"),
        ("brokerId=-1", "ASYNC_MASTER"),
    ],
)
def test_a_file_for_controller_mode_says_how_the_broker_acknowledges(lines: str, role: str) -> None:
    text = f"enableControllerMode=true\ncontrollerAddr=a:9878;b:9878\n{lines}\n"
    loaded = load([BrokerConfig], file=ConfigFile("a.conf", text)).of(BrokerConfig)
    assert loaded.elector_place == "controller://a:9878;b:9878"
    assert loaded.leading_role == role


def test_a_broker_shows_that_it_lives_more_often_than_it_is_replaced() -> None:
    text = "enableControllerMode=true\ncontrollerAddr=a:9878\nbrokerHeartbeatInterval=6000\n"
    with pytest.raises(ConfigError, match="controllerHeartBeatTimeoutMills"):
        load([BrokerConfig], file=ConfigFile("a.conf", text))
