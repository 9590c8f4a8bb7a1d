from __future__ import annotations

import pytest

from sprocket.base.errors import ConfigError
from sprocket.client.base.nameservers import nameserver_addresses


def test_addresses_come_from_the_caller_or_else_from_the_environment() -> None:
    given = {"SPROCKET_NAMESERVERS": "a:1;b:2", "NAMESRV_ADDR": "c:3"}
    assert nameserver_addresses(None, given) == ("a:1", "b:2")
    assert nameserver_addresses(None, {"NAMESRV_ADDR": "c:3"}) == ("c:3",)
    assert nameserver_addresses("d:4, e:5;d:4", given) == ("d:4", "e:5")
    assert nameserver_addresses(["f:6", "e:5"], given) == ("e:5", "f:6")


def test_wrong_ones_are_refused() -> None:
    for wrong in ("", [], "no port", 7):
        with pytest.raises(ConfigError):
            nameserver_addresses(wrong, {})  # type: ignore[arg-type]
