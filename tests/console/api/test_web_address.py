"""Where a web server listens: who reaches it, and TLS that is whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from sprocket.base.errors import ConfigError
from sprocket.console.api.callers import CallerEntry, KnownCallers
from sprocket.console.api.web_address import WebAddress

OPEN = KnownCallers(None)
CLOSED = KnownCallers([CallerEntry(name="a", token="a-token-that-nobody-guesses")])


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1"])
def test_strangers_are_let_in_only_as_callers(host: str) -> None:
    with pytest.raises(ConfigError, match="--callers"):
        WebAddress(host).check(OPEN)
    WebAddress(host).check(CLOSED)
    WebAddress("127.0.0.1").check(OPEN)


def test_tls_is_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="go together"):
        WebAddress(certificate=tmp_path / "a")
    assert not WebAddress().is_secure
    assert WebAddress(certificate=tmp_path / "a", key=tmp_path / "b").is_secure
