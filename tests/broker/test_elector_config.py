"""The settings of a broker whose group elects its master."""

from __future__ import annotations

from typing import Any

import pytest

from sprocket.base.config import check
from sprocket.base.errors import ConfigError
from sprocket.broker.config import BrokerConfig


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({}, None),
        ({"elector": "etcd://a:2379,b:2379"}, "etcd://a:2379,b:2379"),
        ({"elector": "etcd://a:1", "role": "SYNC_MASTER", "id": -1}, "etcd://a:1"),
        ({"controller_mode": True, "controllers": "a:9878;b:9878"}, "controller://a:9878;b:9878"),
        (
            {"controller_mode": True, "controllers": "a:1", "role": "SLAVE", "id": -1},
            "controller://a:1",
        ),
        ({"controllers": "a:9878"}, None),
    ],
)
def test_either_way_names_the_elector(settings: dict[str, Any], place: str | None) -> None:
    config = BrokerConfig(**settings)
    check(config)
    assert config.elector_place == place


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"elector": "a:2379"}, "broker.elector is etcd://host:2379"),
        ({"elector": "etcd://a:1", "role": "SLAVE"}, "set SYNC_MASTER or ASYNC_MASTER"),
        ({"elector": "etcd://a:1", "id": 2}, "each broker gets its number from it: leave it out"),
        ({"elector": "etcd://a:1", "controller_mode": True}, "both name an elector: keep one"),
        ({"controller_mode": True}, r"\(controllerAddr\) is needed"),
        ({"controller_mode": True, "controllers": "a"}, r"\(controllerAddr\).*host:port"),
        ({"id": -1}, r"broker.id \(brokerId\) is at least 0, not -1"),
        ({"elector": "etcd://a:1", "name": "b#1"}, "have no # in them"),
        ({"elector": "etcd://a:1", "elector_cert": "/c"}, "broker.elector_key"),
    ],
)
def test_what_does_not_fit_together_is_explained(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        check(BrokerConfig(**settings))
