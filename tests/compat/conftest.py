"""Servers that several modules of real counterparts share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.compat.javaland import require_java
from tests.compat.sprocketland import SprocketNode


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SprocketNode]:
    """Our name server and broker, started as a user starts them."""
    require_java()
    # A lease that is not given back is seen: who waits for its end waits for too long.
    settings = {"broker.lock_lease_ms": 600_000}
    with SprocketNode(tmp_path_factory.mktemp("node"), settings=settings) as running:
        yield running
        running.stop()
