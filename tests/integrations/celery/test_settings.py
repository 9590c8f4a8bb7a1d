from __future__ import annotations

import pytest

from sprocket.base.errors import ConfigError
from sprocket.integrations.celery.addresses import address_of
from sprocket.integrations.celery.settings import settings_of


def test_an_address_has_name_servers_keys_and_a_prefix() -> None:
    assert address_of(["rocketmq://host"]).nameservers == ("host:9876",)
    found = address_of(["sprocket+rocketmq://me:a%2Fb@one:1/shop", "two:2", "[::1]", "two:2"])
    assert found.nameservers == ("one:1", "two:2", "[::1]:9876")
    assert (found.access_key, found.secret_key, found.prefix) == ("me", "a/b", "shop-")


@pytest.mark.parametrize("url", ["rocketmq://", "rocketmq://host:port", "rocketmq://host:99999"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        address_of([url])
    with pytest.raises(ConfigError):
        address_of([])


def test_options_have_the_names_and_units_that_users_of_celery_know() -> None:
    options = {"visibility_timeout": 5, "queue_name_prefix": "x-", "delays": "worker"}
    found = settings_of(["rocketmq://me:word@host/shop"], options, {"ca_certs": "ca.pem"})
    assert (found.queues.invisible_ms, found.queues.prefix) == (5_000, "x-")
    assert not found.delays_at_broker
    assert found.queues.client == {
        "access_key": "me", "secret_key": "word", "tls": True, "tls_authorities": "ca.pem"
    }  # fmt: skip
    assert "word" not in repr(found)
    assert "word" not in found.identity
    other = settings_of(["rocketmq://me:other@host/shop"], options, {"ca_certs": "ca.pem"})
    assert found.identity != other.identity


@pytest.mark.parametrize(
    "options",
    [
        {"visibility_timout": 5},
        {"visibility_timeout": "5"},
        {"visibility_timeout": float("nan")},
        {"delays": "never"},
        {"queues_per_topic": 0},
    ],
)
def test_an_option_that_cannot_be_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        settings_of(["rocketmq://host"], options, None)
