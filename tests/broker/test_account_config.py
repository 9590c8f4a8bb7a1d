"""The settings of users and permissions."""

from __future__ import annotations

import pytest

from sprocket.auth.first_users import FirstUser
from sprocket.base.config import check
from sprocket.base.errors import ConfigError
from sprocket.broker.config import BrokerConfig
from sprocket.protocol.signing import Signer

KEYS = '{"accessKey":"inner","secretKey":"hidden"}'


def test_both_kinds_of_first_users_are_super_users_of_the_start() -> None:
    config = BrokerConfig(first_user='{"username":"admin","password":"pass"}', inner_keys=KEYS)
    assert list(config.first_users()) == [FirstUser("admin", "pass"), FirstUser("inner", "hidden")]
    assert config.inner_signer() == Signer("inner", "hidden")
    assert not list(BrokerConfig().first_users())
    assert BrokerConfig().inner_signer() is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"first_user": "admin"},
        {"first_user": '{"username":"admin"}'},
        {"inner_keys": '{"accessKey":5,"secretKey":"x"}'},
        {"unsigned_codes": ("10", "x")},
        {"unjudged_codes": ("-1",)},
        {"authorization": True},
    ],
)
def test_settings_that_say_nothing_clear_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        check(BrokerConfig(**wrong))  # type: ignore[arg-type]


def test_no_secret_is_shown() -> None:
    assert "hidden" not in repr(BrokerConfig(inner_keys=KEYS))
