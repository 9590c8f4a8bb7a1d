"""The client runs where there is no POSIX, for instance on Windows."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: Modules that only POSIX has, and the fast loop that is not made for Windows.
HIDDEN = (
    "fcntl", "resource", "pwd", "grp", "spwd", "crypt", "termios", "tty", "pty", "syslog", "nis",
    "readline", "uvloop", "posix_ipc",
)  # fmt: skip

PROBE = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())
for name in {hidden!r}:
    sys.modules.pop(name, None)
{statements}
"""


def probe(statements: str) -> None:
    code = PROBE.format(hidden=set(HIDDEN), statements=statements)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "statements",
    [
        "import sprocket",
        "import sprocket.client",
        "from sprocket import Message, Producer, PullConsumer, PushConsumer",
        "import sprocket.client.blocking",
        "import sprocket.admin.topics, sprocket.admin.messages, sprocket.admin.groups",
        "import sprocket.cli.main",
    ],
)
def test_it_imports_nothing_that_only_posix_has(statements: str) -> None:
    probe(statements)


def test_a_client_starts_and_fails_as_it_should_without_them() -> None:
    probe(
        """
import asyncio
from sprocket import Message, Producer
from sprocket.base.errors import SprocketError

async def main():
    async with Producer("group", nameservers="127.0.0.1:1") as producer:
        try:
            await producer.send(Message("orders", b"x"), timeout_ms=200)
        except SprocketError:
            return
        raise AssertionError("nobody listens there")

asyncio.run(main())
"""
    )


def test_the_package_itself_loads_nothing_before_it_is_used() -> None:
    code = (
        "import sys, sprocket\n"
        "loaded = [n for n in sys.modules if n.startswith('sprocket.')]\n"
        "assert not loaded, loaded\n"
        "assert {'Message', 'Producer', 'Standalone'} <= set(dir(sprocket))\n"
        "assert sprocket.Message is sprocket.Message\n"
        "assert not hasattr(sprocket, 'nothing')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_there() -> None:
    import sprocket

    for name in sprocket.__all__:
        assert getattr(sprocket, name).__name__ == name
