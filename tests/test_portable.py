"""The client runs where there is no POSIX, for instance on Windows."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.test_tidy import modules, name_of

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


def loaded_at_once(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """Imports that run whenever a module is loaded: no condition or `try` is around them."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.ClassDef | ast.With):
            yield from loaded_at_once(node.body)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("import fcntl", 1),
        ("import os, fcntl", 1),
        ("from resource import setrlimit", 1),
        ("if sys.platform != 'win32':\n    import fcntl", 0),
        ("def f():\n    import fcntl", 0),
        ("import os", 0),
    ],
)
def test_the_search_for_such_imports_finds_them(text: str, count: int) -> None:
    assert len(list(posix_imports(ast.parse(text)))) == count


def posix_imports(tree: ast.Module) -> Iterator[str]:
    for node in loaded_at_once(tree.body):
        names = (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
        )
        yield from (name for name in names if name.partition(".")[0] in HIDDEN)


def test_no_module_needs_them_to_be_loaded() -> None:
    wrong = [
        f"{name_of(path)} imports {name}"
        for path in modules()
        for name in posix_imports(ast.parse(path.read_text()))
    ]
    assert not wrong, "\n".join(wrong)


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
