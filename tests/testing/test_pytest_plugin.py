"""The plugin, in pytest runs of its own that find it by its entry point."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sprocket import __version__

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "src"
GUIDE = (ROOT / "docs" / "guide" / "testing.md").read_text()

#: Prints which modules a run of pytest has loaded.
PRINTING = """
import sys

def pytest_unconfigure():
    print("LOADED", *sys.modules)
"""
#: Settings of the guide, as they arrive at the broker.
CONFIGURED = """
def test_the_broker_has_its_name(rocketmq):
    assert rocketmq.send(rocketmq.topic(), "x").queue.broker == "broker-of-tests"
"""


@pytest.fixture(autouse=True)
def installed(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our package as installed: the sources, and the entry points of pyproject.toml beside them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    site = pytester.path / "installed"
    about = site / f"sprocketmq-{__version__}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {__version__}\n"
    )
    lines = [f"{name} = {module}" for name, module in project["entry-points"]["pytest11"].items()]
    (about / "entry_points.txt").write_text("\n".join(["[pytest11]", *lines, ""]))
    monkeypatch.setenv("PYTHONPATH", f"{site}:{SOURCE}")
    monkeypatch.delenv("SPROCKET_NAMESERVERS", raising=False)
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", raising=False)


def outcome(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *options, timeout=200)


def test_who_does_not_use_it_imports_nothing_of_it(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(PRINTING)
    pytester.makepyfile("def test_plain():\n    pass\n")
    loaded = []
    for options in ([], ["-p", "no:sprocket"]):
        done = outcome(pytester, *options)
        done.assert_outcomes(passed=1)
        (found,) = re.findall(r"LOADED (.*)", done.stdout.str())
        loaded.append(set(found.split()))
    with_it, without = loaded
    assert with_it - without == {
        "sprocket", "sprocket.testing", "sprocket.testing.pytest_plugin",
    }  # fmt: skip


def test_nothing_of_ours_imports_pytest() -> None:
    modules = "sprocket.testing.node_thread, sprocket.testing.unittest_case"
    code = (
        f"import sys, {modules}, sprocket.testing.virtual_time; assert 'pytest' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_tests_share_a_broker_and_have_topics_of_their_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import asyncio, os
        import pytest
        from sprocket import Message, Producer
        from sprocket.broker.config import BrokerConfig
        from sprocket.client import blocking

        seen, topics = set(), set()

        @pytest.fixture(scope="session")
        def rocketmq_configs():
            return (BrokerConfig(name="b-7", port=0),)

        @pytest.mark.parametrize("number", [1, 2])
        def test_blocking(rocketmq, number):
            seen.add(rocketmq.nameservers)
            topic = rocketmq.topic("orders")
            assert topic not in topics
            topics.add(topic)
            with blocking.Producer("p") as producer:
                assert producer.send(Message(topic, b"x")).queue.broker == "b-7"
            assert len(rocketmq.messages(topic, 1)) == 1

        @pytest.mark.anyio
        async def test_async(rocketmq, anyio_backend_name):
            seen.add(rocketmq.nameservers)
            topic = await rocketmq.aio.topic("orders")
            async with Producer("p", nameservers=rocketmq.nameservers) as producer:
                await producer.send(Message(topic, b"y"))
            assert [m.body for m in await rocketmq.aio.messages(topic, 1)] == [b"y"]

        @pytest.fixture
        def anyio_backend():
            return "asyncio"

        def test_own(own_rocketmq):
            assert own_rocketmq.nameservers == os.environ["SPROCKET_NAMESERVERS"]
            assert own_rocketmq.nameservers not in seen
            assert own_rocketmq.topic("orders") == "orders-1"

        def test_all_used_one_broker():
            assert len(seen) == 1 and "SPROCKET_NAMESERVERS" not in os.environ
        """
    )
    outcome(pytester).assert_outcomes(passed=5)


def test_a_mark_runs_a_test_in_virtual_time_whatever_runs_async_tests(
    pytester: pytest.Pytester,
) -> None:
    # The conftest does what pytest-asyncio does in its mode "auto": a plain function stands for
    # the async one; anyio's own mark takes tests in its way.
    pytester.makeconftest(
        """
        import asyncio, functools, inspect
        import pytest

        @pytest.fixture
        def anyio_backend():
            return "asyncio"

        def pytest_itemcollected(item):
            if "replaced" in item.name:
                test = item.obj
                @functools.wraps(test)
                def run(**named):
                    asyncio.run(test(**named))
                item.obj = run
        """
    )
    pytester.makepyfile(
        """
        import asyncio
        import pytest
        from sprocket import Message, Producer

        async def minutes(rocketmq):
            topic = await rocketmq.topic("orders")
            async with Producer("p") as producer:
                await producer.send(Message(topic, b"x", delay=600))
            assert await rocketmq.messages(topic) == []
            await asyncio.sleep(601)
            assert len(await rocketmq.messages(topic)) == 1

        @pytest.mark.virtual_time
        async def test_plain(rocketmq, tmp_path):
            await minutes(rocketmq)

        @pytest.mark.virtual_time
        async def test_replaced(rocketmq):
            await minutes(rocketmq)

        @pytest.mark.anyio
        @pytest.mark.virtual_time
        async def test_with_anyio(rocketmq):
            await minutes(rocketmq)

        class TestClass:
            @pytest.mark.virtual_time(brokers=2)
            @pytest.mark.parametrize("number", [2])
            async def test_method(self, number, rocketmq):
                assert len(rocketmq.cluster.brokers) == number

        @pytest.mark.virtual_time(seed=11)
        async def test_fails(rocketmq):
            await rocketmq.messages(await rocketmq.topic("orders"), 1)

        @pytest.mark.virtual_time
        def test_sync(rocketmq):
            pass

        @pytest.mark.virtual_time(17)
        async def test_by_place(rocketmq):
            pass
        """
    )
    done = outcome(pytester, "--strict-markers")
    done.assert_outcomes(passed=4, failed=3)
    done.stdout.fnmatch_lines(["*virtual_time takes its arguments by name, such as seed=17*"])
    done.stdout.fnmatch_lines(["*orders-1 has 0 of 1 messages after 10 s*", "*with seed=11*"])
    done.stdout.fnmatch_lines(["*virtual time needs an async test; test_sync is none*"])


def test_the_guide_s_tests_pass(pytester: pytest.Pytester) -> None:
    shown = re.findall(r"^```python no-run\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    assert len(shown) >= 4
    for number, text in enumerate(shown, 1):
        name = "conftest" if text.startswith("# conftest.py") else f"test_guide_{number}"
        pytester.makepyfile(**{name: text})
    pytester.makepyfile(test_configured=CONFIGURED)
    done = outcome(pytester)
    assert done.ret == 0, done.stdout.str()
    passed = done.parseoutcomes()["passed"]
    assert passed == sum(len(re.findall(r"def test_", text)) for text in [*shown, CONFIGURED])
