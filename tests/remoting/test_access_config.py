from __future__ import annotations

import pytest

from sprocket.base.config import check
from sprocket.base.errors import ConfigError
from sprocket.protocol.signing import Signer
from sprocket.remoting.access_config import AccessConfig


def test_keys_make_a_signer_and_half_of_them_none() -> None:
    assert AccessConfig().signer() is None
    assert AccessConfig(access_key="me", secret_key="key").signer() == Signer("me", "key")
    with pytest.raises(ConfigError, match="belong together, and one of them is missing"):
        check(AccessConfig(access_key="me"))


def test_all_settings_of_access_are_passed_on() -> None:
    config = AccessConfig(access_key="me", secret_key="key", tls=True, tls_server_name="n")
    assert AccessConfig(**config.access_settings()) == config
    assert "'key'" not in repr(config)
