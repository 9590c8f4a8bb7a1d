"""The settings of a proxy."""

from __future__ import annotations

import pytest

from sprocket.base.config import check, settings_of
from sprocket.base.errors import ConfigError
from sprocket.proxy.config import ProxyConfig


def test_defaults_are_rocketmqs() -> None:
    config = ProxyConfig()
    check(config)
    assert (config.port, config.body_bytes_max, config.properties_max) == (8081, 4 << 20, 128)
    assert (config.hold_ms_min, config.hold_ms_max) == (5_000, 20_000)
    assert (config.invisible_ms_min, config.invisible_ms_max) == (10_000, 43_200_000)
    assert (config.producer_attempts_max, config.receive_count_max) == (3, 32)


def test_rocketmqs_names_are_known() -> None:
    names = {name for each in settings_of(ProxyConfig).values() for name in each.rocketmq_names}
    assert {"grpcServerPort", "namesrvAddr", "maxMessageSize", "enableProxyAutoRenew"} <= names


def test_values_out_of_bounds_are_refused() -> None:
    with pytest.raises(ConfigError):
        check(ProxyConfig(port=70_000))
