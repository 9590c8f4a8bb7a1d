"""Sprocket's plugin for pytest: the fixture `rocketmq`, and tests in virtual time.

pytest finds it by an entry point, so every pytest run in an environment with Sprocket imports this
module. It therefore imports nothing of Sprocket's until a test asks for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sprocket.standalone import Config
    from sprocket.testing.node_thread import NodeThread

#: Mark of tests that run in virtual time.
_MARK = "virtual_time"


def pytest_configure(config: pytest.Config) -> None:
    """Registers the mark."""
    config.addinivalue_line(
        "markers",
        f"{_MARK}(seed=0, brokers=1, nameservers=1): runs an async test in virtual time, with a "
        "simulated RocketMQ as its fixture rocketmq",
    )


@pytest.fixture(scope="session")
def rocketmq_configs() -> tuple[Config, ...]:
    """Settings of the brokers of tests, as for `sprocket.Standalone`; made to be overridden."""
    return ()


@pytest.fixture(scope="session")
def rocketmq_node(rocketmq_configs: tuple[Config, ...]) -> Iterator[NodeThread]:
    """The broker that the tests of a session share."""
    from sprocket.testing.node_thread import NodeThread

    with NodeThread(rocketmq_configs) as node:
        yield node


@pytest.fixture
def rocketmq(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> NodeThread | None:
    """A running broker: its `nameservers`, and topics of the test's own.

    Clients without an address of name servers connect to it too. In a test with the mark
    `virtual_time` it is a `VirtualTopics`, and no broker is started.
    """
    if request.node.get_closest_marker(_MARK) is not None:
        return None  # the simulation gives the test its cluster
    node: NodeThread = request.getfixturevalue("rocketmq_node")
    monkeypatch.setenv("SPROCKET_NAMESERVERS", node.nameservers)
    return node


@pytest.fixture
def own_rocketmq(
    rocketmq_configs: tuple[Config, ...], monkeypatch: pytest.MonkeyPatch
) -> Iterator[NodeThread]:
    """As `rocketmq`, with a broker that no other test uses; it takes half a second."""
    from sprocket.testing.node_thread import NodeThread

    with NodeThread(rocketmq_configs) as node:
        monkeypatch.setenv("SPROCKET_NAMESERVERS", node.nameservers)
        yield node


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """Runs a test with the mark in virtual time.

    It is a wrapper, so the plugins that run async tests find a plain function.
    """
    mark = pyfuncitem.get_closest_marker(_MARK)
    if mark is None:
        return (yield)
    from sprocket.testing.virtual_time import virtual_time

    if mark.args:
        pytest.fail(f"{_MARK} takes its arguments by name, such as seed={mark.args[0]!r}", False)
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        test = inspect.unwrap(test)  # pytest-asyncio has replaced it by a function of its own
    pyfuncitem.obj = virtual_time(**mark.kwargs)(test)
    try:
        return (yield)
    finally:
        pyfuncitem.obj = test
