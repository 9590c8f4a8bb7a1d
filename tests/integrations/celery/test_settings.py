from __future__ import annotations

import ssl

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


@pytest.mark.parametrize("mark", "/?#")
def test_a_secret_that_is_not_escaped_is_refused_without_showing_it(mark: str) -> None:
    for secret in (f"wonder{mark}land", f"123{mark}land"):
        with pytest.raises(ConfigError, match="%2F") as refused:
            address_of([f"rocketmq://me:{secret}@host:9876"])
        assert not any(part in str(refused.value) for part in ("wonder", "123", "land"))


def test_options_in_an_address_are_named() -> None:
    with pytest.raises(ConfigError, match=r"\(visibility_timeot, other\)"):
        address_of(["rocketmq://host/?visibility_timeot=5&other"])


def test_no_address_is_refused() -> None:
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


def test_keys_may_be_beside_the_address_and_those_in_it_count_more() -> None:
    beside = settings_of(["rocketmq://host"], {}, None, ("me", "a/b%"))
    assert beside.queues.client == {"access_key": "me", "secret_key": "a/b%"}
    both = settings_of(["rocketmq://you:word@host"], {}, None, ("me", "a/b%"))
    assert both.queues.client == {"access_key": "you", "secret_key": "word"}


def test_certificates_are_checked_unless_that_is_switched_off() -> None:
    def client(value: ssl.VerifyMode) -> object:
        return settings_of(["rocketmq://host"], {}, {"cert_reqs": value}).queues.client

    assert client(ssl.CERT_NONE) == {"tls": True, "tls_check": False}
    assert client(ssl.CERT_REQUIRED) == {"tls": True}
    for wrong in ({"ca_cert": "ca.pem"}, {"ssl_ca_certs": "ca.pem"}, "yes"):
        with pytest.raises(ConfigError, match="broker_use_ssl"):
            settings_of(["rocketmq://host"], {}, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {"visibility_timout": 5},
        {"visibility_timeout": "5"},
        {"visibility_timeout": float("nan")},
        {"delays": "never"},
        {"queues_per_topic": 0},
        {"create_topics": "no"},
        {"client": 5},
        {"client": {"no_such": 5}},
        {"client": {"call_timeout_ms": "5"}},
    ],
)
def test_an_option_that_cannot_be_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        settings_of(["rocketmq://host"], options, None)
