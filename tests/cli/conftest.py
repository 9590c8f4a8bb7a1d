"""One node for all tests of commands that need one; each uses topics of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sprocket.broker.config import BrokerConfig
from tests.cli.closed import INNER, ROOT, Command, commands_at
from tests.cli.parts import running_node


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name server's address."""
    with running_node(str(tmp_path_factory.mktemp("store"))) as address:
        yield address


@pytest.fixture(scope="session")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """Runs commands of the super user at a node that checks signatures and rights."""
    rules = BrokerConfig(
        port=0, authentication=True, authorization=True, first_user=ROOT, inner_keys=INNER
    )
    with running_node(str(tmp_path_factory.mktemp("closed")), rules) as address:
        yield commands_at(address)
