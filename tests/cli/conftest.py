"""One node for all tests of commands that need one; each uses topics of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.parts import running_node


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name server's address."""
    with running_node(str(tmp_path_factory.mktemp("store"))) as address:
        yield address
