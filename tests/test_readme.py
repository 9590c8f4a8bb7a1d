"""What the README shows runs as it stands there."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
from pathlib import Path

import pytest

import sprocket
from tests.support import run

README = (Path(__file__).resolve().parent.parent / "README.md").read_text()


def block(first_words: str) -> str:
    """The Python example that begins with these words."""
    blocks: list[str] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    return next(text for text in blocks if text.startswith(first_words))


@pytest.mark.process
def test_the_first_example_sends_an_order_and_bills_it() -> None:
    code = block("import asyncio").replace("asyncio.run(main())", "")
    printed = io.StringIO()

    async def main() -> None:
        async with sprocket.Standalone(store=None) as node:
            names: dict[str, object] = {}
            exec(code.replace("127.0.0.1:9876", node.nameserver_address), names)
            shown = asyncio.create_task(names["main"]())  # type: ignore[operator]
            while "one coffee" not in printed.getvalue():
                assert not shown.done(), printed.getvalue()
                await asyncio.sleep(0.02)
            shown.cancel()
            await asyncio.wait([shown])

    with contextlib.redirect_stdout(printed):
        run(main())
    assert "['o-1'] b'one coffee'" in printed.getvalue()


def test_every_command_it_names_exists() -> None:
    from sprocket.cli.main import app

    shown = set(re.findall(r"`?sprocket ([a-z]+)", README)) - {"import"}
    known = {command.name for command in app.registered_commands}
    known |= {group.name for group in app.registered_groups}
    assert shown <= known | {"spark"}, shown - known
